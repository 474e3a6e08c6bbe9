r"""Mean squared errors of m projections, independent, orthogonal or simplex-coupled.

All are logarithms of :math:`\mathrm{MSE}/k^2` for any m: several blocks of d rows, the last one cut.  Pairs of rows in
different blocks are independent; a pair within one adds its covariance, which does not depend on A.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .blocks import coupled_pairs
from .conformity import conformity_gap, even_excess
from .optimal_positive import optimal_positive_variance
from .projection_variance import (
    gerf_log_second_moment_of_gaussian,
    gerf_variance,
    hyperbolic_variance,
    positive_variance,
    trigonometric_variance,
)
from .trigonometric_pair import trigonometric_excess


def _combine(log_single: np.ndarray, m: int, log_scale: Any, cross: np.ndarray) -> np.ndarray:
    """Log of exp(log_single)/m + exp(log_scale) cross, where the sum is not negative."""
    known = np.isfinite(log_single)
    single = np.where(known, log_single, 0.0)
    with np.errstate(divide="ignore"):
        correction = np.log1p(np.maximum(m * cross * np.exp(log_scale - single), -1.0))
    return np.where(known, single - np.log(m) + correction, -np.inf)


def _positive_cross(V: np.ndarray, m: int, d: int, coupling: str) -> np.ndarray:
    """Covariances over k^2 of features with s = +1, summed over coupled pairs."""
    total = np.zeros_like(V)
    for fraction, c in coupled_pairs(m, d, coupling):
        total -= fraction * conformity_gap(V, d, c)
    return total


def _hyperbolic_cross(V: np.ndarray, m: int, d: int, coupling: str) -> np.ndarray:
    """Covariances over k^2 e^V of hyperbolic features, summed over coupled pairs."""
    total = np.zeros_like(V)
    for fraction, c in coupled_pairs(m, d, coupling):
        total += fraction * even_excess(V, d, c)
    return total


def _trigonometric_cross(V: np.ndarray, m: int, d: int, coupling: str) -> np.ndarray:
    """Covariances over k^2 e^V of features with s = -1, summed over coupled pairs."""
    total = np.zeros_like(V)
    for fraction, c in coupled_pairs(m, d, coupling):
        total += fraction * trigonometric_excess(V, d, c)
    return total


def trigonometric_log_relative_mse(minus: Any, m: int, d: int, coupling: str = "iid") -> np.ndarray:
    r"""Log relative error of trigonometric features.

    Notes
    -----
    For the Gaussian kernel, :math:`\frac{(1-e^{-V})^2}{2m} + \sum_b f_b(\sigma_{c_b} - e^{-V})`, :math:`V = |x-y|^2`,
    with the fractions and cosines of `coupled_pairs` and :math:`\sigma_c` of `trigonometric_pair`.  SimRF Eqs. 26 and 74
    (Eq. 77 prints :math:`(1 + e^{-V})^2` for :math:`(1 - e^{-V})^2`).  Simplex rows are worse than orthogonal ones here.
    The single threshold of SimRF Sec. 4.1 beyond which orthogonality hurts is loose: the gap changes sign repeatedly.
    """
    V = np.asarray(minus, dtype=np.float64)
    return _combine(trigonometric_variance(V), m, V, _trigonometric_cross(V, m, d, coupling))


def trigonometric_mse(minus: Any, m: int, d: int, coupling: str = "iid", A: complex = 0.0) -> np.ndarray:
    r"""Mean squared error of features with s = -1 for the Gaussian kernel: trigonometric, or generalised with another A.

    Notes
    -----
    The error itself in place of the logarithm of `trigonometric_log_relative_mse` or, where A is not zero, `gerf_mse`:
    :math:`e^{-V}\mathrm{Var} + \sum_b f_b(\sigma_{c_b} - e^{-V})`.  At large :math:`V = |x-y|^2` the relative error is
    :math:`e^V` times a number of order one, whose digits a logarithm of the size of V does not keep.

    Examples
    --------
    >>> from bochner.theory import trigonometric_mse
    >>> float(trigonometric_mse(1e30, 8, 3, "orthogonal"))  # 1/(2m)
    0.0625
    """
    V = np.asarray(minus, dtype=np.float64)
    with np.errstate(over="ignore"):
        single = np.expm1(-V) ** 2 / 2 if A == 0 else np.exp(gerf_log_second_moment_of_gaussian(A, V, d)) - np.exp(-V)
    return np.asarray(np.maximum(single / m + _trigonometric_cross(V, m, d, coupling), 0.0))


def positive_mse(plus: Any, m: int, d: int, coupling: str = "iid") -> np.ndarray:
    r"""Log relative error of positive features.

    Notes
    -----
    :math:`(e^V - 1)/m - \sum_b f_b(1 - e^{-V}\rho_{c_b})`, :math:`V = |x+y|^2` (SimRF Theorem 3.2, for any m).

    Examples
    --------
    >>> from bochner.theory import positive_mse
    >>> error = {coupling: float(positive_mse(0.5, 8, 8, coupling)) for coupling in ("iid", "orthogonal", "simplex")}
    >>> error["simplex"] < error["orthogonal"] < error["iid"]
    True
    """
    V = np.asarray(plus, dtype=np.float64)
    return _combine(positive_variance(V), m, 0.0, _positive_cross(V, m, d, coupling))


def hyperbolic_mse(plus: Any, m: int, d: int, coupling: str = "iid") -> np.ndarray:
    r"""Log relative error of hyperbolic features.

    Notes
    -----
    :math:`(\cosh V - 1)/m + \sum_bf_b(e^{-V}\frac{\rho_{c_b} + \rho_{-c_b}}2 - 1)`, :math:`V = |x+y|^2`: the features
    are even, so a pair of rows at cosine c is as good as one at -c, and simplex rows are worse than orthogonal ones.  In no
    paper.
    """
    V = np.asarray(plus, dtype=np.float64)
    return _combine(hyperbolic_variance(V), m, V, _hyperbolic_cross(V, m, d, coupling))


def gerf_mse(A: complex, s: int, V: Any, m: int, d: int, coupling: str = "iid") -> np.ndarray:
    r"""Log relative error of generalised exponential features, :math:`V = |x + sy|^2`.

    Notes
    -----
    CRT Theorem 4.1, made exact: the covariance of a coupled pair does not depend on A, be it complex.  It is that of
    positive features for s = +1 and of trigonometric ones for s = -1; for simplex rows too, since the tilt of each length
    by A is undone by the scale B of its row.
    """
    V = np.asarray(V, dtype=np.float64)
    single = gerf_variance(A, s, V, d)
    if s == 1:
        return _combine(single, m, 0.0, _positive_cross(V, m, d, coupling))
    return _combine(single, m, V, _trigonometric_cross(V, m, d, coupling))


def optimal_positive_mse(plus: Any, m: int, d: int, coupling: str = "iid") -> np.ndarray:
    r"""Log relative error of optimal positive features with the best A of each pair (`gerf_mse` takes a common one)."""
    V = np.asarray(plus, dtype=np.float64)
    return _combine(optimal_positive_variance(V, d), m, 0.0, _positive_cross(V, m, d, coupling))
