"""Errors of hybrid estimators: second moments of the estimated coefficients, and the resulting error of the mixture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bochner._validation import check_count, check_flag, check_option, check_positive

from ._exponential_errors import hyperbolic_log_relative_mse, trigonometric_log_relative_mse
from ._orthogonal_pairs import orthogonal_pair_covariance
from ._pairs import Pairs, check_numbers, check_pairs, pair_fraction
from ._special_functions import log_expm1, log_signed_sum


@dataclass(frozen=True)
class CoefficientMoments:
    """Mean and variance of an estimated coefficient, and the second moments that hybrids need.

    Attributes
    ----------
    mean, variance : ndarray
        One value per pair of points.
    """

    mean: np.ndarray
    variance: np.ndarray

    @classmethod
    def of(cls, mean: Any, variance: Any) -> CoefficientMoments:
        """Hold mean and variance as arrays."""
        return cls(np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64))

    @property
    def square(self) -> np.ndarray:
        r""":math:`E\lambda^2`."""
        return np.asarray(self.mean**2 + self.variance)

    @property
    def complement(self) -> np.ndarray:
        r""":math:`E(1-\lambda)^2`."""
        return np.asarray((1 - self.mean) ** 2 + self.variance)

    @property
    def product(self) -> np.ndarray:
        r""":math:`E\lambda(1-\lambda)`."""
        return np.asarray(self.mean * (1 - self.mean) - self.variance)


def angular_coefficient(theta: Any, n: int) -> CoefficientMoments:
    r"""Moments of the angular coefficient, Binomial(n, p)/n with :math:`p = \theta/\pi` (HRF Eq. 19, Lemma 3.2).

    In the paper, the last but one expression of Eq. 44 lacks :math:`-(1 - 1/n)` in its bracket.

    Examples
    --------
    >>> from bochner.theory._hybrid_errors import angular_coefficient
    >>> float(angular_coefficient(2.0, 1).product)  # one sign: the coefficient is 0 or 1
    0.0
    """
    p = np.asarray(theta, dtype=np.float64) / np.pi
    return CoefficientMoments(p, p * (1 - p) / n)


def gaussian_coefficient(U: Any, V: Any, n: int, *, positive: bool = False) -> CoefficientMoments:
    r"""Moments of the Gaussian coefficient :math:`\lambda = e^{-|u-v|^2/2}` (HRF Eq. 20).

    Here :math:`u = x/c` and :math:`v = -My/c`.  Estimated by trigonometric features, its variance is
    :math:`(1-\lambda^2)^2/(2n)`, which is zero at u = v; estimated by positive features, it is
    :math:`(e^{4u\cdot v} - \lambda^2)/n`.
    """
    U, V = np.asarray(U, dtype=np.float64), np.asarray(V, dtype=np.float64)
    distance = ((U - V) ** 2).sum(-1)
    if positive:
        variance = np.exp(-distance + log_expm1(((U + V) ** 2).sum(-1))) / n
    else:
        variance = np.expm1(-distance) ** 2 / (2 * n)
    return CoefficientMoments.of(np.exp(-distance / 2), variance)


def normalized_gaussian_coefficient(minus: Any, radius: Any, sigma: float, n: int) -> CoefficientMoments:
    r"""Moments of the normalized Gaussian coefficient for points of equal norm r (HRF Sec. F, Eqs. 72-75).

    Notes
    -----
    :math:`\lambda = (1 - e^{-\sigma^2|x-y|^2/2})/\rho`, :math:`\rho = 1 - e^{-2\sigma^2r^2}`, estimated by
    trigonometric features with variance :math:`(1-e^{-\sigma^2|x-y|^2})^2/(2n\rho^2)`.  In the paper, Eq. 70 lacks
    :math:`\sigma` inside its sines and cosines, and therefore estimates a different coefficient.  At r = 0 the
    coefficient is set to zero.
    """
    minus, radius = np.asarray(minus, dtype=np.float64), np.asarray(radius, dtype=np.float64)
    square = min(sigma, 1e100) ** 2  # far beyond where the exponentials vanish
    rho = -np.expm1(-2 * square * radius**2)
    safe = np.where(rho > 0, rho, 1.0)
    mean = -np.expm1(-square * minus / 2) / safe
    return CoefficientMoments.of(mean, np.expm1(-square * minus) ** 2 / (2 * n * safe**2))


def hybrid_mse(coefficients: Sequence[CoefficientMoments], covariances: Sequence[Sequence[Any]]) -> np.ndarray:
    r"""Mean squared error of a hybrid of p + 1 bases with p coefficients, in closed form.

    Parameters
    ----------
    coefficients : sequence of CoefficientMoments
        Mean and variance of each coefficient, one value per pair of points.
    covariances : nested sequence (p + 1, p + 1) of arrays
        Covariances of the estimators of the bases; zero off the diagonal if each base has its own projections.

    Returns
    -------
    ndarray

    Notes
    -----
    :math:`\sum_{k,l} E[L_kL_l]\,\mathrm{Cov}(\hat k_k, \hat k_l)` with the estimated weights
    :math:`L = (\lambda_1, \dots, \lambda_p, 1 - \sum\lambda)` (HRF Eqs. 8-12, where only an estimate is given).  It is exact
    if the coefficients are independent of each other and of the projections of the bases.

    Examples
    --------
    >>> from bochner.theory import CoefficientMoments, hybrid_mse
    >>> half = CoefficientMoments.of(0.5, 0.0)                       # the mean of two independent estimators
    >>> float(hybrid_mse([half], [[2.0, 0.0], [0.0, 4.0]]))
    1.5
    """
    p = len(coefficients)
    means = [c.mean for c in coefficients]
    means.append(1 - sum(means[1:], means[0]))
    total: Any = 0.0
    for k in range(p + 1):
        for l in range(p + 1):
            moment = means[k] * means[l]
            if k == l:
                moment = moment + (coefficients[k].variance if k < p else sum(c.variance for c in coefficients))
            elif p in (k, l):
                moment = moment - coefficients[min(k, l)].variance
            total = total + _product(moment, np.asarray(covariances[k][l]))
    return np.asarray(np.where(np.isnan(total), np.inf, total))  # infinite errors of several bases


def _product(moment: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return the product, zero where the weight is zero, also of an infinite error."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(moment == 0, 0.0, moment * covariance))


def shared_relative_covariance(
    z1: Any, z2: Any, m: int, d: int, *, even: bool = False, coupling: str = "iid"
) -> np.ndarray:
    r"""Relative covariance of two complex exponential estimators with the same m projections.

    Parameters
    ----------
    z1, z2 : complex arrays of shape (..., p)
        Results of `complex_argument`: one row estimates k times :math:`\mathrm{Re}\,e^{w\cdot z - z\cdot z/2}`.
    m : int
        Number of projections.
    d : int
        Dimension in which they are drawn, at least p.
    even : bool, default False
        Whether at least one of the estimators uses each row together with its negative.
    coupling : {"iid", "orthogonal"}, default "iid"
        Coupling of the projections.

    Returns
    -------
    ndarray of shape (...)

    Notes
    -----
    A row contributes :math:`\frac12\mathrm{Re}(e^{z_1\cdot z_2} + e^{z_1\cdot\bar z_2}) - 1`, unconjugated products, with
    hyperbolic cosines in place of exponentials if ``even``.  Two orthogonal rows contribute the same mean of
    `orthogonal_pair_covariance`.  With :math:`z_1 = x + y` and :math:`z_2 = i(x - y)` the first is the cosine of HRF
    Theorem 3.1.
    """
    owner = "shared_relative_covariance"
    m, d = check_count(owner, "m", m), check_count(owner, "d", d)
    check_flag(owner, "even", even)
    check_option(owner, "coupling", coupling, ("iid", "orthogonal"))
    z1, z2 = np.asarray(z1, dtype=np.complex128), np.asarray(z2, dtype=np.complex128)
    with np.errstate(over="ignore", invalid="ignore"):
        products = [(z1 * other).sum(-1) for other in (z2, z2.conj())]
        rows = sum(2 * np.sinh(s / 2) ** 2 if even else np.expm1(s) for s in products) / (2 * m)
    pairs = pair_fraction(m, d) if coupling == "orthogonal" else 0.0
    if not pairs:
        return np.asarray(rows.real)
    first, second = (z1**2).sum(-1), (z2**2).sum(-1)
    coupled = sum(
        orthogonal_pair_covariance(first, q, s, d) for q, s in zip((second, second.conj()), products, strict=True)
    )
    return np.asarray((rows + pairs * coupled / 2).real)


def bipolar_relative_covariance(pairs: Pairs, m: int) -> np.ndarray:
    r"""Relative covariance of hyperbolic and trigonometric estimators that share their projections.

    :math:`-\frac1m(1 - \cos(|x|^2 - |y|^2))` (HRF Theorem 3.1, where :math:`\binom m2` in Eq. 36 should be m(m - 1)).
    """
    return np.asarray(-2 * np.sin((pairs.x2 - pairs.y2) / 2) ** 2 / m)


def bipolar_log_relative_mse(
    pairs: Pairs, coefficient: CoefficientMoments, m: int, d: int, *, shared: bool = False, coupling: str = "iid"
) -> np.ndarray:
    r"""Log relative error of :math:`\lambda\,\hat k_{\cosh} + (1-\lambda)\,\hat k_{\mathrm{trig}}` (HRF Theorem 3.1).

    Notes
    -----
    :math:`E\lambda^2\,\epsilon^2_{\cosh} + E(1-\lambda)^2\,\epsilon^2_{\mathrm{trig}} +
    2E\lambda(1-\lambda)\,\mathrm{Cov}`.  Sharing projections reduces the error if and only if
    :math:`E\lambda(1-\lambda) \ge 0`, which a Gaussian coefficient can violate.  Coupled projections are allowed if
    each base has its own; there is no known closed form for projections that are both shared and coupled.
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
    r"""Logarithm of the relative mean squared error of the angular hybrid (HRF Theorem D.1).

    Parameters
    ----------
    pairs : Pairs
        Squared norms of the pairs of points.
    m : int
        Number of projections of each base.
    n : int
        Number of signs that estimate the coefficient.
    d : int
        Dimension of the points.
    shared : bool, default False
        Whether both bases use the same projections, which must then be independent.
    coupling : {"iid", "orthogonal", "simplex"}, default "iid"
        Coupling of the projections.

    Returns
    -------
    ndarray
        Logarithm of :math:`\mathrm{MSE}/k^2`, one value per pair; minus infinity at angles 0 and pi for points of equal
        norm.

    Notes
    -----
    Eqs. 45 and 46 of the paper are correct; Eq. 47 has :math:`E\lambda(1-\lambda)` in place of :math:`E(1-\lambda)^2`.
    """
    check_pairs("angular_hybrid_log_relative_mse", pairs)
    n = check_count("angular_hybrid_log_relative_mse", "n", n)
    return bipolar_log_relative_mse(pairs, angular_coefficient(pairs.angle, n), m, d, shared=shared, coupling=coupling)


def gaussian_hybrid_log_relative_mse(
    pairs: Pairs, m: int, n: int, d: int, *, sigma: float, radius: Any, shared: bool = False, coupling: str = "iid"
) -> np.ndarray:
    r"""Logarithm of the relative mean squared error of the normalized Gaussian hybrid (HRF Theorem F.1).

    Parameters
    ----------
    pairs : Pairs
        Squared norms of the pairs of points.
    m : int
        Number of projections of each base.
    n : int
        Number of projections that estimate the coefficient.
    d : int
        Dimension of the points.
    sigma : float
        Inverse width of the coefficient.
    radius : float or array
        Norm for which the coefficient is normalized.
    shared : bool, default False
        Whether both bases use the same projections, which must then be independent.
    coupling : {"iid", "orthogonal", "simplex"}, default "iid"
        Coupling of the projections.

    Returns
    -------
    ndarray
        Logarithm of :math:`\mathrm{MSE}/k^2`, one value per pair; minus infinity at angle 0 but not at angle pi.

    Notes
    -----
    According to the theorem the error "remains the same with shared projections".  That holds for equal norms only;
    otherwise the covariance of HRF Theorem 3.1 contributes.
    """
    check_pairs("gaussian_hybrid_log_relative_mse", pairs)
    n = check_count("gaussian_hybrid_log_relative_mse", "n", n)
    sigma = check_positive("gaussian_hybrid_log_relative_mse", "sigma", sigma)
    radius = check_numbers("gaussian_hybrid_log_relative_mse", "radius", radius, "zero or more", lambda v: v >= 0)
    coefficient = normalized_gaussian_coefficient(pairs.minus, radius, sigma, n)
    return bipolar_log_relative_mse(pairs, coefficient, m, d, shared=shared, coupling=coupling)
