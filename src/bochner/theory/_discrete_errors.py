"""Errors of discretely induced features, Poisson and geometric counts, and the parameters that minimise them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bochner._validation import check_count

from ._pairs import check_numbers, check_paired_rows, check_squares
from ._special_functions import log_expm1


def optimal_poisson_rate(mean_x2: Any, mean_y2: Any) -> np.ndarray:
    r"""The Poisson rate of smallest variance, :math:`\lambda^* = \sqrt{\frac1d\sum_l E x_l^2\,E y_l^2}` (CRT Eq. 12).

    Parameters
    ----------
    mean_x2, mean_y2 : arrays of shape (..., d)
        Second moments of each coordinate over the data; the squares themselves for one pair of points.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory import optimal_poisson_rate
    >>> float(optimal_poisson_rate(np.array([1.0, 4.0]), np.array([2.0, 0.0])))
    1.0
    """
    x2, y2 = check_paired_rows("optimal_poisson_rate", mean_x2, mean_y2)
    check_squares("optimal_poisson_rate", "mean_x2", x2)
    check_squares("optimal_poisson_rate", "mean_y2", y2)
    return np.asarray(np.sqrt((x2 * y2).mean(-1)))


def optimal_geometric_p(X: Any, Y: Any) -> float:
    r"""The success probability of smallest mean log second moment over paired rows; for one pair, of smallest variance.

    Parameters
    ----------
    X, Y : arrays of shape (..., d)
        Pairs of points.

    Returns
    -------
    float
        Between 0 and 1; it tends to 1 where no pair shares a coordinate.

    Notes
    -----
    The root of :math:`d/p = \overline{\sum_l \frac{I_1}{I_0}(z_l)\,t_l}\,(1-p)^{-3/2}`, a mean over pairs, with
    :math:`t_l = |x_ly_l|` and :math:`z_l = 2t_l/\sqrt{1-p}`; the left side falls with p and the right one rises.  After
    CRT Eq. 14, where the print says (11) for (13) twice and puts averages of :math:`|x_ly_l|` into the variance of one pair:
    since :math:`\log I_0` is convex that underestimates, and p comes out too large.

    Examples
    --------
    >>> from bochner.theory import optimal_geometric_p
    >>> round(optimal_geometric_p([[1.0, 0.5]], [[0.5, 1.0]]), 3)
    0.649
    """
    from scipy.optimize import brentq
    from scipy.special import i0e, i1e

    X, Y = check_paired_rows("optimal_geometric_p", X, Y)
    if not X.size or not Y.size:
        raise ValueError("optimal_geometric_p: expected at least one pair of at least one coordinate.")
    t, d = np.abs(X * Y), X.shape[-1]

    def rise(logit: float) -> float:
        p, q = 1 / (1 + math.exp(-logit)), 1 / (1 + math.exp(logit))
        z = 2 * t / math.sqrt(q)
        return float(math.log(max(float((i1e(z) / i0e(z) * t).sum(-1).mean()) * q**-1.5, 1e-300)) - math.log(d / p))

    low, high = -40.0, 30.0
    if rise(high) < 0:
        logit = high
    else:
        logit = low if rise(low) > 0 else brentq(rise, low, high, xtol=1e-13, rtol=1e-13)
    return 1 / (1 + math.exp(-logit))


def poisson_log_relative_mse(X: Any, Y: Any, rate: Any, m: int = 1) -> np.ndarray:
    r"""Log relative error of Poisson features with m independent rows, for pairs of rows of X and Y.

    CRT Eq. 11 over :math:`k^2`: :math:`\frac1m(\exp(\lambda d + \sum_l x_l^2y_l^2/\lambda - 2x\cdot y) - 1)`, with a rate
    :math:`\lambda` for all pairs or one for each.  (In the features, Eq. 10, the print's :math:`x_i^{\omega_l}` is
    :math:`x_l^{\omega_l}`.)
    """
    X, Y, rate = _check("poisson_log_relative_mse", "rate", X, Y, rate, np.inf)
    m = check_count("poisson_log_relative_mse", "m", m)
    products = X * Y
    return np.asarray(log_expm1(rate * X.shape[-1] + (products**2).sum(-1) / rate - 2 * products.sum(-1)) - np.log(m))


def geometric_log_relative_mse(X: Any, Y: Any, p: Any, m: int = 1) -> np.ndarray:
    r"""Log relative error of geometric features with m independent rows, for pairs of rows of X and Y.

    CRT Eq. 13 over :math:`k^2`: :math:`\frac1m(p^{-d}\prod_l I_0(2|x_ly_l|/\sqrt{1-p})\,e^{-2x\cdot y} - 1)`, with a
    success probability p for all pairs or one for each.
    """
    from scipy.special import i0e

    X, Y, p = _check("geometric_log_relative_mse", "p", X, Y, p, 1.0)
    m = check_count("geometric_log_relative_mse", "m", m)
    products = X * Y
    z = 2 * np.abs(products) / np.sqrt(1 - p)[..., None]
    log_second_moment = -X.shape[-1] * np.log(p) + (np.log(i0e(z)) + z).sum(-1)
    return np.asarray(log_expm1(log_second_moment - 2 * products.sum(-1)) - np.log(m))


def _check(
    owner: str, name: str, X: Any, Y: Any, value: Any, below: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, Y = check_paired_rows(owner, X, Y)
    need = "positive" if below == np.inf else "between 0 and 1"
    value = check_numbers(owner, name, value, need, lambda v: (v > 0) & (v < below))
    shape = np.broadcast_shapes(X.shape, Y.shape)[:-1]
    if value.shape not in ((), shape):
        raise ValueError(f"{owner}: {name} must be one number or one for each pair, {shape}, got shape {value.shape}.")
    return X, Y, value
