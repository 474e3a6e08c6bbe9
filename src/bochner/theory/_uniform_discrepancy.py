"""Distance of a law of directions from the uniform law on the sphere, and its constant in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bochner._validation import check_count, check_fraction, check_points, check_positive

from ._pairs import check_numbers


def log_uniform_similarity(d: int, rate: Any) -> np.ndarray:
    r"""Logarithm of the mean similarity of a point to a uniform point on the sphere, the constant of the discrepancy.

    Parameters
    ----------
    d : int
        Dimension.
    rate : float or array
        Rate :math:`\lambda \ge 0` of the similarity :math:`e^{-\lambda\,\mathrm{angle}(x, y)}`.

    Returns
    -------
    ndarray
        Logarithm of :math:`c(d, \lambda) = E\,e^{-\lambda\,\mathrm{angle}(x, U)}`, U uniform on the sphere and x any
        unit vector.

    Notes
    -----
    :math:`c = e^{-\pi\lambda/2}\,\Gamma(d/2)^2/|\Gamma(d/2 + i\lambda/2)|^2`.  The squared discrepancy between the law
    of X and the uniform law is :math:`E\,e^{-\lambda\,\mathrm{angle}(X, X')} - c` (OMC Sec. 6.1, which does not give
    the constant).  Its unbiased estimate may be negative.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory import log_uniform_similarity
    >>> bool(np.isclose(np.exp(log_uniform_similarity(2, 1.0)), (1 - np.exp(-np.pi)) / np.pi))
    True
    """
    from scipy.special import gammaln, loggamma

    d = check_count("log_uniform_similarity", "d", d)
    rate = check_numbers(
        "log_uniform_similarity", "rate", rate, "a finite number, zero or more", lambda v: (v >= 0) & (v < np.inf)
    )
    return np.asarray(-np.pi * rate / 2 + 2 * gammaln(d / 2) - 2 * loggamma(d / 2 + 0.5j * rate).real)


@dataclass(frozen=True)
class UniformDiscrepancy:
    """Squared distance of a law from the uniform law on the sphere.

    Attributes
    ----------
    value : float
        Unbiased estimate; it may be negative.
    standard_error : float
        Its standard error.
    low, high : float
        Confidence interval.
    """

    value: float
    standard_error: float
    low: float
    high: float


def uniform_mmd(X: Any, rate: float = 1.0, *, confidence: float = 0.95) -> UniformDiscrepancy:
    r"""Squared maximum mean discrepancy between the law of random directions and the uniform law on the sphere.

    Parameters
    ----------
    X : array of shape (n, d)
        Independent vectors of the law, n at least 4; only their directions count.
    rate : float, default 1.0
        :math:`\lambda` of the kernel :math:`K = e^{-\lambda\,\mathrm{angle}(x, y)}`.
    confidence : float, default 0.95
        Coverage of the confidence interval.

    Returns
    -------
    UniformDiscrepancy
        The estimate, its standard error and the interval.

    See Also
    --------
    bochner.monte_carlo.haar_distance : distance of a rotation from uniform, on a vector.

    Notes
    -----
    OMC Eq. 9 is :math:`E K(X, X') - 2 E K(X, U) + E K(U, U')`; the last two terms are the constant c of
    `log_uniform_similarity`, so that it equals :math:`E K(X, X') - c`.  The first is estimated by the mean over pairs of
    different rows, a U-statistic, whose variance :math:`\frac{4(n-2)\zeta_1 + 2\zeta_2}{n(n-1)}` has unbiased estimates of
    :math:`\zeta_1 = \mathrm{Var}\,E[K|X]` and :math:`\zeta_2 = \mathrm{Var}\,K`.  The first is zero for the uniform law; its
    estimate is kept from being negative, which makes intervals near that law about a fifth too wide.  The interval is
    that of the normal law.

    References
    ----------
    OMC Eq. 9, gretton2012.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory import uniform_mmd
    >>> found = uniform_mmd(np.random.default_rng(0).standard_normal((500, 8)))
    >>> found.low < 0 < found.high
    True
    """
    from scipy.special import ndtri

    owner = "uniform_mmd"
    X, confidence = check_points(owner, X), check_fraction(owner, "confidence", confidence)
    X, n = np.asarray(X, dtype=np.float64), len(X)
    if X.ndim != 2 or n < 4:
        raise ValueError(f"{owner}: X must be a matrix of at least 4 rows, got shape {X.shape}.")
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    if not norms.all():
        raise ValueError(f"{owner}: rows of X must not be zero; a zero vector has no direction.")
    rate = check_positive(owner, "rate", rate)
    sums, squares = _similarities(X / norms, rate)
    pairs, total = n * (n - 1), sums.sum()
    mean = total / pairs
    joint = (sums**2 - squares).sum() / (pairs * (n - 2))  # E K(X, Y) K(X, Z)
    squared = (total**2 - 4 * (sums**2).sum() + 2 * squares.sum()) / (pairs * (n - 2) * (n - 3))  # (E K)^2
    zeta1, zeta2 = max(joint - squared, 0.0), max(squares.sum() / pairs - squared, 0.0)
    error = math.sqrt((4 * (n - 2) * zeta1 + 2 * zeta2) / pairs)
    value = float(mean - math.exp(log_uniform_similarity(X.shape[1], rate)))
    half = float(ndtri((1 + confidence) / 2)) * error
    return UniformDiscrepancy(value, error, value - half, value + half)


def _similarities(U: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Sums over the other rows of the similarity and of its square, for each unit row."""
    sums, squares = np.empty(len(U)), np.empty(len(U))
    step = max((1 << 20) // len(U), 1)
    for start in range(0, len(U), step):
        own = np.arange(start, min(start + step, len(U)))
        K = np.exp(-rate * np.arccos(np.clip(U[own] @ U.T, -1, 1)))
        K[own - start, own] = 0.0
        sums[own], squares[own] = K.sum(axis=1), (K**2).sum(axis=1)
    return sums, squares
