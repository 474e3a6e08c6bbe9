"""Mean squared errors of estimated dot products (OMC Sec. 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .blocks import coupled_pairs


def _moments(X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    r""":math:`p = |x|^2|y|^2`, :math:`q = x\cdot y`, :math:`T_0 = \sum_i x_i^2y_i^2` of paired rows, and d."""
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    return (X**2).sum(-1) * (Y**2).sum(-1), (X * Y).sum(-1), (X**2 * Y**2).sum(-1), X.shape[-1]


def haar_fourth_moment(X: Any, Y: Any) -> np.ndarray:
    r""":math:`T^* = (p + 2q^2)/(d+2)`: :math:`T = E\sum_i(Mx)_i^2(My)_i^2` for a Haar matrix M."""
    p, q, _, d = _moments(X, Y)
    return np.asarray((p + 2 * q**2) / (d + 2))


def hadamard_fourth_moment(X: Any, Y: Any, blocks: int) -> np.ndarray:
    r"""T of k blocks HD: :math:`T^* + (-2/d)^k(T_0 - T^*)` (choromanski2017, in k).  HMD has that of one block.

    OMC Theorem 5.1 sums over :math:`F_2^d`; the :math:`d = 2^L` coordinates are :math:`F_2^L`.
    """
    _, _, T0, d = _moments(X, Y)
    T = haar_fourth_moment(X, Y)
    return np.asarray(T + (-2 / d) ** blocks * (T0 - T))


def kac_fourth_moment(X: Any, Y: Any, steps: int) -> np.ndarray:
    r"""T of k Givens rotations of Kac's walk: :math:`T^* + \Theta^k(T_0 - T^*)` (OMC Theorem 5.2).

    :math:`\Theta = \frac{(d-2)(2d+1)}{2d(d-1)}`.  With :math:`k = Cd\ln d` steps C = 4 gives an error no larger than
    independent rows for every x, y, m and d >= 3, and no smaller C does at large d; the paper's 2 is not safe.
    """
    _, _, T0, d = _moments(X, Y)
    T = haar_fourth_moment(X, Y)
    return np.asarray(T + ((d - 2) * (2 * d + 1) / (2 * d * (d - 1))) ** steps * (T0 - T))


def tree_fourth_moment(X: Any, Y: Any, angles: str = "uniform") -> np.ndarray:
    r"""T of a butterfly or of structured Givens products, with uniform or Beta angles; d a power of two.

    Notes
    -----
    :math:`T = d\,q_4(x, y)`; joining halves of size D,
    :math:`q_4 = e_4(q_4(x_1, y_1) + q_4(x_2, y_2)) + \frac{e_{22}}{D^2}(|x_1|^2|y_2|^2 + |x_2|^2|y_1|^2 +
    4\,x_1\cdot y_1\,x_2\cdot y_2)` with :math:`e_4 = \frac38, e_{22} = \frac18`, or for Beta angles
    :math:`\frac{D+2}{4(D+1)}, \frac D{4(D+1)}`, when it is :math:`T^*` exactly.
    """
    X, Y = np.broadcast_arrays(np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64))
    d = X.shape[-1]
    if d & (d - 1):
        raise ValueError(f"tree_fourth_moment: d must be a power of two, got {d}. Pad the rows with zeros.")
    q4, x2, y2, dot = X**2 * Y**2, X**2, Y**2, X * Y  # one entry per node of the level
    D = 1
    while q4.shape[-1] > 1:
        e4, e22 = (3 / 8, 1 / 8) if angles == "uniform" else ((D + 2) / (4 * (D + 1)), D / (4 * (D + 1)))
        l, r = np.s_[..., 0::2], np.s_[..., 1::2]
        crossed = x2[l] * y2[r] + x2[r] * y2[l] + 4 * dot[l] * dot[r]
        q4 = e4 * (q4[l] + q4[r]) + e22 / D**2 * crossed
        x2, y2, dot, D = x2[l] + x2[r], y2[l] + y2[r], dot[l] + dot[r], 2 * D
    return np.asarray(d * q4[..., 0])


def subsampled_dot_mse(X: Any, Y: Any, m: int, T: Any) -> np.ndarray:
    r"""Error of :math:`\frac dm\sum_i(Mx)_i(My)_i` over m coordinates without replacement, M orthogonal.

    :math:`\frac dm\frac{d-m}{d-1}(T - q^2/d)`, with the T of one of the constructions above; zero at m = d.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory import haar_fourth_moment, subsampled_dot_mse
    >>> x, y = np.array([1.0, 2, 0, -1]), np.array([0.5, -1, 2, 1])
    >>> float(subsampled_dot_mse(x, y, 4, haar_fourth_moment(x, y)))
    0.0
    """
    _, q, _, d = _moments(X, Y)
    return d / m * (d - m) / max(d - 1, 1) * (np.asarray(T) - q**2 / d)


def gaussian_dot_mse(X: Any, Y: Any, m: int) -> np.ndarray:
    r"""Error with m independent Gaussian rows (JLT): :math:`(p + q^2)/m`."""
    p, q, _, _ = _moments(X, Y)
    return np.asarray((p + q**2) / m)


def chi_dot_mse(X: Any, Y: Any, m: int, coupling: str = "iid") -> np.ndarray:
    r"""Error of :math:`\frac1m\sum_i(w_i\cdot x)(w_i\cdot y)` with :math:`\chi_d` lengths, for any m.

    Notes
    -----
    :math:`\frac{p+q^2}m + \sum_bf_b(d^2[c_b^2a + (1-c_b^2)b] - q^2)`, :math:`a = \frac{p+2q^2}{d(d+2)}`,
    :math:`b = \frac{q^2 - (p+2q^2)/(d+2)}{d(d-1)}`, fractions and cosines of `coupled_pairs`.
    """
    p, q, _, d = _moments(X, Y)
    T = (p + 2 * q**2) / (d + 2)
    total = (p + q**2) / m
    for fraction, c in coupled_pairs(m, d, coupling):
        total = total + fraction * (d * (c**2 * T + (1 - c**2) * (q**2 - T) / (d - 1)) - q**2)
    return np.asarray(total)
