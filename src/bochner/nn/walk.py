"""Linear attention as a walk over chunks of queries and keys, with sums that run along."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .features import TensorFeatures
from .steps import Prefixes, Step
from .sums import NOTHING, Parts, Sums, absorb, attend, join, read

_GAP = {torch.float32: 25.0, torch.float64: 200.0}
"""How far below the stabiliser, in logarithms, what a query sees may lie: cubes of such denominators are still numbers."""


@dataclass
class Walk:
    """Queries, keys and values in working precision, already scaled, with the features that meet them.

    Attributes
    ----------
    features : TensorFeatures
    q, k, v : Tensor (..., Lq, d), (..., Lk, d), (..., Lk, e)
    key_mask : Tensor (..., Lk) of bool or None
        Which keys there are.
    prefixes : Prefixes
        How many keys each query sees.
    seen : Tensor (..., Lq) of bool or None
        Which queries see any key; None means all.
    """

    features: TensorFeatures
    q: Tensor
    k: Tensor
    v: Tensor
    key_mask: Tensor | None
    prefixes: Prefixes
    seen: Tensor | None

    def run(self, sums: Sums | None, chunk: int) -> tuple[Tensor, Sums | None]:
        """Numerators and denominators (..., Lq, e + 1), and the sums over all keys."""
        parts = []
        for step in self.prefixes.steps(self.k.shape[-2], chunk):
            out, sums = self._step(sums, step)
            parts += out
        return torch.cat(parts, dim=-2), sums

    def _step(self, sums: Sums | None, step: Step) -> tuple[list[Tensor], Sums | None]:
        if step.q0 == step.q1:
            return [], absorb(sums, self._keys(step), self._values(step))
        if step.k0 == step.k1:
            return [self._nothing(step) if sums is None else read(sums, self._queries(step))], sums
        return self._attend(sums, step, self._queries(step), self._keys(step), self._values(step))

    def _nothing(self, step: Step) -> Tensor:
        """Sums of queries that see no key."""
        lead = torch.broadcast_shapes(self.q.shape[:-2], self.v.shape[:-2])
        return self.v.new_zeros(*lead, step.q1 - step.q0, self.v.shape[-1] + 1)

    def _attend(self, sums: Sums | None, step: Step, queries: Parts, keys: Parts, values: Tensor
                ) -> tuple[list[Tensor], Sums]:  # fmt: skip
        """Numerators and denominators of a step; in two halves where a later key hides what an earlier query sees."""
        visible = self.prefixes.visible(step, self.q.device)
        out, after = attend(sums, queries, keys, values, visible)
        if step.q1 - step.q0 == 1 or not self._hidden(sums, step, queries, keys, out):
            return [out], after
        first, second = self.prefixes.halves(step)
        n, p = first.q1 - first.q0, first.k1 - first.k0
        head, sums = self._attend(sums, first, _rows(queries, 0, n), _rows(keys, 0, p), values[..., :p, :])
        tail, after = self._attend(sums, second, _rows(queries, n, None), _rows(keys, p, None), values[..., p:, :])
        return head + tail, after

    def _hidden(self, sums: Sums | None, step: Step, queries: Parts, keys: Parts, out: Tensor) -> bool:
        """Whether what some query sees may lie too far below the stabiliser, which knows all keys of the step."""
        gap = _GAP[out.dtype]
        if self.features.positive:
            low = out[..., -1].detach() < math.exp(-gap)
        else:
            low = self._distance(sums, step, queries, keys) > gap
        if self.seen is not None:
            low = low & self.seen[..., step.q0 : step.q1]
        return bool(low.any())

    def _distance(self, sums: Sums | None, step: Step, queries: Parts, keys: Parts) -> Tensor:
        """Of the largest product of features that a query would have with all keys of the step, above what it sees."""
        logs = keys.logarithm.detach()
        before = torch.full_like(logs[..., :1, :], NOTHING) if sums is None else sums.shift.expand_as(logs[..., :1, :])
        rows = queries.logarithm.detach()
        running = torch.cat([before, logs], dim=-2).cummax(dim=-2).values
        index = self.prefixes.lengths(step, rows.device)
        largest = (rows + join(sums, keys)).amax(dim=-1)
        return largest - (rows + running[..., index, :]).amax(dim=-1)

    def _queries(self, step: Step) -> Parts:
        return Parts(*self.features.parts(self.q[..., step.q0 : step.q1, :], key=False))

    def _keys(self, step: Step) -> Parts:
        mantissa, logarithm = self.features.parts(self.k[..., step.k0 : step.k1, :], key=True)
        if self.key_mask is not None:
            logarithm = logarithm.masked_fill(~self.key_mask[..., step.k0 : step.k1, None], -torch.inf)
        return Parts(mantissa, logarithm)

    def _values(self, step: Step) -> Tensor:
        """Values and a column of ones, whose sums are the denominators."""
        v = self.v[..., step.k0 : step.k1, :]
        return torch.cat([v, v.new_ones(1).expand(*v.shape[:-1], 1)], dim=-1)


def _rows(parts: Parts, start: int, stop: int | None) -> Parts:
    mantissa = parts.mantissa
    if mantissa is not None and mantissa.ndim > 1:
        mantissa = mantissa[..., start:stop, :]
    return Parts(mantissa, parts.logarithm[..., start:stop, :])
