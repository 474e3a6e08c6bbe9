r"""Errors of trigonometric, positive, hyperbolic and generalised exponential features.

Relative errors are logarithms of :math:`\mathrm{MSE}/k^2`, which is the same for the Gaussian and the softmax kernel.
The m projections are drawn in blocks of d rows, the last of which may be smaller.  Rows in different blocks are
independent; each pair of rows within a block adds its covariance, which does not depend on A.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bochner._validation import check_count, check_flag, check_option

from ._coupling import conformity_gap, even_excess, norm_coupled_cross, trigonometric_excess
from ._optimal_positive import (
    antithetic_positive_log_relative_variance,
    check_A,
    gerf_log_gaussian_second_moment,
    gerf_log_relative_second_moment,
    optimal_positive_log_relative_variance,
)
from ._pairs import check_finite_squares, check_squares, coupled_pairs
from ._special_functions import log_cosh_minus_one, log_expm1


def trigonometric_log_relative_variance(minus: Any) -> np.ndarray:
    r"""Logarithm of :math:`\cosh|x-y|^2 - 1` (HRF Lemma 2.2).

    For the Gaussian kernel the variance is :math:`\frac12(1 - k^2)^2`.  The lemma counts projections.  Each projection
    gives two coordinates, so m coordinates have twice this error.
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
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # no covariance times an infinite scale is none
        relative = np.where(cross == 0, 0.0, m * cross * np.exp(np.where(known, log_scale, 0.0) - single))
        correction = np.log1p(np.maximum(relative, -1.0))
    return np.where(known, single - np.log(m) + correction, log_single)


_SMALL = 1e-60
"""Squared lengths below which an error proportional to their square is extrapolated: the square would underflow."""


def _above_underflow(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squared lengths that are not too small, and the logarithm of the factor by which errors of the others are lower.

    Errors of even features are proportional to V^2 up to a relative difference of V.
    """
    small = (V > 0) & (V < _SMALL)
    with np.errstate(divide="ignore"):
        return np.where(small, _SMALL, V), np.where(small, 2 * (np.log(V) - np.log(_SMALL)), 0.0)


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
    if isinstance(coupling, str) and coupling == "norm-coupled":
        return norm_coupled_cross(V, m, d)
    total = np.zeros_like(V)
    for fraction, c in coupled_pairs(m, d, coupling):
        total += fraction * trigonometric_excess(V, d, c)
    return total


def trigonometric_log_relative_mse(minus: Any, m: int, d: int, coupling: str = "iid") -> np.ndarray:
    r"""Logarithm of the relative mean squared error of trigonometric (cosine and sine) features.

    Parameters
    ----------
    minus : array
        Squared distances :math:`V = |x-y|^2`.
    m : int
        Number of projections.
    d : int
        Dimension of the points.
    coupling : {"iid", "orthogonal", "simplex"}, default "iid"
        Coupling of the projections.

    Returns
    -------
    ndarray
        Logarithm of :math:`\mathrm{MSE}/k^2`, of the shape of ``minus``.

    See Also
    --------
    trigonometric_mse : The error itself, which keeps its digits at large distances.

    Notes
    -----
    For the Gaussian kernel the error is :math:`\frac{(1-e^{-V})^2}{2m} + \sum_b f_b(\sigma_{c_b} - e^{-V})`, with the
    fractions :math:`f_b` and cosines :math:`c_b` of `coupled_pairs` and :math:`\sigma_c` of `trigonometric_pair` (SimRF
    Eqs. 26 and 74; Eq. 77 has :math:`(1 + e^{-V})^2` in place of :math:`(1 - e^{-V})^2`).  Simplex rows have a larger
    error than orthogonal ones here.  SimRF Sec. 4.1 gives a single threshold beyond which orthogonality increases the
    error; it is loose, as the difference changes sign repeatedly.
    """
    V, m, d = _check("trigonometric_log_relative_mse", minus, m, d)
    V, below = _above_underflow(V)
    return np.asarray(
        _combine(trigonometric_log_relative_variance(V), m, V, _trigonometric_cross(V, m, d, coupling)) + below
    )


def trigonometric_mse(minus: Any, m: int, d: int, coupling: str = "iid", A: complex = 0.0) -> np.ndarray:
    r"""Mean squared error of trigonometric features for the Gaussian kernel, or of generalised ones with s = -1.

    Use it in place of the relative errors at large distances, where the logarithm loses digits.

    Parameters
    ----------
    minus : array
        Squared distances :math:`V = |x-y|^2`.
    m : int
        Number of projections.
    d : int
        Dimension of the points.
    coupling : {"iid", "orthogonal", "simplex"}, default "iid"
        Coupling of the projections.
    A : complex, default 0.0
        Constant of generalised exponential features; zero gives trigonometric features.

    Returns
    -------
    ndarray
        Mean squared errors, of the shape of ``minus``.

    See Also
    --------
    trigonometric_log_relative_mse : Logarithm of the relative error, for A = 0.
    gerf_log_relative_mse : Logarithm of the relative error, for any A.

    Notes
    -----
    The error is :math:`e^{-V}\mathrm{Var} + \sum_b f_b(\sigma_{c_b} - e^{-V})`.  At large V the relative error is
    :math:`e^V` times a number of order one, whose digits are lost in a logarithm of size V.

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
    r"""Logarithm of the relative mean squared error of positive features.

    Parameters
    ----------
    plus : array
        Squared lengths :math:`V = |x+y|^2`.
    m : int
        Number of projections.
    d : int
        Dimension of the points.
    coupling : {"iid", "orthogonal", "simplex"}, default "iid"
        Coupling of the projections.

    Returns
    -------
    ndarray
        Logarithm of :math:`\mathrm{MSE}/k^2`, of the shape of ``plus``.

    Notes
    -----
    :math:`(e^V - 1)/m - \sum_b f_b(1 - e^{-V}\rho_{c_b})` (SimRF Theorem 3.2, extended to any m).

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
    r"""Logarithm of the relative mean squared error of hyperbolic features.

    Parameters
    ----------
    plus : array
        Squared lengths :math:`V = |x+y|^2`.
    m : int
        Number of projections.
    d : int
        Dimension of the points.
    coupling : {"iid", "orthogonal", "simplex"}, default "iid"
        Coupling of the projections.

    Returns
    -------
    ndarray
        Logarithm of :math:`\mathrm{MSE}/k^2`, of the shape of ``plus``.

    Notes
    -----
    :math:`(\cosh V - 1)/m + \sum_bf_b(e^{-V}\frac{\rho_{c_b} + \rho_{-c_b}}2 - 1)`.  Hyperbolic features are even, so
    rows at cosine c and at cosine -c are equivalent, and simplex rows have a larger error than orthogonal ones.  This
    result is not in the papers.
    """
    V, m, d = _check("hyperbolic_log_relative_mse", plus, m, d)
    V, below = _above_underflow(V)
    return np.asarray(_combine(hyperbolic_log_relative_variance(V), m, V, _hyperbolic_cross(V, m, d, coupling)) + below)


def gerf_log_relative_mse(
    A: complex, s: int, V: Any, m: int, d: int, coupling: str = "iid", *, antithetic: bool = False
) -> np.ndarray:
    r"""Logarithm of the relative mean squared error of generalised exponential features.

    Parameters
    ----------
    A : complex
        The constant of the features, with :math:`\mathrm{Re}(1 - 8A) > 0`.
    s : {-1, 1}
        The sign of y in the features.
    V : array
        Squared lengths :math:`|x + sy|^2`.
    m : int
        Number of projections.
    d : int
        Dimension of the points.
    coupling : {"iid", "orthogonal", "simplex"}, default "iid"
        Coupling of the projections.
    antithetic : bool, default False
        Whether each projection is used together with its negative.  This has a closed form for s = +1, real A and
        independent projections.

    Returns
    -------
    ndarray
        Logarithm of :math:`\mathrm{MSE}/k^2`, of the shape of ``V``.

    Notes
    -----
    This is an exact form of CRT Theorem 4.1: the covariance of a coupled pair does not depend on A, even if A is
    complex.  It is that of positive features for s = +1 and that of trigonometric features for s = -1.  The same holds
    for simplex rows, since the tilt of each length by A is undone by the scale B of its row.
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
    r"""Logarithm of the relative mean squared error of optimal positive features, with the best A for each pair.

    A feature map has one A for all pairs; use `gerf_log_relative_mse` for its error.

    Parameters
    ----------
    plus : array
        Squared lengths :math:`V = |x+y|^2`, finite.
    m : int
        Number of projections.
    d : int
        Dimension of the points.
    coupling : {"iid", "orthogonal", "simplex"}, default "iid"
        Coupling of the projections.
    antithetic : bool, default False
        Whether each projection is used together with its negative; requires independent projections.

    Returns
    -------
    ndarray
        Logarithm of :math:`\mathrm{MSE}/k^2`, of the shape of ``plus``.

    See Also
    --------
    optimal_A : The constant that is used for each pair.
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
