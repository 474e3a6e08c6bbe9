"""Linear attention of one sequence, as a walk over chunks of queries and keys with sums that run along.

Queries and keys are met in steps.  A step has queries [q0, q1) and keys [k0, k1); all keys before k0 are in the sums
already, and each query sees those, and of the keys of the step the ones in its prefix:

    out_i = phi_q(x_i) . S  +  sum_{k0 <= j < prefix_i} phi_q(x_i) . phi_k(y_j) [v_j, 1],
    S = sum_{j < k0} phi_k(y_j) [v_j, 1],

then all keys of the step are added to S.  Values carry a column of ones, so that numerator and denominator are one sum.
Steps of c queries and keys cost c^2 (M + e) within and c M e with the sums: linear in the length for a fixed c.

The features are stabilised as in `bochner.approximation.log_features`, with the maxima c_m over all keys that were met
so far, the keys of the step included.  That factor is the same in numerator and denominator, so it cancels, and a later
key cannot change what an earlier query sees.  It can hide it, though: where all that query i sees lies far below c,
numerator and denominator underflow.  Such a step is walked again in two halves, whose first half does not know the
later keys.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..approximation.log_features import (
    NOTHING,
    KeySums,
    LogFeatures,
    key_values,
    scaled_query_values,
    stabiliser,
)
from ._tensor_features import TensorFeatures

NONPOSITIVE = ("warn", "raise", "nan")

_GAP = {torch.float32: 25.0, torch.float64: 200.0}
"""How far below the stabiliser, in logarithms, what a query sees may lie: cubes of such denominators are still numbers."""

_REMEDY = (
    "use a positive map (OptimalPositive, Positive, Hyperbolic with Orthogonal or Simplex rows), "
    "more projections, or smaller queries and keys"
)


class DenominatorWarning(UserWarning):
    """Warning that some rows of attention have a denominator that is not positive, and a meaningless estimate."""


class Step(NamedTuple):
    """Queries [q0, q1) see all keys before k0, and of the keys [k0, k1) those in their prefix; then all are absorbed."""

    q0: int
    q1: int
    k0: int
    k1: int


class Everything(Sequence[int]):
    """The same number of keys for all queries, without a list."""

    def __init__(self, n_keys: int, length: int) -> None:
        self.n_keys, self.length = n_keys, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: Any) -> Any:
        found = range(self.length)[index]
        return self.n_keys if isinstance(found, int) else [self.n_keys] * len(found)


class Prefixes:
    """How many keys, from the first on, each query sees: numbers that do not decrease."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = numbers

    def steps(self, n_keys: int, chunk: int) -> Iterator[Step]:
        """Steps of at most ``chunk`` queries and keys; the last ones absorb keys that no query sees."""
        q, k, n = 0, 0, len(self.numbers)
        while q < n:
            first = self.numbers[q]
            if first > k and (first > k + chunk or first == self.numbers[-1]):  # seen by all queries that remain
                end = min(k + chunk, first)
                yield Step(q, q, k, end)
                k = end
                continue
            stop = self._first_above(k + chunk, q + 1, min(n, q + chunk))
            end = max(k, self.numbers[stop - 1])
            yield Step(q, stop, k, end)
            q, k = stop, end
        for start in range(k, n_keys, chunk):
            yield Step(n, n, start, min(start + chunk, n_keys))

    def _first_above(self, bound: int, low: int, high: int) -> int:
        """The first query in [low, high) that sees more keys than ``bound``, or ``high``."""
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.numbers[middle] <= bound else (low, middle)
        return low

    def halves(self, step: Step) -> tuple[Step, Step]:
        """The same work in two steps of half of the queries."""
        middle = (step.q0 + step.q1) // 2
        border = max(step.k0, self.numbers[middle - 1])
        return Step(step.q0, middle, step.k0, border), Step(middle, step.q1, border, step.k1)

    def lengths(self, step: Step, device: torch.device) -> Tensor:
        """Number of keys of a step that each of its queries sees, (q1 - q0,)."""
        numbers = torch.tensor(self.numbers[step.q0 : step.q1], device=device)
        return (numbers - step.k0).clamp_(min=0)

    def visible(self, step: Step, device: torch.device) -> Tensor:
        """Which keys of a step each of its queries sees, (q1 - q0, k1 - k0)."""
        return torch.arange(step.k1 - step.k0, device=device) < self.lengths(step, device)[:, None]


class Part(NamedTuple):
    """What queries see of some of the keys: numerators and denominators, and the logarithm of the factor they lack.

    Attributes
    ----------
    sums : Tensor (..., Lq, e + 1)
        Sums of weights times values, and the sums of weights as the last column.
    scale : Tensor (..., Lq, 1)
        Logarithm of the factor of each row; `NOTHING` or less where a query sees none of these keys.
    """

    sums: Tensor
    scale: Tensor

    @classmethod
    def cat(cls, parts: Sequence[Part]) -> Part:
        """Queries one after the other."""
        return cls(*(torch.cat(column, dim=-2) for column in zip(*parts, strict=True)))

    def flip(self) -> Part:
        """Queries in the opposite order."""
        return Part(self.sums.flip(-2), self.scale.flip(-2))


def merged(parts: Sequence[Part]) -> Tensor:
    """Numerators and denominators over all keys of parts that share no key, each row up to a positive factor."""
    if len(parts) == 1:
        return parts[0].sums
    scales = torch.broadcast_tensors(*(part.scale for part in parts))
    top = torch.stack([scale.detach() for scale in scales]).amax(dim=0)
    return sum(
        (part.sums * (part.scale - top).exp() for part in parts[1:]), parts[0].sums * (parts[0].scale - top).exp()
    )


@dataclass(frozen=True)
class Walk:
    """Queries, keys and values of one sequence in working precision, with the features that meet them.

    Attributes
    ----------
    features : TensorFeatures
    q, k, v : Tensor (..., Lq, d), (..., Lk, d), (..., Lk, e)
    key_bias : Tensor (..., Lk) or None
        What is added to the logarithm of each key; minus infinity for those that are masked.
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
    key_bias: Tensor | None
    prefixes: Prefixes
    seen: Tensor | None
    root: float | Tensor

    def run(self, sums: KeySums | None, chunk: int) -> tuple[Part, KeySums | None]:
        """What the queries see, and the sums over all keys."""
        steps = list(self.prefixes.steps(self.k.shape[-2], chunk))
        parts = [self._nothing(0)]
        # split once: gradients of slices would each be as long as the sequence
        q = self.q.split([step.q1 - step.q0 for step in steps], dim=-2)
        k, v = (x.split([step.k1 - step.k0 for step in steps], dim=-2) for x in (self.k, self.v))
        for i, step in enumerate(steps):
            out, sums = self._step(sums, step, q[i], k[i], v[i])
            parts += out
        return Part.cat(parts), sums

    def _step(
        self, sums: KeySums | None, step: Step, q: Tensor, k: Tensor, v: Tensor
    ) -> tuple[list[Part], KeySums | None]:
        if step.q0 == step.q1:
            keys, values = self._keys(step, k), _with_ones(v)
            return [], KeySums.of(keys, values) if sums is None else sums.absorb(keys, values)
        if step.k0 == step.k1:
            return [self._nothing(q.shape[-2]) if sums is None else _read(sums, self._queries(q))], sums
        return self._attend(sums, step, q, k, v)

    def _nothing(self, count: int) -> Part:
        """Sums of that many queries that see no key."""
        lead = torch.broadcast_shapes(self.q.shape[:-2], self.k.shape[:-2], self.v.shape[:-2], self.features.lead)
        zeros = self.v.new_zeros(*lead, count, self.v.shape[-1] + 1)
        return Part(zeros, zeros[..., :1] + 2 * NOTHING)

    def _attend(self, sums: KeySums | None, step: Step, q: Tensor, k: Tensor, v: Tensor) -> tuple[list[Part], KeySums]:
        """Numerators and denominators of a step; in two halves where a later key hides what an earlier query sees."""
        queries, keys, single = self._queries(q), self._keys(step, k), step.q1 - step.q0 == 1
        shift = stabiliser(keys, None if sums is None else sums.shift)
        if not (self.features.positive or single) and self._far(sums, step, queries, keys, shift):
            return self._halves(sums, step, q, k, v)
        out, after = _attended(sums, queries, keys, shift, _with_ones(v), self.prefixes.visible(step, q.device))
        if self.features.positive and not single and self._low(step, out.sums):
            return self._halves(sums, step, q, k, v)
        return [out], after

    def _halves(self, sums: KeySums | None, step: Step, q: Tensor, k: Tensor, v: Tensor) -> tuple[list[Part], KeySums]:
        first, second = self.prefixes.halves(step)
        n, p = first.q1 - first.q0, first.k1 - first.k0
        head, between = self._step(sums, first, q[..., :n, :], k[..., :p, :], v[..., :p, :])
        tail, after = self._step(between, second, q[..., n:, :], k[..., p:, :], v[..., p:, :])
        assert after is not None  # a step with keys leaves sums
        return head + tail, after

    def _low(self, step: Step, out: Tensor) -> bool:
        """Whether a denominator says that all that its query sees lies far below the stabiliser of the step.

        The largest feature of a query is one before it meets the keys, and that of the keys is one at the maximum: a
        query that sees the maximum has a denominator of at least one, and log(1/denominator) is how far it sees below.
        """
        return self._any(step, out[..., -1].detach() < math.exp(-_GAP[out.dtype]))

    def _far(self, sums: KeySums | None, step: Step, queries: LogFeatures, keys: LogFeatures, shift: Tensor) -> bool:
        """The same of signed features, whose denominators say nothing: by maxima that run along the keys."""
        rows, logs = queries.log.detach(), keys.log.detach()
        before = torch.full_like(logs[..., :1, :], NOTHING) if sums is None else sums.shift.expand_as(logs[..., :1, :])
        running = torch.cat([before, logs], dim=-2).cummax(dim=-2).values
        seen = running[..., self.prefixes.lengths(step, rows.device), :]
        distance = (rows + shift).amax(dim=-1) - (rows + seen).amax(dim=-1)
        return self._any(step, distance > _GAP[rows.dtype])

    def _any(self, step: Step, hidden: Tensor) -> bool:
        """Whether that holds for any query that sees a key."""
        if self.seen is not None:
            hidden = hidden & self.seen[..., step.q0 : step.q1]
        return bool(hidden.any())

    def _queries(self, q: Tensor) -> LogFeatures:
        return self.features.log(q * self.root, key=False)

    def _keys(self, step: Step, k: Tensor) -> LogFeatures:
        keys = self.features.log(k * self.root, key=True)
        if self.key_bias is None:
            return keys
        return keys._replace(log=keys.log + self.key_bias[..., step.k0 : step.k1, None])


def _attended(
    sums: KeySums | None, queries: LogFeatures, keys: LogFeatures, shift: Tensor, values: Tensor, visible: Tensor
) -> tuple[Part, KeySums]:
    """What queries see of the sums and, as ``visible`` (n, p) says, of keys; and the sums with all these keys.

    All of it under one stabiliser, so that what comes from the sums and what comes from the keys of the step can be
    added.
    """
    features, (rows, scale) = key_values(keys, shift), scaled_query_values(queries, shift)
    weights = (rows @ features.mT).mul_(visible.to(rows))
    out, added = weights @ values, features.mT @ values
    if sums is None:
        return Part(out, _per_row(scale, out)), KeySums(added, shift)
    before = sums.at(shift)
    out = out + rows @ before
    return Part(out, _per_row(scale, out)), KeySums(before + added, shift)


def _read(sums: KeySums, queries: LogFeatures) -> Part:
    rows, scale = scaled_query_values(queries, sums.shift)
    out = rows @ sums.values
    return Part(out, _per_row(scale, out))


def _per_row(scale: Tensor, out: Tensor) -> Tensor:
    """The scales with the leading axes of the sums, which those of the values may have widened."""
    return scale.expand(*out.shape[:-1], 1)


def _with_ones(v: Tensor) -> Tensor:
    """Values and a column of ones, whose sums are the denominators."""
    return torch.cat([v, v.new_ones(1).expand(*v.shape[:-1], 1)], dim=-1)


def divide(sums: Tensor, seen: Tensor | None, *, positive: bool, nonpositive: str) -> Tensor:
    """Numerators by denominators, the last column; zero where a query sees no key.

    Denominators of positive features are at least the smallest weight, and are not checked.
    """
    numerator, denominator = sums[..., :-1], sums[..., -1:]
    if seen is not None:
        denominator = torch.where(seen[..., None], denominator, 1.0)
    if not positive:
        denominator = _checked(denominator, nonpositive)
    return numerator / denominator


def _checked(denominator: Tensor, nonpositive: str) -> Tensor:
    bad = ~(denominator > 0)
    if nonpositive == "nan":
        return denominator.masked_fill(bad, torch.nan)
    count = int(bad.sum())
    if count:
        sentence = (
            f"linear_attention: {count} of {bad.numel()} rows have a denominator that is not positive, since these "
            f"features are signed and their estimate of the kernel can be negative; {_REMEDY}."
        )
        if nonpositive == "raise":
            raise ArithmeticError(sentence)
        warnings.warn(sentence, DenominatorWarning, stacklevel=_levels_to_the_caller())
    return denominator


def _levels_to_the_caller() -> int:
    """How far up the code that called the library is, seen from the function that asks."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("bochner", "torch"):
        level, frame = level + 1, frame.f_back
    return level
