"""A call of the fused operators: its inputs, room for its results, and the groups of heads that threads work on.

All leading axes are one: heads of all sequences, one after the other.  A group is a part of the heads of a sequence, or all
heads of several sequences, so that a batch of short sequences fills the tiles that a long one does.  A short call is one
group, whose operations torch divides among its own threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ._fused_forward import Heads, Layout
from ._tensor_features import Binary

TILE = 1 << 18
"""Features of a tile: few enough for the cache of a core, enough for matrix products."""

SHORT = 1 << 18
"""Features of a call up to which it is one group: dividing each operation costs less than sharing Python's lock."""

TENSORS = 11
"""Tensors that both operators begin with."""

RESULT_AXES = (2, 2, 2, 2, 3, 3)
"""Axes of `Call.results` that are not leading ones."""


class Call:
    """The inputs that both operators begin with, in their order.

    Parameters
    ----------
    *inputs
        Queries, keys, values, the bias of keys (..., p), slope, constant and centre of queries, slope, constant, centre and
        turn of keys (some of them None); then the coefficient of the squared norm, and of the `Layout` what is known of it:
        ``causal``, ``lag``, ``group`` and ``rows``.
    """

    def __init__(self, *inputs: Any) -> None:
        self.tensors: Sequence[Tensor | None] = inputs[:TENSORS]
        self.q, self.k, self.v, self.bias = inputs[:4]
        self.m: int = inputs[4].shape[-1]
        self.c, self.causal, self.lag, self.group, self.rows = inputs[TENSORS:]
        axes = [tuple(x.shape[: -1 if i == 3 else -2]) for i, x in enumerate(self.tensors) if x is not None]
        first = axes[0]
        same = all(other in ((), first) for other in axes)
        self.lead: tuple[int, ...] = first if same else tuple(torch.broadcast_shapes(*axes))

    def results(self, save: bool, kept: bool) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Room for the output, its logarithms, the sums and their stabiliser, and these two before each step."""
        n, e, m = self.q.shape[-2], self.v.shape[-1], self.m if kept or (save and not self.causal) else 0
        steps = (n // self.group - self.lag + self.rows - 1) // self.rows if save and self.causal else 0
        shapes = ((n, e), (n, 1), (m, e + 1), (1, m), (steps, self.m, e + 1), (steps, 1, self.m))
        out, log, sums, shift, before, shifts = (self.v.new_empty(*self.lead, *shape) for shape in shapes)
        return out, log, sums, shift, before, shifts

    def gradients(self, biased: bool, coefficients: bool) -> list[Tensor]:
        """Room for the gradients of all tensors, with all leading axes; empty ones where none is asked for."""
        wanted = (True, True, True, biased, *(coefficients,) * 7)
        return [
            self.v.new_zeros(*self.lead, *x.shape[x.ndim - (1 if i == 3 else 2) :])
            if ask and x is not None
            else self.v.new_empty(0)
            for i, (x, ask) in enumerate(zip(self.tensors, wanted, strict=True))
        ]

    def groups(self) -> Groups:
        """All heads of a short call; otherwise as many as fill a tile, and enough groups for all threads."""
        lead, positions = self.lead or (1,), max(self.q.shape[-2] // self.group, self.k.shape[-2], 1)
        heads, threads = math.prod(lead), torch.get_num_threads()
        if threads > 1 and heads * positions * self.group * self.m <= SHORT:
            return Groups(lead, max(heads, 1))
        most = TILE // (min(self.rows, positions) * self.group * self.m)
        most = max(min(most, heads // threads), 1)
        if most >= lead[-1] > 0:
            return Groups(lead, most // lead[-1] * lead[-1])
        return Groups(lead, next(size for size in range(most, 0, -1) if lead[-1] % size == 0))

    def heads(self, groups: Groups) -> Callable[[int, int], Heads]:
        """The inputs of the heads from a to before b."""
        layout = self._layout(groups)
        parts = [groups.parts(x, 1 if i == 3 else 2) for i, x in enumerate(self.tensors)]

        def between(a: int, b: int) -> Heads:
            q, k, v, bias, *sides = (part(a, b) for part in parts)
            return Heads(q, k, v, bias, Binary.of(*sides[:3]), Binary.of(*sides[3:]), self.c, layout)

        return between

    def all_heads(self, groups: Groups) -> Heads:
        """The inputs of all heads, which are one group."""
        q, k, v, *sides = (groups.whole(x, 1 if i == 3 else 2) for i, x in enumerate(self.tensors))
        return Heads(q, k, v, sides[0], Binary.of(*sides[1:4]), Binary.of(*sides[4:]), self.c, self._layout(groups))

    def _layout(self, groups: Groups) -> Layout:
        steps = TILE // (groups.size * self.rows * self.group * self.m) if self.causal else 1
        return Layout(self.causal, self.lag, self.group, self.rows, self.rows * max(steps, 1))


class Groups(NamedTuple):
    """How heads are divided.

    Attributes
    ----------
    lead : tuple of int
        All leading axes; the last one counts the heads of a sequence.
    size : int
        Heads of a group, but for the last one: a divisor or a multiple of the heads of a sequence.
    """

    lead: tuple[int, ...]
    size: int

    def ends(self) -> list[tuple[int, int]]:
        """First head of each group, and the one behind its last."""
        n = math.prod(self.lead)
        return [(a, min(a + self.size, n)) for a in range(0, n, self.size)]

    def parts(self, x: Tensor | None, axes: int = 2) -> Callable[[int, int], Any]:
        """The heads of a group, (b - a, ...), of a tensor whose last ``axes`` are not leading ones.

        Parts are views where the memory of the tensor allows them, and always of a contiguous one with all leading axes.
        """
        if x is None:
            return lambda a, b: None
        rank, heads = x.ndim - axes, self.lead[-1]
        tail = x.shape[rank:]
        if rank <= 1 or x.shape[: rank - 1].numel() == 1:  # the same for all sequences
            return self._repeated(x.reshape(x.shape[rank - 1] if rank else 1, *tail))
        if x.is_contiguous() and x.shape[:rank] == self.lead:
            flat = x.flatten(0, rank - 1)
            return lambda a, b: flat[a:b]
        members = x.expand(*self.lead, *tail).flatten(0, -axes - 2)
        if self.size <= heads:
            return lambda a, b: members[a // heads].narrow(0, a % heads, b - a)
        return lambda a, b: members[a // heads : b // heads].flatten(0, 1)

    @property
    def single(self) -> bool:
        """Whether all heads are one group."""
        return self.size == math.prod(self.lead)

    def whole(self, x: Tensor | None, axes: int = 2) -> Any:
        """All heads of a tensor whose last ``axes`` are not leading ones."""
        if x is None:
            return None
        rank = x.ndim - axes
        if not rank:
            return x.expand(self.size, *x.shape)
        full = x if x.shape[:rank] == self.lead else x.expand(*self.lead, *x.shape[rank:])
        return full if len(self.lead) == 1 else full.flatten(0, len(self.lead) - 1)

    def _repeated(self, x: Tensor) -> Callable[[int, int], Tensor]:
        """Function of a range of sequences that returns their part of a tensor for each head, or for all of them."""
        heads = self.lead[-1]
        if x.shape[0] > 1 and self.size <= heads:
            return lambda a, b: x.narrow(0, a % heads, b - a)
        copies = self.size // heads, *(1,) * (x.ndim - 1)
        whole = x.expand(self.size, *x.shape[1:]) if x.shape[0] == 1 else x.repeat(*copies)
        return lambda a, b: whole if b - a == self.size else whole[: b - a]

    def result_parts(self, results: Sequence[Tensor]) -> Callable[[int, int], list[Tensor]]:
        """The heads of a group of `Call.results`; results that were not asked for have no heads."""
        parts = [
            self.parts(x, axis) if x.numel() or k < 2 else None
            for k, (x, axis) in enumerate(zip(results, RESULT_AXES, strict=True))
        ]
        return lambda a, b: [x if part is None else part(a, b) for x, part in zip(results, parts, strict=True)]
