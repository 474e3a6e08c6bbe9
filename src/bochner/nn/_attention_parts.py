"""What queries see of some of the keys: numerators and denominators with a scale for each row, their sums and quotients."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..approximation.log_features import NOTHING, KeySums
from ._tensor_features import LOG2E

NONPOSITIVE = ("warn", "raise", "nan")

ENGINES = ("auto", "plain")

_REMEDY = (
    "use a positive map (OptimalPositive, Positive, Hyperbolic with Orthogonal or Simplex rows), "
    "more projections, or smaller queries and keys"
)


class DenominatorWarning(UserWarning):
    """Warning that some rows of attention have a denominator that is not positive: their output is meaningless."""


class Part(NamedTuple):
    """What queries see of some of the keys: numerators and denominators, and the logarithm of the factor they lack."""

    sums: Tensor  # (..., Lq, e + 1): sums of weights times values, and the sums of weights as the last column
    # (..., Lq, 1): logarithm to base two of the factor of each row; below `NOTHING / 2` where a query sees none of
    # these keys
    scale: Tensor


def merged(parts: Sequence[Part]) -> Part:
    """Numerators and denominators over all keys of parts that share no key."""
    if len(parts) == 1:
        return parts[0]
    scales = torch.broadcast_tensors(*(part.scale for part in parts))
    top = torch.stack([scale.detach() for scale in scales]).amax(dim=0)
    sums = parts[0].sums * (parts[0].scale - top).exp2()
    for part in parts[1:]:
        sums = torch.addcmul(sums, part.sums, (part.scale - top).exp2())
    return Part(sums, top)


def with_ones(v: Tensor) -> Tensor:
    """Values and a column of ones, whose sums are the denominators."""
    return pad(v, (0, 1), value=1.0)


def to_base_two(sums: KeySums | None) -> KeySums | None:
    """Sums of a state, whose stabiliser is to base e, as this engine takes them."""
    return None if sums is None else KeySums(sums.values, _rescaled(sums.shift, LOG2E))


def to_base_e(sums: KeySums | None) -> KeySums | None:
    """Sums of this engine as a state holds them."""
    return None if sums is None else KeySums(sums.values, _rescaled(sums.shift, 1 / LOG2E))


def _rescaled(shift: Tensor, factor: float) -> Tensor:
    return torch.where(shift > NOTHING, shift * factor, NOTHING)


def query_values(logs: Tensor, mantissa: Tensor | None) -> tuple[Tensor, Tensor]:
    """Features of queries divided by the largest of each row, and its logarithm (..., 1)."""
    top = logs.detach().amax(dim=-1, keepdim=True)
    return signed(logs.sub_(top).exp2_(), mantissa), top


def signed(features: Tensor, mantissa: Tensor | None) -> Tensor:
    """Features with their signs, where they have any."""
    return features if mantissa is None else features * mantissa


def as_part(sums: Tensor, scale: Tensor) -> Part:
    """The scales with the leading axes of the sums, which those of the values may have widened."""
    return Part(sums, scale.expand(*sums.shape[:-1], 1))


def divide(part: Part, *, positive: bool, nonpositive: str) -> Tensor:
    """Numerators by denominators, the last column; zero where a query sees no key.

    Denominators of positive features are at least the largest weight of a feature, and are not checked.
    """
    numerator, denominator = part.sums[..., :-1], part.sums[..., -1:]
    if positive:
        # far below every denominator, and far enough from zero that gradients of rows without keys stay finite, times zero
        return numerator / denominator.clamp(min=torch.finfo(denominator.dtype).tiny ** 0.75)
    return numerator / _checked(torch.where(part.scale > NOTHING / 2, denominator, 1.0), nonpositive)


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
        warnings.warn(sentence, DenominatorWarning, stacklevel=levels_to_the_caller())
    return denominator


def levels_to_the_caller() -> int:
    """How far up the code that called the library is, seen from the function that asks."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("bochner", "torch"):
        level, frame = level + 1, frame.f_back
    return level
