"""Errors of hybrid estimators: second moments of their estimated coefficients, and what follows for the mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bochner._validation import check_count, check_flag, check_positive

from ._exponential_errors import hyperbolic_log_relative_mse, trigonometric_log_relative_mse
from ._pairs import Pairs, check_numbers, check_pairs
from ._special_functions import log_expm1, log_signed_sum


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
    >>> from bochner.theory._hybrid_errors import angular_coefficient
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


def normalized_gaussian_coefficient(minus: Any, radius: Any, sigma: float, n: int) -> CoefficientMoments:
    r"""The normalized Gaussian coefficient for points of one norm r (HRF Sec. F, Eqs. 72-75).

    Notes
    -----
    :math:`\lambda = (1 - e^{-\sigma^2|x-y|^2/2})/\rho`, :math:`\rho = 1 - e^{-2\sigma^2r^2}`, estimated by trigonometric
    features with variance :math:`(1-e^{-\sigma^2|x-y|^2})^2/(2n\rho^2)`.  Eq. 70 lacks :math:`\sigma` inside its sines and
    cosines, and then estimates another coefficient.  At r = 0 there is nothing to choose, and :math:`\lambda = 0`.
    """
    minus, radius = np.asarray(minus, dtype=np.float64), np.asarray(radius, dtype=np.float64)
    square = min(sigma, 1e100) ** 2  # far beyond where the exponentials vanish
    rho = -np.expm1(-2 * square * radius**2)
    safe = np.where(rho > 0, rho, 1.0)
    mean = -np.expm1(-square * minus / 2) / safe
    return CoefficientMoments.of(mean, np.expm1(-square * minus) ** 2 / (2 * n * safe**2))


def hybrid_mse(second_moments: Any, covariances: Any) -> np.ndarray:
    r"""Error of a hybrid: :math:`\sum_{k,l} E[L_kL_l]\,\mathrm{Cov}(\hat k_k, \hat k_l)`.

    Notes
    -----
    HRF Eqs. 8-12, where only an estimate is given.  :math:`L = (\lambda_1, \dots, \lambda_p, 1 - \sum\lambda)` are
    the estimated coefficients, independent of the base projections; then the hybrid is unbiased and this is exact.  Both
    arguments are (..., p + 1, p + 1); bases with projections of their own have a diagonal of covariances.
    """
    return np.asarray(np.einsum("...kl,...kl->...", np.asarray(second_moments), np.asarray(covariances)))


def bipolar_relative_covariance(pairs: Pairs, m: int) -> np.ndarray:
    r"""Relative covariance of hyperbolic and trigonometric estimators that share their projections.

    :math:`-\frac1m(1 - \cos(|x|^2 - |y|^2))` (HRF Theorem 3.1; in Eq. 36 the print's :math:`\binom m2` is m(m - 1)).
    """
    return np.asarray(-2 * np.sin((pairs.x2 - pairs.y2) / 2) ** 2 / m)


def bipolar_log_relative_mse(
    pairs: Pairs, coefficient: CoefficientMoments, m: int, d: int, *, shared: bool = False, coupling: str = "iid"
) -> np.ndarray:
    r"""Log relative error of :math:`\lambda\,\hat k_{\cosh} + (1-\lambda)\,\hat k_{\mathrm{trig}}` (HRF Theorem 3.1).

    Notes
    -----
    :math:`E\lambda^2\,\epsilon^2_{\cosh} + E(1-\lambda)^2\,\epsilon^2_{\mathrm{trig}} + 2E\lambda(1-\lambda)\,\mathrm{Cov}`.
    Sharing helps if and only if :math:`E\lambda(1-\lambda) \ge 0`, which a Gaussian coefficient can violate.  Projections
    may be coupled where each base has its own; shared and coupled ones have no known closed form.
    """
    check_pairs("bipolar_log_relative_mse", pairs)
    check_flag("bipolar_log_relative_mse", "shared", shared)
    if shared and coupling != "iid":
        raise ValueError(
            f"bipolar_log_relative_mse: shared projections must be independent rows ('iid'), got coupling={coupling!r}."
        )
    logs = [
        hyperbolic_log_relative_mse(pairs.plus, m, d, coupling),
        trigonometric_log_relative_mse(pairs.minus, m, d, coupling),
    ]
    weights: list[Any] = [coefficient.square, coefficient.complement]
    if shared:
        logs.append(np.zeros_like(pairs.plus))
        weights.append(2 * coefficient.product * bipolar_relative_covariance(pairs, m))
    return log_signed_sum(logs, weights)


def angular_hybrid_log_relative_mse(
    pairs: Pairs, m: int, n: int, d: int, *, shared: bool = False, coupling: str = "iid"
) -> np.ndarray:
    r"""Log relative error of the angular hybrid with m base projections and n signs (HRF Theorem D.1).

    Eqs. 45 and 46 are right; Eq. 47 prints :math:`E\lambda(1-\lambda)` for the coefficient :math:`E(1-\lambda)^2`.  Zero at
    angles 0 and pi for points of one norm.
    """
    check_pairs("angular_hybrid_log_relative_mse", pairs)
    n = check_count("angular_hybrid_log_relative_mse", "n", n)
    return bipolar_log_relative_mse(pairs, angular_coefficient(pairs.angle, n), m, d, shared=shared, coupling=coupling)


def gaussian_hybrid_log_relative_mse(
    pairs: Pairs, m: int, n: int, d: int, *, sigma: float, radius: Any, shared: bool = False, coupling: str = "iid"
) -> np.ndarray:
    r"""Log relative error of the bipolar hybrid with the normalized Gaussian coefficient (HRF Theorem F.1).

    The theorem's "remains the same with shared projections" holds for equal norms only; otherwise
    `bipolar_relative_covariance` enters.  Zero at angle 0, not at pi.
    """
    check_pairs("gaussian_hybrid_log_relative_mse", pairs)
    n = check_count("gaussian_hybrid_log_relative_mse", "n", n)
    sigma = check_positive("gaussian_hybrid_log_relative_mse", "sigma", sigma)
    radius = check_numbers("gaussian_hybrid_log_relative_mse", "radius", radius, "zero or more", lambda v: v >= 0)
    coefficient = normalized_gaussian_coefficient(pairs.minus, radius, sigma, n)
    return bipolar_log_relative_mse(pairs, coefficient, m, d, shared=shared, coupling=coupling)
