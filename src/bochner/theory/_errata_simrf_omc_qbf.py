"""Errata of Simplex Random Features, of Unifying Orthogonal Monte Carlo Methods and of Quadrature-based Features."""

from __future__ import annotations

import math

import numpy as np

from ._coupling import log_conformity, orthogonality_relative_gap, trigonometric_excess
from ._errata import Entry
from ._orthogonal_monte_carlo import dot_product_mse, kac_fourth_moment, subsampled_dot_product_mse
from ._pairs import Pairs
from ._quadrature import origin_weight, second_moments, spherical_radial_variance
from ._rows import sine_moment


def _simplex_row_norm(d: int, slip: float) -> float:
    """|s_1|^2 of the simplex matrix with ``slip`` in the place of sqrt(d) + 1."""
    row = np.full(d - 1, -slip / (d - 1) ** 1.5)
    row[0] += math.sqrt(d / (d - 1))
    return float(row @ row)


@Entry(
    "simrf",
    "Eqs. 9, 88, Algorithm 1",
    "sqrt(d + 1)",
    "sqrt(d) + 1",
    "squared length of the first simplex row, d = 3",
)
def _eq_9() -> tuple[float, float]:
    return _simplex_row_norm(3, math.sqrt(4)), _simplex_row_norm(3, math.sqrt(3) + 1)


@Entry(
    "simrf",
    "Eq. 67",
    "a factor binom(k, p) too many",
    "Eq. 24",
    "conformity of a simplex pair, d = 8, |x + y| = 2",
)
def _eq_67() -> tuple[float, float]:
    d, V, c = 8, 4.0, -1 / 7
    total = 0.0
    for k in range(60):
        ratio = math.prod((d + j) / (d + 2 * j) for j in range(k))
        inner = math.fsum(math.comb(k, p) ** 2 * c**p * sine_moment(d, p) for p in range(k + 1))
        total += V**k / math.factorial(k) * ratio * inner
    return total, math.exp(log_conformity(V, d, c))


@Entry(
    "simrf",
    "Corollary 4.4, Eq. 25",
    "the series lacks 2^k in its denominator",
    "Eq. 69 has it",
    "orthogonality gap, x = (.3, .1, -.2, .4), y = (.2, -.1, .1, .3), m = 4; never negative",
)
def _eq_25() -> tuple[float, float]:
    m, d = 4, 4
    pair = Pairs.of([0.3, 0.1, -0.2, 0.4], [0.2, -0.1, 0.1, 0.3])
    V, scale = float(pair.plus), math.exp(-2 * float(pair.x2 + pair.y2))
    series = math.fsum(
        math.exp(k * math.log(V) + math.lgamma(k + d) - math.lgamma(k + 1) - math.lgamma(k + d / 2)) for k in range(80)
    )
    printed = scale * (m - 1) / m * (math.exp(V) - math.exp(math.lgamma(d / 2) - math.lgamma(d)) * series)
    right = scale * math.exp(V) * float(orthogonality_relative_gap(V, m, d))
    return printed, right


@Entry(
    "simrf",
    "Eq. 77",
    "(1 + exp(-z^2))^2",
    "(1 - exp(-z^2))^2",
    "error of orthogonal over independent trigonometric features, d = 64, m = 10, z = 1.3",
)
def _eq_77() -> tuple[float, float]:
    d, m, V = 64, 10, 1.3**2
    numerator = 2 * (m - 1) * float(trigonometric_excess(V, d))
    printed, right = (1 + numerator / (1 + sign * math.exp(-V)) ** 2 for sign in (1, -1))
    return printed, right


def _kac_ratio(d: int, constant: float) -> float:
    """Error of Kac's walk over that of independent rows at x = y = e_1, m = 1, after ``constant`` d ln d steps."""
    e1 = np.eye(1, d)[0]
    steps = math.ceil(constant * d * math.log(d))
    return float(subsampled_dot_product_mse(e1, e1, 1, kac_fourth_moment(e1, e1, steps)) / dot_product_mse(e1, e1, 1))


@Entry(
    "omc",
    "Theorem 5.2, Sec. 6",
    "C d log d steps lower the error, and C = 2 is used",
    "C = 4 does for every x, y and m, and no smaller C at large d",
    "error of Kac's walk over that of independent rows, x = y = e_1, m = 1, d = 256",
)
def _theorem_52() -> tuple[float, float]:
    return _kac_ratio(256, 2.0), _kac_ratio(256, 4.0)


@Entry(
    "qbf",
    "Sec. 3",
    "theta_i = u_i/u_{i+1}, a Cauchy variable",
    "atan2 of a tree of partial norms",
    "E cos(theta) of a leaf",
)
def _angles() -> tuple[float, float]:
    from scipy.integrate import quad

    cauchy = 2 / math.pi * quad(lambda t: 1 / (1 + t**2), 0, math.inf, weight="cos", wvar=1.0)[0]
    uniform = quad(math.cos, 0, 2 * math.pi)[0] / (2 * math.pi)
    return cauchy, uniform


@Entry(
    "qbf",
    "Sec. 2, weights after Eq. 6",
    "a_j^2 = d/(2(d + 1) rho_j^2) without reflected points",
    "half of that belongs to points taken with their reflections; alone, d/((d + 1) rho_j^2)",
    "mean of the Gaussian estimate's kernel part, |x - y|^2 = 2.908",
)
def _weights() -> tuple[float, float]:
    kernel = math.exp(-2.908 / 2)
    return kernel / 2, kernel


@Entry(
    "qbf",
    "Eq. 6, Sec. 11",
    "the summands are independent",
    "they share the rotation",
    "variance of one rule, d = 8, |x - y| = 1",
)
def _independence() -> tuple[float, float]:
    d, V = 8, 1.0
    h2, _ = second_moments(V, d)
    printed = d**2 / (d + 1) * float(h2) - math.expm1(-V / 2) ** 2 / (d + 1)
    return printed, float(spherical_radial_variance(V, d))


@Entry(
    "qbf",
    "Sec. 8",
    "resampling until a_0^2 >= 0 changes nothing",
    "it biases every estimate",
    "bias of the Gaussian estimate at large distance, d = 8",
)
def _resampling() -> tuple[float, float]:
    d = 8
    mean_inverse_square = 1 / d  # of rho ~ chi_{d+2}: E a_0^2 = 0
    signed = 1 - (d + 1) * d / (d + 1) * mean_inverse_square
    return signed, origin_weight(d).conditional_mean


@Entry(
    "qbf",
    "Sec. 2, Proposition 2.1",
    "D = 2n(d + 1) features",
    "2n(d + 1) + 1, with the constant",
    "features of one rule, d = 8",
)
def _feature_count() -> tuple[float, float]:
    d, n = 8, 1
    return float(2 * n * (d + 1)), float(2 * n * (d + 1) + 1)


@Entry(
    "qbf",
    "Proposition 2.1",
    "a bound on the variance",
    "it is exceeded: its proof drops a factor rho^2",
    "printed bound and exact variance of one rule, x = -y, |x| = .3, d = 64",
)
def _proposition_21() -> tuple[float, float]:
    d, l = 64, 0.3  # x = -y of norm l; all derivatives of cos(z_1 - z_2) are bounded by one
    bound = (
        0.66 * l**8 * d / ((d + 1) * (d + 2)) + 53 * l**6 / (d * (d + 1) * (d + 2)) + 6 * l**4 / ((d + 1) * (d**2 - 4))
    )
    return bound, float(spherical_radial_variance((2 * l) ** 2, d))


ENTRIES = (
    _eq_9,
    _eq_67,
    _eq_25,
    _eq_77,
    _theorem_52,
    _angles,
    _weights,
    _independence,
    _proposition_21,
    _resampling,
    _feature_count,
)
