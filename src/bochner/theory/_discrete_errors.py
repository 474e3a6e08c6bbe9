"""Errors of discretely induced features, Poisson and geometric counts, and the parameters that minimise them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bochner._validation import check_count, check_flag

from ._pairs import check_numbers, check_paired_rows, check_squares
from ._special_functions import log_expm1


def optimal_poisson_rate(mean_x2: Any, mean_y2: Any, *, separate: bool = False) -> np.ndarray:
    r"""Poisson rate that minimises the variance of Poisson features.

    Parameters
    ----------
    mean_x2, mean_y2 : array of shape (..., d)
        Second moments of each coordinate over the data, or the squares themselves for a single pair of points.
    separate : bool, default False
        Whether each coordinate has its own rate.

    Returns
    -------
    ndarray of shape (...), or (..., d) if separate
        The optimal rates.

    Notes
    -----
    :math:`\lambda^* = \sqrt{\frac1d\sum_l E x_l^2\,E y_l^2}` (CRT Eq. 12), and
    :math:`\lambda_l^* = \sqrt{E x_l^2\,E y_l^2}` for separate rates.  For a single pair of points no law of the counts has
    a smaller variance than the latter.

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
    check_flag("optimal_poisson_rate", "separate", separate)
    return np.asarray(np.sqrt(x2) * np.sqrt(y2) if separate else np.sqrt((x2 * y2).mean(-1)))


def optimal_geometric_p(X: Any, Y: Any) -> float:
    r"""Success probability that minimises the mean log second moment of geometric features over paired rows.

    For a single pair of points this is the probability of smallest variance.

    Parameters
    ----------
    X, Y : array of shape (..., d)
        Pairs of points.

    Returns
    -------
    float
        Between 0 and 1; it tends to 1 if no pair has a coordinate in which both points are non-zero.

    Notes
    -----
    It is the root of :math:`d/p = \overline{\sum_l \frac{I_1}{I_0}(z_l)\,t_l}\,(1-p)^{-3/2}`, where the bar is a mean
    over pairs, :math:`t_l = |x_ly_l|` and :math:`z_l = 2t_l/\sqrt{1-p}`.  The left side decreases with p and the right
    side increases.  CRT Eq. 14 puts averages of :math:`|x_ly_l|` into the variance of a single pair.  Since
    :math:`\log I_0` is convex, this underestimates the variance and gives too large a p.  (The text there also refers
    twice to Eq. 11 instead of Eq. 13.)

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


def poisson_log_relative_mse(X: Any, Y: Any, rate: Any, m: int = 1, *, separate: bool = False) -> np.ndarray:
    r"""Logarithm of the relative mean squared error of Poisson features with independent rows.

    Parameters
    ----------
    X, Y : array of shape (..., d)
        Paired rows; leading axes broadcast.
    rate : float or array
        Poisson rate :math:`\lambda > 0`, common to all pairs or one value per pair.
    m : int, default 1
        Number of rows of the feature map.
    separate : bool, default False
        Whether ``rate`` is an array (d,) of one rate for each coordinate.

    Returns
    -------
    ndarray
        Logarithm of :math:`\mathrm{MSE}/k^2`, one value per pair.

    Notes
    -----
    :math:`\frac1m(\exp(\sum_l[\lambda_l + x_l^2y_l^2/\lambda_l] - 2x\cdot y) - 1)` (CRT Eq. 11, divided by :math:`k^2`).
    In the definition of the features, Eq. 10, :math:`x_i^{\omega_l}` should be :math:`x_l^{\omega_l}`.
    """
    check_flag("poisson_log_relative_mse", "separate", separate)
    X, Y, rate = _check("poisson_log_relative_mse", "rate", X, Y, rate, np.inf, separate=separate)
    m = check_count("poisson_log_relative_mse", "m", m)
    root = np.sqrt(rate if separate else np.asarray(rate)[..., None])
    excess = ((root - X * Y / root) ** 2).sum(-1)  # lambda + t^2/lambda - 2t is a square: nothing cancels
    return np.asarray(log_expm1(excess) - np.log(m))


def discrete_log_relative_mse(X: Any, Y: Any, probabilities: Any, m: int = 1) -> np.ndarray:
    r"""Logarithm of the relative mean squared error of discrete features with any law of the counts.

    Parameters
    ----------
    X, Y : array of shape (..., d)
        Paired rows; leading axes broadcast.
    probabilities : array of shape (K,) or (d, K)
        Positive probabilities of the counts 0, 1, ..., K - 1, of all coordinates or of each; counts from K on contribute
        what is below rounding, or the estimate would be biased.
    m : int, default 1
        Number of rows of the feature map.

    Returns
    -------
    ndarray
        Logarithm of :math:`\mathrm{MSE}/k^2`, one value per pair.

    Notes
    -----
    :math:`\frac1m(\prod_l\sum_k \frac{(x_ly_l)^{2k}}{k!^2p_{lk}}\,e^{-2x\cdot y} - 1)` (CRT Eq. 9, for any
    law).  For a single pair the best law is Poisson of rate :math:`|x_ly_l|`, by the inequality of Cauchy and Schwarz.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import poisson
    >>> from bochner.theory import discrete_log_relative_mse, poisson_log_relative_mse
    >>> x, y = np.array([0.5, -0.3]), np.array([0.2, 0.7])
    >>> law = poisson.pmf(np.arange(30), 0.2)
    >>> bool(np.isclose(discrete_log_relative_mse(x, y, law), poisson_log_relative_mse(x, y, 0.2)))
    True
    """
    from scipy.special import gammaln, logsumexp

    owner = "discrete_log_relative_mse"
    X, Y = check_paired_rows(owner, X, Y)
    m = check_count(owner, "m", m)
    p = check_numbers(owner, "probabilities", probabilities, "positive", lambda v: v > 0)
    if p.ndim not in (1, 2) or (p.ndim == 2 and len(p) != X.shape[-1]):
        raise ValueError(f"{owner}: probabilities must have shape (K,) or ({X.shape[-1]}, K), got {p.shape}.")
    k, products = np.arange(p.shape[-1]), X * Y
    with np.errstate(divide="ignore"):
        logs = 2 * np.log(np.abs(products))[..., None]
    terms = np.where(k == 0, 0.0, k * np.where(np.isinf(logs) & (k == 0), 0.0, logs)) - 2 * gammaln(k + 1) - np.log(p)
    return np.asarray(log_expm1(logsumexp(terms, axis=-1).sum(-1) - 2 * products.sum(-1)) - np.log(m))


def geometric_log_relative_mse(X: Any, Y: Any, p: Any, m: int = 1) -> np.ndarray:
    r"""Logarithm of the relative mean squared error of geometric features with independent rows.

    Parameters
    ----------
    X, Y : array of shape (..., d)
        Paired rows; leading axes broadcast.
    p : float or array
        Success probability, common to all pairs or one value per pair.
    m : int, default 1
        Number of rows of the feature map.

    Returns
    -------
    ndarray
        Logarithm of :math:`\mathrm{MSE}/k^2`, one value per pair.

    Notes
    -----
    :math:`\frac1m(p^{-d}\prod_l I_0(2|x_ly_l|/\sqrt{1-p})\,e^{-2x\cdot y} - 1)` (CRT Eq. 13, divided by :math:`k^2`).
    """
    from scipy.special import i0e

    X, Y, p = _check("geometric_log_relative_mse", "p", X, Y, p, 1.0)
    m = check_count("geometric_log_relative_mse", "m", m)
    products = X * Y
    z = 2 * np.abs(products) / np.sqrt(1 - p)[..., None]
    log_second_moment = -X.shape[-1] * np.log(p) + (np.log(i0e(z)) + z).sum(-1)
    return np.asarray(log_expm1(log_second_moment - 2 * products.sum(-1)) - np.log(m))


def _check(
    owner: str, name: str, X: Any, Y: Any, value: Any, below: float, *, separate: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, Y = check_paired_rows(owner, X, Y)
    need = "positive" if below == np.inf else "between 0 and 1"
    value = check_numbers(owner, name, value, need, lambda v: (v > 0) & (v < below))
    shape = np.broadcast_shapes(X.shape, Y.shape)[:-1]
    if separate:
        if value.shape != X.shape[-1:]:
            raise ValueError(
                f"{owner}: {name} must have one number for each of {X.shape[-1]} columns, got {value.shape}."
            )
        return X, Y, value
    if value.shape not in ((), shape):
        raise ValueError(f"{owner}: {name} must be one number or one for each pair, {shape}, got shape {value.shape}.")
    return X, Y, value
