"""The lengthscale of a kernel: one positive number, or one for each dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from .._validation import check_positive

Lengthscale: TypeAlias = float | Sequence[float]


def check_lengthscale(owner: str, value: Any) -> float | tuple[float, ...]:
    """Return ``value`` as a positive float, or as a tuple of them if it is a list, a tuple or a 1-D array."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return check_positive(owner, "lengthscale", value)
    if not value:
        raise ValueError(f"{owner}: lengthscale must be a positive number or one for each dimension, got {value!r}.")
    return tuple(check_positive(owner, f"lengthscale[{i}]", entry) for i, entry in enumerate(value))


def check_lengthscale_width(owner: str, lengthscale: Lengthscale, width: int) -> None:
    """Refuse inputs of ``width`` columns if there are another number of lengthscales."""
    if isinstance(lengthscale, tuple) and len(lengthscale) != width:
        raise ValueError(
            f"{owner}: lengthscale has {len(lengthscale)} entries, one for each dimension, "
            f"got inputs whose last axis is {width}."
        )
