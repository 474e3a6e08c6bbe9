"""Orthogonal Monte Carlo: errors of dot products and of smoothed gradients, and the constant of the discrepancy."""

from __future__ import annotations

from typing import Any

import numpy as np

from bochner._validation import check_count, check_option, check_positive

from ._pairs import check_numbers, check_paired_rows, check_vectors
from ._rows import coupled_pairs


def _moments(X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    r""":math:`p = |x|^2|y|^2`, :math:`q = x\cdot y`, :math:`T_0 = \sum_i x_i^2y_i^2` of paired rows, and d."""
    X, Y = check_paired_rows("dot products", X, Y)
    return (X**2).sum(-1) * (Y**2).sum(-1), (X * Y).sum(-1), (X**2 * Y**2).sum(-1), X.shape[-1]


def haar_fourth_moment(X: Any, Y: Any) -> np.ndarray:
    r""":math:`T^* = (p + 2q^2)/(d+2)`: :math:`T = E\sum_i(Mx)_i^2(My)_i^2` for a Haar matrix M."""
    p, q, _, d = _moments(X, Y)
    return np.asarray((p + 2 * q**2) / (d + 2))


def hadamard_fourth_moment(X: Any, Y: Any, blocks: int) -> np.ndarray:
    r"""T of k blocks HD: :math:`T^* + (-2/d)^k(T_0 - T^*)` (choromanski2017, in k).  HMD has that of one block.

    OMC Theorem 5.1 sums over :math:`F_2^d`; the :math:`d = 2^L` coordinates are :math:`F_2^L`.
    """
    blocks = check_count("hadamard_fourth_moment", "blocks", blocks, minimum=0)
    _, _, T0, d = _moments(X, Y)
    T = haar_fourth_moment(X, Y)
    return np.asarray(T + (-2 / d) ** blocks * (T0 - T))


def kac_fourth_moment(X: Any, Y: Any, steps: int) -> np.ndarray:
    r"""T of k Givens rotations of Kac's walk: :math:`T^* + \Theta^k(T_0 - T^*)` (OMC Theorem 5.2).

    :math:`\Theta = \frac{(d-2)(2d+1)}{2d(d-1)}`.  With :math:`k = Cd\ln d` steps C = 4 gives an error no larger than
    independent rows for every x, y, m and d >= 3, and no smaller C does at large d; the paper's 2 is not safe.
    """
    steps = check_count("kac_fourth_moment", "steps", steps, minimum=0)
    _, _, T0, d = _moments(X, Y)
    if d == 1:
        raise ValueError("kac_fourth_moment: Kac's walk rotates pairs of coordinates, got d = 1.")
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
    check_option("tree_fourth_moment", "angles", angles, ("uniform", "beta"))
    X, Y = np.broadcast_arrays(*check_paired_rows("tree_fourth_moment", X, Y))
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


def subsampled_dot_product_mse(X: Any, Y: Any, m: int, T: Any = None) -> np.ndarray:
    r"""Error of :math:`\frac dm\sum_i(Mx)_i(My)_i` over m coordinates without replacement, M orthogonal.

    :math:`\frac dm\frac{d-m}{d-1}(T - q^2/d)`, zero at m = d, with the fourth moment T of
    `hadamard_fourth_moment`, `kac_fourth_moment` or `tree_fourth_moment`; None means that of a Haar matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory import subsampled_dot_product_mse
    >>> x, y = np.array([1.0, 2, 0, -1]), np.array([0.5, -1, 2, 1])
    >>> float(subsampled_dot_product_mse(x, y, 4))
    0.0
    """
    _, q, _, d = _moments(X, Y)
    if check_count("subsampled_dot_product_mse", "m", m) > d:
        raise ValueError(f"subsampled_dot_product_mse: m must be at most the {d} coordinates there are, got {m}.")
    T = (
        haar_fourth_moment(X, Y)
        if T is None
        else check_numbers("subsampled_dot_product_mse", "T", T, "positive", lambda v: v >= 0)
    )
    if T.shape not in ((), q.shape):
        raise ValueError(
            f"subsampled_dot_product_mse: T must be one number or one for each pair, {q.shape}, got shape {T.shape}."
        )
    return np.asarray(d / m * (d - m) / max(d - 1, 1) * (T - q**2 / d))


def dot_product_mse(X: Any, Y: Any, m: int, coupling: str = "iid") -> np.ndarray:
    r"""Error of :math:`\frac1m\sum_i(w_i\cdot x)(w_i\cdot y)` with :math:`\chi_d` lengths, for any m.

    Notes
    -----
    :math:`\frac{p+q^2}m + \sum_bf_b(d^2[c_b^2a + (1-c_b^2)b] - q^2)`, :math:`a = \frac{p+2q^2}{d(d+2)}`,
    :math:`b = \frac{q^2 - (p+2q^2)/(d+2)}{d(d-1)}`, where a pair of rows at
    cosine c_b is a fraction f_b of all.  Independent rows (JLT) have the first term alone.
    """
    m = check_count("dot_product_mse", "m", m)
    p, q, _, d = _moments(X, Y)
    T = (p + 2 * q**2) / (d + 2)
    total = (p + q**2) / m
    for fraction, c in coupled_pairs(m, d, coupling):
        total = total + fraction * (d * (c**2 * T + (1 - c**2) * (q**2 - T) / (d - 1)) - q**2)
    return np.asarray(total)


def smoothing_gradient_mse(
    gradient: Any,
    n: int,
    *,
    coupling: str = "iid",
    estimator: str = "antithetic",
    sigma: float = 1.0,
    hessian: Any = None,
    value: Any = 0.0,
) -> np.ndarray:
    r"""Mean of :math:`|\hat g - \nabla F_\sigma|^2` for n Gaussian directions with :math:`\chi_d` lengths.

    Parameters
    ----------
    gradient : array of shape (..., d)
        a.
    n : int
        Directions; an antithetic estimate takes 2n evaluations, differences n + 1, the plain one n.
    coupling : {"iid", "orthogonal", "simplex"}
        Coupling of the directions.
    estimator : {"antithetic", "difference", "forward"}
        Which of the three.
    sigma : float
        Width of the smoothing.
    hessian : array of shape (..., d, d), optional
        H; none means zero.
    value : float
        f_0.

    Notes
    -----
    On :math:`F = f_0 + a\cdot e + \frac12e^THe` around the point (OMC Sec. 6.3 uses these estimators; the errors are in no
    paper).  The antithetic one has :math:`|a|^2[\frac{d+1}n + \sum_bf_b(c_b^2d - 1)]`, fractions and cosines of
    `coupled_pairs`; forward differences add :math:`\frac{\sigma^2}{4n}(d+4)((\mathrm{tr}H)^2 + 2\,\mathrm{tr}H^2)`, and
    the plain forward estimator a further :math:`\frac1n(f_0^2d/\sigma^2 + f_0(d+2)\mathrm{tr}H)`, for independent and
    orthogonal directions.

    Examples
    --------
    >>> from bochner.theory import smoothing_gradient_mse
    >>> float(smoothing_gradient_mse([3.0, 0, 0, 4.0], 4, coupling="orthogonal"))  # 2 |a|^2/d
    12.5
    """
    owner = "smoothing_gradient_mse"
    check_option(owner, "estimator", estimator, ("antithetic", "difference", "forward"))
    a = check_vectors("smoothing_gradient_mse", gradient)
    n, d, sigma = check_count(owner, "n", n), a.shape[-1], check_positive(owner, "sigma", sigma)
    pairs = coupled_pairs(n, d, coupling)
    total = (a**2).sum(-1) * ((d + 1) / n + sum(f * (c**2 * d - 1) for f, c in pairs))
    if estimator == "antithetic":
        return np.asarray(total)
    if coupling == "simplex":
        raise ValueError("smoothing_gradient_mse: simplex directions need estimator='antithetic' for a closed form.")
    H = np.zeros((d, d)) if hessian is None else check_numbers(owner, "hessian", hessian, "finite numbers", np.isfinite)
    if H.shape[-2:] != (d, d):
        raise ValueError(f"{owner}: hessian must have shape (..., {d}, {d}), got {H.shape}.")
    value = check_numbers(owner, "value", value, "finite numbers", np.isfinite)
    trace, square = np.trace(H, axis1=-2, axis2=-1), (H * np.swapaxes(H, -1, -2)).sum((-1, -2))
    total = total + sigma**2 / (4 * n) * (d + 4) * (trace**2 + 2 * square)
    if estimator == "difference":
        return np.asarray(total)
    return np.asarray(total + (value**2 * d / sigma**2 + value * (d + 2) * trace) / n)


def fixed_length_gradient_mse(gradient: Any, n: int) -> np.ndarray:
    r"""Error on linear F of n <= d orthogonal directions of length :math:`\sqrt d`.

    It is :math:`(d/n - 1)|a|^2`, zero at n = d; on other F such directions are biased.
    """
    a = check_vectors("fixed_length_gradient_mse", gradient)
    if check_count("fixed_length_gradient_mse", "n", n) > a.shape[-1]:
        raise ValueError(f"fixed_length_gradient_mse: n must be at most d = {a.shape[-1]}, got {n}.")
    return np.asarray((a.shape[-1] / n - 1) * (a**2).sum(-1))


def log_uniform_similarity(d: int, rate: Any) -> np.ndarray:
    r"""Logarithm of :math:`c(d, \lambda) = E\,e^{-\lambda\,\mathrm{angle}(x, U)}`, U uniform on the sphere, any unit x.

    Notes
    -----
    :math:`c = e^{-\pi\lambda/2}\,\Gamma(d/2)^2/|\Gamma(d/2 + i\lambda/2)|^2`.  The squared discrepancy of
    the law of X to the uniform one is :math:`E\,e^{-\lambda\,\mathrm{angle}(X, X')} - c` (OMC Sec. 6.1,
    where the constant is not given); the unbiased estimate of it may be negative.

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
