"""Errata of Simplex Random Features, of Unifying Orthogonal Monte Carlo Methods and of Quadrature-based Features."""

from __future__ import annotations

import math

import numpy as np

from ._coupling import log_conformity, orthogonality_relative_gap, trigonometric_excess
from ._errata import Entry
from ._pairs import Pairs, sine_moment
from ._quadrature import origin_weight, second_moments, spherical_radial_variance


def _simplex_row_norm(d: int, slip: float) -> float:
    """|s_1|^2 of the simplex matrix with ``slip`` in place of sqrt(d) + 1."""
    row = np.full(d - 1, -slip / (d - 1) ** 1.5)
    row[0] += math.sqrt(d / (d - 1))
    return float(row @ row)


@Entry(
    "simrf",
    "Eqs. 9, 88, Algorithm 1",
    r"$\sqrt{d + 1}$",
    r"$\sqrt d + 1$",
    "squared length of the first simplex row, d = 3",
)
def _eq_9() -> tuple[float, float]:
    return _simplex_row_norm(3, math.sqrt(4)), _simplex_row_norm(3, math.sqrt(3) + 1)


@Entry(
    "simrf",
    "Eq. 67",
    r"a factor $\binom kp$ too many",
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
    "the series lacks $2^k$ in its denominator",
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
    "$(1 + e^{-z^2})^2$",
    "$(1 - e^{-z^2})^2$",
    "error of orthogonal over independent trigonometric features, d = 64, m = 10, z = 1.3",
)
def _eq_77() -> tuple[float, float]:
    d, m, V = 64, 10, 1.3**2
    numerator = 2 * (m - 1) * float(trigonometric_excess(V, d))
    printed, right = (1 + numerator / (1 + sign * math.exp(-V)) ** 2 for sign in (1, -1))
    return printed, right


@Entry(
    "simrf",
    "Sec. 4.1",
    r"one threshold $z_{\mathrm{crit}}(d)$ up to which orthogonal cosines win",
    "the gap changes its sign again and again",
    "first and second distance at which orthogonal and independent cosines have equal errors, d = 8",
)
def _critical() -> tuple[float, float]:
    from scipy.optimize import brentq

    def gap(z: float) -> float:
        return float(trigonometric_excess(z**2, 8))

    return float(brentq(gap, 2.5, 3.4)), float(brentq(gap, 3.6, 4.5))


@Entry(
    "simrf",
    "Eqs. 16, 17",
    r"the vector $w_i$ times the direction $-s/\lVert s\rVert$, $s = \sum_{j\ne i} w_j$",
    r"its length $\lVert w_i\rVert$ times that direction",
    "length of the new row, for a row (2, 0) and the sum (3, 4) of the others",
)
def _eq_16() -> tuple[float, float]:
    w, others = np.array([2.0, 0.0]), np.array([3.0, 4.0])
    direction = -others / np.linalg.norm(others)
    return abs(float(w @ direction)), float(np.linalg.norm(np.linalg.norm(w) * direction))


@Entry(
    "omc",
    "Theorem 5.1",
    "the coordinates are $F_2^d$",
    "$F_2^L$, with $d = 2^L$",
    "number of coordinates, d = 8",
)
def _theorem_51() -> tuple[float, float]:
    return float(2**8), float(2**3)


@Entry(
    "qbf",
    "Sec. 3",
    r"$\theta_i = u_i/u_{i+1}$, a Cauchy variable",
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
    "Sec. 3, butterflies",
    "butterfly matrices are Haar distributed",
    "their columns are uniform; the matrices are not Haar for $d > 2$",
    r"$E\,Q_{11}^2Q_{22}^2$ of a butterfly and of a Haar matrix, d = 4",
)
def _not_haar() -> tuple[float, float]:
    # Q_11 = Q_22 = c cos(a), with c^2 ~ Beta(1, 1) of the second level and a uniform angle a of the first
    d, fourth_of_c, fourth_of_cosine = 4, 1 / 3, 3 / 8
    return fourth_of_c * fourth_of_cosine, (d + 1) / (d * (d - 1) * (d + 2))


@Entry(
    "qbf",
    "Sec. 4.2",
    r"$f(\lvert\rho_j Qv_j\rvert)/(2\rho_j^2)$ in the rule of the arc-cosine kernel",
    r"$[f(\rho_j Qv_j)\;+$ $f(-\rho_j Qv_j)]/(2\rho_j^2)$",
    "mean of the estimate of order one at right angles, unit vectors",
)
def _arc_cosine_rule() -> tuple[float, float]:
    # E |g_1| |g_2| of independent normal numbers, and E relu(g_1) relu(g_2) + E relu(-g_1) relu(-g_2)
    return 2 / math.pi, 1 / math.pi


@Entry(
    "qbf",
    "Sec. 2, weights after Eq. 6",
    r"$a_j^2 = d/(2(d + 1)\rho_j^2)$ without reflected points",
    r"half of that belongs to points taken with their reflections; alone, $d/((d + 1)\rho_j^2)$",
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
    r"resampling until $a_0^2 \ge 0$ changes nothing",
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
    "$D = 2n(d + 1)$ features",
    "$2n(d + 1) + 1$, with the constant",
    "features of one rule, d = 8",
)
def _feature_count() -> tuple[float, float]:
    d, n = 8, 1
    return float(2 * n * (d + 1)), float(2 * n * (d + 1) + 1)


@Entry(
    "qbf",
    "Proposition 2.1",
    "a bound on the variance",
    r"it is exceeded: its proof drops a factor $\rho^2$",
    "printed bound and exact variance of one rule, x = -y, |x| = .3, d = 64",
)
def _proposition_21() -> tuple[float, float]:
    d, l = 64, 0.3  # x = -y of norm l; all derivatives of cos(z_1 - z_2) are bounded by one
    bound = (
        0.66 * l**8 * d / ((d + 1) * (d + 2)) + 53 * l**6 / (d * (d + 1) * (d + 2)) + 6 * l**4 / ((d + 1) * (d**2 - 4))
    )
    return bound, float(spherical_radial_variance((2 * l) ** 2, d))


@Entry(
    "qbf",
    "Sec. 12.2",
    r"$E L_g^2 \le 2d\sigma_p^2/(d + 1)$, by independent summands at a fixed point",
    r"neither is the case; $E L_g^2 \le 2(1 + e^{-1/2})^2$, since a rule is a tight frame",
    "bound on the mean squared Lipschitz constant in (x, y), Gaussian kernel, d = 8",
)
def _lipschitz() -> tuple[float, float]:
    d = 8  # sigma_p^2 = E |w|^2 = d; slopes in x and in y are those in x - y
    return 2 * d * d / (d + 1), 2 * (1 + math.exp(-0.5)) ** 2


ENTRIES = (
    _eq_9,
    _eq_67,
    _eq_25,
    _eq_77,
    _critical,
    _eq_16,
    _theorem_51,
    _angles,
    _not_haar,
    _arc_cosine_rule,
    _weights,
    _independence,
    _proposition_21,
    _resampling,
    _feature_count,
    _lipschitz,
)
