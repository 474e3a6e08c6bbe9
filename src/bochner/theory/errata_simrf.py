"""Errata of Simplex Random Features."""

from __future__ import annotations

import math

import numpy as np

from .conformity import log_conformity, orthogonality_gap
from .erratum import Erratum
from .pairs import Pairs
from .sine_law import sine_moment
from .trigonometric_pair import trigonometric_excess


def _simplex_row_norm(d: int, slip: float) -> float:
    """|s_1|^2 of the simplex matrix with ``slip`` in the place of sqrt(d) + 1."""
    row = np.full(d - 1, -slip / (d - 1) ** 1.5)
    row[0] += math.sqrt(d / (d - 1))
    return float(row @ row)


def _eq_9() -> Erratum:
    return Erratum("simrf", "Eqs. 9, 88, Algorithm 1", "sqrt(d + 1)", "sqrt(d) + 1",
                   "squared length of the first simplex row, d = 3",
                   _simplex_row_norm(3, math.sqrt(4)), _simplex_row_norm(3, math.sqrt(3) + 1))  # fmt: skip


def _eq_67() -> Erratum:
    d, V, c = 8, 4.0, -1 / 7
    total = 0.0
    for k in range(60):
        ratio = math.prod((d + j) / (d + 2 * j) for j in range(k))
        inner = math.fsum(math.comb(k, p) ** 2 * c**p * sine_moment(d, p) for p in range(k + 1))
        total += V**k / math.factorial(k) * ratio * inner
    return Erratum("simrf", "Eq. 67", "a factor binom(k, p) too many", "Eq. 24",
                   "conformity of a simplex pair, d = 8, |x + y| = 2",
                   total, math.exp(log_conformity(V, d, c)))  # fmt: skip


def _eq_25() -> Erratum:
    m, d = 4, 4
    pair = Pairs.of([0.3, 0.1, -0.2, 0.4], [0.2, -0.1, 0.1, 0.3])
    V, scale = float(pair.plus), math.exp(-2 * float(pair.x2 + pair.y2))
    series = math.fsum(
        math.exp(k * math.log(V) + math.lgamma(k + d) - math.lgamma(k + 1) - math.lgamma(k + d / 2)) for k in range(80)
    )
    printed = scale * (m - 1) / m * (math.exp(V) - math.exp(math.lgamma(d / 2) - math.lgamma(d)) * series)
    right = scale * math.exp(V) * float(orthogonality_gap(V, m, d))
    return Erratum("simrf", "Corollary 4.4, Eq. 25", "the series lacks 2^k in its denominator", "Eq. 69 has it",
                   "orthogonality gap, x = (.3, .1, -.2, .4), y = (.2, -.1, .1, .3), m = 4; never negative",
                   printed, right)  # fmt: skip


def _eq_77() -> Erratum:
    d, m, V = 64, 10, 1.3**2
    numerator = 2 * (m - 1) * float(trigonometric_excess(V, d))
    printed, right = (1 + numerator / (1 + sign * math.exp(-V)) ** 2 for sign in (1, -1))
    return Erratum("simrf", "Eq. 77", "(1 + exp(-z^2))^2", "(1 - exp(-z^2))^2",
                   "error of orthogonal over independent trigonometric features, d = 64, m = 10, z = 1.3",
                   printed, right)  # fmt: skip


ENTRIES = (_eq_9, _eq_67, _eq_25, _eq_77)
