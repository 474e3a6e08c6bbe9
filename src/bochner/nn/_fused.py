r"""Linear attention with positive features as one operator for the CPU, which graphs and exports can hold.

`bochner.nn._attention_plain` computes the same, and is its oracle in the tests.  These loops are faster on the CPU since
tiles stay in the cache of a core; they stay for the cases of `bochner.nn._engine_choice` while ``bochner-lab bench engines``
shows 1.5 times or more there.  The operator is a pure function of tensors: what it does between steps may depend on numbers,
and no graph sees it.  Heads are divided among threads; nothing else runs in parallel.

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
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..approximation.log_features import NOTHING, KeySums, LogFeatures
from ._attention_parts import to_base_e, to_base_two, with_ones
from ._attention_plain import causal
from ._attention_to_all import everything
from ._tensor_features import LOG2E, QuadraticFeatures
from ._threads import run_all

_LN2 = math.log(2)

LOWEST = {torch.float32: 2.0**-36, torch.float64: 2.0**-288}
"""Denominators, relative to the largest feature of a query, below which a tile is divided: see above."""

TILE = 1 << 18  # features of a tile: few enough for the cache of a core, enough for matrix products

SHORT = 1 << 18
"""Features of a call up to which it is one group: dividing each operation costs less than sharing Python's lock."""

_CAUSAL_ROWS = 64  # rows of a causal step: products within it cost less than those with the sums


class Heads(NamedTuple):
    """The tensors of a call, or those of some heads of it, with one leading axis."""

    q: Tensor  # (g, n, d): queries and keys without the centres of the features, and values
    k: Tensor
    v: Tensor
    # (g, p, 1): what is added to the logarithms of all features of a key; minus infinity for those that are masked
    bias: Tensor
    query_slope: Tensor  # (g, d, m): logarithms of features are ``q @ slope + constant``
    query_constant: Tensor
    key_slope: Tensor
    key_constant: Tensor


class FusedLayout(NamedTuple):
    """Which keys a query sees, and how many rows are processed at a time."""

    causal: bool  # whether a query at position i sees key j up to ``i - lag``; otherwise it sees all
    masked: bool  # whether some keys may be hidden from all queries
    lag: int  # number of keys before query i, its own included, that it does not see; with ``causal`` only
    group: int  # queries of each position, one after the other: those of the heads that share a key
    rows: int  # positions of a step: products within it and with the sums cost about as much

    def hide(self, weights: Tensor) -> Tensor:
        """Weights of the queries (..., group * r, r) of r positions with the keys that they do not see set to zero."""
        if self.group == 1:
            return weights.tril_()
        positions = torch.arange(weights.shape[-2], device=weights.device)[:, None] // self.group
        return weights.masked_fill_(torch.arange(weights.shape[-1], device=weights.device) > positions, 0.0)

    def parts(self, heads: Heads) -> list[tuple[int, int]]:
        """First and last heads of groups: all of a short call; otherwise as many as fill a tile, and one for each thread."""
        count, n, m = len(heads.q), max(heads.q.shape[-2], heads.k.shape[-2] * self.group), heads.key_slope.shape[-1]
        threads = torch.get_num_threads()
        if threads > 1 and count * n * m <= SHORT:
            return [(0, count)]
        size = max(min(TILE // max(min(self.rows * self.group, n) * m, 1), count // threads), 1)
        return list(_tiles(0, count, size))


def _tiles(start: int, stop: int, rows: int) -> Iterator[tuple[int, int]]:
    return ((a, min(a + rows, stop)) for a in range(start, stop, rows))


class _Walk:
    """What both directions share: some heads of a call and their features."""

    def __init__(self, heads: Heads, layout: FusedLayout) -> None:
        self.heads, self.layout = heads, layout
        self.positions = heads.q.shape[-2] // layout.group
        room = TILE // max(len(heads.q) * layout.rows * layout.group * heads.key_slope.shape[-1], 1)
        self.tile = layout.rows * max(room if layout.causal else 1, 1)

    def keys(self, a: int, b: int, shift: Tensor, *, largest: bool = True) -> tuple[Tensor, Tensor]:
        """Features of keys [a, b) under a stabiliser, or under the ``largest`` of it and their logarithms; and this."""
        logs = torch.baddbmm(self.heads.bias[:, a:b], self.heads.k[:, a:b], self.heads.key_slope)
        constant = self.heads.key_constant
        if not largest:
            return logs.sub_(shift - constant).clamp_max_(0.0).exp2_(), shift
        top = logs.amax(dim=-2, keepdim=True).clamp_min_(NOTHING)  # of hidden keys -inf
        shift = torch.maximum(shift, top + constant)
        # not `shift - constant`: where keys have lengths of 1e5, its rounding would be a factor of e^hundreds
        return logs.sub_(top - ((top + constant) - shift)).exp2_(), shift

    def query_logs(self, a: int, b: int, shift: Tensor) -> Tensor:
        """Logarithms of features of queries [a, b) times a stabiliser."""
        constant = self.heads.query_constant + shift
        return torch.baddbmm(constant, self.heads.q[:, a:b], self.heads.query_slope)


class Running(NamedTuple):
    """Sums over keys of values and of ones, (g, m, e) and (g, 1, m), under a stabiliser (g, 1, m).

    They are apart, since a product with one column more than whole registers takes a fifth longer.
    """

    values: Tensor
    weights: Tensor
    shift: Tensor

    def at(self, shift: Tensor) -> Running:
        """A copy under a higher stabiliser."""
        factor = (self.shift - shift).exp2_()
        return Running(self.values * factor.mT, self.weights * factor, shift)

    def add(self, keys: Tensor, v: Tensor) -> None:
        """Add keys with features (g, p, m) under this stabiliser."""
        self.values.baddbmm_(keys.mT, v)
        self.weights.add_(keys.sum(dim=-2, keepdim=True))

    def denominators(self, queries: Tensor) -> Tensor:
        """Features (g, n, m) times the sums of ones, (g, n, 1); features of several heads are overwritten."""
        if len(queries) == 1:  # a batched product with a column would be slow
            return torch.bmm(queries, self.weights.mT)
        return queries.mul_(self.weights).sum(dim=-1, keepdim=True)

    def write(self, sums: Tensor, shift: Tensor) -> None:
        """Into tensors (g, m, e + 1) and (g, 1, m)."""
        sums[..., :-1], sums[..., -1] = self.values, self.weights[:, 0]
        shift.copy_(self.shift)


class Results(NamedTuple):
    """Where the results of some heads go, and what the way back needs of them."""

    out: Tensor  # (g, n, e): the output, and the logarithm of its denominator
    log: Tensor
    sums: Tensor  # (g, m, e + 1): sums over all keys; no features if they are not asked for
    shift: Tensor
    steps: Tensor  # (g, steps, m, e + 1): the sums before each step, for the gradient; no steps if it is not asked for
    shifts: Tensor


class _Forward(_Walk):
    """The forward loop; the sums over keys so far are those of no keys at first."""

    def __init__(self, heads: Heads, layout: FusedLayout, to: Results, start: tuple[Tensor, Tensor] | None) -> None:
        super().__init__(heads, layout)
        self.to = to
        if start is None:
            g, m, e = len(heads.v), heads.key_slope.shape[-1], heads.v.shape[-1]
            ones = heads.v.new_zeros(g, 1, m)
            self.running = Running(heads.v.new_zeros(g, m, e), ones, torch.full_like(ones, NOTHING))
        else:
            self.running = Running(start[0][..., :-1].clone(), start[0][..., -1:].mT.clone(), start[1])
        self.hidden = self._hidden() if layout.masked or start is not None else None

    def _hidden(self) -> Tensor:
        """Which queries see no key, (g, n, 1)."""
        there, n, lag, group = self.heads.bias > -torch.inf, self.positions, self.layout.lag, self.layout.group
        if self.layout.causal:
            there = torch.nn.functional.pad(there, (0, 0, lag, 0)).cumsum(dim=-2)[:, :n] > 0
            there = there.repeat_interleave(group, dim=-2)
        else:
            there = there.any(dim=-2, keepdim=True).expand(-1, n * group, 1)
        return ~(there | (self.running.shift > NOTHING).any(dim=-1, keepdim=True))

    def run(self) -> None:
        """All keys first, or tile by tile."""
        layout, p = self.layout, self.heads.k.shape[-2]
        if not layout.causal:
            self._absorb(0, p)
            self._read(self.positions * layout.group)
        else:
            self._read(min(layout.lag, self.positions) * layout.group)
            whole = max(self.positions - layout.lag, 0) // layout.rows * layout.rows + layout.lag
            for part in ((layout.lag, whole, self.tile), (whole, self.positions, layout.rows)):
                for a, b in _tiles(*part):
                    self._tile(a, b)
            if self.to.shift.numel():  # keys that no query sees, for the sums
                self._absorb(max(self.positions - layout.lag, 0), p)
        if self.to.shift.numel():
            self.running.write(self.to.sums, self.to.shift)

    def _absorb(self, start: int, stop: int) -> None:
        """Add keys to the sums."""
        for a, b in _tiles(start, stop, self.tile):
            keys, shift = self.keys(a, b, self.running.shift)
            self.running = self.running.at(shift)
            self.running.add(keys, self.heads.v[:, a:b])

    def _read(self, n: int) -> None:
        """What the first n queries see of the sums."""
        if n and not (self.running.shift > NOTHING).any():
            self.to.out[:, :n], self.to.log[:, :n] = 0.0, 2 * NOTHING
            return
        for a, b in _tiles(0, n, self.tile):
            queries, top = self._queries(a, b)
            torch.bmm(queries, self.running.values, out=self.to.out[:, a:b])
            self._divide(a, b, self._shown(a, b, self.running.denominators(queries)), top)

    def _tile(self, a: int, b: int) -> None:
        """Queries of positions [a, b) with the sums and the keys that enter them."""
        layout, start, before = self.layout, a - self.layout.lag, self.running
        keys, shift = self.keys(start, b - layout.lag, before.shift)
        self.running = before.at(shift)
        first, last = a * layout.group, b * layout.group
        queries, top = self._queries(first, last)
        steps = list(_tiles(0, b - a, layout.rows))
        parts = [self._step(start, ends, first, queries, keys) for ends in steps]
        den = self._shown(first, last, parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2))
        if b - a > 1 and float(den.amin()) < LOWEST[den.dtype]:
            self.running, half = before, len(steps) // 2 * layout.rows or (b - a) // 2
            self._tile(a, a + half)
            self._tile(a + half, b)
        else:
            self._divide(first, last, den, top)

    def _step(self, start: int, ends: tuple[int, int], first: int, queries: Tensor, keys: Tensor) -> Tensor:
        """Numerators of a step of a tile, into the output; returns the denominators, and adds its keys."""
        (i, j), layout, running = ends, self.layout, self.running
        k, v, own = keys[:, i:j], self.heads.v[:, start + i : start + j], slice(i * layout.group, j * layout.group)
        q, (step, rest) = queries[:, own], divmod(start + i, layout.rows)
        if self.to.steps.numel() and not rest:  # no half of a step, where a key hides others
            running.write(self.to.steps[:, step], self.to.shifts[:, step])
        weights = layout.hide(torch.bmm(q, k.mT))
        torch.baddbmm(
            torch.bmm(weights, v), q, running.values, out=self.to.out[:, first + own.start : first + own.stop]
        )
        den = running.denominators(q).add_(weights.sum(dim=-1, keepdim=True))
        running.add(k, v)
        return den

    def _queries(self, a: int, b: int) -> tuple[Tensor, Tensor]:
        """Features of queries [a, b) times the stabiliser, divided by the largest of each row."""
        logs = self.query_logs(a, b, self.running.shift)
        top = logs.amax(dim=-1, keepdim=True)
        return logs.sub_(top).exp2_(), top

    def _shown(self, a: int, b: int, den: Tensor) -> Tensor:
        """One in place of the denominators of queries that see nothing."""
        return den if self.hidden is None else den.masked_fill_(self.hidden[:, a:b], 1.0)

    def _divide(self, a: int, b: int, den: Tensor, top: Tensor) -> None:
        """Numerators, which are in the output, by denominators, and the logarithms of these."""
        self.to.out[:, a:b].div_(den)
        log = torch.add(den.log2_(), top, out=self.to.log[:, a:b])
        if self.hidden is not None:
            log.masked_fill_(self.hidden[:, a:b], 2 * NOTHING)


def _at(sums: Tensor, before: Tensor, shift: Tensor) -> Tensor:
    """A copy of sums under a higher stabiliser."""
    return sums * (before - shift).exp2_().mT


class _Backward(_Walk):
    """The backward loop, from what the forward loop has left and the gradients of its output and logarithms.

    Gradients of coefficients go nowhere if they are not asked for.
    """

    def __init__(
        self, heads: Heads, layout: FusedLayout, left: Results, given: tuple[Tensor, Tensor], to: Heads, asked: bool
    ) -> None:
        super().__init__(heads, layout)
        (d_out, d_log), self.left, self.to, self.asked = given, left, to, asked
        rest = d_log * LOG2E - (d_out * left.out).sum(dim=-1, keepdim=True)
        self.given, self.values = torch.cat([d_out, rest], dim=-1), with_ones(heads.v)
        # queries that see nothing have no gradient: all their features vanish
        self.log = left.log.masked_fill(left.log <= NOTHING, torch.inf)
        self.slopes = heads.query_slope.mT * _LN2, heads.key_slope.mT * _LN2
        self.behind: Tensor | None = None  # the sums R, (g, m, e + 1)
        self.shift = left.shift  # their stabiliser

    def run(self) -> None:
        """From the last step to the first, or all queries and then all keys."""
        lag, rows = self.layout.lag, self.layout.rows
        if self.layout.causal:
            for i, (a, b) in reversed(list(enumerate(_tiles(lag, self.positions, rows)))):
                self._step(a, b, self.left.steps[:, i], self.left.shifts[:, i])
            return
        behind, sums = torch.zeros_like(self.left.sums), self.left.sums.mT
        for a, b in _tiles(0, self.heads.q.shape[-2], self.tile):
            queries, given = self._queries(a, b, self.shift), self.given[:, a:b]
            behind.baddbmm_(queries.mT, given)
            self._to_queries(a, b, torch.bmm(given, sums).mul_(queries))
        for a, b in _tiles(0, self.heads.k.shape[-2], self.tile):
            keys, _ = self.keys(a, b, self.shift, largest=False)
            self.to.v[:, a:b] = torch.bmm(keys, behind[..., :-1])
            self._to_keys(a, b, torch.bmm(self.values[:, a:b], behind.mT).mul_(keys))

    def _step(self, a: int, b: int, sums: Tensor, before: Tensor) -> None:
        """Queries of positions [a, b) and the keys that enter the sums there, which are under the stabiliser ``before``."""
        layout = self.layout
        first, last, start, stop = a - layout.lag, b - layout.lag, a * layout.group, b * layout.group
        keys, shift = self.keys(first, last, before)
        queries = self._queries(start, stop, shift)
        large = float(queries.amax()) > 1 / LOWEST[queries.dtype]
        if large and b - a > 1:
            self._halves(a, b, sums, before)
            return
        sums, values = _at(sums, before, shift), self.values[:, first:last]
        if large:
            queries = self._divided_again(start, stop, shift, sums, keys)
        given, behind = self.given[:, start:stop], self._behind(shift)
        weights, both = (layout.hide(torch.bmm(x, y.mT)) for x, y in ((queries, keys), (given, values)))
        self._to_queries(start, stop, torch.bmm(given, sums.mT).baddbmm_(both, keys).mul_(queries))
        self._to_keys(first, last, torch.bmm(values, behind.mT).baddbmm_(both.mT, queries).mul_(keys))
        self.to.v[:, first:last] = torch.bmm(keys, behind[..., :-1]).baddbmm_(weights.mT, given[..., :-1])
        self.behind = behind.baddbmm_(queries.mT, given)

    def _halves(self, a: int, b: int, sums: Tensor, before: Tensor) -> None:
        """The second half of a step first, from the sums with the keys of the first half."""
        middle, lag = (a + b) // 2, self.layout.lag
        keys, shift = self.keys(a - lag, middle - lag, before)
        between = _at(sums, before, shift).baddbmm_(keys.mT, self.values[:, a - lag : middle - lag])
        self._step(middle, b, between, shift)
        self._step(a, middle, sums, before)

    def _behind(self, shift: Tensor) -> Tensor:
        """The sums over queries behind a step, under its stabiliser, which is not above theirs."""
        if self.behind is None:
            found = self.values.new_zeros(len(self.values), shift.shape[-1], self.values.shape[-1])
        else:
            # larger only by rounding, which is a factor of e^hundreds where keys have lengths of 1e5
            found = self.behind.mul_((shift - self.shift).clamp_max_(0.0).exp2_().mT)
        self.shift = shift
        return found

    def _queries(self, a: int, b: int, shift: Tensor) -> Tensor:
        """Features of queries [a, b) times a stabiliser, divided by their denominators."""
        return self.query_logs(a, b, shift).sub_(self.log[:, a:b]).exp2_()

    def _divided_again(self, a: int, b: int, shift: Tensor, sums: Tensor, keys: Tensor) -> Tensor:
        """`_queries` of one position from its own denominators, without the logarithms that the forward loop has left.

        If queries or keys have lengths of 1e5, both logarithms are near 1e10, and their difference is off by hundreds.
        """
        logs = self.query_logs(a, b, shift)
        queries = logs.sub_(logs.amax(dim=-1, keepdim=True)).exp2_()
        den = torch.bmm(queries, sums[..., -1:].add(keys.sum(dim=-2)[..., None]))
        return queries.div_(den).masked_fill_(self.log[:, a:b] == torch.inf, 0.0)

    def _to_queries(self, a: int, b: int, logs: Tensor) -> None:
        """From gradients of logarithms to base e, to queries and coefficients."""
        self.to.q[:, a:b] = torch.bmm(logs, self.slopes[0])
        if self.asked:
            self.to.query_slope.baddbmm_(self.heads.q[:, a:b].mT, logs, alpha=_LN2)
            self.to.query_constant.add_(logs.sum(dim=-2, keepdim=True), alpha=_LN2)

    def _to_keys(self, a: int, b: int, logs: Tensor) -> None:
        self.to.k[:, a:b] = torch.bmm(logs, self.slopes[1])
        self.to.bias[:, a:b] = logs.sum(dim=-1, keepdim=True) * _LN2
        if self.asked:
            self.to.key_slope.baddbmm_(self.heads.k[:, a:b].mT, logs, alpha=_LN2)
            self.to.key_constant.add_(logs.sum(dim=-2, keepdim=True), alpha=_LN2)


_INPUTS, _CALL = len(Heads._fields), len(Heads._fields) + len(FusedLayout._fields)
_SCHEMA = (
    ", ".join(f"Tensor {name}" for name in Heads._fields) + ", bool causal, bool masked, int lag, int group, int rows"
)


def _flat(x: Tensor, axes: int = 2) -> Tensor:
    """All but the last axes as one."""
    tail = x.ndim - axes
    return x.reshape(math.prod(x.shape[:tail]), *x.shape[tail:])


def _room(inputs: Sequence[Any], save: bool, keep: bool) -> Results:
    """Tensors for the results of a call."""
    heads, layout = Heads(*inputs[:_INPUTS]), FusedLayout(*inputs[_INPUTS:_CALL])
    lead, n, m, e = heads.v.shape[:-2], heads.q.shape[-2], heads.key_slope.shape[-1], heads.v.shape[-1]
    kept = m if keep or (save and not layout.causal) else 0
    steps = (n // layout.group - layout.lag + layout.rows - 1) // layout.rows if save and layout.causal else 0
    shapes = ((n, e), (n, 1), (kept, e + 1), (1, kept), (steps, m, e + 1), (steps, 1, m))
    return Results(*(heads.v.new_empty(*lead, *shape) for shape in shapes))


def _flat_results(results: Sequence[Tensor]) -> Results:
    return Results(*(_flat(x, 2 if i < 4 else 3) for i, x in enumerate(results)))


def _forward_here(*inputs: Any) -> tuple[Tensor, ...]:
    """The call, the ``save`` and ``keep`` of `_room`, and sums to begin with or None."""
    save, keep, sums, shift = inputs[_CALL:]
    heads, layout = Heads(*map(_flat, inputs[:_INPUTS])), FusedLayout(*inputs[_INPUTS:_CALL])
    results = _room(inputs, save, keep)
    room, start = _flat_results(results), None if sums is None else (_flat(sums), _flat(shift))

    def task(a: int, b: int) -> None:
        own = None if start is None else (start[0][a:b], start[1][a:b])
        _Forward(Heads(*(x[a:b] for x in heads)), layout, Results(*(x[a:b] for x in room)), own).run()

    run_all([partial(task, *ends) for ends in layout.parts(heads)])
    return tuple(results)


def _backward_here(*inputs: Any) -> list[Tensor]:
    """The call, whether gradients of coefficients are asked for, the results and their gradients."""
    asked, results, *given = inputs[_CALL:]
    heads, layout = Heads(*map(_flat, inputs[:_INPUTS])), FusedLayout(*inputs[_INPUTS:_CALL])
    left, given, found = _flat_results(results), [_flat(x) for x in given], _gradient_room(inputs, asked)
    to = Heads(*(_flat(x) if x.numel() else x for x in found))

    def task(a: int, b: int) -> None:
        own, room = (Heads(*(x[a:b] for x in tensors)) for tensors in (heads, to))
        results = Results(*(x[a:b] for x in left))
        _Backward(own, layout, results, (given[0][a:b], given[1][a:b]), room, asked).run()

    run_all([partial(task, *ends) for ends in layout.parts(heads)])
    return found


def _gradient_room(inputs: Sequence[Any], asked: bool) -> list[Tensor]:
    """Tensors for the gradients of a call; empty ones for those of coefficients that are not asked for."""
    return [x.new_zeros(x.shape if asked or i < 4 else 0) for i, x in enumerate(inputs[:_INPUTS])]


_forward = torch.library.custom_op(
    "bochner::linear_attention",
    _forward_here,
    mutates_args=(),
    schema=f"({_SCHEMA}, bool save, bool keep, Tensor? sums, Tensor? shift) -> ({', '.join(['Tensor'] * 6)})",
)
_backward = torch.library.custom_op(
    "bochner::linear_attention_backward",
    _backward_here,
    mutates_args=(),
    schema=f"({_SCHEMA}, bool asked, Tensor[] results, Tensor d_out, Tensor d_log) -> Tensor[]",
)
_forward.register_fake(lambda *inputs: tuple(_room(inputs, *inputs[_CALL : _CALL + 2])))
_backward.register_fake(lambda *inputs: _gradient_room(inputs, inputs[_CALL]))


def _here(x: Tensor) -> bool:
    """Whether there are numbers to work on at once: the dispatcher is for graphs, and would load torch's compiler."""
    return type(x) in (Tensor, torch.nn.Parameter) and not x.is_meta and not torch.compiler.is_compiling()


class _Attention(torch.autograd.Function):
    """The operator with its gradient."""

    @staticmethod
    def forward(*inputs: Any) -> Any:
        return (_forward_here if _here(inputs[0]) else _forward)(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[:_INPUTS], *output)
        ctx.constants = inputs[_INPUTS:_CALL]
        ctx.mark_non_differentiable(*output[2:])

    @staticmethod
    def backward(ctx: Any, d_out: Tensor, d_log: Tensor, *_: Any) -> Any:
        gradients = _plain_gradients if torch.is_grad_enabled() else _gradients  # the first can be differentiated again
        with torch.autocast(d_out.device.type, enabled=False):  # products into tensors of one dtype, as in forward
            return gradients(ctx, d_out, d_log)


def _gradients(ctx: Any, d_out: Tensor, d_log: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of the inputs of an operator."""
    saved = ctx.saved_tensors  # once: under checkpointing they are computed again
    inputs, results, needed = saved[:_INPUTS], saved[_INPUTS:], ctx.needs_input_grad
    if not (results[4].shape[-3] if ctx.constants[0] else results[3].shape[-1]):  # no gradients were expected
        results = _forward(*inputs, *ctx.constants, True, False, None, None)
    operator: Callable[..., Any] = _backward_here if _here(inputs[0]) else _backward
    found = operator(*inputs, *ctx.constants, any(needed[4:_INPUTS]), list(results), d_out, d_log)
    return (*(x if ask else None for x, ask in zip(found, needed, strict=False)), *(None,) * (len(needed) - _INPUTS))


# within a graph the operator has its gradient from here: dynamo does not follow one function inside of another
_forward.register_autograd(
    lambda ctx, d_out, d_log, *_: _gradients(ctx, d_out, d_log), setup_context=_Attention.setup_context
)


def _plain_gradients(ctx: Any, d_out: Tensor, d_log: Tensor) -> tuple[Tensor | None, ...]:
    """Gradients of the inputs by plain operations, which have derivatives of their own."""
    needed = ctx.needs_input_grad
    inputs = [x.view_as(x) if ask else x for x, ask in zip(ctx.saved_tensors[:_INPUTS], needed, strict=False)]
    asked = [x for x, ask in zip(inputs, needed, strict=False) if ask]
    results = _by_plain_operations(Heads(*inputs), FusedLayout(*ctx.constants))
    found = iter(torch.autograd.grad(results, asked, (d_out, d_log), create_graph=True, allow_unused=True))
    return tuple(next(found) if ask else None for ask in needed)


def _by_plain_operations(heads: Heads, layout: FusedLayout) -> tuple[Tensor, Tensor]:
    """The output of a call and the logarithms of its denominators."""
    queries = LogFeatures(None, heads.q @ heads.query_slope + heads.query_constant)
    bias = heads.bias.clamp(min=2 * NOTHING)
    keys = LogFeatures(None, heads.k @ heads.key_slope + heads.key_constant + bias)
    values = with_ones(heads.v)
    if layout.causal:
        part, _ = causal(queries, keys, values, lag=layout.lag, group=layout.group)
    else:
        part, _ = everything(queries, keys, values, None)
    seen = part.scale > NOTHING / 2
    den = torch.where(seen, part.sums[..., -1:], 1.0)
    return part.sums[..., :-1] / den, torch.where(seen, part.scale + den.log2(), 2 * NOTHING)


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
) -> tuple[Tensor, Tensor, KeySums | None]:
    """Attend to all keys, or with ``causal`` to key j up to ``i - lag``, and to those in the sums; see `FusedLayout`.

    Gradients flow to queries, keys, values, the bias of keys (..., p) and features, but not to or from the sums.

    Returns
    -------
    out : Tensor (..., n, e)
        Normalised over the keys that were met; zero for queries that saw none.
    log : Tensor (..., n, 1)
        Logarithm of the denominator to base two, but for the squared norm of the query.
    sums : KeySums or None
        Over all keys, if they are to be kept.
    """
    if isinstance(root, Tensor):
        q, k, root = q * root, k * root, 1.0
    (of_queries, _), (of_keys, c) = (features.binary(root, q, key=key) for key in (False, True))
    x, y = of_queries.offsets(q), of_keys.offsets(k)
    bias = of_keys.turned(y).square().sum(dim=-1, keepdim=True) * c
    if key_bias is not None:
        bias = bias + (key_bias * LOG2E).to(bias.dtype)[..., None]
    tensors = (x, y, v, bias, *of_queries[:2], *of_keys[:2])
    lead = torch.broadcast_shapes(*(z.shape[:-2] for z in tensors))
    inputs = [z if z.shape[:-2] == lead else z.expand(*lead, *z.shape[-2:]) for z in tensors]
    values, shift = to_base_two(sums) or (None, None)
    if rows is None:
        rows = _CAUSAL_ROWS if causal else min(max(TILE // features.width, 64), 1024)
    save = torch.is_grad_enabled() and any(z.requires_grad for z in inputs)
    operator: Callable[..., Any] = _Attention.apply
    if torch.compiler.is_compiling():
        operator = _forward
    elif not save and _here(q):  # autograd would take 60 microseconds, which a short call notices
        operator = _forward_here
    layout = FusedLayout(causal, key_bias is not None, lag, group, rows)
    out, log, after, top, *_ = operator(*inputs, *layout, save, keep, values, shift)
    return out, log, to_base_e(KeySums(after, top)) if keep else None


def scale_of(features: QuadraticFeatures, q: Tensor, root: float | Tensor, log: Tensor) -> Tensor:
    """Logarithms of denominators to base two with the squared norms of the queries, which cancel in the output."""
    if isinstance(root, Tensor):
        q, root = q * root, 1.0
    side, c = features.binary(root, q, key=False)
    norms = side.turned(side.offsets(q)).square().sum(dim=-1, keepdim=True)
    return torch.where(log > NOTHING, log + c * norms, log)
