r"""The loops of the fused operator, backward: the gradients of all its inputs in one walk from the last step to the first.

With :math:`p_{ij} = \sum_m \tilde q_{im} k_{jm}` the weights, which sum to one, :math:`g_i` and :math:`h_i` the gradients
of the output and of the logarithm of its denominator,

    d log q_im = q~_im (sum_{j<=i} k_jm B_ij),   d log k_jm = k_jm (sum_{i>=j} q~_im B_ij),   dv_j = sum_{i>=j} p_ij g_i,
    B_ij = g_i . v_j + t_i,   t_i = h_i - g_i . out_i.

Sums over the keys before a step are those that the forward loop has kept; sums :math:`R_m = \sum_i \tilde q_{im} [g_i, t_i]`
over the queries behind it run along.  They are under the stabiliser of the step, which does not increase on the way back,
so that nothing overflows.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..approximation.log_features import NOTHING
from ._fused_forward import LOWEST, Heads, Running
from ._tensor_features import Binary

_LN2 = math.log(2)


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
