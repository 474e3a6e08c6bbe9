"""Division by denominators, which signed features may make zero or negative."""

from __future__ import annotations

import sys
import warnings

import torch
from torch import Tensor

NONPOSITIVE = ("warn", "raise", "nan")
_REMEDY = (
    "use a positive map (OptimalPositive, Positive, Hyperbolic with Orthogonal or Simplex rows), "
    "more projections, or smaller queries and keys"
)


class DenominatorWarning(UserWarning):
    """Some rows of attention have a denominator that is not positive: their estimate is meaningless."""


def divide(sums: Tensor, seen: Tensor | None, *, positive: bool, nonpositive: str) -> Tensor:
    """Numerators by denominators, the last column; zero where a query sees no key.

    Denominators of positive features are at least the smallest weight there is, and are not looked at.
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
