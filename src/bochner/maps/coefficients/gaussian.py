"""Gaussian bumps as coefficients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._arrays import array_namespace
from ..._validation import check_count
from ..draws import Draws
from ..linear import as_tuple
from ..statistics import Data
from .base import Coefficient, DrawnCoefficient

Linear = float | tuple[float, ...] | tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class GaussianCoefficient(Coefficient):
    r"""Estimates :math:`\lambda = e^{-|Lx - Ry|^2/2}` by n cosines and sines (HRF Eq. 20, with L = I/c, R = -M/c).

    Trigonometric features have no variance where the bump is at its top, Lx = Ry; positive ones have
    :math:`e^{4|Lx|^2} - 1` there.

    Parameters
    ----------
    left, right : number, diagonal or matrix
        L and R.
    n : int
        Number of independent projections tau.
    """

    left: Linear
    right: Linear
    n: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_count("GaussianCoefficient", "n", self.n))
        for name in ("left", "right"):
            array = np.asarray(getattr(self, name), dtype=np.float64)
            if array.ndim > 2 or not np.isfinite(array).all():
                raise ValueError(f"GaussianCoefficient: {name} must be a finite number, diagonal or matrix.")
            object.__setattr__(self, name, as_tuple(array))

    def draw(self, draws: Draws, data: Data | None) -> DrawnCoefficient:
        """Draw the projections."""
        tau = draws.independent_rows("tau", self.n)
        left, right = np.asarray(self.left), np.asarray(self.right)
        for T in (left, right):
            if T.ndim and T.shape[-1] != draws.d:
                raise ValueError(
                    f"GaussianCoefficient: left and right act on {T.shape[-1]} columns, the data has {draws.d}."
                )
        return DrawnCoefficient(0.0, 1, 2 * self.n, tau, cosines_and_sines, 1 / math.sqrt(self.n), left, right)


def cosines_and_sines(u: Any) -> Any:
    """Cosines then sines on the last axis."""
    xp = array_namespace(u)
    return xp.concat([xp.cos(u), xp.sin(u)], axis=-1)
