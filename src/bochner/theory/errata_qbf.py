"""Errata of Quadrature-based features."""

from __future__ import annotations

import math

from .erratum import Erratum
from .origin_weight import origin_weight
from .spherical_radial import second_moments, spherical_radial_variance


def _angles() -> Erratum:
    from scipy.integrate import quad

    cauchy = 2 / math.pi * quad(lambda t: 1 / (1 + t**2), 0, math.inf, weight="cos", wvar=1.0)[0]
    uniform = quad(math.cos, 0, 2 * math.pi)[0] / (2 * math.pi)
    return Erratum("qbf", "Sec. 3", "theta_i = u_i/u_{i+1}, a Cauchy variable", "atan2 of a tree of partial norms",
                   "E cos(theta) of a leaf", cauchy, uniform)  # fmt: skip


def _weights() -> Erratum:
    kernel = math.exp(-2.908 / 2)
    return Erratum("qbf", "Sec. 2, weights after Eq. 6", "a_j^2 = d/(2(d + 1) rho_j^2) without reflected points",
                   "half of that belongs to points taken with their reflections; alone, d/((d + 1) rho_j^2)",
                   "mean of the Gaussian estimate's kernel part, |x - y|^2 = 2.908", kernel / 2, kernel)  # fmt: skip


def _independence() -> Erratum:
    d, V = 8, 1.0
    h2, _ = second_moments(V, d)
    printed = d**2 / (d + 1) * float(h2) - math.expm1(-V / 2) ** 2 / (d + 1)
    return Erratum("qbf", "Eq. 6, Sec. 11", "the summands are independent", "they share the rotation",
                   "variance of one rule, d = 8, |x - y| = 1",
                   printed, float(spherical_radial_variance(V, d)))  # fmt: skip


def _resampling() -> Erratum:
    d = 8
    mean_inverse_square = 1 / d  # of rho ~ chi_{d+2}: E a_0^2 = 0
    signed = 1 - (d + 1) * d / (d + 1) * mean_inverse_square
    return Erratum("qbf", "Sec. 8", "resampling until a_0^2 >= 0 changes nothing", "it biases every estimate",
                   "bias of the Gaussian estimate at large distance, d = 8",
                   signed, origin_weight(d).conditional_mean)  # fmt: skip


def _feature_count() -> Erratum:
    d, n = 8, 1
    return Erratum("qbf", "Sec. 2, Proposition 2.1", "D = 2n(d + 1) features", "2n(d + 1) + 1, with the constant",
                   "features of one rule, d = 8", float(2 * n * (d + 1)), float(2 * n * (d + 1) + 1))  # fmt: skip


def _proposition_21() -> Erratum:
    d, l = 64, 0.3  # x = -y of norm l; all derivatives of cos(z_1 - z_2) are bounded by one
    bound = (
        0.66 * l**8 * d / ((d + 1) * (d + 2)) + 53 * l**6 / (d * (d + 1) * (d + 2)) + 6 * l**4 / ((d + 1) * (d**2 - 4))
    )
    return Erratum("qbf", "Proposition 2.1", "a bound on the variance", "it is exceeded: its proof drops a factor rho^2",
                   "printed bound and exact variance of one rule, x = -y, |x| = .3, d = 64",
                   bound, float(spherical_radial_variance((2 * l) ** 2, d)))  # fmt: skip


ENTRIES = (_angles, _weights, _independence, _proposition_21, _resampling, _feature_count)
