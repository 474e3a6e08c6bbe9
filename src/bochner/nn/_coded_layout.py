"""Which keys meet a query of coded attention exactly, and where the queries of blocks stand among the keys."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ._coded_remainder import in_blocks, phases_at
from ._key_codes import KeyCodes

STEP_BYTES = 1 << 26  # memory of the scores and of the gathered keys of one step over queries
JUDGES = 8  # queries of a block by whose scores its keys are selected: equally spaced


class KeySelection(NamedTuple):
    """Which keys meet a query exactly."""

    # keys next to the query: its own and the ``window - 1`` before it, and without causality as many after it
    window: int
    anchors: int  # first keys of the sequence
    # for each head, the keys that codes propose, and how many of them stay after their scores have been computed
    candidates: tuple[int, ...]
    kept: tuple[int, ...]
    block: int = 1  # queries that share candidates
    sampled: tuple[int, ...] = ()  # for each head, the keys that are drawn from those left out; empty where none are

    @property
    def draws(self) -> int:
        """Most keys that are drawn in a head."""
        return max(self.sampled, default=0)

    @property
    def searches(self) -> bool:
        """Whether codes are needed."""
        return max(self.candidates) > 0 or self.draws > 0


class BlockLayout(NamedTuple):
    """Where the queries of blocks stand among the keys."""

    offset: int  # key that the first query stands at
    keys: int  # number of keys
    # keys before and after a block that are near it; -1 keys before where queries have no place among the keys
    reach: tuple[int, int]
    first: Tensor  # (batch, anchors): places of the anchors; where there are fewer, the number of keys
    is_first: Tensor  # (batch, keys)
    ranks: Tensor  # (batch, keys): number of keys up to each one, without padding
    selection: KeySelection
    causal: bool

    @classmethod
    def of(cls, x: Tensor, p: int, bias: Tensor | None, selection: KeySelection, causal: bool) -> BlockLayout:
        own = causal or x.shape[-2] == p
        before = max(selection.window - 1, 0) if own else -1
        there = x.new_ones(len(x), p, dtype=torch.bool) if bias is None else (bias > -torch.inf).any(dim=1)
        ranks = there.cumsum(-1)
        is_first = there & (ranks <= selection.anchors)
        numbers = torch.arange(p, device=x.device).expand_as(there).masked_fill(~is_first, p)
        first = numbers.topk(min(selection.anchors, p), dim=-1, largest=False).values
        offset = p - x.shape[-2] if own else 0
        return cls(offset, p, (before, 0 if causal else before), first, is_first, ranks, selection, causal)

    def limits(self, n: int) -> Tensor | None:
        """Key that the first query of its block stands at, for each query; None where all keys are seen."""
        if not self.causal:
            return None
        b = self.selection.block
        return self.offset + torch.arange(n, device=self.first.device) // b * b

    def step(self, x: Tensor, y: Tensor, v: Tensor) -> int:
        """Queries of a step: whole blocks, whose scores and gathered keys take limited memory."""
        b = self.selection.block
        gathered = sum(max(r, 0) for r in self.reach) + b + self.first.shape[1]
        gathered += max(self.selection.candidates) + self.selection.draws
        numbers = min(b, JUDGES) * self.keys + gathered * (y.shape[-1] + v.shape[-1] + b)
        blocks = STEP_BYTES // (x.shape[0] * x.shape[1] * numbers * x.element_size())
        return int(max(blocks, 1)) * b

    def blocks(self, x: Tensor) -> Tensor:
        """Queries in blocks (batch, heads, blocks, block, d); the last one is filled with its last query."""
        return in_blocks(x, self.selection.block)

    def near(self, start: int, stop: int) -> Tensor:
        """Places of the keys near each block, (blocks, width); outside of the sequence where there is none."""
        device, b = self.first.device, self.selection.block
        if self.reach[0] < 0:
            return torch.full((len(range(start, stop, b)), 0), self.keys, device=device)
        starts = self.offset + torch.arange(start, stop, b, device=device)
        return starts[:, None] + torch.arange(-self.reach[0], b + self.reach[1], device=device)

    def far(self, start: int, stop: int, p: int) -> Tensor:
        """Which of the first p keys may be selected for each block, (batch, 1, blocks, p)."""
        places, far = torch.arange(p, device=self.first.device), ~self.is_first[:, None, None, :p]
        if self.reach[0] < 0:
            return far
        b = self.selection.block
        starts = self.offset + torch.arange(start, stop, b, device=self.first.device)[:, None]
        outside = places < starts - self.reach[0]
        return far & (outside if self.causal else outside | (places >= starts + b + self.reach[1]))

    def there(self, places: Tensor, near: Tensor, start: int, stop: int) -> Tensor:
        """Which gathered places count: they are of keys, and anchors are not near as well."""
        there = (places >= 0) & (places < self.keys)
        width, count = near.shape[-1], self.first.shape[1]
        if width and count:
            first = places[..., width : width + count]
            twice = (first >= near[:, :1]) & (first <= near[:, -1:])
            there[..., width : width + count] &= ~twice
        return there

    def positions(self, start: int, stop: int) -> Tensor:
        """Key that each query stands at, (blocks, block)."""
        b = self.selection.block
        starts = self.offset + torch.arange(start, stop, b, device=self.first.device)
        return starts[:, None] + torch.arange(b, device=self.first.device)

    def phases(self, codes: KeyCodes, start: int, stop: int) -> Tensor:
        """Phases of the draws of each block, (batch, heads, blocks)."""
        places = self.positions(start, stop)[:, 0]
        own = self.reach[0] >= 0
        return phases_at(codes.phases, self.ranks[:, places] if own else places.expand(len(self.ranks), -1))
