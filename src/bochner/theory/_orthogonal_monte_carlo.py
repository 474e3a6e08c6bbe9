"""Orthogonal Monte Carlo: errors of dot products and of smoothed gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from bochner._validation import check_count, check_option, check_positive

from ._pairs import check_numbers, check_paired_rows, check_vectors, coupled_pairs


def _moments(X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    r""":math:`p = |x|^2|y|^2`, :math:`q = x\cdot y`, :math:`T_0 = \sum_i x_i^2y_i^2` of paired rows, and d."""
    X, Y = check_paired_rows("dot products", X, Y)
    return (X**2).sum(-1) * (Y**2).sum(-1), (X * Y).sum(-1), (X**2 * Y**2).sum(-1), X.shape[-1]


def haar_fourth_moment(X: Any, Y: Any) -> np.ndarray:
    r""":math:`T^* = (p + 2q^2)/(d+2)`: :math:`T = E\sum_i(Mx)_i^2(My)_i^2` for a Haar matrix M."""
    p, q, _, d = _moments(X, Y)
    return np.asarray((p + 2 * q**2) / (d + 2))


def hadamard_fourth_moment(X: Any, Y: Any, blocks: int) -> np.ndarray:
    r"""Fourth moment T of a product of k Hadamard blocks HD, for `subsampled_dot_product_mse`.

    Parameters
    ----------
    X, Y : array of shape (..., d)
        Paired rows.
    blocks : int
        Number k of blocks; zero means no rotation.

    Returns
    -------
    ndarray of shape (...)
        :math:`T = E\sum_i(Mx)_i^2(My)_i^2`.

    Notes
    -----
    :math:`T^* + (-2/d)^k(T_0 - T^*)` with :math:`T^*` of a Haar matrix and :math:`T_0 = \sum_i x_i^2y_i^2`
    (choromanski2017, here for any k).  HMD has the moment of a single block.  OMC Theorem 5.1 sums over :math:`F_2^d`,
    but the :math:`d = 2^L` coordinates are :math:`F_2^L`.
    """
    blocks = check_count("hadamard_fourth_moment", "blocks", blocks, minimum=0)
    *_, d = _moments(X, Y)
    return rotated_fourth_moment(X, Y, (-2 / d) ** blocks)


def kac_fourth_moment(X: Any, Y: Any, steps: int) -> np.ndarray:
    r"""Fourth moment T of Kac's walk, a product of random Givens rotations, for `subsampled_dot_product_mse`.

    Parameters
    ----------
    X, Y : array of shape (..., d)
        Paired rows, d at least 2.
    steps : int
        Number k of Givens rotations.

    Returns
    -------
    ndarray of shape (...)
        :math:`T = E\sum_i(Mx)_i^2(My)_i^2`.

    Notes
    -----
    :math:`T^* + \Theta^k(T_0 - T^*)` with :math:`\Theta = \frac{(d-2)(2d+1)}{2d(d-1)}` (OMC Theorem 5.2).  With
    :math:`k = Cd\ln d` steps and C = 4 the error is no larger than that of independent rows for all x, y, m and d >= 3.
    No smaller C achieves this at large d; in particular, the paper's C = 2 does not.
    """
    steps = check_count("kac_fourth_moment", "steps", steps, minimum=0)
    *_, d = _moments(X, Y)
    if d == 1:
        raise ValueError("kac_fourth_moment: Kac's walk rotates pairs of coordinates, got d = 1.")
    return rotated_fourth_moment(X, Y, ((d - 2) * (2 * d + 1) / (2 * d * (d - 1))) ** steps)


def tree_fourth_moment(X: Any, Y: Any, angles: str = "uniform") -> np.ndarray:
    r"""Fourth moment T of butterfly or structured Givens rotations, for `subsampled_dot_product_mse`.

    Parameters
    ----------
    X, Y : array of shape (..., d)
        Paired rows; d must be a power of two.
    angles : {"uniform", "beta"}, default "uniform"
        Law of the angles.

    Returns
    -------
    ndarray of shape (...)
        :math:`T = E\sum_i(Mx)_i^2(My)_i^2`.

    Notes
    -----
    :math:`T = d\,q_4(x, y)`; joining halves of size D, :math:`q_4 = e_4(q_4(x_1, y_1) + q_4(x_2, y_2)) +
    \frac{e_{22}}{D^2}(|x_1|^2|y_2|^2 + |x_2|^2|y_1|^2 + 4\,x_1\cdot y_1\,x_2\cdot y_2)`.  Uniform angles have
    :math:`e_4 = \frac38` and :math:`e_{22} = \frac18`.  Beta angles have :math:`\frac{D+2}{4(D+1)}` and
    :math:`\frac D{4(D+1)}`; then T is exactly that of a Haar matrix.
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


def rotated_fourth_moment(X: Any, Y: Any, share: float) -> np.ndarray:
    r"""Fourth moment T of a rotation that leaves a share of the input's own, for `subsampled_dot_product_mse`.

    Parameters
    ----------
    X, Y : array of shape (..., d)
        Paired rows.
    share : float
        The share :math:`\theta`, see `bochner.rotations.Rotation.fourth_moment_share`.

    Returns
    -------
    ndarray of shape (...)
        :math:`T^* + \theta(T_0 - T^*)` with :math:`T^*` of a Haar matrix and :math:`T_0 = \sum_i x_i^2y_i^2`.
    """
    _, _, T0, _ = _moments(X, Y)
    T = haar_fourth_moment(X, Y)
    return np.asarray(T + share * (T0 - T))


def subsampled_dot_product_mse(X: Any, Y: Any, m: int, T: Any = None, *, lengths: str = "fixed") -> np.ndarray:
    r"""Mean squared error of a dot product estimated from m coordinates of randomly rotated vectors.

    Parameters
    ----------
    X, Y : array of shape (..., d)
        Paired rows.
    m : int
        Number of coordinates, drawn without replacement; beyond d they belong to further, independent rotations.
    T : array, optional
        Fourth moment of the rotation M, from `hadamard_fourth_moment`, `kac_fourth_moment` or `tree_fourth_moment`.
        The default is that of a Haar matrix.
    lengths : {"fixed", "gaussian"}, default "fixed"
        Whether each coordinate is multiplied by :math:`\sqrt d`, or by an independent :math:`\chi_d`.

    Returns
    -------
    ndarray of shape (...)
        Mean squared errors; zero where d divides m and lengths are fixed.

    Notes
    -----
    The estimator :math:`\frac dm\sum_i(Mx)_i(My)_i` of :math:`m \le d` coordinates has the error
    :math:`\frac dm\frac{d-m}{d-1}(T - (x\cdot y)^2/d)` (OMC Theorem 5.1).  Whole blocks contribute nothing, and a last
    block of r rows :math:`(r/m)^2` of its own error.  Lengths :math:`\chi_d` add :math:`2T/m`.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory import subsampled_dot_product_mse
    >>> x, y = np.array([1.0, 2, 0, -1]), np.array([0.5, -1, 2, 1])
    >>> float(subsampled_dot_product_mse(x, y, 4)), float(subsampled_dot_product_mse(x, y, 8))
    (0.0, 0.0)
    """
    owner = "subsampled_dot_product_mse"
    _, q, _, d = _moments(X, Y)
    m = check_count(owner, "m", m)
    check_option(owner, "lengths", lengths, ("fixed", "gaussian"))
    T = haar_fourth_moment(X, Y) if T is None else check_numbers(owner, "T", T, "positive", lambda v: v >= 0)
    if T.shape not in ((), q.shape):
        raise ValueError(f"{owner}: T must be one number or one for each pair, {q.shape}, got shape {T.shape}.")
    r = m % d
    # chi_d has E r^4 = d^2 + 2d in place of d^2: 2 T for each row, whatever block it belongs to
    cut = d * r / m**2 * (d - r) / max(d - 1, 1) * (T - q**2 / d)
    return np.asarray(cut + (2 * T / m if lengths == "gaussian" else 0.0))


def dot_product_mse(X: Any, Y: Any, m: int, coupling: str = "iid") -> np.ndarray:
    r"""Mean squared error of a dot product estimated by a random projection with Gaussian row lengths.

    Parameters
    ----------
    X, Y : array of shape (..., d)
        Paired rows.
    m : int
        Number of projections.
    coupling : {"iid", "orthogonal", "simplex"}, default "iid"
        Coupling of the projections; "iid" is the Johnson-Lindenstrauss projection.

    Returns
    -------
    ndarray of shape (...)
        Mean squared errors of :math:`\frac1m\sum_i(w_i\cdot x)(w_i\cdot y)`.

    Notes
    -----
    With :math:`p = |x|^2|y|^2` and :math:`q = x\cdot y` the error is
    :math:`\frac{p+q^2}m + \sum_bf_b(d^2[c_b^2a + (1-c_b^2)b] - q^2)`, :math:`a = \frac{p+2q^2}{d(d+2)}`,
    :math:`b = \frac{q^2 - (p+2q^2)/(d+2)}{d(d-1)}`, where :math:`f_b` is the fraction of pairs of rows at cosine
    :math:`c_b`.  Independent rows have the first term only.
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
    r"""Mean squared error of a gradient estimated by Gaussian smoothing along n random directions.

    Parameters
    ----------
    gradient : array of shape (..., d)
        Gradient a of the function.
    n : int
        Number of directions.  An antithetic estimate takes 2n evaluations of the function, a forward difference n + 1, and
        the plain estimate n.
    coupling : {"iid", "orthogonal", "simplex"}, default "iid"
        Coupling of the directions.
    estimator : {"antithetic", "forward", "plain"}, default "antithetic"
        The estimator of the gradient, as `bochner.optimize.smoothed_gradient` names it.
    sigma : float, default 1.0
        Width of the smoothing.
    hessian : array of shape (..., d, d), optional
        Hessian H of the function; zero by default.
    value : float, default 0.0
        Value :math:`f_0` of the function at the point.

    Returns
    -------
    ndarray of shape (...)
        Mean of :math:`|\hat g - \nabla F_\sigma|^2`.

    Notes
    -----
    The function is :math:`F = f_0 + a\cdot e + \frac12e^THe` around the point, and the directions have :math:`\chi_d`
    lengths.  OMC Sec. 6.3 uses these estimators; their errors are not in the papers.  The antithetic estimator has the
    error :math:`|a|^2[\frac{d+1}n + \sum_bf_b(c_b^2d - 1)]`, with the fractions and cosines of `coupled_pairs`.
    Forward differences add :math:`\frac{\sigma^2}{4n}(d+4)((\mathrm{tr}H)^2 + 2\,\mathrm{tr}H^2)`, and the plain
    estimator adds a further :math:`\frac1n(f_0^2d/\sigma^2 + f_0(d+2)\mathrm{tr}H)`, for independent and
    orthogonal directions.

    Examples
    --------
    >>> from bochner.theory import smoothing_gradient_mse
    >>> float(smoothing_gradient_mse([3.0, 0, 0, 4.0], 4, coupling="orthogonal"))  # 2 |a|^2/d
    12.5
    """
    owner = "smoothing_gradient_mse"
    check_option(owner, "estimator", estimator, ("antithetic", "forward", "plain"))
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
    if estimator == "forward":
        return np.asarray(total)
    return np.asarray(total + (value**2 * d / sigma**2 + value * (d + 2) * trace) / n)


def fixed_length_gradient_mse(gradient: Any, n: int) -> np.ndarray:
    r"""Mean squared error of the antithetic gradient estimate from orthogonal directions of length :math:`\sqrt d`.

    The function is linear or quadratic.

    Parameters
    ----------
    gradient : array of shape (..., d)
        Gradient a of the function.
    n : int
        Number of directions, in blocks of d; the last one is cut.

    Returns
    -------
    ndarray of shape (...)
        Mean of :math:`|\hat g - a|^2`.

    Notes
    -----
    With :math:`r = n \bmod d` directions in the cut block it is :math:`r(d-r)|a|^2/n^2`: :math:`(d/n - 1)|a|^2` below d, and
    zero where d divides n.  On other functions such directions are biased.  The nodes of an orthoplex quadrature
    (`bochner.projections.Quadrature`) have the same error, and no bias on any function.

    Examples
    --------
    >>> from bochner.theory import fixed_length_gradient_mse
    >>> [float(fixed_length_gradient_mse([3.0, 0, 0, 4.0], n)) for n in (1, 4, 5, 8)]
    [75.0, 0.0, 3.0, 0.0]
    """
    a = check_vectors("fixed_length_gradient_mse", gradient)
    n, d = check_count("fixed_length_gradient_mse", "n", n), a.shape[-1]
    return np.asarray((n % d) * (d - n % d) / n**2 * (a**2).sum(-1))
