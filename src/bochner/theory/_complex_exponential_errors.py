"""Errors of complex exponential features."""

from __future__ import annotations

from typing import Any

import numpy as np

from bochner._validation import check_count, check_flag, check_option, shown

from ._orthogonal_pairs import orthogonal_pair_covariance
from ._pairs import check_paired_rows, pair_fraction
from ._special_functions import log_signed_sum

DIRECT_BELOW = 40.0  # from here on the -1 of a relative variance is below rounding


def complex_argument(X: Any, Y: Any, A: Any) -> np.ndarray:
    """Vector :math:`z = Ax + A^{-T}y` that determines the error of a complex exponential estimator.

    Parameters
    ----------
    X, Y : array of shape (..., d)
        Paired rows.
    A : complex, array of shape (d,) or array of shape (d, d)
        The constant of the features: a number, a diagonal or a matrix.

    Returns
    -------
    complex ndarray of shape (..., d)
        To be passed to `complex_exponential_log_relative_mse`.

    Notes
    -----
    HRF Sec. 2.3.  A = i gives :math:`z = ix - iy`, the trigonometric estimator, and A = 1 gives :math:`z = x + y`, the
    one-sided positive estimator.  The paper calls the latter the hyperbolic estimator, but that one needs A = 1 and
    antithetic pairs.
    """
    X, Y = check_paired_rows("complex_argument", X, Y)
    A, d = np.asarray(A), X.shape[-1]
    if A.dtype.kind not in "iufc" or not np.all(np.isfinite(A)):
        raise TypeError(f"complex_argument: A must be finite numbers, got {shown(A)}.")
    if A.shape not in ((), (d,), (d, d)):
        raise ValueError(
            f"complex_argument: A must be a number, a diagonal ({d},) or a matrix ({d}, {d}), got shape {A.shape}."
        )
    A = A.astype(complex)
    if A.ndim < 2:
        return np.asarray(A * X + Y / A)
    return np.asarray(X @ A.T + Y @ np.linalg.inv(A))


def _norms(z: Any) -> tuple[np.ndarray, np.ndarray]:
    """|z|^2 and the unconjugated square q(z)."""
    try:
        z = np.asarray(z, dtype=complex)
    except (TypeError, ValueError):
        raise TypeError(f"complex_exponential_log_relative_mse: z must be complex vectors, got {shown(z)}.") from None
    if not z.ndim or not np.all(np.isfinite(z)):
        raise ValueError(
            f"complex_exponential_log_relative_mse: z must be finite vectors of shape (..., d), got {shown(z)}."
        )
    return (np.abs(z) ** 2).sum(-1), (z**2).sum(-1)


def _log(value: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(value, 0.0)))


def complex_exponential_log_relative_mse(
    z: Any, m: int = 1, *, antithetic: bool = False, d: int | None = None, coupling: str = "iid"
) -> np.ndarray:
    r"""Logarithm of the relative mean squared error of a complex exponential estimator.

    Parameters
    ----------
    z : complex array of shape (..., p)
        Result of `complex_argument`.
    m : int, default 1
        Number of projections.
    antithetic : bool, default False
        Whether each projection is used together with its negative.
    d : int, optional
        Dimension in which the projections are drawn; p by default.
    coupling : {"iid", "orthogonal"}, default "iid"
        Coupling of the projections.

    Returns
    -------
    ndarray of shape (...)
        Logarithm of :math:`\mathrm{MSE}/k^2`.

    Notes
    -----
    :math:`\frac1m(\frac12(e^{|z|^2} + \mathrm{Re}\,e^{q(z)}) - 1)` with :math:`q(z) = \sum_i z_i^2`, for any complex A,
    and with antithetic pairs :math:`\frac1m(\frac12(\cosh|z|^2 + \mathrm{Re}\cosh q(z)) - 1)`.  Orthogonal rows add, for
    each pair of a block, :math:`\frac12\mathrm{Re}` of `orthogonal_pair_covariance` of z with itself and with its
    conjugate.  These closed forms are not in the papers.  HRF Eqs. 89-92 have :math:`|Ax|^2` in place of q(Ax), which
    gives a wrong mean.  The variance is zero only at z = 0, so Eq. 18 is the same condition as Eq. 17.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory import complex_argument, complex_exponential_log_relative_mse, trigonometric_log_relative_mse
    >>> x, y = np.array([0.5, 0.2]), np.array([-0.1, 0.4])
    >>> got = complex_exponential_log_relative_mse(complex_argument(x, y, 1j), 8)
    >>> bool(np.isclose(got, trigonometric_log_relative_mse(((x - y) ** 2).sum(), 8, 2)))
    True
    """
    owner = "complex_exponential_log_relative_mse"
    m = check_count(owner, "m", m)
    check_flag(owner, "antithetic", antithetic)
    check_option(owner, "coupling", coupling, ("iid", "orthogonal"))
    size, q = _norms(z)
    d = np.shape(z)[-1] if d is None else check_count(owner, "d", d)
    rows = np.asarray((_antithetic(size, q) if antithetic else _plain(size, q)) - np.log(m))
    pairs = pair_fraction(m, d) if coupling == "orthogonal" else 0.0
    if not pairs:
        return rows
    coupled = orthogonal_pair_covariance(q, q, q, d) + orthogonal_pair_covariance(q, q.conj(), size, d)
    return log_signed_sum([rows, np.zeros_like(rows)], [1.0, pairs * coupled.real / 2])


def _plain(size: np.ndarray, q: np.ndarray) -> np.ndarray:
    near = size < DIRECT_BELOW
    size_near, q_near = np.where(near, size, 0.0), np.where(near, q, 0.0)
    direct = (np.expm1(size_near) + np.expm1(q_near).real) / 2
    return np.where(near, _log(direct), log_signed_sum([size, q.real], [0.5, np.cos(q.imag) / 2]))


def _antithetic(size: np.ndarray, q: np.ndarray) -> np.ndarray:
    cosine = np.cos(q.imag) / 4
    return log_signed_sum([size, -size, q.real, -q.real, np.zeros_like(size)], [0.25, 0.25, cosine, cosine, -1.0])
