"""Second moments of the estimated coefficients of hybrids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .logarithms import log_expm1


@dataclass(frozen=True)
class CoefficientMoments:
    r"""Mean and second moments of an estimated coefficient.

    ``square`` is :math:`E\lambda^2`, ``complement`` :math:`E(1-\lambda)^2`, ``product`` :math:`E\lambda(1-\lambda)`.
    """

    mean: np.ndarray
    square: np.ndarray
    complement: np.ndarray
    product: np.ndarray

    @classmethod
    def of(cls, mean: Any, variance: Any) -> CoefficientMoments:
        """Moments from mean and variance."""
        mean, variance = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
        return cls(mean, mean**2 + variance, (1 - mean) ** 2 + variance, mean * (1 - mean) - variance)


def angular_coefficient(theta: Any, n: int) -> CoefficientMoments:
    r"""The angular coefficient: Binomial(n, p)/n with :math:`p = \theta/\pi` (HRF Eq. 19, Lemma 3.2).

    The last but one expression of Eq. 44 lacks :math:`-(1 - 1/n)` in its bracket.

    Examples
    --------
    >>> from bochner.theory import angular_coefficient
    >>> float(angular_coefficient(2.0, 1).product)  # one sign: the coefficient is 0 or 1
    0.0
    """
    p = np.asarray(theta, dtype=np.float64) / np.pi
    square = p * (p + (1 - p) / n)
    return CoefficientMoments(p, square, (1 - p) * (1 - p + p / n), p * (1 - p) * (1 - 1 / n))


def gaussian_coefficient(U: Any, V: Any, n: int, *, positive: bool = False) -> CoefficientMoments:
    r"""The general Gaussian coefficient :math:`\lambda = e^{-|u-v|^2/2}`, :math:`u = x/c`, :math:`v = -My/c` (HRF Eq. 20).

    Its variance is :math:`(1-\lambda^2)^2/(2n)` by trigonometric features, zero where it fires, and
    :math:`(e^{4u\cdot v} - \lambda^2)/n` by positive ones.
    """
    U, V = np.asarray(U, dtype=np.float64), np.asarray(V, dtype=np.float64)
    distance = ((U - V) ** 2).sum(-1)
    if positive:
        variance = np.exp(-distance + log_expm1(((U + V) ** 2).sum(-1))) / n
    else:
        variance = np.expm1(-distance) ** 2 / (2 * n)
    return CoefficientMoments.of(np.exp(-distance / 2), variance)


def normalised_gaussian_coefficient(minus: Any, radius: Any, sigma: float, n: int) -> CoefficientMoments:
    r"""The normalised Gaussian coefficient for points of one norm r (HRF Sec. F, Eqs. 72-75).

    Notes
    -----
    :math:`\lambda = (1 - e^{-\sigma^2|x-y|^2/2})/\rho`, :math:`\rho = 1 - e^{-2\sigma^2r^2}`, estimated by trigonometric
    features with variance :math:`(1-e^{-\sigma^2|x-y|^2})^2/(2n\rho^2)`.  Eq. 70 lacks :math:`\sigma` inside its sines and
    cosines, and then estimates another coefficient.  At r = 0 there is nothing to choose, and :math:`\lambda = 0`.
    """
    minus, radius = np.asarray(minus, dtype=np.float64), np.asarray(radius, dtype=np.float64)
    rho = -np.expm1(-2 * sigma**2 * radius**2)
    safe = np.where(rho > 0, rho, 1.0)
    mean = -np.expm1(-(sigma**2) * minus / 2) / safe
    return CoefficientMoments.of(mean, np.expm1(-(sigma**2) * minus) ** 2 / (2 * n * safe**2))
