"""Errors of exponential features with a constant and a sign for each coordinate, on independent and on orthogonal rows."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from .._validation import check_count, check_option, shown
from ._pairs import check_numbers, check_paired_rows, pair_fraction
from ._special_functions import log_signed_sum

_WIDE = 8.0  # the integrand is 1/sqrt(d) wide; beyond this many widths it is below 1e-12


def orthogonal_dense_covariance(squares: Any, a: Any, dim: int) -> np.ndarray:
    r"""Relative covariance of dense positive features at two orthogonal rows.

    Parameters
    ----------
    squares : array of shape (..., p)
        :math:`(x_i + y_i)^2` for each coordinate.
    a : array of shape (p,)
        :math:`1 - 4A_i`, at least 1.
    dim : int
        Dimension in which the rows are drawn, at least p and at least 2; padded coordinates have A = 0 and x = y = 0.

    Returns
    -------
    ndarray of shape (...)
        :math:`E[f(w_1)f(w_2)]/k^2 - 1` with :math:`E f(w) = k`; zero for independent rows.

    Notes
    -----
    With :math:`f(w) \propto \exp\sum_i[2A_iw_i^2 + b_iw_i]`, :math:`b_i^2 = a_i(x_i+y_i)^2`, and rows of independent
    :math:`\chi_d` lengths r, the constraint is a density of independent rows,

    .. math::

        E_\perp[f f] = \frac{1}{p_0}\,E[r_1r_2\,\delta(w_1\cdot w_2)\,f(w_1)f(w_2)], \qquad
        p_0 = \frac{\Gamma(d/2)}{\sqrt\pi\,\Gamma((d-1)/2)},

    with :math:`\delta(u) = \int e^{itu}dt/2\pi` and
    :math:`r = r^2\frac{2}{\sqrt\pi}\int_0^\infty e^{-\tau^2r^2}d\tau`.  For given t and :math:`\tau_1, \tau_2` the mean is
    Gaussian, coordinate by coordinate, with the precision

    .. math:: M_i = \begin{pmatrix}a_i + 2\tau_1^2 & -it\\ -it & a_i + 2\tau_2^2\end{pmatrix},

    and the three integrals are Gauss-Legendre sums.  Equal constants give the gap of CRT Theorem 4.1, made exact: the sums
    are within 1e-5 of it at d = 2, and within 1e-8 from d = 4 on, for :math:`|x+y|^2 \le 12`; beyond, the error of single
    rows is larger by orders of magnitude.  This formula is not in the papers.
    """
    squares, a = np.asarray(squares, dtype=np.float64), np.asarray(a, dtype=np.float64)
    full = np.concatenate([a, np.ones(dim - len(a))])  # padded coordinates
    t, one, two, weights = _nodes(dim, float(full.mean()))
    p, q = full[:, None] + 2 * one**2, full[:, None] + 2 * two**2  # (dim, nodes)
    det = p * q + t**2
    own = slice(0, len(a))
    scale = full[:, None]
    # b^2 = a (x + y)^2, over the square of the mean of one row
    exponent = (scale * (p + q + 2j * t) / (2 * det))[own] - 1
    constant = -0.5 * np.log(det).sum(axis=0) + np.log(full).sum()
    first, second = scale * ((q + 1j * t) / det) ** 2, scale * ((p + 1j * t) / det) ** 2
    cross = 4 * scale * (q + 1j * t) * (p + 1j * t) / det**2 * (1j * t / det)
    r1, r2, both = (q / det).sum(axis=0), (p / det).sum(axis=0), (2 * (1j * t / det) ** 2).sum(axis=0)
    flat = squares.reshape(-1, squares.shape[-1])
    result = np.empty(len(flat))
    step = max(1, (1 << 22) // len(weights))
    for i in range(0, len(flat), step):
        s = flat[i : i + step]
        lengths = (r1 + s @ first[own]) * (r2 + s @ second[own]) + both + s @ cross[own]
        result[i : i + step] = ((np.exp(s @ exponent + constant) * lengths) @ weights).real - 1
    return result.reshape(squares.shape[:-1])


@lru_cache(maxsize=32)
def _nodes(dim: int, mean: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Nodes of t > 0, tau_1 and tau_2, and weights that hold all constants."""
    n = 32 if dim < 8 else 20 if dim < 32 else 16
    x, w = np.polynomial.legendre.leggauss(n)
    top = min(math.pi / 2, _WIDE / math.sqrt(dim + 2))
    angle, slope = (x + 1) / 2 * top, w / 2 * top / np.cos((x + 1) / 2 * top) ** 2
    tau, dtau = np.tan(angle) * math.sqrt(mean / 2), slope * math.sqrt(mean / 2)
    t, dt = np.tan(angle) * mean, slope * mean
    first, second = np.triu_indices(n)  # both lengths are alike: half of the square
    pairs = dtau[first] * dtau[second] * np.where(first == second, 1.0, 2.0)
    log_p0 = math.lgamma(dim / 2) - math.lgamma((dim - 1) / 2) - 0.5 * math.log(math.pi)
    constant = (4 / math.pi) / math.pi * math.exp(-log_p0)  # t and -t are conjugates: twice dt / 2 pi
    T, one, two = np.repeat(t, len(pairs)), np.tile(tau[first], n), np.tile(tau[second], n)
    return T, one, two, constant * np.outer(dt, pairs).ravel()


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
    :math:`\varphi(m, d)` times the covariance of two of them, a triple integral (`orthogonal_dense_covariance`).

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
