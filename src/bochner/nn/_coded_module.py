"""Coded attention inside models of ``transformers``: the module that computes the attention of a converted layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from .. import projections
from ..maps import Frame
from ._attention_features import grouped
from ._coded_attention import attend
from ._coded_layout import KeySelection
from ._coded_plan import CodedPlan
from ._coded_remainder import Remainder
from ._drawn import DrawnFeatures
from ._families import family_of, sizes
from ._hugging_face import HeadAttention
from ._hugging_face_masks import apart
from ._key_codes import KeyCodes
from ._score_rule import AS_THEY_ARE, ScoreRule

_OWNER = "replace_attention"


class CodedAttention(HeadAttention):
    """Coded attention of queries, keys and values that another module has projected.

    Sequences with fewer keys than ``exact_below`` are computed by exact attention, which is faster there.

    Parameters
    ----------
    plan : CodedPlan
        Keys, codes and features of each head.
    module : torch.nn.Module
        Attention of a known family of ``transformers``, whose heads, type and device are taken.
    generator : torch.Generator, optional
        Source of the draw.
    """

    changes_scores = True
    codes: KeyCodes
    remainder: Remainder | None

    def __init__(self, plan: CodedPlan, module: nn.Module, *, generator: torch.Generator | None) -> None:
        nn.Module.__init__(self)
        if family_of(module) is None:
            raise ValueError(
                f"{_OWNER}: a CodedPlan converts attention of transformers, got {type(module).__name__}; call "
                f"bochner.nn.coded_attention in an attention of your own, or use features for this one."
            )
        weight, (heads, d) = next(module.parameters()), sizes(module)
        if (len(plan), plan.heads[0].frame.d) != (heads, d):
            raise ValueError(
                f"{_OWNER}: the plan has {len(plan)} heads of width {plan.heads[0].frame.d}, and the attention has "
                f"{heads} of width {d}."
            )
        dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
        self._take(plan)
        frames = [head.frame for head in plan.heads]
        self.codes = KeyCodes(frames, plan.bits, plan.projection, dtype=dtype, generator=generator).to(weight.device)
        gated = [h for h, head in enumerate(plan.heads) if head.rows]
        self.remainder = None
        if gated:
            specs = tuple(head.features for head in plan.heads if head.rows and head.features is not None)
            features = DrawnFeatures(specs, d, len(gated), True, dtype=dtype, generator=generator)
            self.remainder = Remainder(features, gated, [plan.heads[h].gate for h in gated]).to(weight.device)

    def _take(self, plan: CodedPlan) -> None:
        kept = tuple(head.kept for head in plan.heads)
        candidates = tuple(head.candidates or 0 for head in plan.heads)
        sampled = tuple(head.sampled for head in plan.heads)
        self.selection = KeySelection(plan.window, plan.anchors, candidates, kept, plan.block, sampled)
        self.exact_below = plan.exact_below

    @property
    def cost(self) -> tuple[int, ...]:
        """Keys that are kept or drawn in each head, beyond window and anchors."""
        kept, sampled = self.selection.kept, self.selection.sampled
        return tuple(k + s for k, s in zip(kept, sampled or (0,) * len(kept), strict=True))

    def record(self) -> dict[str, Any]:
        """JSON values that say what it is, for `from_record`; numbers are in buffers."""
        found: dict[str, Any] = {
            "heads": self.codes.heads,
            "d": self.codes.d,
            "dtype": str(self.codes.rows.dtype).removeprefix("torch."),
            "exact_below": self.exact_below,
            "codes": {"bits": self.codes.bits, "projection": type(self.codes.projection).__name__},
            "selection": {name: _plain(value) for name, value in self.selection._asdict().items()},
        }
        if self.remainder is not None:
            found["remainder"] = {"heads": self.remainder.heads, "features": self.remainder.features.record}
        return found

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> CodedAttention:
        """The attention that a record describes, whose buffers wait for their numbers."""
        attention = cls.__new__(cls)
        nn.Module.__init__(attention)
        attention.selection = KeySelection(**{n: _hashable(value) for n, value in record["selection"].items()})
        attention.exact_below = record["exact_below"]
        heads, d, dtype = record["heads"], record["d"], getattr(torch, record["dtype"])
        frames = [Frame(np.zeros(d), np.zeros(d), np.eye(d))] * heads
        projection = getattr(projections, record["codes"]["projection"])()
        attention.codes = KeyCodes(frames, record["codes"]["bits"], projection, dtype=dtype)
        attention.remainder = None
        if "remainder" in record:
            own = record["remainder"]
            features = DrawnFeatures.from_record(own["features"])
            attention.remainder = Remainder(features, own["heads"], [0.0] * len(own["heads"]))
        return attention

    def restore(self) -> None:
        """Check the numbers that were put into the buffers."""
        for name, values in self.codes.named_buffers():
            if not bool(values.isfinite().all()):
                raise ValueError(f"{name} holds numbers that are not finite")
        if self.remainder is not None:
            self.remainder.features.restore()

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        causal: bool,
        prefixes: Tensor | None,
        key_mask: Tensor | None,
        scale: float,
        state: Any = None,
        borders: Tensor | None = None,
        rule: ScoreRule = AS_THEY_ARE,
    ) -> Tensor:
        """Attention of tensors (batch, heads, length, d), called as `HeadAttention` is; a state is not used.

        Keys of an ordinary cache have no codes, and computing them would take longer than attention to all keys, so that
        a few queries with many keys are exact.
        """
        n, p = q.shape[-2], k.shape[-2]
        if borders is not None:
            rule, causal = rule.hidden_by(apart(borders, p)), False
        last = prefixes is None or torch.equal(prefixes, torch.arange(p - n + 1, p + 1, device=prefixes.device))
        if p < self.exact_below or not last or (prefixes is not None and n < p // 2):
            return exact(q, k, v, causal, prefixes, key_mask, scale, rule)
        mask = None if key_mask is None else key_mask if key_mask.ndim == 3 else key_mask.expand(len(k), -1)[:, None]
        k, v, mask = (grouped(q, x, name) for x, name in ((k, "k"), (v, "v"), (mask, "key_mask")))
        work = torch.float64 if q.dtype == torch.float64 else torch.float32
        x, y, w = q.to(work) * scale**0.5, k.to(work) * scale**0.5, v.to(work)
        bias = None if mask is None else as_bias(mask, y).expand(*k.shape[:-1])
        selection = self.selection if rule.plain else self.selection._replace(block=1)
        remainder = self.remainder if rule.plain else None  # its features know nothing of other scores
        return attend(x, y, w, bias, self.codes, selection, causal or prefixes is not None, remainder, rule).to(q.dtype)


def as_bias(mask: Tensor, like: Tensor) -> Tensor:
    """What is added to scores: minus infinity where a mask is False, or its numbers."""
    if mask.dtype != torch.bool:
        return mask.to(like)
    return torch.zeros(mask.shape, dtype=like.dtype, device=like.device).masked_fill(~mask, -torch.inf)


def exact(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    causal: bool,
    prefixes: Tensor | None,
    key_mask: Tensor | None,
    scale: float,
    rule: ScoreRule = AS_THEY_ARE,
) -> Tensor:
    """Softmax attention, by torch's own operator where it can; zero for queries that see no key."""
    gqa = q.shape[1] != k.shape[1]
    n, p = q.shape[-2], k.shape[-2]
    every = prefixes is not None and n == 1 and int(prefixes[0]) == p
    if rule.plain and key_mask is None and (prefixes is None or every):
        return scaled_dot_product_attention(q, k, v, is_causal=causal and n > 1, scale=scale, enable_gqa=gqa)
    if causal:
        prefixes = torch.arange(1, n + 1, device=q.device)
    seen = q.new_ones(n, p, dtype=torch.bool)
    if prefixes is not None:
        seen = torch.arange(p, device=q.device) < prefixes[:, None]
    if rule.plain and key_mask is None:
        return scaled_dot_product_attention(q, k, v, attn_mask=seen, scale=scale, enable_gqa=gqa)
    bias = q.new_zeros(1, 1, n, p).masked_fill(~seen, -torch.inf)
    if key_mask is not None:
        mask = key_mask if key_mask.ndim == 3 else key_mask.expand(len(k), -1)[:, None]
        bias = as_bias(mask, q)[:, :, None] + bias
    if rule.softcap is not None or rule.sinks is not None:
        work = torch.float64 if q.dtype == torch.float64 else torch.float32
        k, v = (grouped(q, x, "k") for x in (k, v))
        scores = rule.changed((q.to(work) @ k.to(work).mT) * scale) + bias.to(work)
        return (rule.weights(scores) @ v.to(work)).to(q.dtype)
    if rule.bias is not None:
        bias = bias + rule.bias.to(q)
    out = scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=scale, enable_gqa=gqa)
    return out.masked_fill((bias == -torch.inf).all(dim=-1, keepdim=True), 0.0)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
