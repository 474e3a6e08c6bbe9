"""Errors of exponential features with a constant and a sign for each coordinate."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import check_count, check_option, shown
from ._orthogonal_dense import orthogonal_dense_covariance
from ._pairs import check_numbers, check_paired_rows
from ._rows import pair_fraction
from ._special_functions import log_signed_sum


def dense_exponential_log_relative_mse(
    X: Any, Y: Any, A: Any, s: Any = 1, m: int = 1, *, d: int | None = None, coupling: str = "iid"
) -> np.ndarray:
    r"""Log relative error of dense exponential features with independent or orthogonal rows.

    Parameters
    ----------
    X, Y : arrays (..., d)
        Pairs of points; leading axes broadcast.
    A : complex, or array (d,)
        The constants, with real parts below 1/8.
    s : {1, -1}, or array (d,) of them
        The signs.
    m : int
        Number of rows.
    d : int, optional
        Dimension in which the rows are drawn; that of the points by default.
    coupling : {"iid", "orthogonal"}, default "iid"
        Coupling of the rows; orthogonal rows need real constants that are not positive, and s = 1.

    Returns
    -------
    float64 array
        :math:`\log(\mathrm{MSE}/k^2)`, the same for the Gaussian and the softmax kernel.

    Notes
    -----
    With :math:`B_i = \sqrt{s_i(1-4A_i)}`, :math:`u_i = B_i(x_i + s_iy_i)` and
    :math:`c_i = e^{-(s_i+1)(x_i^2+y_i^2)}`, the second moment of one row for the Gaussian kernel is
    :math:`\frac12(\prod_i p_i + \mathrm{Re}\prod_i q_i)`,

    .. math::

        p_i = \frac{|1-4A_i|}{\sqrt{1-8\mathrm{Re}A_i}}\,e^{2(\mathrm{Re}\,u_i)^2/(1-8\mathrm{Re}A_i)}\,c_i, \qquad
        q_i = \frac{1-4A_i}{\sqrt{1-8A_i}}\,e^{2u_i^2/(1-8A_i)}\,c_i .

    For real A and s = 1 it is :math:`k^2\prod_i\frac{1+\rho_i}{2}\rho_i^{-1/2}e^{\rho_i(x_i+y_i)^2}`,
    :math:`\rho_i = 1/(1-8A_i)`.  Equal constants give `gerf_log_relative_mse`.  Orthogonal rows add
    :math:`\varphi(m, d)` times the covariance of two of them, a triple integral (`bochner.theory._orthogonal_dense`).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory import dense_exponential_log_relative_mse, positive_log_relative_mse
    >>> x, y = np.array([0.3, 0.5]), np.array([-0.1, 0.2])
    >>> V = ((x + y) ** 2).sum()
    >>> bool(np.allclose(dense_exponential_log_relative_mse(x, y, 0.0), positive_log_relative_mse(V, 1, 2)))
    True
    """
    owner = "dense_exponential_log_relative_mse"
    x, y = check_paired_rows(owner, X, Y)
    s = check_numbers(owner, "s", s, "1 or -1, or one of them for each column", lambda v: np.isin(v, (1, -1)))
    A = _check_constants(owner, A)
    if any(c.shape not in ((), x.shape[-1:]) for c in (A, s)):
        raise ValueError(
            f"{owner}: A and s must be numbers or have {x.shape[-1]} entries, got shapes {A.shape}, {s.shape}."
        )
    check_count(owner, "m", m)
    check_option(owner, "coupling", coupling, ("iid", "orthogonal"))
    z2 = (x - y) ** 2 - (s + 1) * (x**2 + y**2)  # the logarithm of c_i over that of k^2
    u = np.sqrt(s * (1 - 4 * A)) * (x + s * y)
    a = 1 - 8 * A.real
    log_p = np.log(np.abs(1 - 4 * A)) - 0.5 * np.log(a) + 2 * u.real**2 / a + z2
    log_q = np.log(1 - 4 * A) - 0.5 * np.log(1 - 8 * A) + 2 * u**2 / (1 - 8 * A) + z2
    p, q = log_p.sum(axis=-1), log_q.sum(axis=-1)
    log_moment = p + np.log1p(np.exp(q - p).real) - np.log(2)
    with np.errstate(divide="ignore"):
        rows = np.asarray(log_moment + np.log(np.maximum(-np.expm1(-np.maximum(log_moment, 0)), 0)) - np.log(m))
    d = x.shape[-1] if d is None else check_count(owner, "d", d)
    pairs = pair_fraction(m, d) if coupling == "orthogonal" else 0.0
    if not pairs:
        return rows
    if A.imag.any() or (A.real > 0).any() or (s != 1).any():
        raise ValueError(f"{owner}: orthogonal rows need s = 1 and real A of at most zero for a closed form.")
    covariance = orthogonal_dense_covariance((x + y) ** 2, np.broadcast_to(1 - 4 * A.real, x.shape[-1:]), d)
    return log_signed_sum([rows, np.zeros_like(rows)], [1.0, pairs * covariance])


def _check_constants(owner: str, A: Any) -> np.ndarray:
    """The constants as a complex array with real parts below 1/8."""
    try:
        array = np.asarray(A, dtype=np.complex128)
    except (TypeError, ValueError, RuntimeError):  # the last one: a tensor that keeps a gradient
        raise TypeError(f"{owner}: A must be a number or one for each column, got {shown(A)}.") from None
    if not (np.isfinite(array).all() and (array.real < 0.125).all()):
        raise ValueError(f"{owner}: A must be finite with real parts below 1/8, got {shown(A)}.")
    return array
