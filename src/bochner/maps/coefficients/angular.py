"""The angle as a coefficient."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._validation import check_count
from ..draws import Draws
from ..sign import Sign
from ..statistics import Data
from .base import Coefficient, DrawnCoefficient


@dataclass(frozen=True)
class AngularCoefficient(Coefficient):
    r"""Estimates :math:`\lambda = \theta/\pi` by n signs: :math:`\hat\lambda = \frac12 - \frac1{2n}\sum_i
    \mathrm{sgn}(\tau_i\cdot x)\,\mathrm{sgn}(\tau_i\cdot y)`, a binomial proportion (HRF Eq. 19).

    Zero at x = y and one at x = -y, without variance.

    Parameters
    ----------
    n : int
        Number of independent projections tau.
    """  # noqa: D205

    n: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_count("AngularCoefficient", "n", self.n))

    def draw(self, draws: Draws, data: Data | None) -> DrawnCoefficient:
        """Draw the projections."""
        tau, one = draws.independent_rows("tau", self.n), np.asarray(1.0)
        return DrawnCoefficient(0.5, -1, self.n, tau, Sign().function, 1 / math.sqrt(2 * self.n), one, one)
