r"""Errors of trigonometric, positive, hyperbolic and generalised exponential features.

Relative errors are logarithms of :math:`\mathrm{MSE}/k^2`, the same number for the Gaussian and the softmax kernel, for
any m: several blocks of d rows, the last one cut.  Pairs of rows in different blocks are independent; a pair within one
adds its covariance, which does not depend on A.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bochner._validation import check_count, check_flag, check_option

from ._coupling import conformity_gap, even_excess, trigonometric_excess
from ._optimal_positive import (
    antithetic_positive_log_relative_variance,
    check_A,
    gerf_log_gaussian_second_moment,
    gerf_log_relative_second_moment,
    optimal_positive_log_relative_variance,
)
from ._pairs import check_finite_squares, check_squares
from ._rows import coupled_pairs
from ._special_functions import log_cosh_minus_one, log_expm1


def trigonometric_log_relative_variance(minus: Any) -> np.ndarray:
    r"""Logarithm of :math:`\cosh|x-y|^2 - 1` (HRF Lemma 2.2): :math:`\frac12(1 - k^2)^2` for the Gaussian kernel.

    The lemma counts projections; with two coordinates per projection, m coordinates give twice its error.
    """
    return log_cosh_minus_one(minus)


def positive_log_relative_variance(plus: Any) -> np.ndarray:
    r"""Logarithm of :math:`e^{|x+y|^2} - 1` (HRF Lemma 2.2, for one-sided features)."""
    return log_expm1(plus)


def hyperbolic_log_relative_variance(plus: Any) -> np.ndarray:
    r"""Logarithm of :math:`\cosh|x+y|^2 - 1` (HRF Lemma 2.2), for a projection and its negative."""
    return log_cosh_minus_one(plus)


def gerf_log_relative_variance(A: complex, s: int, V: Any, d: int) -> np.ndarray:
    r"""Logarithm of the relative variance of generalised exponential features, :math:`V = |x + sy|^2`.

    At A = 0 they are trigonometric (s = -1) and positive (s = +1) features.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory._exponential_errors import gerf_log_relative_variance, positive_log_relative_variance
    >>> bool(np.isclose(gerf_log_relative_variance(0.0, 1, 0.8, 4), positive_log_relative_variance(0.8)))
    True
    """
    if A == 0:
        return positive_log_relative_variance(V) if s == 1 else trigonometric_log_relative_variance(V)
    return log_expm1(gerf_log_relative_second_moment(A, s, V, d))


def _check(owner: str, V: Any, m: int, d: int) -> tuple[np.ndarray, int, int]:
    return check_squares(owner, "squared lengths", V), check_count(owner, "m", m), check_count(owner, "d", d)


def _combine(log_single: np.ndarray, m: int, log_scale: Any, cross: np.ndarray) -> np.ndarray:
    """Log of exp(log_single)/m + exp(log_scale) cross, where the sum is not negative."""
    known = np.isfinite(log_single)
    single = np.where(known, log_single, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        correction = np.log1p(np.maximum(m * cross * np.exp(np.where(known, log_scale, 0.0) - single), -1.0))
    return np.where(known, single - np.log(m) + correction, log_single)


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
    V, m, d = _check("trigonometric_log_relative_mse", minus, m, d)
    return _combine(trigonometric_log_relative_variance(V), m, V, _trigonometric_cross(V, m, d, coupling))


def trigonometric_mse(minus: Any, m: int, d: int, coupling: str = "iid", A: complex = 0.0) -> np.ndarray:
    r"""Mean squared error of features with s = -1 for the Gaussian kernel: trigonometric, or generalised with another A.

    Notes
    -----
    The error itself in place of the logarithm of `trigonometric_log_relative_mse` or, where A is not zero,
    `gerf_log_relative_mse`:
    :math:`e^{-V}\mathrm{Var} + \sum_b f_b(\sigma_{c_b} - e^{-V})`.  At large :math:`V = |x-y|^2` the relative error is
    :math:`e^V` times a number of order one, whose digits a logarithm of the size of V does not keep.

    Examples
    --------
    >>> from bochner.theory import trigonometric_mse
    >>> float(trigonometric_mse(1e30, 8, 3, "orthogonal"))  # 1/(2m)
    0.0625
    """
    V, m, d = _check("trigonometric_mse", minus, m, d)
    A = check_A("trigonometric_mse", A)
    with np.errstate(over="ignore"):
        single = np.expm1(-V) ** 2 / 2 if A == 0 else np.exp(gerf_log_gaussian_second_moment(A, V, d)) - np.exp(-V)
    return np.asarray(np.maximum(single / m + _trigonometric_cross(V, m, d, coupling), 0.0))


def positive_log_relative_mse(plus: Any, m: int, d: int, coupling: str = "iid") -> np.ndarray:
    r"""Log relative error of positive features.

    Notes
    -----
    :math:`(e^V - 1)/m - \sum_b f_b(1 - e^{-V}\rho_{c_b})`, :math:`V = |x+y|^2` (SimRF Theorem 3.2, for any m).

    Examples
    --------
    >>> from bochner.theory import positive_log_relative_mse
    >>> iid, orthogonal, simplex = (positive_log_relative_mse(0.5, 8, 8, c) for c in ("iid", "orthogonal", "simplex"))
    >>> bool(simplex < orthogonal < iid)
    True
    """
    V, m, d = _check("positive_log_relative_mse", plus, m, d)
    return _combine(positive_log_relative_variance(V), m, 0.0, _positive_cross(V, m, d, coupling))


def hyperbolic_log_relative_mse(plus: Any, m: int, d: int, coupling: str = "iid") -> np.ndarray:
    r"""Log relative error of hyperbolic features.

    Notes
    -----
    :math:`(\cosh V - 1)/m + \sum_bf_b(e^{-V}\frac{\rho_{c_b} + \rho_{-c_b}}2 - 1)`, :math:`V = |x+y|^2`: the features
    are even, so a pair of rows at cosine c is as good as one at -c, and simplex rows are worse than orthogonal ones.  In no
    paper.
    """
    V, m, d = _check("hyperbolic_log_relative_mse", plus, m, d)
    return _combine(hyperbolic_log_relative_variance(V), m, V, _hyperbolic_cross(V, m, d, coupling))


def gerf_log_relative_mse(
    A: complex, s: int, V: Any, m: int, d: int, coupling: str = "iid", *, antithetic: bool = False
) -> np.ndarray:
    r"""Log relative error of generalised exponential features, :math:`V = |x + sy|^2`.

    Parameters
    ----------
    A : complex
        The constant of the features, with :math:`\mathrm{Re}(1 - 8A) > 0`.
    s : {-1, 1}
        The sign of y in the features.
    V : array
        Squared lengths :math:`|x + sy|^2`.
    m, d : int
        Number of projections, and dimension.
    coupling : {"iid", "orthogonal", "simplex"}
        Coupling of the projections.
    antithetic : bool
        Whether each projection is taken with its negative: in closed form for s = +1, real A and independent projections.

    Notes
    -----
    CRT Theorem 4.1, made exact: the covariance of a coupled pair does not depend on A, be it complex.  It is that of
    positive features for s = +1 and of trigonometric ones for s = -1; for simplex rows too, since the tilt of each length
    by A is undone by the scale B of its row.
    """
    V, m, d = _check("gerf_log_relative_mse", V, m, d)
    A = check_A("gerf_log_relative_mse", A)
    check_option("gerf_log_relative_mse", "s", s, (-1, 1))
    check_flag("gerf_log_relative_mse", "antithetic", antithetic)
    if antithetic:
        if s == -1 or A.imag or coupling != "iid":
            raise ValueError(
                f"gerf_log_relative_mse: antithetic features need s=1, a real A and coupling='iid' for a closed form, "
                f"got s={s}, A={A} and coupling={coupling!r}."
            )
        return np.asarray(antithetic_positive_log_relative_variance(V, d, 1 / (1 - 8 * A.real)) - np.log(m))
    single = gerf_log_relative_variance(A, s, V, d)
    if s == 1:
        return _combine(single, m, 0.0, _positive_cross(V, m, d, coupling))
    return _combine(single, m, V, _trigonometric_cross(V, m, d, coupling))


def optimal_positive_log_relative_mse(
    plus: Any, m: int, d: int, coupling: str = "iid", *, antithetic: bool = False
) -> np.ndarray:
    r"""Log relative error of optimal positive features with the best A of each pair.

    `gerf_log_relative_mse` takes one A for all pairs.  With ``antithetic`` each projection is taken with its negative, in
    closed form for independent projections.
    """
    V, m, d = _check(
        "optimal_positive_log_relative_mse",
        check_finite_squares("optimal_positive_log_relative_mse", "squared lengths", plus),
        m,
        d,
    )
    check_flag("optimal_positive_log_relative_mse", "antithetic", antithetic)
    if antithetic:
        if coupling != "iid":
            raise ValueError(
                f"optimal_positive_log_relative_mse: antithetic features need coupling='iid' for a closed form, "
                f"got coupling={coupling!r}."
            )
        return np.asarray(antithetic_positive_log_relative_variance(V, d) - np.log(m))
    return _combine(optimal_positive_log_relative_variance(V, d), m, 0.0, _positive_cross(V, m, d, coupling))
