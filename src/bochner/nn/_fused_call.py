"""A call of the fused operators: its inputs, room for its results, and the groups of heads that threads work on.

All leading axes are one: heads of all sequences, one after the other.  A group is a part of the heads of a sequence, or all
heads of several sequences, so that a batch of short sequences fills the tiles that a long one does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ._fused_forward import Heads, Layout
from ._tensor_features import Binary

TILE = 1 << 17
"""Features of a tile: few enough for the cache of a core, enough for matrix products."""

TENSORS = 11
"""Tensors that both operators begin with."""


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
        """As many heads as fill a tile, and enough groups for all threads."""
        lead, positions = self.lead or (1,), max(self.q.shape[-2] // self.group, self.k.shape[-2], 1)
        most = TILE // (min(self.rows, positions) * self.group * self.m)
        most = max(min(most, math.prod(lead) // torch.get_num_threads()), 1)
        if most >= lead[-1] > 0:
            return Groups(lead, most // lead[-1] * lead[-1])
        return Groups(lead, next(size for size in range(most, 0, -1) if lead[-1] % size == 0))

    def heads(self, groups: Groups) -> Iterator[Heads]:
        """The inputs of each group."""
        steps = TILE // (groups.size * self.rows * self.group * self.m) if self.causal else 1
        layout = Layout(self.causal, self.lag, self.group, self.rows, self.rows * max(steps, 1))
        parts = [groups.split(x, 1 if i == 3 else 2) for i, x in enumerate(self.tensors)]
        for q, k, v, bias, *sides in zip(*parts, strict=True):
            yield Heads(q, k, v, bias, Binary.of(*sides[:3]), Binary.of(*sides[3:]), self.c, layout)


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

    @property
    def count(self) -> int:
        """Number of groups."""
        return -(-math.prod(self.lead) // self.size)

    def split(self, x: Tensor | None, axes: int = 2) -> Sequence[Any]:
        """Tensors (size, ...) of one whose last ``axes`` are not leading ones: views where its memory allows them."""
        if x is None:
            return [None] * self.count
        rank, heads = x.ndim - axes, self.lead[-1]
        tail = x.shape[rank:]
        if rank <= 1 or x.shape[: rank - 1].numel() == 1:  # the same for all sequences
            return self._repeated(x.reshape(x.shape[rank - 1] if rank else 1, *tail))
        if x.is_contiguous() and x.shape[:rank] == self.lead:
            return x.flatten(0, -axes - 1).split(self.size)
        members = x.expand(*self.lead, *tail)
        members = members.flatten(0, -axes - 2) if len(self.lead) > 1 else members[None]
        if self.size <= heads:
            return [part for member in members.unbind() for part in member.split(self.size)]
        return [part.flatten(0, 1) for part in members.split(self.size // heads)]

    def _repeated(self, x: Tensor) -> Sequence[Tensor]:
        """The same of a tensor for each head, or for all of them."""
        heads, tail, last = self.lead[-1], x.shape[1:], math.prod(self.lead) % self.size or self.size
        if len(x) == 1:
            whole = x.expand(self.size, *tail)
        elif self.size <= heads:
            return list(x.split(self.size)) * (math.prod(self.lead) // heads)
        else:
            whole = x.repeat(self.size // heads, *(1,) * len(tail))
        return [whole] * (self.count - 1) + [whole[:last]] if self.count else []

    def split_results(self, results: Sequence[Tensor]) -> Iterator[tuple[Tensor, ...]]:
        """Parts of `Call.results`."""
        parts = (self.split(x, axes) for x, axes in zip(results, (2, 2, 2, 2, 3, 3), strict=True))
        return zip(*parts, strict=True)
