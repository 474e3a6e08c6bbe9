r"""Linear attention with positive features as one operator for the CPU, which graphs and exports can hold.

`bochner.nn._attention_plain` computes the same, and is its oracle in the tests.  On the CPU these loops take half of its
time where all see all, and a tenth where attention is causal (`bench attention`), since tiles stay in the cache of a core.
The operator is a pure function of tensors: what it does between steps may depend on numbers, and no graph sees it.  Heads
are divided among threads; nothing else runs in parallel.

**Forward.**  Heads side by side, in tiles of rows that stay in the cache.  Logarithms are to base two.  The stabilisers are
running maxima over keys, those of the tile included; a tile is walked again in two halves where a later key hides what an
earlier query sees.

**Backward.**  With :math:`p_{ij} = \sum_m \tilde q_{im} k_{jm}` the weights, which sum to one, :math:`g_i` and :math:`h_i`
the gradients of the output and of the logarithm of its denominator,

    d log q_im = q~_im (sum_{j<=i} k_jm B_ij),   d log k_jm = k_jm (sum_{i>=j} q~_im B_ij),   dv_j = sum_{i>=j} p_ij g_i,
    B_ij = g_i . v_j + t_i,   t_i = h_i - g_i . out_i.

Sums over the keys before a step are those that the forward loop has kept; sums :math:`R_m = \sum_i \tilde q_{im} [g_i, t_i]`
over the queries behind it run along.  They are under the stabiliser of the step, which does not increase on the way back,
so that nothing overflows.  Second derivatives go through the plain engine, as everything under `torch.func` does.

**Groups.**  All leading axes are one: heads of all sequences, one after the other.  A group is a part of the heads of a
sequence, or all heads of several sequences, so that a batch of short sequences fills the tiles that a long one does.  A
short call is one group, whose operations torch divides among its own threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..approximation.log_features import NOTHING, KeySums, LogFeatures
from ._attention_plain import causal, everything, to_base_e, to_base_two, with_ones
from ._tensor_features import LOG2E, Binary, QuadraticFeatures
from ._threads import run_all

_LN2 = math.log(2)


LOWEST = {torch.float32: 2.0**-36, torch.float64: 2.0**-288}
"""Denominators, relative to the largest feature of a query, below which a tile is divided: see above."""


class FusedLayout(NamedTuple):
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
    layout : FusedLayout
    """

    q: Tensor
    k: Tensor
    v: Tensor
    bias: Tensor | None
    queries: Binary
    keys: Binary
    c: float
    layout: FusedLayout

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


TILE = 1 << 18
"""Features of a tile: few enough for the cache of a core, enough for matrix products."""

SHORT = 1 << 18
"""Features of a call up to which it is one group: dividing each operation costs less than sharing Python's lock."""

TENSORS = 11
"""Tensors that both operators begin with."""

_CALL = TENSORS + 5
"""Arguments that both operators begin with."""

RESULT_AXES = (2, 2, 2, 2, 3, 3)
"""Axes of `Call.results` that are not leading ones."""


class Call:
    """The inputs that both operators begin with, in their order.

    Parameters
    ----------
    *inputs
        Queries, keys, values, the bias of keys (..., p), slope, constant and centre of queries, slope, constant, centre and
        turn of keys (some of them None); then the coefficient of the squared norm, and of the `FusedLayout` what is known of
        it: ``causal``, ``lag``, ``group`` and ``rows``.
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

    def _layout(self, groups: Groups) -> FusedLayout:
        steps = TILE // (groups.size * self.rows * self.group * self.m) if self.causal else 1
        return FusedLayout(self.causal, self.lag, self.group, self.rows, self.rows * max(steps, 1))


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


class Saved(NamedTuple):
    """What the forward loop has left for some heads, as in its `Output`, with the gradients of its two results.

    ``sums`` and ``shift`` are those over all keys, and are used where all see all.
    """

    out: Tensor
    log: Tensor
    sums: Tensor
    shift: Tensor
    steps: Tensor
    shifts: Tensor
    d_out: Tensor
    d_log: Tensor


class Gradients(NamedTuple):
    """Where the gradients go: those of the bias and of coefficients are None if nobody asks for them."""

    q: Tensor
    k: Tensor
    v: Tensor
    bias: Tensor | None
    queries: Binary | None
    keys: Binary | None

    @classmethod
    def of(cls, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, *sides: Any) -> Gradients:
        """From the coefficients one by one, all of them None if nobody asks."""
        asked = sides[0] is not None
        return cls(q, k, v, bias, Binary.of(*sides[:3]) if asked else None, Binary.of(*sides[3:]) if asked else None)


def backward(heads: Heads, saved: Saved, to: Gradients) -> None:
    """The gradients of some heads."""
    walk = _Backward(heads, saved, to)
    (walk.causal if heads.layout.causal else walk.everything)()


class _Backward:
    """The backward loop over the steps of some heads."""

    def __init__(self, heads: Heads, saved: Saved, to: Gradients) -> None:
        self.heads, self.saved, self.to = heads, saved, to
        self.x, self.y = heads.queries.offsets(heads.q), heads.keys.offsets(heads.k)
        self.norms = heads.norms(self.y)
        self.slopes = [side.slope.mT * _LN2 for side in (heads.queries, heads.keys)]
        rest = saved.d_log * math.log2(math.e) - (saved.d_out * saved.out).sum(dim=-1, keepdim=True)
        self.given = torch.cat([saved.d_out, rest], dim=-1)
        self.values = torch.nn.functional.pad(heads.v, (0, 1), value=1.0)
        # queries that see nothing have no gradient: all their features vanish
        self.log = saved.log.masked_fill(saved.log <= NOTHING, torch.inf)
        self.behind: Tensor | None = None  # the sums R, (g, m, e + 1)
        self.shift: Tensor | None = None  # their stabiliser

    def everything(self) -> None:
        """All queries see all keys."""
        layout, shift = self.heads.layout, self.saved.shift
        behind = torch.zeros_like(self.saved.sums)
        bias, sums = self.heads.queries.constant + shift, self.saved.sums.mT
        for a, b in layout.tiles(self.x.shape[-2]):
            queries, given = self._query_features(a, b, bias), self.given[:, a:b]
            behind.baddbmm_(queries.mT, given)
            self._to_queries(a, b, torch.bmm(given, sums).mul_(queries))
        for a, b in layout.tiles(self.y.shape[-2]):
            keys = self._key_logs(a, b).sub_(shift).exp2_()
            self._to_values(a, b, torch.bmm(keys, behind[..., :-1]))
            self._to_keys(a, b, torch.bmm(self.values[:, a:b], behind.mT).mul_(keys))

    def causal(self) -> None:
        """From the last step to the first."""
        for i, (a, b) in reversed(list(enumerate(self.heads.layout.steps(self.heads.positions)))):
            self._step(a, b, Running.of(self.saved.steps[:, i], self.saved.shifts[:, i]))

    def _step(self, a: int, b: int, running: Running) -> None:
        layout = self.heads.layout
        first, last, start, stop = a - layout.lag, b - layout.lag, a * layout.group, b * layout.group
        logs = self._key_logs(first, last)
        shift = torch.maximum(running.shift, logs.amax(dim=-2, keepdim=True))
        queries = self._query_features(start, stop, self.heads.queries.constant + shift)
        if b - a > 1 and float(queries.amax()) > 1 / LOWEST[queries.dtype]:
            self._halves(a, b, running)
            return
        keys, before = logs.sub_(shift).exp2_(), running.at(shift)
        given, values = self.given[:, start:stop], self.values[:, first:last]
        behind = self._behind(shift)
        weights, both = (layout.hide(torch.bmm(x, y.mT)) for x, y in ((queries, keys), (given, values)))
        d_queries = torch.bmm(given[..., :-1], before.values.mT).baddbmm_(both, keys)
        d_queries.addcmul_(given[..., -1:], before.weights)
        self._to_queries(start, stop, d_queries.mul_(queries))
        d_keys = torch.bmm(values, behind.mT).baddbmm_(both.mT, queries)
        self._to_keys(first, last, d_keys.mul_(keys))
        self._to_values(first, last, torch.bmm(keys, behind[..., :-1]).baddbmm_(weights.mT, given[..., :-1]))
        self.behind = behind.baddbmm_(queries.mT, given)

    def _halves(self, a: int, b: int, running: Running) -> None:
        """The second half first, from the sums with the keys of the first half."""
        middle, lag = (a + b) // 2, self.heads.layout.lag
        logs = self._key_logs(a - lag, middle - lag)
        shift = torch.maximum(running.shift, logs.amax(dim=-2, keepdim=True))
        between = running.at(shift)
        between.add(logs.sub_(shift).exp2_(), self.heads.v[:, a - lag : middle - lag])
        self._step(middle, b, between)
        self._step(a, middle, running)

    def _behind(self, shift: Tensor) -> Tensor:
        """The sums over queries behind a step, under its stabiliser, which is not above theirs."""
        if self.behind is None or self.shift is None:
            found = self.values.new_zeros(len(self.values), shift.shape[-1], self.values.shape[-1])
        else:
            found = self.behind.mul_((shift - self.shift).exp2_().mT)
        self.shift = shift
        return found

    def _key_logs(self, a: int, b: int) -> Tensor:
        logs = torch.baddbmm(self.heads.keys.constant, self.y[:, a:b], self.heads.keys.slope)
        return logs.add_(self.norms[:, a:b])

    def _query_features(self, a: int, b: int, bias: Tensor) -> Tensor:
        """Features of queries [a, b) times the stabiliser, divided by their denominators."""
        return torch.baddbmm(bias, self.x[:, a:b], self.heads.queries.slope).sub_(self.log[:, a:b]).exp2_()

    def _to_queries(self, a: int, b: int, logs: Tensor) -> None:
        """From gradients of logarithms to base e, to queries and coefficients."""
        part = torch.bmm(logs, self.slopes[0])
        self.to.q[:, a:b] = part
        if self.to.queries is not None:
            _collect(self.to.queries, self.x[:, a:b], logs, part)

    def _to_keys(self, a: int, b: int, logs: Tensor) -> None:
        y, side = self.y[:, a:b], self.heads.keys
        part = torch.bmm(logs, self.slopes[1])
        whole = logs.sum(dim=-1, keepdim=True)
        if self.to.bias is not None:
            self.to.bias[:, a:b] = whole[..., 0] * _LN2
        turned = side.turned(y) * whole.mul_(2 * self.heads.c * _LN2)
        part += turned if side.turn is None else torch.bmm(turned, side.turn.mT)
        self.to.k[:, a:b] = part
        if self.to.keys is not None:
            _collect(self.to.keys, y, logs, part)
            if self.to.keys.turn is not None:
                self.to.keys.turn.baddbmm_(y.mT, turned)

    def _to_values(self, a: int, b: int, part: Tensor) -> None:
        self.to.v[:, a:b] = part


def _collect(to: Binary, offsets: Tensor, logs: Tensor, part: Tensor) -> None:
    """Add the gradients of coefficients from some rows."""
    to.slope.baddbmm_(offsets.mT, logs, alpha=_LN2)
    to.constant.add_(logs.sum(dim=-2, keepdim=True), alpha=_LN2)
    if to.centre is not None:
        to.centre.sub_(part.sum(dim=-2, keepdim=True))


def by_plain_operations(call: Call) -> tuple[Tensor, Tensor]:
    """The output of a call and the logarithms of its denominators."""
    of_queries, of_keys = Binary.of(*call.tensors[4:7]), Binary.of(*call.tensors[7:])
    q, k, values = of_queries.offsets(call.q), of_keys.offsets(call.k), with_ones(call.v)
    norms = of_keys.turned(k).square().sum(dim=-1, keepdim=True) * call.c
    if call.bias is not None:
        norms = norms + call.bias.clamp(min=2 * NOTHING)[..., None]
    queries = LogFeatures(None, q @ of_queries.slope + of_queries.constant)
    keys = LogFeatures(None, k @ of_keys.slope + of_keys.constant + norms)
    if call.causal:
        part, _ = causal(queries, keys, values, lag=call.lag, group=call.group)
    else:
        part, _ = everything(queries, keys, values, None)
    seen = part.scale > NOTHING / 2
    den = torch.where(seen, part.sums[..., -1:], 1.0)
    return part.sums[..., :-1] / den, torch.where(seen, part.scale + den.log2(), 2 * NOTHING)


_CAUSAL_ROWS = 64
"""Rows of a causal step: products within it cost less than those with the sums."""


class Fused(NamedTuple):
    """The result of `attend`.

    Attributes
    ----------
    out : Tensor (..., n, e)
        Normalised over the keys that were met; zero for queries that saw none.
    log : Tensor (..., n, 1)
        Logarithm of the denominator to base two, but for the squared norm of the query.
    sums : KeySums or None
        Over all keys, if they are to be kept.
    """

    out: Tensor
    log: Tensor
    sums: KeySums | None


def attend(
    features: QuadraticFeatures,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_bias: Tensor | None,
    root: float | Tensor,
    *,
    causal: bool,
    lag: int = 0,
    group: int = 1,
    rows: int | None = None,
    sums: KeySums | None = None,
    keep: bool = False,
) -> Fused:
    """Attend to all keys, or with ``causal`` to key j up to ``i - lag``, and to those in the sums; see `FusedLayout`.

    Gradients flow to queries, keys, values, the bias of keys (..., p) and features, but not to or from the sums.
    """
    if isinstance(root, Tensor):
        q, k, root = q * root, k * root, 1.0
    (of_queries, _), (of_keys, c) = (features.binary(root, q, key=key) for key in (False, True))
    values, shift = to_base_two(sums) or (None, None)
    if rows is None:
        rows = _CAUSAL_ROWS if causal else min(max(TILE // features.width, 64), 1024)
    if key_bias is not None:
        key_bias = key_bias.to(v.dtype) * LOG2E
    inputs = (q, k, v, key_bias, *of_queries[:3], *of_keys)
    save = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)
    operator: Callable[..., Any] = _Attention.apply
    if torch.compiler.is_compiling():
        operator = _forward
    elif not save and _here(q):  # autograd would take 60 microseconds, which a short call notices
        operator = _forward_here
    out, log, values, shift, *_ = operator(*inputs, c, causal, lag, group, rows, save, keep, values, shift)
    return Fused(out, log, to_base_e(KeySums(values, shift)) if keep else None)


def scale_of(features: QuadraticFeatures, q: Tensor, root: float | Tensor, log: Tensor) -> Tensor:
    """Logarithms of denominators to base two with the squared norms of the queries, which cancel in the output."""
    if isinstance(root, Tensor):
        q, root = q * root, 1.0
    side, c = features.binary(root, q, key=False)
    norms = side.turned(side.offsets(q)).square().sum(dim=-1, keepdim=True)
    return torch.where(log > NOTHING, log + c * norms, log)


def _forward_here(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_bias: Tensor | None,
    query_slope: Tensor,
    query_constant: Tensor,
    query_centre: Tensor | None,
    key_slope: Tensor,
    key_constant: Tensor,
    key_centre: Tensor | None,
    key_turn: Tensor | None,
    c: float,
    causal: bool,
    lag: int,
    group: int,
    rows: int,
    save: bool,
    keep: bool,
    sums: Tensor | None,
    shift: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    call = Call(
        q, k, v, key_bias, query_slope, query_constant, query_centre, key_slope, key_constant, key_centre, key_turn,
        c, causal, lag, group, rows,
    )  # fmt: skip
    results, groups = call.results(save, keep), call.groups()
    if groups.single:
        to = Output(*(groups.whole(x, axes) for x, axes in zip(results, RESULT_AXES, strict=True)))
        run_all([partial(forward, call.all_heads(groups), to, groups.whole(sums), groups.whole(shift))])
        return results
    heads, room, start = call.heads(groups), groups.result_parts(results), [groups.parts(x) for x in (sums, shift)]

    def task(a: int, b: int) -> None:
        forward(heads(a, b), Output(*room(a, b)), *(part(a, b) for part in start))

    run_all([partial(task, *ends) for ends in groups.ends()])
    return results


_forward = torch.library.custom_op("bochner::linear_attention", _forward_here, mutates_args=())


@_forward.register_fake
def _(*inputs: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    return Call(*inputs[:_CALL]).results(*inputs[_CALL : _CALL + 2])


def _backward_here(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_bias: Tensor | None,
    query_slope: Tensor,
    query_constant: Tensor,
    query_centre: Tensor | None,
    key_slope: Tensor,
    key_constant: Tensor,
    key_centre: Tensor | None,
    key_turn: Tensor | None,
    c: float,
    causal: bool,
    lag: int,
    group: int,
    rows: int,
    biased: bool,
    coefficients: bool,
    results: list[Tensor],
    d_out: Tensor,
    d_log: Tensor,
) -> list[Tensor]:
    call = Call(
        q, k, v, key_bias, query_slope, query_constant, query_centre, key_slope, key_constant, key_centre, key_turn,
        c, causal, lag, group, rows,
    )  # fmt: skip
    gradients, groups = call.gradients(biased, coefficients), call.groups()
    heads, left = call.heads(groups), groups.result_parts(results)
    given = [groups.parts(x) for x in (d_out, d_log)]
    rooms = [groups.parts(x if x.numel() else None, 1 if i == 3 else 2) for i, x in enumerate(gradients)]

    def task(a: int, b: int) -> None:
        saved = Saved(*left(a, b), *(part(a, b) for part in given))
        backward(heads(a, b), saved, Gradients.of(*(part(a, b) for part in rooms)))

    run_all([partial(task, *ends) for ends in groups.ends()])
    return gradients


_backward = torch.library.custom_op("bochner::linear_attention_backward", _backward_here, mutates_args=())


@_backward.register_fake
def _(*inputs: Any) -> list[Tensor]:
    return Call(*inputs[:_CALL]).gradients(*inputs[_CALL : _CALL + 2])


def _here(q: Tensor) -> bool:
    """Whether there are numbers to work on at once: the dispatcher is for graphs, and would load torch's compiler."""
    return type(q) in (Tensor, torch.nn.Parameter) and not q.is_meta and not torch.compiler.is_compiling()


class _Attention(torch.autograd.Function):
    """The operator with its gradient."""

    @staticmethod
    def forward(*inputs: Any) -> Any:
        return (_forward_here if _here(inputs[0]) else _forward)(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[:TENSORS], *output)
        ctx.constants = inputs[TENSORS:_CALL]
        ctx.mark_non_differentiable(*output[2:])

    @staticmethod
    def backward(ctx: Any, d_out: Tensor, d_log: Tensor, *_: Any) -> Any:
        if torch.is_grad_enabled():  # a gradient that can be differentiated again
            return _plain_gradients(ctx, d_out, d_log)
        return _gradients(ctx, d_out, d_log)


def _gradients(ctx: Any, d_out: Tensor, d_log: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of the inputs of an operator, in their own shapes."""
    saved = ctx.saved_tensors  # once: under checkpointing they are computed again
    inputs, results = saved[:TENSORS], saved[TENSORS:]
    needed, (_, causal, *_) = ctx.needs_input_grad, ctx.constants
    if not (results[4].shape[-3] if causal else results[3].shape[-1]):  # the forward pass did not expect gradients
        results = _forward(*inputs, *ctx.constants, True, False, None, None)
    operator: Callable[..., Any] = _backward_here if _here(inputs[0]) else _backward
    asked = (needed[3], any(needed[4:TENSORS]))
    found = operator(*inputs, *ctx.constants, *asked, list(results), d_out.contiguous(), d_log.contiguous())
    own = (x.sum_to_size(y.shape) if ask else None for x, y, ask in zip(found, inputs, needed, strict=False))
    return (*own, *(None,) * (len(needed) - TENSORS))


# within a graph the operator has its gradient from here: dynamo does not follow one function inside of another
_forward.register_autograd(
    lambda ctx, d_out, d_log, *_: _gradients(ctx, d_out, d_log), setup_context=_Attention.setup_context
)


def _plain_gradients(ctx: Any, d_out: Tensor, d_log: Tensor) -> tuple[Tensor | None, ...]:
    """Gradients of the inputs by plain operations, which have derivatives of their own."""
    needed = ctx.needs_input_grad
    inputs = [x.view_as(x) if ask else x for x, ask in zip(ctx.saved_tensors[:TENSORS], needed, strict=False)]
    asked = [x for x, ask in zip(inputs, needed, strict=False) if ask]
    results = by_plain_operations(Call(*inputs, *ctx.constants))
    found = iter(torch.autograd.grad(results, asked, (d_out, d_log), create_graph=True, allow_unused=True))
    return tuple(next(found) if ask else None for ask in needed)
