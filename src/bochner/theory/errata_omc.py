"""Errata of Unifying Orthogonal Monte Carlo Methods."""

from __future__ import annotations

import math

import numpy as np

from .dot_product import gaussian_dot_mse, kac_fourth_moment, subsampled_dot_mse
from .erratum import Erratum


def _kac_ratio(d: int, constant: float) -> float:
    """Error of Kac's walk over that of independent rows at x = y = e_1, m = 1, after ``constant`` d ln d steps."""
    e1 = np.eye(1, d)[0]
    steps = math.ceil(constant * d * math.log(d))
    return float(subsampled_dot_mse(e1, e1, 1, kac_fourth_moment(e1, e1, steps)) / gaussian_dot_mse(e1, e1, 1))


def _theorem_52() -> Erratum:
    return Erratum("omc", "Theorem 5.2, Sec. 6", "C d log d steps lower the error, and C = 2 is used",
                   "C = 4 does for every x, y and m, and no smaller C at large d",
                   "error of Kac's walk over that of independent rows, x = y = e_1, m = 1, d = 256",
                   _kac_ratio(256, 2.0), _kac_ratio(256, 4.0))  # fmt: skip


ENTRIES = (_theorem_52,)
