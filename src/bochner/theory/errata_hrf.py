"""Errata of Hybrid Random Features."""

from __future__ import annotations

import math

import numpy as np

from .coefficients import angular_coefficient, normalised_gaussian_coefficient
from .complex_exponential import complex_argument
from .coupled_mse import hyperbolic_mse, positive_mse, trigonometric_log_relative_mse
from .erratum import Erratum
from .hybrid import angular_hybrid_mse, bipolar_covariance, gaussian_hybrid_mse
from .pairs import Pairs
from .relative_error import log_angular_error, log_max_error

X, Y = np.array([0.5, -0.3, 0.2, 0.4]), np.array([0.1, 0.45, -0.25, 0.3])
PAIR = Pairs.of(X, Y)
SQUARE = math.exp(2 * float(PAIR.log_softmax))
POINT = "x = (.5, -.3, .2, .4), y = (.1, .45, -.25, .3)"
DIAGONAL = np.array([1.1 + 0.3j, 0.2 + 0.9j, 0.8 - 0.4j, -0.3 + 1.1j])


def _lemma_22() -> Erratum:
    right = SQUARE * math.exp(hyperbolic_mse(PAIR.plus, 3, 4))
    wrong = SQUARE * math.exp(hyperbolic_mse(PAIR.plus, 6, 4))
    return Erratum("hrf", "Sec. 2.1, Lemma 2.2", "m features", "2m features of m projections",
                   f"softmax error of 6 hyperbolic features, {POINT}", wrong, right)  # fmt: skip


def _identity_is_one_sided() -> Erratum:
    one_sided = SQUARE * math.exp(positive_mse(PAIR.plus, 3, 4))
    hyperbolic = SQUARE * math.exp(hyperbolic_mse(PAIR.plus, 3, 4))
    return Erratum("hrf", "Sec. 2.3", "A = I gives the hyperbolic estimator", "A = I gives the one-sided positive one",
                   f"softmax error of 3 projections, {POINT}", hyperbolic, one_sided)  # fmt: skip


def _eq_36() -> Erratum:
    m = 3
    same = 1 + m * float(bipolar_covariance(PAIR, m))  # E of the product within one projection, over k^2
    printed, right = (SQUARE * (m * same + pairs) / m**2 for pairs in (math.comb(m, 2), m * (m - 1)))
    return Erratum("hrf", "Eq. 36", "binom(m, 2) pairs of projections", "m (m - 1) pairs",
                   f"E of hyperbolic times trigonometric, shared, m = 3, {POINT}", printed, right)  # fmt: skip


def _eq_44() -> Erratum:
    n, p = 4, float(PAIR.angle) / math.pi
    printed = (4 * p + (1 - 1 / n) * (1 - 2 * p) ** 2) / 4
    return Erratum("hrf", "Eq. 44", "(4p + (1 - 1/n)(1 - 2p)^2)/4 as the last but one expression",
                   "(4p - (1 - 1/n) + (1 - 1/n)(1 - 2p)^2)/4 = p (p - p/n + 1/n)", f"E lambda^2, n = 4, {POINT}",
                   printed, float(angular_coefficient(PAIR.angle, n).square))  # fmt: skip


def _eq_47() -> Erratum:
    r, theta, m, n = 1.0, 2.0, 3, 4
    pair = Pairs.of([r, 0.0], [r * math.cos(theta), r * math.sin(theta)])
    moments = angular_coefficient(theta, n)
    square = math.exp(2 * float(pair.log_softmax))
    bases = [
        square * math.exp(f)
        for f in (hyperbolic_mse(pair.plus, m, 2), trigonometric_log_relative_mse(pair.minus, m, 2))
    ]
    printed = float(moments.square * bases[0] + moments.product * bases[1])
    right = square * math.exp(angular_hybrid_mse(pair, m, n, 2))
    return Erratum("hrf", "Eq. 47", "p (1 - 1/n - p + p/n) before the trigonometric term", "(1 - p)(1 - p + p/n)",
                   "softmax error of the angular hybrid, r = 1, theta = 2, m = 3, n = 4", printed, right)  # fmt: skip


def _theorem_35() -> Erratum:
    r, m, n = 5.0, 1, 1
    spread = (1 - 1 / n) / (math.pi * r**2) + 1 / (n * math.sqrt(math.pi) * r**2)
    printed = math.exp(log_max_error(r, m) + math.log(spread) / 2)
    angles = np.linspace(1e-4, math.pi - 1e-4, 20001)
    largest = math.exp(log_angular_error(angles, r, m, n).max())
    return Erratum("hrf", "Theorem 3.5, Eqs. 27, 64", "1/(n sqrt(pi) r^2) in the bound", "1/(n sqrt(pi) r)",
                   "printed bound and true largest relative error, r = 5, m = n = 1", printed, largest)  # fmt: skip


def _eq_70() -> Erratum:
    sigma, r, minus = 0.8, 1.0, 2.0
    right = normalised_gaussian_coefficient(minus, r, sigma, 4).mean
    printed = right * np.expm1(-minus / 2) / np.expm1(-(sigma**2) * minus / 2)
    return Erratum("hrf", "Eq. 70", "sin(tau.z), cos(tau.z)", "sin(sigma tau.z), cos(sigma tau.z)",
                   "E lambda, sigma = .8, r = 1, |x - y|^2 = 2", float(printed), float(right))  # fmt: skip


def _theorem_f1() -> Erratum:
    pair = Pairs.of([1.3, 0.2, 0.0], [0.4, 0.5, -0.2])
    errors = (math.exp(gaussian_hybrid_mse(pair, 2, 4, 3, sigma=0.8, radius=1.0, shared=s)) for s in (False, True))
    printed, right = errors
    return Erratum("hrf", "Theorem F.1", "the error is the same with shared projections", "for equal norms only",
                   "relative error, x = (1.3, .2, 0), y = (.4, .5, -.2), m = 2, n = 4, sigma = .8, r = 1",
                   printed, right)  # fmt: skip


def _eq_89() -> Erratum:
    zero = np.zeros(4)
    exponent = 0.0
    for u in (complex_argument(X, zero, DIAGONAL), complex_argument(zero, Y, DIAGONAL)):
        exponent = exponent + ((u**2).sum() - (np.abs(u) ** 2).sum()) / 2
    kernel = math.exp(float(PAIR.log_softmax))
    return Erratum("hrf", "Eqs. 89-92", "|Ax|^2", "q(Ax), the unconjugated square",
                   f"mean of the softmax estimate, {POINT}, A = (1.1+.3i, .2+.9i, .8-.4i, -.3+1.1i)",
                   float((kernel * np.exp(exponent)).real), kernel)  # fmt: skip


ENTRIES = (_lemma_22, _identity_is_one_sided, _eq_36, _eq_44, _eq_47, _theorem_35, _eq_70, _theorem_f1, _eq_89)
