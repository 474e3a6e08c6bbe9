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
    """Queries, keys and values in working precision, with the features that meet them.

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
    root : float or Tensor
        Factor of queries and keys.
    """

    features: TensorFeatures
    q: Tensor
    k: Tensor
    v: Tensor
    key_mask: Tensor | None
    prefixes: Prefixes
    seen: Tensor | None
    root: float | Tensor

    def run(self, sums: Sums | None, chunk: int) -> tuple[Tensor, Sums | None]:
        """Numerators and denominators (..., Lq, e + 1), and the sums over all keys."""
        steps = list(self.prefixes.steps(self.k.shape[-2], chunk))
        parts = [self._nothing(0)]
        # split once: gradients of slices would each be as long as the sequence
        q = self.q.split([step.q1 - step.q0 for step in steps], dim=-2)
        k, v = (x.split([step.k1 - step.k0 for step in steps], dim=-2) for x in (self.k, self.v))
        for i, step in enumerate(steps):
            out, sums = self._step(sums, step, q[i], k[i], v[i])
            parts += out
        return torch.cat(parts, dim=-2), sums

    def _step(self, sums: Sums | None, step: Step, q: Tensor, k: Tensor, v: Tensor
              ) -> tuple[list[Tensor], Sums | None]:  # fmt: skip
        if step.q0 == step.q1:
            return [], absorb(sums, self._keys(step, k), _with_ones(v))
        if step.k0 == step.k1:
            return [self._nothing(q.shape[-2]) if sums is None else read(sums, self._queries(q))], sums
        return self._attend(sums, step, q, k, v)

    def _nothing(self, count: int) -> Tensor:
        """Sums of that many queries that see no key."""
        lead = torch.broadcast_shapes(self.q.shape[:-2], self.v.shape[:-2])
        return self.v.new_zeros(*lead, count, self.v.shape[-1] + 1)

    def _attend(self, sums: Sums | None, step: Step, q: Tensor, k: Tensor, v: Tensor) -> tuple[list[Tensor], Sums]:
        """Numerators and denominators of a step; in two halves where a later key hides what an earlier query sees."""
        queries, keys, single = self._queries(q), self._keys(step, k), step.q1 - step.q0 == 1
        if not (self.features.positive or single) and self._far(sums, step, queries, keys):
            return self._halves(sums, step, q, k, v)
        out, after = attend(sums, queries, keys, _with_ones(v), self.prefixes.visible(step, q.device))
        if self.features.positive and not single and self._low(step, out):
            return self._halves(sums, step, q, k, v)
        return [out], after

    def _halves(self, sums: Sums | None, step: Step, q: Tensor, k: Tensor, v: Tensor) -> tuple[list[Tensor], Sums]:
        first, second = self.prefixes.halves(step)
        n, p = first.q1 - first.q0, first.k1 - first.k0
        head, between = self._step(sums, first, q[..., :n, :], k[..., :p, :], v[..., :p, :])
        tail, after = self._step(between, second, q[..., n:, :], k[..., p:, :], v[..., p:, :])
        assert after is not None
        return head + tail, after

    def _low(self, step: Step, out: Tensor) -> bool:
        """Whether a denominator says that all that its query sees lies far below the stabiliser of the step."""
        return self._any(step, out[..., -1].detach() < math.exp(-_GAP[out.dtype]))

    def _far(self, sums: Sums | None, step: Step, queries: Parts, keys: Parts) -> bool:
        """The same of signed features, whose denominators say nothing: by their running maxima."""
        rows, logs = queries.logarithm.detach(), keys.logarithm.detach()
        before = torch.full_like(logs[..., :1, :], NOTHING) if sums is None else sums.shift.expand_as(logs[..., :1, :])
        running = torch.cat([before, logs], dim=-2).cummax(dim=-2).values
        seen = running[..., self.prefixes.lengths(step, rows.device), :]
        distance = (rows + join(sums, keys)).amax(dim=-1) - (rows + seen).amax(dim=-1)
        return self._any(step, distance > _GAP[rows.dtype])

    def _any(self, step: Step, hidden: Tensor) -> bool:
        """Whether that holds for any query that sees a key."""
        if self.seen is not None:
            hidden = hidden & self.seen[..., step.q0 : step.q1]
        return bool(hidden.any())

    def _queries(self, q: Tensor) -> Parts:
        return Parts(*self.features.parts(q * self.root, key=False))

    def _keys(self, step: Step, k: Tensor) -> Parts:
        mantissa, logarithm = self.features.parts(k * self.root, key=True)
        if self.key_mask is not None:
            logarithm = logarithm.masked_fill(~self.key_mask[..., step.k0 : step.k1, None], -torch.inf)
        return Parts(mantissa, logarithm)


def _with_ones(v: Tensor) -> Tensor:
    """Values and a column of ones, whose sums are the denominators."""
    return torch.cat([v, v.new_ones(1).expand(*v.shape[:-1], 1)], dim=-1)
