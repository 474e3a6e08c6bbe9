r"""Relative variances of one projection of trigonometric, positive, hyperbolic and generalised exponential features.

All are logarithms of :math:`\mathrm{Var}(\hat k)/k^2`, the same number for the Gaussian and the softmax kernel; the mean of
m independent projections has it less log m.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bochner._validation import check_option

from .logarithms import log_cosh_minus_one, log_expm1


def trigonometric_variance(minus: Any) -> np.ndarray:
    r"""Logarithm of :math:`\cosh|x-y|^2 - 1` (HRF Lemma 2.2): :math:`\frac12(1 - k^2)^2` for the Gaussian kernel.

    The lemma counts projections; with two coordinates a projection, m coordinates give twice its error.
    """
    return log_cosh_minus_one(minus)


def positive_variance(plus: Any) -> np.ndarray:
    r"""Logarithm of :math:`e^{|x+y|^2} - 1` (HRF Lemma 2.2, for one-sided features)."""
    return log_expm1(plus)


def hyperbolic_variance(plus: Any) -> np.ndarray:
    r"""Logarithm of :math:`\cosh|x+y|^2 - 1` (HRF Lemma 2.2), for a projection and its negative."""
    return log_cosh_minus_one(plus)


def gerf_log_second_moment(A: complex, s: int, V: Any, d: int) -> np.ndarray:
    r"""Logarithm of :math:`E[\hat Z^2]/k^2` of generalised exponential features, :math:`V = |x + sy|^2`.

    Notes
    -----
    CRT Theorem 3.2, right as printed, for any complex A with :math:`\mathrm{Re}(1 - 8A) > 0`; with w = 1 - 8A,

    .. math:: \tfrac12\left\{\mathrm{Re}\left[\left(\tfrac{1-4A}{\sqrt w}\right)^d e^{sV/w}\right] +
              \left(\tfrac{|1-4A|^2}{\mathrm{Re}\,w}\right)^{d/2}
              e^{(|1-4A| + 4s\,\mathrm{Re}A)V/\mathrm{Re}\,w}\right\},

    whose second term dominates.  The printed theorem speaks of the variance of the mean; this is that of one projection.
    """
    check_option("gerf_log_second_moment", "s", s, (-1, 1))
    V = np.asarray(V, dtype=np.float64)
    return np.asarray((V if s == -1 else 0.0) + _log_second_moment(A, s, V, d))


def gerf_log_second_moment_of_gaussian(A: complex, V: Any, d: int) -> np.ndarray:
    r"""Logarithm of :math:`E[\hat Z^2]` for the Gaussian kernel and s = -1: less than `gerf_log_second_moment` by V."""
    return _log_second_moment(A, -1, np.asarray(V, dtype=np.float64), d)


def _log_second_moment(A: complex, s: int, V: np.ndarray, d: int) -> np.ndarray:
    """Over k^2 for s = +1 and over k^2 e^V for s = -1, where a real A < 1/8 then has no exponent left in V."""
    A = complex(A)
    w = 1 - 8 * A
    if not w.real > 0:
        raise ValueError(f"gerf_log_second_moment: Re(1 - 8A) must be positive for a finite variance, got A = {A}.")
    size = abs(1 - 4 * A)
    exponent = size + 4 * A.real if s == 1 else size - (1 - 4 * A.real)  # exactly zero for real A and s = -1
    second = d / 2 * (2 * np.log(size) - np.log(w.real)) + exponent / w.real * V
    difference = d * (np.log(1 - 4 * A) - np.log(w) / 2) - d / 2 * (2 * np.log(size) - np.log(w.real))
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.exp(difference + (s / w - (size + 4 * s * A.real) / w.real) * V).real
    return np.asarray(second - np.log(2) + np.log1p(np.where(V < np.inf, ratio, 0.0)))


def gerf_variance(A: complex, s: int, V: Any, d: int) -> np.ndarray:
    r"""Logarithm of the relative variance of generalised exponential features, :math:`V = |x + sy|^2`.

    At A = 0 they are trigonometric (s = -1) and positive (s = +1) features.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory import gerf_variance, positive_variance
    >>> bool(np.isclose(gerf_variance(0.0, 1, 0.8, 4), positive_variance(0.8)))
    True
    """
    if A == 0:
        return positive_variance(V) if s == 1 else trigonometric_variance(V)
    return log_expm1(gerf_log_second_moment(A, s, V, d))
