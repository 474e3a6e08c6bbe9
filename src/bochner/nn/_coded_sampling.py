r"""Keys that are drawn from those left out, each weighted by one over its chance: an unbiased estimate of the remainder.

Codes have an estimate :math:`\hat s_j` of the score of every key.  Keys are drawn with chances :math:`c_j \propto
e^{\hat s_j/2}`, by systematic sampling: s steps of equal length through the cumulated chances, from a phase that is
uniformly distributed.  A draw of key j stands for :math:`1/(s c_j)` keys like it, so that its logit is

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

import torch
from torch import Tensor

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
