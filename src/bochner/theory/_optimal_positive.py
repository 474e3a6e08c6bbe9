r"""Generalised exponential features of one projection: their second moment, and the constants A that minimise it.

With :math:`V = |x + sy|^2`, second moments relative to :math:`k^2` are the same number for the Gaussian and the softmax
kernel.
"""

from __future__ import annotations

import cmath
import math
import numbers
from functools import lru_cache
from typing import Any

import numpy as np

from bochner._validation import check_count, check_option, shown

from ._pairs import check_finite_squares
from ._special_functions import log_expm1


def check_A(owner: str, A: Any) -> complex:
    """Return the constant of generalised exponential features as a complex number, of finite variance."""
    if isinstance(A, bool) or not isinstance(A, numbers.Complex):
        raise TypeError(f"{owner}: A must be a number, got {shown(A)}.")
    value = complex(A)
    if not (cmath.isfinite(value) and (1 - 8 * value).real > 0):
        raise ValueError(f"{owner}: Re(1 - 8A) must be positive for a finite variance, got A = {value}.")
    return value


def gerf_log_relative_second_moment(A: complex, s: int, V: Any, d: int) -> np.ndarray:
    r"""Logarithm of :math:`E[\hat Z^2]/k^2` of generalised exponential features, :math:`V = |x + sy|^2`.

    Notes
    -----
    CRT Theorem 3.2, for any complex A with :math:`\mathrm{Re}(1 - 8A) > 0`; with w = 1 - 8A,

    .. math:: \tfrac12\left\{\mathrm{Re}\left[\left(\tfrac{1-4A}{\sqrt w}\right)^d e^{sV/w}\right] +
              \left(\tfrac{|1-4A|^2}{\mathrm{Re}\,w}\right)^{d/2}
              e^{(|1-4A| + 4s\,\mathrm{Re}A)V/\mathrm{Re}\,w}\right\},

    whose second term dominates.  The published theorem gives the variance of the mean; this is the second moment of a
    single projection.
    """
    V = np.asarray(V, dtype=np.float64)
    return np.asarray((V if s == -1 else 0.0) + _log_second_moment(A, s, V, d))


def gerf_log_gaussian_second_moment(A: complex, V: Any, d: int) -> np.ndarray:
    r"""Logarithm of :math:`E[\hat Z^2]` for the Gaussian kernel and s = -1: the relative second moment minus V."""
    return _log_second_moment(A, -1, np.asarray(V, dtype=np.float64), d)


def _log_second_moment(A: complex, s: int, V: np.ndarray, d: int) -> np.ndarray:
    """Log second moment over k^2 for s = +1 and over k^2 e^V for s = -1, where a real A < 1/8 has no exponent left in V."""
    w = 1 - 8 * A
    size = abs(1 - 4 * A)
    exponent = size + 4 * A.real if s == 1 else size - (1 - 4 * A.real)  # exactly zero for real A and s = -1
    growth = exponent / w.real * V if exponent else np.zeros_like(V)
    second = d / 2 * (2 * np.log(size) - np.log(w.real)) + growth
    difference = d * (np.log(1 - 4 * A) - np.log(w) / 2) - d / 2 * (2 * np.log(size) - np.log(w.real))
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.exp(difference + (s / w - (size + 4 * s * A.real) / w.real) * V).real
    return np.asarray(second - np.log(2) + np.log1p(np.where(V < np.inf, ratio, 0.0)))


def optimal_rho(V: Any, d: int) -> np.ndarray:
    r"""Optimal constant :math:`\rho^* = 1/(1 - 8A^*)` of positive features, which minimises their variance over real A.

    Parameters
    ----------
    V : array
        Squared lengths :math:`|x+y|^2`, finite, or their mean over pairs.
    d : int
        Dimension of the points.

    Returns
    -------
    ndarray
        Values in (0, 1], of the shape of ``V``.

    See Also
    --------
    optimal_A : The same optimum as a value of A.

    Notes
    -----
    CRT Theorem 3.3: the positive root of :math:`2V\rho^2 + (2V + d)\rho - d = 0`.  The published form (Eq. 7) is 0/0 at
    V = 0 and suffers from cancellation near it, which can give :math:`\rho > 1` and unbounded features.  The equivalent
    form :math:`2d/((2V + d) + \sqrt{(2V+d)^2 + 8dV})` that is used here avoids both.

    Examples
    --------
    >>> from bochner.theory import optimal_rho
    >>> float(optimal_rho(0.0, 64))
    1.0
    """
    V, d = check_finite_squares("optimal_rho", "V", V), check_count("optimal_rho", "d", d)
    return np.asarray(2 * d / ((2 * V + d) + np.hypot(2 * V + d, np.sqrt(8 * d * V))))


def optimal_A(V: Any, d: int) -> np.ndarray:
    r"""Optimal real constant :math:`A^* = (1 - 1/\rho^*)/8 \le 0` of positive features (CRT Theorem 3.3).

    Parameters
    ----------
    V : array
        Squared lengths :math:`|x+y|^2`, finite, or their mean over pairs.
    d : int
        Dimension of the points.

    Returns
    -------
    ndarray
        Values of A, of the shape of ``V``.
    """
    return (1 - 1 / optimal_rho(V, d)) / 8


def optimal_gerf(V: float, s: int, d: int) -> tuple[float, complex]:
    r"""Constant A that minimises the variance of generalised exponential features, real or complex.

    Parameters
    ----------
    V : float
        :math:`|x + sy|^2`, or its mean over pairs.
    s : {-1, 1}
        The sign of y in the features.
    d : int
        Dimension of the points.

    Returns
    -------
    log_relative_second_moment : float
        The logarithm of :math:`E[\hat Z^2]/k^2` at the optimum.
    A : complex
        The optimum; for s = +1 it is real and equal to `optimal_A`.

    Notes
    -----
    The search runs over (log Re(1 - 8A), Im A) from real and complex starting points.  The best A found has always been
    real; the imaginary part is dropped unless it lowers the variance.

    Examples
    --------
    >>> from bochner.theory import optimal_A, optimal_gerf
    >>> optimal_gerf(3.0, 1, 8)[1].real == float(optimal_A(3.0, 8))
    True
    """
    check_option("optimal_gerf", "s", s, (-1, 1))
    squares = check_finite_squares("optimal_gerf", "V", V)
    if squares.ndim:
        raise ValueError(f"optimal_gerf: V must be one number, got shape {squares.shape}; A is common to all pairs.")
    return _minimum(float(squares), s, check_count("optimal_gerf", "d", d))


@lru_cache(maxsize=256)  # redraws on the same data ask for the same numbers
def _minimum(V: float, s: int, d: int) -> tuple[float, complex]:
    from scipy.optimize import minimize, minimize_scalar

    largest = 4 - math.log(optimal_rho(V, d))  # beyond the real optimum of s = 1, which is the more extreme one

    def A_of(t: float, b: float) -> complex:
        return complex((1 - math.exp(min(max(t, -6.0), largest))) / 8, b)

    def objective(p: Any) -> float:
        return float(gerf_log_relative_second_moment(A_of(float(p[0]), float(p[1])), s, V, d))

    real = minimize_scalar(
        lambda t: objective((t, 0.0)), bounds=(-6.0, largest), method="bounded", options={"xatol": 1e-10}
    )
    best, A = float(real.fun), A_of(float(real.x), 0.0)
    if s == 1:  # the closed form
        A = complex(optimal_A(V, d))
        best = float(gerf_log_relative_second_moment(A, s, V, d))
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 400}
    for start in ((real.x, 0.05), (real.x + 0.5, 0.5)):
        found = minimize(objective, start, method="Nelder-Mead", options=options)
        if found.fun < best - 1e-9 * max(1.0, abs(best)):
            best, A = float(found.fun), A_of(*found.x)
    return best, A


def _log_alpha(rho: np.ndarray, d: int) -> np.ndarray:
    return np.asarray(d * np.log((1 + rho) / 2) - d / 2 * np.log(rho))


def rho_log_relative_second_moment(rho: Any, V: Any, d: int) -> np.ndarray:
    r"""Logarithm of :math:`E[\hat Z^2]/k^2`: :math:`d\log\frac{1+\rho}2 - \frac d2\log\rho + \rho V` (CRT Theorem 3.3)."""
    rho, V = np.asarray(rho, dtype=np.float64), np.asarray(V, dtype=np.float64)
    return np.asarray(_log_alpha(rho, d) + rho * V)


def optimal_positive_log_relative_variance(V: Any, d: int) -> np.ndarray:
    r"""Logarithm of the relative variance of optimal positive features, with each pair at its own :math:`\rho^*`."""
    return log_expm1(rho_log_relative_second_moment(optimal_rho(V, d), V, d))


def antithetic_positive_log_relative_variance(V: Any, d: int, rho: Any = None) -> np.ndarray:
    r"""Logarithm of the relative variance of the mean over a projection and its negative.

    Notes
    -----
    :math:`\alpha(e^{\rho V} + e^{-V})/2 - 1` with :math:`\alpha = ((1+\rho)^2/(4\rho))^{d/2}`.  It is below the
    variance of two independent projections whenever :math:`\alpha < e^V`, which holds at :math:`\rho^*`.  At
    :math:`\rho = 1` it is the variance of hyperbolic features.  This result is not in the papers.
    """
    V = np.asarray(V, dtype=np.float64)
    rho = optimal_rho(V, d) if rho is None else np.asarray(rho, dtype=np.float64)
    return log_expm1(_log_alpha(rho, d) + np.logaddexp(rho * V, -V) - np.log(2))
