"""The weight at the origin of a spherical-radial rule, and what resampling it costs."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

N_NODES = 400


class OriginWeight(NamedTuple):
    """Probability that the weight at the origin is not negative, and its mean given that."""

    probability: float
    conditional_mean: float


def _characteristic_function(u: np.ndarray, d: int) -> np.ndarray:
    r"""Of :math:`1/\rho^2`, :math:`\rho \sim \chi_{d+2}`, by Gauss-Legendre over the bulk of :math:`\rho`."""
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    centre = math.sqrt(d + 2)
    low, high = max(0.0, centre - 9), centre + 9
    rho = low + (high - low) * (nodes + 1) / 2
    log_density = (d + 1) * np.log(rho) - rho**2 / 2
    law = weights * np.exp(log_density - log_density.max())
    return np.asarray(np.exp(1j * u[:, None] / rho**2) @ (law / law.sum()))


def origin_weight(d: int) -> OriginWeight:
    r"""The law of :math:`a_0^2 = 1 - \sum_j \frac d{(d+1)\rho_j^2}`, :math:`\rho_j \sim \chi_{d+2}`, at its sign.

    Notes
    -----
    :math:`E a_0^2 = 0`, so a rule resampled until :math:`a_0^2 \ge 0`, as QBF does, is biased: by
    :math:`E[a_0^2 \mid a_0^2 \ge 0]` at large distances, for the Gaussian kernel, however many rules are averaged; and by
    :math:`(\frac12 - k_0)` times that for the arc-cosine kernel of order 0.  The signed weight is unbiased.  "Two draws"
    on average hold only as d grows.

    By inversion of the characteristic function of :math:`S = \sum_j\rho_j^{-2}`, whose mean :math:`(d+1)/d` is the
    threshold:
    :math:`P(S \le x) = \frac12 - \frac1\pi\int\mathrm{Im}[e^{-iux}\phi(u)]\frac{du}u` and
    :math:`E|S - x| = \frac2\pi\int(1 - \mathrm{Re}[e^{-iux}\phi(u)])\frac{du}{u^2}`.

    Examples
    --------
    >>> from bochner.theory import origin_weight
    >>> origin_weight(8).probability > 0.5
    True
    """
    top, threshold = 60.0 * d, (d + 1) / d
    nodes, weights = np.polynomial.legendre.leggauss(N_NODES)
    root = math.sqrt(top) * (nodes + 1) / 2  # u = root^2: nodes gather where the integrand bends
    u, du = root**2, weights * math.sqrt(top) * root
    centred = np.exp((d + 1) * (np.log(_characteristic_function(u, d)) - 1j * u / d))
    probability = 0.5 - (centred.imag / u) @ du / math.pi
    deviation = 2 / math.pi * (((1 - centred.real) / u**2) @ du + 1 / top)
    positive_part = deviation / 2 / threshold
    return OriginWeight(float(probability), float(positive_part / probability))
