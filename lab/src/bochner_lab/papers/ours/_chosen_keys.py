"""Other ways to choose the keys that a query meets, in plain form: all scores are computed, and those of other keys masked.

Import this file only where torch and transformers are known to be installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface

ORACLE, LOW_RANK, BLOCKS, SAMPLED = "largest (oracle)", "low-rank scores", "block summaries", "sampled keys"
METHODS = (ORACLE, LOW_RANK, BLOCKS, SAMPLED)
RANK = 8
"""Numbers of a key that low-rank scores read: 16 bytes in half precision, as a code of 64 bits with its two numbers."""
SUMMARY = 16
"""Keys of a block that has a summary, its mean."""
CANDIDATES = 3
"""Keys whose exact scores are computed, per key that is kept, as with codes."""
_NAME = "bochner-lab"
_current: list[Callable[..., Tensor]] = []


def _function(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Any, scaling: float | None = None, **_: Any
) -> tuple[Tensor, None]:
    group = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(group, dim=1) for x in (key, value))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    return _current[-1](module, query * scale, key, value).transpose(1, 2).contiguous(), None


@contextmanager
def attention_by(model: Any, compute: Callable[..., Tensor]) -> Iterator[None]:
    """Compute all attention of a model by ``compute(module, x, y, v)``, x times the scale; afterwards it is as before."""
    AttentionInterface.register(_NAME, _function)
    usual = model.config._attn_implementation
    _current.append(compute)
    model.set_attn_implementation(_NAME)
    try:
        yield
    finally:
        model.set_attn_implementation(usual)
        _current.pop()


class Bases:
    """For each attention the directions in which its queries vary most, by which low-rank scores are computed."""

    def __init__(self) -> None:
        self.of: dict[int, Tensor] = {}

    def learn(self, causal: bool) -> Callable[..., Tensor]:
        """Exact attention that notes the principal directions of the queries, those that scores depend on."""

        def compute(module: nn.Module, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
            moments = (x.mT @ x).sum(0).double()
            self.of[id(module)] = torch.linalg.eigh(moments).eigenvectors[..., -RANK:].to(x)
            return _scores(x, y, causal).softmax(-1) @ v

        return compute


def choosing(
    method: str, bases: Bases, cost: int, causal: bool, anchors: int, generator: torch.Generator
) -> Callable[..., Tensor]:
    """Attention to a window and the first keys, of half the cost, and to chosen keys of the other half."""
    kept = cost // 2
    window = cost - kept - anchors if causal else (cost - kept - anchors + 1) // 2

    def compute(module: nn.Module, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        scores = _scores(x, y, causal)
        i = torch.arange(x.shape[-2])
        near = ((i[:, None] - i).abs() < window) | (i < anchors)
        far = (scores > -torch.inf) & ~near
        if method == ORACLE:
            return _attend(scores, near | _largest(scores, far, kept), v)
        if method == BLOCKS:
            return _attend(scores, near | _blocks(x, y, far, kept), v)
        basis = bases.of[id(module)]
        rough = (x @ basis) @ (y @ basis).mT
        if method == LOW_RANK:
            proposed = _largest(rough, far, CANDIDATES * kept)
            return _attend(scores, near | _largest(scores, proposed, kept), v)
        return _sampled(scores, rough, near, far, kept, v, generator)

    return compute


def _scores(x: Tensor, y: Tensor, causal: bool) -> Tensor:
    scores = x @ y.mT
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    return scores


def _largest(scores: Tensor, among: Tensor, count: int) -> Tensor:
    """The keys with the largest scores, (batch, heads, n, n) of bool."""
    places = scores.masked_fill(~among, -torch.inf).topk(min(count, scores.shape[-1]), dim=-1).indices
    return torch.zeros_like(among).scatter(-1, places, True) & among


def _blocks(x: Tensor, y: Tensor, far: Tensor, kept: int) -> Tensor:
    """The far keys of the blocks whose mean key has the largest score."""
    blocks = -(-y.shape[-2] // SUMMARY)
    members = torch.arange(y.shape[-2]) // SUMMARY
    sums = y.new_zeros(*y.shape[:2], blocks, y.shape[-1]).index_add(2, members, y)
    means = sums / members.bincount()[:, None]
    open_ = torch.zeros(*far.shape[:-1], blocks, dtype=torch.int32).index_add(-1, members, far.int()) > 0
    chosen = _largest(x @ means.mT, open_, max(kept // SUMMARY, 1))
    return chosen[..., members] & far


def _sampled(
    scores: Tensor, rough: Tensor, near: Tensor, far: Tensor, kept: int, v: Tensor, generator: torch.Generator
) -> Tensor:
    """Far keys drawn in proportion to their rough weight; each draw counts by the inverse of its chance."""
    chances = rough.masked_fill(~far, -torch.inf).softmax(-1).nan_to_num(0.0)
    some = far.any(-1, keepdim=True)
    flat = torch.where(some, chances, 1.0).flatten(0, -2)
    drawn = torch.multinomial(flat, kept, replacement=True, generator=generator).unflatten(0, scores.shape[:-1])
    logits = scores.gather(-1, drawn) - chances.gather(-1, drawn).clamp(min=1e-30).log() - math.log(kept)
    logits = torch.cat([scores.masked_fill(~near, -torch.inf), logits.masked_fill(~some, -torch.inf)], dim=-1)
    weights = logits.softmax(-1)
    n = scores.shape[-1]
    spread = torch.zeros_like(scores).scatter_add(-1, drawn, weights[..., n:])
    return (weights[..., :n] + spread) @ v


def _attend(scores: Tensor, used: Tensor, v: Tensor) -> Tensor:
    return scores.masked_fill(~used, -torch.inf).softmax(-1) @ v
