r"""Attention to a set of keys of fixed size: a window, the first keys, and those that were attended to most.

Tokens come in blocks.  The queries of a block see the keys that are held and the block itself, up to their own place.
After each block the weights that its queries gave to a key, times the norm of its value, are added to its score, and what
exceeds the size of the state is dropped: of all keys beyond the window and the first ones, those with the smallest scores
per block that has seen them.  What is dropped goes on in a few means: a mean of n keys counts as n, with the mean value.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ._coded_blocks import rows_at
from ._score_rule import softmax

if TYPE_CHECKING:
    from ._bounded_module import BoundedPlan

_STEP_BYTES = 1 << 26  # memory of the scores of one step over blocks of a window
_BLOCK = 64  # queries that are computed with their window at a time, at least


class Pool(NamedTuple):
    """Means of dropped keys, and the keys that some heads hold, in the order of the sequence."""

    y: Tensor  # (batch, key heads, held, d or e): keys times the root of the scale, and values
    v: Tensor
    # (batch, key heads, held): what is added to scores of queries: minus infinity for padding, the logarithm of their
    # number for means
    bias: Tensor
    # (batch, key heads, held): accumulated weight times the norm of the value; infinite for anchors and means
    score: Tensor
    seen: Tensor  # (batch, key heads, held): blocks that have seen it, which count less by and by as their weights do


class BoundedState:
    """The keys that a layer holds, for decoding.

    Attributes
    ----------
    pools : list of Pool
        One for each size, in the order of `Bounds.pools`.
    length : int
        Tokens that were seen.
    """

    def __init__(self) -> None:
        self.pools: list[Pool] = []
        self.length = 0

    def clone(self) -> BoundedState:
        """A state that changes on its own."""
        other = BoundedState()
        other.pools, other.length = list(self.pools), self.length  # tensors are never changed in place
        return other

    def select(self, indices: Tensor) -> BoundedState:
        """The states of some members of the batch."""
        other = self.clone()
        other.pools = [Pool(*(x[indices] for x in pool)) for pool in self.pools]
        return other

    def tensors(self) -> list[Tensor]:
        """All tensors that the state holds."""
        return [x for pool in self.pools for x in pool]

    def attend(self, x: Tensor, y: Tensor, v: Tensor, bias: Tensor | None, plan: BoundedPlan) -> Tensor:
        """Attention of queries (batch, heads, n, d) to what is held and to their own keys, which are then held as well.

        Parameters
        ----------
        x : Tensor (batch, heads, n, d)
            Queries times the root of the scale.
        y, v : Tensor (batch, key heads, n, d or e)
            Keys times the root of the scale, and values.
        bias : Tensor (batch, key heads, n) or None
            What is added to the scores of each key.
        plan : BoundedPlan
            How many keys are held.
        """
        key_heads, n = y.shape[1], y.shape[-2]
        queries = x.unflatten(1, (key_heads, -1))
        bias = y.new_zeros(*y.shape[:3]) if bias is None else bias
        pools = plan.pools(key_heads)
        sizes = [plan.means if kept else 0 for _, kept, _ in pools]
        self.pools = self.pools or [_empty(y[:, own], v[:, own], m) for (*_, own), m in zip(pools, sizes, strict=True)]
        cuts = [0, *range(plan.block - self.length % plan.block, n, plan.block), n]
        outs, found = x.new_empty(*queries.shape[:-1], v.shape[-1]), []
        for pool, means, (window, kept, own) in zip(self.pools, sizes, pools, strict=True):
            parts = []
            for start, stop in pairwise(cuts):
                new = Pool(*(part[:, own, start:stop] for part in (y, v, bias, bias, bias)))
                out, pool = _step(pool, queries[:, own, :, start:stop], new, plan.anchors, means)
                if (self.length + stop) % plan.block == 0:
                    pool = _dropped(pool, window, window + kept + plan.anchors, means, plan.decay)
                parts.append(out)
            outs = outs.index_copy(1, torch.tensor(own, device=x.device), torch.cat(parts, dim=-2))
            found.append(pool)
        self.pools, self.length = found, self.length + n
        return outs.flatten(1, 2)


def _empty(y: Tensor, v: Tensor, means: int) -> Pool:
    """Means of nothing."""
    keys, values = (z.new_zeros(*z.shape[:2], means, z.shape[-1]) for z in (y, v))
    most = y.new_full((*y.shape[:2], means), torch.inf)
    return Pool(keys, values, -most, most, torch.zeros_like(most))


def _step(pool: Pool, x: Tensor, new: Pool, anchors: int, means: int) -> tuple[Tensor, Pool]:
    """Output of queries (batch, key heads, group, n, d), and the pool with their keys, whose scores are made here."""
    held, n = pool.y.shape[-2], new.y.shape[-2]
    there = new.bias > -torch.inf
    before = (pool.score[..., means:] == torch.inf).sum(dim=-1, keepdim=True)
    first = there & (there.cumsum(-1) + before <= anchors)
    none = torch.zeros_like(new.bias)
    new = new._replace(score=none.masked_fill(first, torch.inf), seen=none)
    keys, values, biases, scores, seen = (torch.cat(pair, dim=2) for pair in zip(pool, new, strict=True))
    logits = x @ keys[:, :, None].mT + biases[:, :, None, None]
    if n > 1:
        later = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        logits = logits.masked_fill(pad(later, (held, 0)), -torch.inf)
    weights = softmax(logits)
    used = weights.detach() * there[:, :, None, :, None]  # queries in the padding do not count
    gained = used.sum(dim=(2, 3)) * values.detach().norm(dim=-1)
    return weights @ values[:, :, None], Pool(keys, values, biases, scores + gained, seen)


def _dropped(pool: Pool, window: int, most: int, means: int, decay: float) -> Pool:
    """The pool at the end of a block: the last keys, the first ones, and the others with the largest scores."""
    held = pool.y.shape[-2]
    seen = pool.seen + 1
    rank = pool.score / (
        seen + 1
    )  # keys that came late have had less time; one block more, since what is new is uncertain
    rank = rank.masked_fill(pool.bias == -torch.inf, -torch.inf)
    place = torch.arange(held, device=rank.device)
    rank = rank.masked_fill((place >= held - window) | (place < means), torch.inf)
    pool = pool._replace(score=pool.score * decay, seen=seen * decay)
    if held <= means + most:
        return pool
    order = rank.argsort(dim=-1, descending=True, stable=True)
    kept = _at(pool, order[..., : means + most].sort(dim=-1).values)
    return _merged(kept, _at(pool, order[..., means + most :]), means) if means else kept


def _at(pool: Pool, places: Tensor) -> Pool:
    """What is held in some places (batch, key heads, n)."""
    rows = [rows_at(part, places) for part in pool[:2]]
    return Pool(*rows, *(part.gather(-1, places) for part in pool[2:]))


def _merged(pool: Pool, dropped: Pool, means: int) -> Pool:
    """The pool with each dropped key in the nearest of its means; these are filled in turn as long as some are empty."""
    counts, y, v = pool.bias[..., :means], pool.y[:, :, :means], pool.v[:, :, :means]
    near = dropped.y @ y.mT - y.square().sum(-1)[:, :, None] / 2
    turns = torch.arange(near.shape[-2], device=near.device) % means
    nearest = torch.where((counts == -torch.inf).any(-1, keepdim=True), turns, near.argmax(dim=-1))
    # weights of keys are exponentials of their biases, here below the largest one
    top = torch.cat([counts, dropped.bias], dim=-1).amax(dim=-1, keepdim=True).clamp(min=torch.finfo(y.dtype).min)
    own = torch.nn.functional.one_hot(nearest, means).to(y) * (dropped.bias - top).exp()[..., None]
    old = (counts - top).exp()
    total = old + own.sum(dim=2)
    share = total.clamp(min=torch.finfo(y.dtype).tiny)[..., None]
    rows = [(old[..., None] * z + own.mT @ new) / share for z, new in ((y, dropped.y), (v, dropped.v))]
    mixed = [torch.cat(pair, dim=2) for pair in ((rows[0], pool.y[:, :, means:]), (rows[1], pool.v[:, :, means:]))]
    return pool._replace(y=mixed[0], v=mixed[1], bias=torch.cat([total.log() + top, pool.bias[..., means:]], dim=-1))


def windowed(x: Tensor, y: Tensor, v: Tensor, bias: Tensor | None, plan: BoundedPlan, causal: bool) -> Tensor:
    """Attention to a window and the first keys, for whole sequences, in which all blocks are computed at once.

    With causality it is what `BoundedState` computes without kept keys; otherwise the window of w holds the keys at less
    than w places on either side.
    """
    out = x.new_empty(*x.shape[:-1], v.shape[-1])
    group = x.shape[1] // y.shape[1]
    for window, _, own in plan.pools(y.shape[1]):
        queries = [h * group + g for h in own for g in range(group)]
        keys, values = (part[:, own].repeat_interleave(group, dim=1) for part in (y, v))
        own_bias = None if bias is None else bias[:, own].repeat_interleave(group, dim=1)
        found = _banded(x[:, queries], keys, values, own_bias, window, plan, causal)
        out = out.index_copy(1, torch.tensor(queries, device=x.device), found)
    return out


def _banded(
    x: Tensor, y: Tensor, v: Tensor, bias: Tensor | None, window: int, plan: BoundedPlan, causal: bool
) -> Tensor:
    """Attention of heads with one window."""
    n, step = x.shape[-2], plan.block if causal else 1
    before, after = (window, 0) if causal else (window - 1, window - 1)
    size = -(-max(window, _BLOCK) // step) * step  # queries of a block, in which the place of a query is known
    blocks, width = -(-n // size), before + size + after
    there = y.new_zeros(len(y), 1, n) if bias is None else bias
    rows = [pad(part, (0, 0, before, blocks * size - n + after)).unfold(2, width, size) for part in (y, v)]
    biases = pad(there, (before, blocks * size - n + after), value=-torch.inf).unfold(2, width, size)
    queries = pad(x, (0, 0, 0, blocks * size - n)).unflatten(2, (blocks, size))
    place, key = torch.arange(size, device=x.device)[:, None], torch.arange(width, device=x.device) - before
    seen = (key <= place) & (key >= place // step * step - window) if causal else (place - key).abs() < window
    first = _first_places(there, plan.anchors)  # (batch, anchors), the number of keys where there is none
    at = first.clamp(max=n - 1)[:, None].expand(-1, y.shape[1], -1)
    anchors = [rows_at(part, at) for part in (y, v)]
    anchor_bias = there.expand(*y.shape[:3]).gather(-1, at)
    positions = torch.arange(blocks * size, device=x.device).view(blocks, size, 1)
    low = positions // step * step - window if causal else positions - window + 1
    beyond = first[:, None, None] < low if causal else (first[:, None, None] - positions).abs() >= window
    beyond = (beyond & (first[:, None, None] < n))[:, None]
    found, count = [], max(_STEP_BYTES // (x[:, :, 0, 0].numel() * size * width * x.element_size()), 1)
    for start in range(0, blocks, count):
        some = slice(start, start + count)
        near = queries[:, :, some] @ rows[0][:, :, some] + biases[:, :, some, None]
        near = near.masked_fill(~seen, -torch.inf)
        far = queries[:, :, some] @ anchors[0][:, :, None].mT + anchor_bias[:, :, None, None]
        far = far.masked_fill(~beyond[:, :, some], -torch.inf)
        weights = softmax(torch.cat([near, far], dim=-1))
        out = weights[..., :width] @ rows[1][:, :, some].mT + weights[..., width:] @ anchors[1][:, :, None]
        found.append(out.flatten(2, 3))
    return torch.cat(found, dim=2)[:, :, :n]


def _first_places(bias: Tensor, anchors: int) -> Tensor:
    """Places (batch, anchors) of the first keys that are not masked; the number of keys where there are fewer."""
    there = (bias > -torch.inf).any(dim=1)
    n = there.shape[-1]
    numbers = torch.arange(n, device=bias.device).expand_as(there)
    numbers = numbers.masked_fill(~there | (there.cumsum(-1) > anchors), n)
    places = numbers.topk(min(anchors, n), dim=-1, largest=False).values
    return places
