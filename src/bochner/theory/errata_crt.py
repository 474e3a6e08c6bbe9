"""Errata of Chefs' Random Tables."""

from __future__ import annotations

import math

from .erratum import Erratum
from .optimal_positive import optimal_rho


def _eq_7() -> Erratum:
    V, d = 1e-8, 64
    printed = (math.sqrt((2 * V + d) ** 2 + 8 * d * V) - 2 * V - d) / (4 * V)
    return Erratum("crt", "Eq. 7", "(sqrt((2V + d)^2 + 8dV) - 2V - d)/(4V), which cancels",
                   "2d/((2V + d) + sqrt((2V + d)^2 + 8dV))",
                   "rho in float64, V = 1e-8, d = 64; above 1 features are unbounded",
                   printed, float(optimal_rho(V, d)))  # fmt: skip


def _tail(d: int, A: float, epsilon: float) -> tuple[float, float]:
    """The printed bound and the exact probability at x = y = 0, M = 1, where one side alone can be exceeded."""
    from scipy.stats import chi2

    printed = 2 * math.exp(-(epsilon**2) / 2 * (1 - 4 * A) ** (-d / 2))
    # (1 - 4A)^(d/2) exp(2A |w|^2) >= 1 + epsilon
    threshold = (d / 2 * math.log1p(-4 * A) - math.log1p(epsilon)) / (-2 * A)
    return printed, float(chi2.cdf(threshold, d))


def _theorem_42() -> Erratum:
    printed, exact = _tail(1, -1023.75, 31.0)
    return Erratum("crt", "Theorem 4.2", "the bound has (1 - 4A)^(-d/2)", "(1 - 4A)^(-d)",
                   "printed bound and exact probability, d = 1, x = y = 0, A = -1023.75, M = 1, epsilon = 31",
                   printed, exact)  # fmt: skip


def _theorem_42_high() -> Erratum:
    printed, exact = _tail(20, -0.5, 1500.0)
    return Erratum("crt", "Theorem 4.2", "the bound has (1 - 4A)^(-d/2)", "(1 - 4A)^(-d)",
                   "printed bound and exact probability, d = 20, x = y = 0, A = -.5, M = 1, epsilon = 1500",
                   printed, exact)  # fmt: skip


ENTRIES = (_eq_7, _theorem_42, _theorem_42_high)
