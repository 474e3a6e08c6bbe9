r"""What the keys that were left out contribute to attention: features of all of them, or a draw of some.

**Features**, in the heads where they help.  Sums over all keys before a block are known in linear time; keys with exact
weights in the block are subtracted from them, feature by feature, so that each key counts once.

**Draws**, each weighted by one over its chance, are without bias.  Codes have an estimate :math:`\hat s_j` of the score of
every key.  Keys are drawn with chances :math:`c_j \propto e^{\hat s_j/2}`, by systematic sampling: s steps of equal length
through the cumulated chances, from a phase that is uniformly distributed.
A draw of key j stands for :math:`1/(s c_j)` keys like it, so that its logit is

.. math:: x\cdot y_j - \log(s c_j)

in the softmax of the exact keys: numerator and denominator are unbiased, whatever the codes say.  The exponent is halved
since estimates are noisy: a key with a large weight and a small chance costs more than chances that are too even.  On
MiniLM (512 tokens, 64 bits, a window of 16, 32 keys and 128 draws) the cosine to the exact embedding misses 1 by .0003 with
half of the exponent, and by .0006 with all of it or none.

Phases differ from query to query by the golden ratio, so that neighbours draw other keys; the phase of the first query is
drawn with the codes, and a function of the same arguments returns the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .._validation import check_instance, shown
from ._drawn import DrawnFeatures

_GOLDEN = (math.sqrt(5) - 1) / 2
_POWER = 0.5 / math.log(2)
_LOWEST = 126.0
"""Chances below two to the power of minus this, relative to the largest, are taken for it: the smallest float."""


def phases_at(phases: Tensor, positions: Tensor) -> Tensor:
    """Phases (batch, heads, n) of queries at these positions (batch, n), from those of the first query of each head.

    Positions are numbers of keys, without padding, so that padding changes no draw.
    """
    return torch.remainder(phases[:, None] + _GOLDEN * positions.to(phases)[:, None], 1.0)


def draw_keys(coded: Tensor, left: Tensor, counts: Sequence[int], phases: Tensor) -> tuple[Tensor, Tensor]:
    """Places of drawn keys, and what is added to their scores.

    Parameters
    ----------
    coded : Tensor (batch, heads, n, p)
        Estimated scores.
    left : Tensor (batch, heads, n, p) of bool
        Keys that are drawn from.
    counts : sequence of int
        Draws of each head, or one number for all.
    phases : Tensor (batch or 1, heads, n)
        Where the first step is, in [0, 1).

    Returns
    -------
    Tensor (batch, heads, n, most draws) of int, and of the type of ``coded``
        Where there is no draw, minus infinity is added.
    """
    own = coded.detach().float().masked_fill(~left, -torch.inf)
    high = own.amax(dim=-1, keepdim=True).clamp(min=torch.finfo(own.dtype).min)
    power = ((own - high) * _POWER).clamp(min=-_LOWEST)
    # a line between powers of two in place of the exponential: the compiled loop of decoding does the same, faster
    chances = ((power + (_LOWEST + 1)) * (1 << 23)).to(torch.int32).view(torch.float32).masked_fill(~left, 0.0)
    sums = chances.double().cumsum(dim=-1)
    number = torch.tensor(list(counts), device=coded.device).clamp(min=1).view(-1, 1, 1)
    step = sums[..., -1:] / number
    rank = torch.arange(max(counts), device=coded.device)
    places = torch.searchsorted(sums, (phases.to(sums)[..., None] + rank) * step, right=True)
    places = places.clamp(max=coded.shape[-1] - 1)
    chance = chances.gather(-1, places)
    missing = (chance == 0) | (rank >= torch.tensor(list(counts), device=coded.device).view(-1, 1, 1))
    shifts = (step / chance.masked_fill(missing, 1.0)).log().masked_fill(missing, -torch.inf)
    return places, shifts.to(coded.dtype)


def attend_with_draws(
    scores: Tensor,
    used: Tensor,
    coded: Tensor,
    counts: Sequence[int],
    phases: Tensor,
    weigh: Callable[[Tensor], Tensor],
) -> Tensor:
    """Weights (batch, heads, n, p) of the keys that are used, and of some that are drawn from all others.

    Parameters
    ----------
    scores : Tensor (batch, heads, n, p)
        Exact scores; minus infinity for keys that are not seen.
    used : Tensor of bool
        Keys with exact weights.
    coded, counts, phases
        As in `draw_keys`.
    weigh : callable
        Softmax of logits along the last axis.
    """
    places, shifts = draw_keys(coded, (scores.detach() > -torch.inf) & ~used, counts, phases)
    drawn = scores.gather(-1, places) + shifts
    weights = weigh(torch.cat([scores.masked_fill(~used, -torch.inf), drawn], dim=-1))
    p = scores.shape[-1]
    return weights[..., :p].scatter_add(-1, places, weights[..., p:])


_OWNER = "Remainder"
_CHUNK = 128  # queries whose keys are summed at a time
_ROUNDING = 64  # differences of sums below so many units of rounding are taken for zero


class Totals(NamedTuple):
    """Estimated sums over keys for each query, divided by the exponential of a shift."""

    values: Tensor  # (batch, gated heads, n, e + 1): sums of weights times values, and of weights
    shift: Tensor  # (batch, gated heads, n, 1)
    limits: Tensor | None  # (n,): the first key that does not count, of each query; None where all count


class Remainder(nn.Module):
    r"""Features of the keys that coded attention leaves out, with a gate for each head that has them.

    Parameters
    ----------
    features : DrawnFeatures
        Positive features of the gated heads.
    heads : sequence of int
        Which heads these are.

    Notes
    -----
    With :math:`o_0` the output of the exact keys alone and :math:`o_1` that with the estimated remainder, a head returns
    :math:`o_0 + g(o_1 - o_0)`.  The gate with the least squared error on data with the exact output o is
    :math:`g = \langle o - o_0, o_1 - o_0\rangle/|o_1 - o_0|^2`, cut to [0, 1].
    """

    gates: Tensor  # how far each goes from the output without the remainder, 0, to that with it, 1

    def __init__(self, features: DrawnFeatures, heads: Sequence[int], gates: Sequence[float]) -> None:
        super().__init__()
        check_instance(_OWNER, "features", features, DrawnFeatures, "those of a plan")
        if not len(heads) == len(gates) == features.heads or not all(0 <= gate <= 1 for gate in gates):
            raise ValueError(
                f"{_OWNER}: there must be a gate in [0, 1] for each of the {features.heads} heads of features, got heads "
                f"{shown(list(heads))} and gates {shown(list(gates))}."
            )
        self.features, self.heads = features, list(heads)
        self.register_buffer("gates", torch.tensor(list(gates), dtype=torch.float64))

    def mixed(
        self, exact: Tensor, scores: Tensor, x: Tensor, y: Tensor, v: Tensor, bias: Tensor | None, left: Tensor
    ) -> Tensor:
        """Outputs (batch, heads, n, e) of the exact keys, to which those left out are added, where all scores are formed."""
        estimate = log_kernel(*self._logs(x, y, bias))
        own, rest = scores[:, self.heads], left[:, self.heads]
        both = torch.where(rest, estimate, own)
        return self._gated(exact, both.softmax(dim=-1).nan_to_num(0.0) @ v[:, self.heads])

    def _gated(self, exact: Tensor, mixed: Tensor) -> Tensor:
        """Outputs of all heads, of which the gated ones go towards those with the remainder."""
        o = exact[:, self.heads]
        gates = self.gates.to(o).view(-1, *[1] * (o.ndim - 2))
        return exact.index_copy(1, torch.tensor(self.heads, device=o.device), o + gates * (mixed - o))

    def totals(self, x: Tensor, y: Tensor, v: Tensor, bias: Tensor | None, limits: Tensor | None) -> Totals:
        """Sums over the keys before its limit, or over all keys, for each query."""
        lq, lk = self._logs(x, y, bias)
        values = torch.cat([v[:, self.heads], torch.ones_like(v[:, self.heads, :, :1])], dim=-1)
        top = lq.detach().amax(dim=-1, keepdim=True)
        fq = (lq - top).exp()
        if limits is None:
            shift = _peak(lk, (-1, -2))
            return Totals(fq @ ((lk - shift).exp().mT @ values), top + shift, None)
        state = values.new_zeros(*lk.shape[:2], lk.shape[-1], values.shape[-1])
        held = lk.new_full((*lk.shape[:2], 1, 1), torch.finfo(lk.dtype).min / 4)
        found, shifts, done = [], [], 0
        for start in range(0, x.shape[-2], _CHUNK):
            own = limits[start : start + _CHUNK]
            low, high = int(own[0]), int(own[-1])
            state, held = _absorbed(state, held, lk[..., done:low, :], values[..., done:low, :])
            done = low
            shift = torch.maximum(held, _peak(lk[..., low:high, :], (-1, -2)))
            near = fq[..., start : start + _CHUNK, :] @ (lk[..., low:high, :] - shift).exp().mT
            near = near.masked_fill(torch.arange(low, high, device=x.device) >= own[:, None], 0.0)
            before = fq[..., start : start + _CHUNK, :] @ state * (held - shift).exp()
            found.append(before + near @ values[..., low:high, :])
            shifts.append(top[..., start : start + _CHUNK, :] + shift)
        return Totals(torch.cat(found, dim=-2), torch.cat(shifts, dim=-2), limits)

    def absorbed(
        self, state: Tensor | None, shift: Tensor | None, y: Tensor, v: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Sums over keys (batch, gated heads, m, e + 1) with more of them, and their shift, for decoding."""
        lk = self._logs(y, y, bias)[1]
        values = torch.cat([v[:, self.heads], torch.ones_like(v[:, self.heads, :, :1])], dim=-1)
        if state is None or shift is None:
            state = values.new_zeros(*lk.shape[:2], lk.shape[-1], values.shape[-1])
            shift = lk.new_full((*lk.shape[:2], 1, 1), torch.finfo(lk.dtype).min / 4)
        return _absorbed(state, shift, lk, values)

    def read(self, x: Tensor, state: Tensor, shift: Tensor, limit: int) -> Totals:
        """What one query of each sequence sees of the sums over the keys before a limit."""
        lq = self._logs(x, x, None)[0]
        top = lq.detach().amax(dim=-1, keepdim=True)
        return Totals((lq - top).exp() @ state, top + shift, torch.full((1,), limit, device=x.device))

    def added(
        self,
        exact: Tensor,
        total: Tensor,
        top: Tensor,
        blocks: Tensor,
        totals: Totals,
        start: int,
        gathered: Gathered,
        used: Tensor,
    ) -> Tensor:
        """Outputs (batch, heads, blocks, block, e) of blocks of queries, to which the remainder is added.

        Parameters
        ----------
        exact, total, top : Tensors (batch, heads, blocks, block, e or 1)
            Output of the exact keys, and the sum of their exponentials divided by that of ``top``.
        blocks : Tensor (batch, heads, blocks, block, d)
            Queries.
        totals : Totals
            Sums for all queries.
        start : int
            First query of the blocks.
        gathered : Gathered
            Keys of each block.
        used : Tensor (batch, heads, blocks, block, width) of bool
            Which of them have exact weights for each query, so that they do not count here.
        """
        b, own = blocks.shape[3], slice(start, start + blocks.shape[2] * blocks.shape[3])
        values, shift = (in_blocks(part[..., own, :], b) for part in totals[:2])
        places, y, v, used = (part[:, self.heads] for part in (gathered.places, gathered.y, gathered.v, used))
        if totals.limits is not None:
            used = used & (places[..., None, :] < in_blocks(totals.limits[own, None], b))
        lq, lk = self._logs(blocks[:, self.heads].flatten(2, 3), y.flatten(2, 3), None)
        lq, lk = lq.unflatten(2, blocks.shape[2:4]), lk.unflatten(2, y.shape[2:4])
        lk = lk if gathered.bias is None else lk + gathered.bias[:, self.heads, ..., None]
        lk = lk.masked_fill(~used.any(dim=-2)[..., None], -torch.inf)
        peak, top_q = _peak(lk, (-1, -2)), lq.detach().amax(dim=-1, keepdim=True)
        weights = ((lq - top_q).exp() @ (lk - peak).exp().mT).masked_fill(~used, 0.0)
        known = torch.cat([weights @ v, weights.sum(dim=-1, keepdim=True)], dim=-1)
        base = torch.maximum(shift, top_q + peak)
        whole, known = values * (shift - base).exp(), known * (top_q + peak - base).exp()
        rest = whole - known
        rounding = _ROUNDING * torch.finfo(rest.dtype).eps * whole[..., -1:]
        rest = rest.masked_fill(rest.detach()[..., -1:] <= rounding.detach(), 0.0)
        o, s, t = (part[:, self.heads] for part in (exact, total, top))
        high = torch.maximum(t, base).detach()
        a, b = s * (t - high).exp(), rest * (base - high).exp()
        mixed = (a * o + b[..., :-1]) / (a + b[..., -1:]).clamp(min=torch.finfo(o.dtype).tiny)
        return self._gated(exact, mixed)

    def _logs(self, x: Tensor, y: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
        """Logarithms of the features of queries and keys of the gated heads."""
        gated = x.shape[1] == len(self.heads) == y.shape[1]
        x, y = (x, y) if gated else (x[:, self.heads], y[:, self.heads])
        current = self.features.current
        lq, lk = current.log(x, key=False).log, current.log(y, key=True).log
        return lq, lk if bias is None else lk + bias[:, self.heads, :, None]


def log_kernel(lq: Tensor, lk: Tensor) -> Tensor:
    """Logarithms of the estimated kernel (..., n, p) from those of features of queries and keys."""
    top, peak = lq.detach().amax(dim=-1, keepdim=True), _peak(lk, (-1, -2))
    product = (lq - top).exp() @ (lk - peak).exp().mT
    return product.clamp(min=torch.finfo(lq.dtype).tiny).log() + top + peak


class Gathered(NamedTuple):
    """Keys that blocks of queries meet, (batch, heads, blocks, width, ...), with their places, and where there is one."""

    places: Tensor
    there: Tensor
    y: Tensor
    v: Tensor
    bias: Tensor | None


def _absorbed(state: Tensor, held: Tensor, lk: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """The sums with more keys, divided by the exponential of the largest logarithm so far."""
    if not lk.shape[-2]:
        return state, held
    shift = torch.maximum(held, _peak(lk, (-1, -2)))
    return state * (held - shift).exp() + (lk - shift).exp().mT @ values, shift


def _peak(logs: Tensor, dims: tuple[int, int]) -> Tensor:
    """The largest logarithm, which is subtracted and cancels; a very small number where there is none."""
    low = torch.finfo(logs.dtype).min / 4
    if not math.prod(logs.shape[dim] for dim in dims):
        return logs.new_full((*logs.shape[:-2], 1, 1), low)
    return logs.detach().amax(dim=dims, keepdim=True).clamp(min=low)


def in_blocks(x: Tensor, block: int) -> Tensor:
    """Rows (..., n, e) in blocks (..., blocks, block, e); the last one is filled with its last row."""
    lost = -x.shape[-2] % block
    if lost:
        x = torch.cat([x, x[..., -1:, :].expand(*x.shape[:-2], lost, x.shape[-1])], dim=-2)
    blocks: Tensor = x.unflatten(-2, (-1, block))
    return blocks
