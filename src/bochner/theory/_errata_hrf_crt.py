"""Errata of Hybrid Random Features and of Chefs' Random Tables."""

from __future__ import annotations

import math

import numpy as np

from ._bounds import angular_log_relative_rmse, log_max_relative_rmse
from ._complex_exponential_errors import complex_argument
from ._errata import Entry
from ._exponential_errors import hyperbolic_log_relative_mse, positive_log_relative_mse, trigonometric_log_relative_mse
from ._hybrid_errors import (
    angular_coefficient,
    angular_hybrid_log_relative_mse,
    bipolar_relative_covariance,
    gaussian_hybrid_log_relative_mse,
    normalized_gaussian_coefficient,
)
from ._optimal_positive import optimal_rho
from ._pairs import Pairs

X, Y = np.array([0.5, -0.3, 0.2, 0.4]), np.array([0.1, 0.45, -0.25, 0.3])
PAIR = Pairs.of(X, Y)
SQUARE = math.exp(2 * float(PAIR.log_softmax))
POINT = "x = (.5, -.3, .2, .4), y = (.1, .45, -.25, .3)"
DIAGONAL = np.array([1.1 + 0.3j, 0.2 + 0.9j, 0.8 - 0.4j, -0.3 + 1.1j])


@Entry(
    "hrf",
    "Sec. 2.1, Lemma 2.2",
    "$m$ features",
    "$2m$ features of $m$ projections",
    f"softmax error of 6 hyperbolic features, {POINT}",
)
def _lemma_22() -> tuple[float, float]:
    right = SQUARE * math.exp(hyperbolic_log_relative_mse(PAIR.plus, 3, 4))
    wrong = SQUARE * math.exp(hyperbolic_log_relative_mse(PAIR.plus, 6, 4))
    return wrong, right


@Entry(
    "hrf",
    "Sec. 2.3",
    "$A = I$ gives the hyperbolic estimator",
    "$A = I$ gives the one-sided positive one",
    f"softmax error of 3 projections, {POINT}",
)
def _identity_is_one_sided() -> tuple[float, float]:
    one_sided = SQUARE * math.exp(positive_log_relative_mse(PAIR.plus, 3, 4))
    hyperbolic = SQUARE * math.exp(hyperbolic_log_relative_mse(PAIR.plus, 3, 4))
    return hyperbolic, one_sided


@Entry(
    "hrf",
    "Eq. 36",
    r"$\binom m2$ pairs of projections",
    "$m(m-1)$ pairs",
    f"E of hyperbolic times trigonometric, shared, m = 3, {POINT}",
)
def _eq_36() -> tuple[float, float]:
    m = 3
    same = 1 + m * float(bipolar_relative_covariance(PAIR, m))  # E of the product within one projection, over k^2
    printed, right = (SQUARE * (m * same + pairs) / m**2 for pairs in (math.comb(m, 2), m * (m - 1)))
    return printed, right


@Entry(
    "hrf",
    "Eq. 44",
    r"$\frac14(4p\;+$ $(1 - \frac1n)(1 - 2p)^2)$ as the last but one expression",
    r"$p(p - \frac pn + \frac1n)$",
    f"E lambda^2, n = 4, {POINT}",
)
def _eq_44() -> tuple[float, float]:
    n, p = 4, float(PAIR.angle) / math.pi
    printed = (4 * p + (1 - 1 / n) * (1 - 2 * p) ** 2) / 4
    return printed, float(angular_coefficient(PAIR.angle, n).square)


@Entry(
    "hrf",
    "Eq. 47",
    r"$p(1 - \frac1n - p + \frac pn)$ before the trigonometric term",
    r"$(1 - p)(1 - p + \frac pn)$",
    "softmax error of the angular hybrid, r = 1, theta = 2, m = 3, n = 4",
)
def _eq_47() -> tuple[float, float]:
    r, theta, m, n = 1.0, 2.0, 3, 4
    pair = Pairs.of([r, 0.0], [r * math.cos(theta), r * math.sin(theta)])
    moments = angular_coefficient(theta, n)
    square = math.exp(2 * float(pair.log_softmax))
    bases = [
        square * math.exp(f)
        for f in (hyperbolic_log_relative_mse(pair.plus, m, 2), trigonometric_log_relative_mse(pair.minus, m, 2))
    ]
    printed = float(moments.square * bases[0] + moments.product * bases[1])
    right = square * math.exp(angular_hybrid_log_relative_mse(pair, m, n, 2))
    return printed, right


@Entry(
    "hrf",
    "Theorem 3.5, Eqs. 27, 64",
    r"$1/(n\sqrt\pi\,r^2)$ in the bound",
    r"$1/(n\sqrt\pi\,r)$",
    "printed bound and true largest relative error, r = 5, m = n = 1",
)
def _theorem_35() -> tuple[float, float]:
    r, m, n = 5.0, 1, 1
    spread = (1 - 1 / n) / (math.pi * r**2) + 1 / (n * math.sqrt(math.pi) * r**2)
    printed = math.exp(log_max_relative_rmse(r, m) + math.log(spread) / 2)
    angles = np.linspace(1e-4, math.pi - 1e-4, 20001)
    largest = math.exp(angular_log_relative_rmse(angles, r, m, n).max())
    return printed, largest


@Entry(
    "hrf",
    "Eq. 70",
    r"$\sin(\tau\cdot z)$, $\cos(\tau\cdot z)$",
    r"$\sin(\sigma\tau\cdot z)$, $\cos(\sigma\tau\cdot z)$",
    "E lambda, sigma = .8, r = 1, |x - y|^2 = 2",
)
def _eq_70() -> tuple[float, float]:
    sigma, r, minus = 0.8, 1.0, 2.0
    right = normalized_gaussian_coefficient(minus, r, sigma, 4).mean
    printed = right * np.expm1(-minus / 2) / np.expm1(-(sigma**2) * minus / 2)
    return float(printed), float(right)


@Entry(
    "hrf",
    "Theorem F.1",
    "the error is the same with shared projections",
    "for equal norms only",
    "relative error, x = (1.3, .2, 0), y = (.4, .5, -.2), m = 2, n = 4, sigma = .8, r = 1",
)
def _theorem_f1() -> tuple[float, float]:
    pair = Pairs.of([1.3, 0.2, 0.0], [0.4, 0.5, -0.2])
    printed, right = (
        math.exp(gaussian_hybrid_log_relative_mse(pair, 2, 4, 3, sigma=0.8, radius=1.0, shared=s))
        for s in (False, True)
    )
    return printed, right


@Entry(
    "hrf",
    "Eqs. 89-92",
    r"$\lVert Ax\rVert^2$",
    r"$q(Ax) = \sum_k (Ax)_k^2$, the unconjugated square",
    f"mean of the softmax estimate, {POINT}, A = (1.1+.3i, .2+.9i, .8-.4i, -.3+1.1i)",
)
def _eq_89() -> tuple[float, float]:
    zero = np.zeros(4)
    exponent = 0.0
    for u in (complex_argument(X, zero, DIAGONAL), complex_argument(zero, Y, DIAGONAL)):
        exponent = exponent + ((u**2).sum() - (np.abs(u) ** 2).sum()) / 2
    kernel = math.exp(float(PAIR.log_softmax))
    return float((kernel * np.exp(exponent)).real), kernel


@Entry(
    "crt",
    "Eq. 7",
    r"$(R - 2V - d)/(4V)$ with $R = \sqrt{(2V+d)^2 + 8dV}$, which cancels",
    r"$2d/(2V + d + R)$",
    "rho in float64, V = 1e-14, d = 64; above 1 features are unbounded",
)
def _eq_7() -> tuple[float, float]:
    V, d = 1e-14, 64
    printed = (math.sqrt((2 * V + d) ** 2 + 8 * d * V) - 2 * V - d) / (4 * V)
    return printed, float(optimal_rho(V, d))


def _tail(d: int, A: float, epsilon: float) -> tuple[float, float]:
    """Published bound and exact probability at x = y = 0, M = 1, where only one side can be exceeded."""
    from scipy.stats import chi2

    printed = 2 * math.exp(-(epsilon**2) / 2 * (1 - 4 * A) ** (-d / 2))
    # (1 - 4A)^(d/2) exp(2A |w|^2) >= 1 + epsilon
    threshold = (d / 2 * math.log1p(-4 * A) - math.log1p(epsilon)) / (-2 * A)
    return printed, float(chi2.cdf(threshold, d))


@Entry(
    "crt",
    "Theorem 4.2",
    "the bound has $(1 - 4A)^{-d/2}$",
    "$(1 - 4A)^{-d}$",
    "printed bound and exact probability, d = 1, x = y = 0, A = -1023.75, M = 1, epsilon = 31",
)
def _theorem_42() -> tuple[float, float]:
    return _tail(1, -1023.75, 31.0)


@Entry(
    "crt",
    "Theorem 4.2",
    "the bound has $(1 - 4A)^{-d/2}$",
    "$(1 - 4A)^{-d}$",
    "printed bound and exact probability, d = 20, x = y = 0, A = -.5, M = 1, epsilon = 1500",
)
def _theorem_42_high() -> tuple[float, float]:
    return _tail(20, -0.5, 1500.0)


ENTRIES = (
    _lemma_22,
    _identity_is_one_sided,
    _eq_36,
    _eq_44,
    _eq_47,
    _theorem_35,
    _eq_70,
    _theorem_f1,
    _eq_89,
    _eq_7,
    _theorem_42,
    _theorem_42_high,
)
