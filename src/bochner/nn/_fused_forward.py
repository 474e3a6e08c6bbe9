"""The loops of the fused operator, forward: heads side by side, in tiles of rows that stay in the cache.

Logarithms are to base two.  The stabilisers, and the halves in which a tile is walked again where a later key hides what
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
"""Denominators, relative to the largest feature of a query, below which a tile is divided: see `bochner.nn._walk`."""


class Layout(NamedTuple):
    """Which keys a query sees, and how many rows are processed at a time.

    Attributes
    ----------
    causal : bool
        Whether a query at position i sees key j up to ``i - lag``; otherwise it sees all.
    lag : int
        Number of keys before query i, its own included, that it does not see; with ``causal`` only.
    group : int
        Queries of each position, one after the other: those of the heads that share a key.
    rows : int
        Positions of a step: products within it and with the sums cost about as much.
    tile : int
        Positions whose features are computed at a time, a multiple of ``rows``.
    """

    causal: bool
    lag: int
    group: int
    rows: int
    tile: int

    def tiles(self, n: int, start: int = 0) -> Iterator[tuple[int, int]]:
        """Positions [a, b) one after the other, whole steps where attention is causal, but for the last one."""
        if not self.causal:
            return _tiles(start, n, self.tile)
        whole = max(n - start, 0) // self.rows * self.rows + start
        return (ends for part in ((start, whole, self.tile), (whole, n, self.rows)) for ends in _tiles(*part))

    def steps(self, n: int) -> Iterator[tuple[int, int]]:
        """Positions [a, b) of the steps."""
        return _tiles(self.lag, n, self.rows)

    def hide(self, weights: Tensor) -> Tensor:
        """Weights of the queries (..., group * r, r) of r positions with the keys that they do not see set to zero."""
        if self.group == 1:
            return weights.tril_()
        positions = torch.arange(weights.shape[-2], device=weights.device)[:, None] // self.group
        return weights.masked_fill_(torch.arange(weights.shape[-1], device=weights.device) > positions, 0.0)


def _tiles(start: int, stop: int, rows: int) -> Iterator[tuple[int, int]]:
    return ((a, min(a + rows, stop)) for a in range(start, stop, rows))


class Heads(NamedTuple):
    """Some heads of a call, with one leading axis (heads); all tensors are views.

    Attributes
    ----------
    q, k, v : Tensor (g, n, d), (g, p, d), (g, p, e)
    bias : Tensor (g, p) or None
        What is added to the logarithms of all features of a key; minus infinity for those that are masked.
    queries, keys : Binary
        Coefficients of both sides.
    c : float
        Coefficient of the squared norm; that of queries cancels and is left out.
    layout : Layout
    """

    q: Tensor
    k: Tensor
    v: Tensor
    bias: Tensor | None
    queries: Binary
    keys: Binary
    c: float
    layout: Layout

    @property
    def positions(self) -> int:
        """Number of positions of the queries."""
        return int(self.q.shape[-2]) // self.layout.group

    def norms(self, y: Tensor) -> Tensor:
        """What keys add to all their logarithms, (g, p, 1)."""
        z = self.keys.turned(y)
        norms = z.square().sum(dim=-1, keepdim=True).mul_(self.c)
        return norms if self.bias is None else norms.add_(self.bias[..., None])

    def seen(self, shift: Tensor | None) -> Tensor | None:
        """Which queries see a key, (g, n, 1), where the sums begin with this stabiliser; None means all."""
        n, lag = self.positions, self.layout.lag if self.layout.causal else 0
        if self.bias is None and not lag and self.k.shape[-2]:
            return None
        there = self.k.new_ones(*self.k.shape[:-1], dtype=torch.bool) if self.bias is None else self.bias > -torch.inf
        if self.layout.causal:
            seen = torch.nn.functional.pad(there, (lag, 0)).cumsum(dim=-1)[:, :n, None] > 0
            seen = seen if self.layout.group == 1 else seen.repeat_interleave(self.layout.group, dim=1)
        else:
            seen = there.any(dim=-1)[:, None, None].expand(-1, self.q.shape[-2], 1)
        return seen if shift is None else seen | (shift > NOTHING).any(dim=-1, keepdim=True)


class Running:
    """Sums over keys under a stabiliser, (g, m, e) and (g, 1, m), with the stabiliser (g, 1, m)."""

    def __init__(self, values: Tensor, weights: Tensor, shift: Tensor) -> None:
        self.values, self.weights, self.shift = values, weights, shift

    @classmethod
    def of(cls, sums: Tensor, shift: Tensor) -> Running:
        """Sums with the weights as the last column, (g, m, e + 1), copied."""
        return cls(sums[..., :-1].clone(), sums[..., -1:].mT.clone(), shift.clone())

    @classmethod
    def nothing(cls, heads: Heads) -> Running:
        """Sums over no keys."""
        m, e = heads.keys.slope.shape[-1], heads.v.shape[-1]
        zeros = heads.v.new_zeros(len(heads.v), 1, m)
        return cls(heads.v.new_zeros(len(heads.v), m, e), zeros, torch.full_like(zeros, NOTHING))

    def at(self, shift: Tensor) -> Running:
        """Return a copy of the sums under a higher stabiliser."""
        factor = (self.shift - shift).exp2_()
        return Running(self.values * factor.mT, self.weights * factor, shift)

    def add(self, features: Tensor, v: Tensor) -> None:
        """Add keys with features (g, p, m) under this stabiliser."""
        self.values.baddbmm_(features.mT, v)
        self.weights.add_(features.sum(dim=-2, keepdim=True))

    def write(self, sums: Tensor, shift: Tensor) -> None:
        """Into tensors (g, m, e + 1) and (g, 1, m)."""
        sums[..., :-1], sums[..., -1] = self.values, self.weights[:, 0]
        shift.copy_(self.shift)


class Output(NamedTuple):
    """Where the results of some heads go.

    Attributes
    ----------
    out, log : Tensor (g, n, e), (g, n, 1)
        The output, and the logarithm of its denominator.
    sums, shift : Tensor (g, m, e + 1), (g, 1, m)
        Sums over all keys; no features if they are not asked for.
    steps, shifts : Tensor (g, steps, m, e + 1), (g, steps, 1, m)
        The sums before each step, for the gradient; no steps if it is not asked for.
    """

    out: Tensor
    log: Tensor
    sums: Tensor
    shift: Tensor
    steps: Tensor
    shifts: Tensor


def forward(heads: Heads, to: Output, sums: Tensor | None, shift: Tensor | None) -> None:
    """The results of some heads, where sums to begin with may be given."""
    walk = _Forward(heads, to, sums, shift)
    (walk.causal if heads.layout.causal else walk.everything)()
    if to.shift.numel():
        (walk.running or Running.nothing(heads)).write(to.sums, to.shift)


class _Forward:
    """The forward loop over the tiles of some heads; there are no sums before the first key."""

    def __init__(self, heads: Heads, to: Output, sums: Tensor | None, shift: Tensor | None) -> None:
        self.heads, self.to = heads, to
        self.x, self.y = heads.queries.offsets(heads.q), heads.keys.offsets(heads.k)
        self.norms, self.seen = heads.norms(self.y), heads.seen(shift)
        self.running = None if sums is None or shift is None else Running.of(sums, shift)

    def everything(self) -> None:
        """All keys first, then the queries that see all of them."""
        for a, b in self.heads.layout.tiles(self.y.shape[-2]):
            self._absorb(a, b)
        self._read(self.x.shape[-2])

    def _read(self, n: int) -> None:
        """What the first n queries see of the sums."""
        running = self.running or Running.nothing(self.heads)
        bias = self.heads.queries.constant + running.shift
        for a, b in _tiles(0, n, self.heads.layout.tile):
            features, top = self._query_features(a, b, bias)
            torch.bmm(features, running.values, out=self.to.out[:, a:b])
            self._divide(a, b, self._denominator(a, b, products(features, running.weights)), top)

    def _absorb(self, a: int, b: int) -> None:
        features, shift = self._key_features(a, b)
        v = self.heads.v[:, a:b]
        if self.running is None:
            self.running = Running(torch.bmm(features.mT, v), features.sum(dim=-2, keepdim=True), shift)
        else:
            self.running = self.running.at(shift)
            self.running.add(features, v)

    def causal(self) -> None:
        """Tile by tile, with sums that run along."""
        layout, n = self.heads.layout, self.heads.positions
        before = min(layout.lag, n) * layout.group
        if layout.lag and self.running is not None:
            self._read(before)
        elif layout.lag:
            self.to.out[:, :before], self.to.log[:, :before] = 0.0, 2 * NOTHING
        for a, b in layout.tiles(n, layout.lag):
            self._tile(a, b)
        if self.to.shift.numel():  # keys that no query sees, for the sums
            for a, b in layout.tiles(self.y.shape[-2], max(n - layout.lag, 0)):
                self._absorb(a, b)

    def _tile(self, a: int, b: int) -> None:
        """Queries of positions [a, b) with the sums and the keys that enter them."""
        layout = self.heads.layout
        keys, shift = self._key_features(a - layout.lag, b - layout.lag)
        before = Running.nothing(self.heads) if self.running is None else self.running.at(shift)
        before.shift = shift
        first, last = a * layout.group, b * layout.group
        queries, top = self._query_features(first, last, self.heads.queries.constant + shift)
        steps = list(_tiles(0, b - a, layout.rows))
        den = [self._step(ends, a, queries, keys, before) for ends in steps]
        whole = self._denominator(first, last, den[0] if len(den) == 1 else torch.cat(den, dim=-2))
        if b - a > 1 and float(whole.amin()) < LOWEST[whole.dtype]:
            half = len(steps) // 2 * layout.rows or (b - a) // 2
            self._tile(a, a + half)
            self._tile(a + half, b)
            return
        self._divide(first, last, whole, top)
        self.running = before

    def _step(self, ends: tuple[int, int], a: int, queries: Tensor, keys: Tensor, before: Running) -> Tensor:
        """Numerators of a step of the tile at ``a``, into the output; returns the denominators, and adds its keys."""
        layout = self.heads.layout
        start, group = a - layout.lag, layout.group
        k, v = keys[:, slice(*ends)], self.heads.v[:, start + ends[0] : start + ends[1]]
        q = queries[:, ends[0] * group : ends[1] * group]
        self._save(start + ends[0], before)
        weights = layout.hide(torch.bmm(q, k.mT))
        out = self.to.out[:, (a + ends[0]) * group : (a + ends[1]) * group]
        torch.baddbmm(torch.bmm(weights, v), q, before.values, out=out)
        den = products(q, before.weights).add_(weights.sum(dim=-1, keepdim=True))
        before.add(k, v)
        return den

    def _save(self, position: int, running: Running) -> None:
        """The sums before a step, if they are asked for; steps are divided where a key hides others."""
        i, rest = divmod(position, self.heads.layout.rows)
        if self.to.steps.numel() and not rest:
            running.write(self.to.steps[:, i], self.to.shifts[:, i])

    def _key_features(self, a: int, b: int) -> tuple[Tensor, Tensor]:
        """Features of keys [a, b), under the largest logarithms so far."""
        logs = torch.baddbmm(self.norms[:, a:b], self.y[:, a:b], self.heads.keys.slope)
        constant, largest = self.heads.keys.constant, logs.amax(dim=-2, keepdim=True)
        if self.running is not None:
            shift = torch.maximum(self.running.shift, largest.add_(constant))
            return logs.sub_(shift - constant).exp2_(), shift
        if self.heads.bias is not None:
            largest.clamp_(min=NOTHING)
        return logs.sub_(largest).exp2_(), largest + constant

    def _query_features(self, a: int, b: int, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Features of queries [a, b) times the stabiliser, divided by the largest of each row."""
        logs = torch.baddbmm(bias, self.x[:, a:b], self.heads.queries.slope)
        top = logs.amax(dim=-1, keepdim=True)
        return logs.sub_(top).exp2_(), top

    def _denominator(self, a: int, b: int, den: Tensor) -> Tensor:
        """One in place of the denominators of queries that see nothing."""
        return den if self.seen is None else den.masked_fill_(~self.seen[:, a:b], 1.0)

    def _divide(self, a: int, b: int, den: Tensor, top: Tensor) -> None:
        """Numerators, which are in the output, by denominators, and the logarithms of these."""
        self.to.out[:, a:b].div_(den)
        log = torch.add(den.log2_(), top, out=self.to.log[:, a:b])
        if self.seen is not None:
            log.masked_fill_(~self.seen[:, a:b], 2 * NOTHING)


def products(features: Tensor, row: Tensor) -> Tensor:
    """Features (g, n, m) times weights (g, 1, m), (g, n, 1); features of several heads are overwritten.

    A batched product with a column would be slow.
    """
    if features.shape[0] == 1:
        return torch.bmm(features, row.mT)
    return features.mul_(row).sum(dim=-1, keepdim=True)
