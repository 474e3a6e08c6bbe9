"""The loops of the fused operator, forward: heads side by side, in tiles of rows that stay in the cache.

Logarithms are to base two.  The stabilisers, and the halves in which a step is walked again where a later key hides what
an earlier query sees, are those of `bochner.nn._walk`; here they are inside of an operator, which a graph does not see.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from ..approximation.log_features import NOTHING
from ._tensor_features import Binary

LOWEST = {torch.float32: 2.0**-36, torch.float64: 2.0**-288}
"""Denominators, relative to the largest feature of a query, below which a step is divided: see `bochner.nn._walk`."""

TILE = 1 << 16
"""Features of a tile: few enough for the cache of a core, enough for matrix products."""


class Layout(NamedTuple):
    """Which keys a query sees: all of them, or key j up to ``i - lag``; and rows per step.

    Attributes
    ----------
    causal : bool
    lag : int
        Number of keys before query i, its own included, that it does not see; with ``causal`` only.
    rows : int
        Queries and keys of a step.
    """

    causal: bool
    lag: int
    rows: int

    def starts(self, n: int) -> range:
        """First queries of the steps; with ``causal``, queries before them see nothing."""
        return range(self.lag if self.causal else 0, n, self.rows)


class Heads(NamedTuple):
    """Some heads of a call, with one leading axis (heads); all tensors are views.

    Attributes
    ----------
    q, k, v : Tensor (g, n, d), (g, p, d), (g, p, e)
    key_mask : Tensor (g, p) of bool, or None
    queries, keys : Binary
        Coefficients of both sides.
    c : float
        Coefficient of the squared norm; that of queries cancels and is left out.
    layout : Layout
    """

    q: Tensor
    k: Tensor
    v: Tensor
    key_mask: Tensor | None
    queries: Binary
    keys: Binary
    c: float
    layout: Layout

    def norms(self, y: Tensor) -> Tensor:
        """What keys add to all their logarithms, (g, p, 1); minus infinity for those that are masked."""
        norms = self.keys.turned(y).square().sum(dim=-1, keepdim=True).mul_(self.c)
        return norms if self.key_mask is None else norms.masked_fill_(~self.key_mask[..., None], -torch.inf)

    def seen(self, shift: Tensor) -> Tensor | None:
        """Which queries see a key, (g, n, 1), where the sums begin with this stabiliser; None means all."""
        n, lag = self.q.shape[-2], self.layout.lag if self.layout.causal else 0
        if self.key_mask is None and not lag and self.k.shape[-2]:
            return None
        there = self.k.new_ones(*self.k.shape[:-1], dtype=torch.bool) if self.key_mask is None else self.key_mask
        if self.layout.causal:
            seen = torch.nn.functional.pad(there, (lag, 0)).cumsum(dim=-1)[:, :n, None] > 0
        else:
            seen = there.any(dim=-1)[:, None, None].expand(-1, n, 1)
        return seen | (shift > NOTHING).any(dim=-1, keepdim=True)


class Running:
    """Sums over keys under a stabiliser, (g, m, e) and (g, m, 1), with the stabiliser (g, 1, m)."""

    def __init__(self, values: Tensor, weights: Tensor, shift: Tensor) -> None:
        self.values, self.weights, self.shift = values, weights, shift

    @classmethod
    def of(cls, sums: Tensor, shift: Tensor) -> Running:
        """Sums with the weights as the last column, (g, m, e + 1), copied."""
        return cls(sums[..., :-1].clone(), sums[..., -1:].clone(), shift.clone())

    def at(self, shift: Tensor) -> Running:
        """The same under a higher stabiliser, copied."""
        factor = (self.shift - shift).exp2_().mT
        return Running(self.values * factor, self.weights * factor, shift)

    def add(self, features: Tensor, v: Tensor) -> None:
        """Add keys with features (g, p, m) under this stabiliser."""
        self.values.baddbmm_(features.mT, v)
        self.weights.add_(features.sum(dim=-2)[..., None])

    def write(self, sums: Tensor, shift: Tensor) -> None:
        """Into tensors (g, m, e + 1) and (g, 1, m)."""
        sums[..., :-1], sums[..., -1:] = self.values, self.weights
        shift.copy_(self.shift)


class Output(NamedTuple):
    """Where the results of some heads go.

    Attributes
    ----------
    out, log : Tensor (g, n, e), (g, n, 1)
        The output, and the logarithm of its denominator.
    sums, shift : Tensor (g, m, e + 1), (g, 1, m)
        Sums to begin with, replaced by those over all keys.
    steps, shifts : Tensor (g, steps, m, e + 1), (g, steps, 1, m)
        The sums before each step, for the gradient; no steps if it is not asked for.
    """

    out: Tensor
    log: Tensor
    sums: Tensor
    shift: Tensor
    steps: Tensor
    shifts: Tensor


def forward(heads: Heads, to: Output, save: bool) -> None:
    """The results of some heads, with the sums before each step if these are to be saved."""
    walk = _Forward(heads, to, save)
    (walk.causal if heads.layout.causal else walk.everything)()
    walk.running.write(to.sums, to.shift)


class _Forward:
    """The forward loop over the steps of some heads."""

    def __init__(self, heads: Heads, to: Output, save: bool) -> None:
        self.heads, self.to, self.save = heads, to, save
        self.x, self.y = heads.queries.offsets(heads.q), heads.keys.offsets(heads.k)
        self.norms, self.seen = heads.norms(self.y), heads.seen(to.shift)
        self.running = Running.of(to.sums, to.shift)

    def everything(self) -> None:
        """All keys first, then the queries that see all of them."""
        for a, b in tiles(self.y.shape[-2], self.heads.layout.rows):
            self._absorb(a, b)
        self._read(self.x.shape[-2])

    def _read(self, n: int) -> None:
        """What the first n queries see of the sums."""
        bias = self.heads.queries.constant + self.running.shift
        for a, b in tiles(n, self.heads.layout.rows):
            features, top = self._query_features(a, b, bias)
            num, den = torch.bmm(features, self.running.values), products(features, self.running.weights)
            self._write(a, b, num, self._denominator(a, b, den), top)

    def _absorb(self, a: int, b: int) -> None:
        features, shift = self._key_features(a, b)
        self.running = self.running.at(shift)
        self.running.add(features, self.heads.v[:, a:b])

    def causal(self) -> None:
        """Step by step, with sums that run along."""
        lag, n, p = self.heads.layout.lag, self.x.shape[-2], self.y.shape[-2]
        if lag and bool((self.running.shift > NOTHING).any()):
            self._read(min(lag, n))
        elif lag:
            self.to.out[:, :lag], self.to.log[:, :lag] = 0.0, 2 * NOTHING
        for i, (a, b) in enumerate(tiles(n, self.heads.layout.rows, lag)):
            if self.save:
                self.running.write(self.to.steps[:, i], self.to.shifts[:, i])
            self._step(a, b)
        for a, b in tiles(p, self.heads.layout.rows, max(n - lag, 0)):  # keys that no query sees, for the sums
            self._absorb(a, b)

    def _step(self, a: int, b: int) -> None:
        """Queries [a, b) with the sums and the keys that enter them."""
        lag = self.heads.layout.lag
        keys, shift = self._key_features(a - lag, b - lag)
        before, v = self.running.at(shift), self.heads.v[:, a - lag : b - lag]
        queries, top = self._query_features(a, b, self.heads.queries.constant + shift)
        weights = torch.bmm(queries, keys.mT).tril_()
        num = torch.bmm(queries, before.values).baddbmm_(weights, v)
        den = products(queries, before.weights).add_(weights.sum(dim=-1, keepdim=True))
        den = self._denominator(a, b, den)
        if b - a > 1 and float(den.amin()) < LOWEST[den.dtype]:
            middle = (a + b) // 2
            self._step(a, middle)
            self._step(middle, b)
            return
        self._write(a, b, num, den, top)
        self.running = before
        self.running.add(keys, v)

    def _key_features(self, a: int, b: int) -> tuple[Tensor, Tensor]:
        """Features of keys [a, b), under the largest logarithms so far."""
        logs = torch.baddbmm(self.heads.keys.constant, self.y[:, a:b], self.heads.keys.slope)
        logs.add_(self.norms[:, a:b])
        shift = torch.maximum(self.running.shift, logs.amax(dim=-2, keepdim=True))
        return logs.sub_(shift).exp2_(), shift

    def _query_features(self, a: int, b: int, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Features of queries [a, b) times the stabiliser, divided by the largest of each row."""
        logs = torch.baddbmm(bias, self.x[:, a:b], self.heads.queries.slope)
        top = logs.amax(dim=-1, keepdim=True)
        return logs.sub_(top).exp2_(), top

    def _denominator(self, a: int, b: int, den: Tensor) -> Tensor:
        """One in place of the denominators of queries that see nothing."""
        return den if self.seen is None else den.masked_fill_(~self.seen[:, a:b], 1.0)

    def _write(self, a: int, b: int, num: Tensor, den: Tensor, top: Tensor) -> None:
        torch.div(num, den, out=self.to.out[:, a:b])
        log = den.log2_().add_(top)
        self.to.log[:, a:b] = log if self.seen is None else log.masked_fill_(~self.seen[:, a:b], 2 * NOTHING)


def tiles(n: int, rows: int, start: int = 0) -> Iterator[tuple[int, int]]:
    """Rows [a, b) one after the other."""
    for a in range(start, n, rows):
        yield a, min(a + rows, n)


def products(features: Tensor, column: Tensor) -> Tensor:
    """Features (g, n, m) times a column (g, m, 1), which a batched product would multiply slowly."""
    if len(features) == 1:
        return torch.bmm(features, column)
    return torch.stack([torch.mv(a, b) for a, b in zip(features, column[..., 0], strict=True)])[..., None]
