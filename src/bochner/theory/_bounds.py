"""The largest relative errors of trigonometric, hyperbolic and hybrid features on a sphere (HRF)."""

from __future__ import annotations

from typing import Any

import numpy as np

from bochner._validation import check_count

from ._hybrid_errors import angular_coefficient
from ._pairs import check_numbers
from ._special_functions import log_cosh_minus_one, log_expm1_negative, log_signed_sum


def trigonometric_log_relative_rmse(theta: Any, radius: Any, m: int) -> np.ndarray:
    r"""Log root relative error of trigonometric features at angle :math:`\theta` on the sphere of radius r.

    HRF Lemma 3.4: :math:`\epsilon = 2\sinh(2r^2\sin^2(\theta/2))/\sqrt{2m}`.
    """
    V = 4 * np.asarray(radius, dtype=np.float64) ** 2 * np.sin(np.asarray(theta) / 2) ** 2
    return np.asarray((log_cosh_minus_one(V) - np.log(m)) / 2)


def hyperbolic_log_relative_rmse(theta: Any, radius: Any, m: int) -> np.ndarray:
    r"""Log root relative error of hyperbolic features: the trigonometric one at :math:`\pi - \theta` (HRF Lemma 3.4)."""
    return trigonometric_log_relative_rmse(np.pi - np.asarray(theta, dtype=np.float64), radius, m)


def angular_log_relative_rmse(theta: Any, radius: Any, m: int, n: int) -> np.ndarray:
    r"""Log root relative error of the angular hybrid (m base projections each, n signs) on the sphere of radius r."""
    moments = angular_coefficient(theta, n)
    logs = [2 * hyperbolic_log_relative_rmse(theta, radius, m), 2 * trigonometric_log_relative_rmse(theta, radius, m)]
    return log_signed_sum(logs, [moments.square, moments.complement]) / 2


def log_max_relative_rmse(radius: Any, m: int) -> np.ndarray:
    r"""Log of the largest error of either base on the sphere of radius r.

    :math:`W(r)/\sqrt{2m}`, :math:`W = e^{2r^2}(1 - e^{-4r^2})` (HRF Lemma 3.4).
    """
    r2 = np.asarray(radius, dtype=np.float64) ** 2
    return np.asarray(2 * r2 + log_expm1_negative(4 * r2) - np.log(2 * m) / 2)


def log_max_angular_error_bound(radius: Any, m: int, n: int) -> np.ndarray:
    r"""Logarithm of a bound on the largest relative error of the angular hybrid on a sphere of radius at least one.

    Parameters
    ----------
    radius : float or array
        Radius r of the sphere, at least one.
    m : int
        Number of projections of each base.
    n : int
        Number of signs that estimate the coefficient.

    Returns
    -------
    ndarray
        Logarithm of the bound on the root relative error, of the shape of ``radius``.

    Notes
    -----
    HRF Theorem 3.5 (Eq. 27) is false as published, because Eq. 64 has :math:`r^2` in place of r.  The corrected bound
    is

    .. math:: \epsilon_{\max} \le \frac{W(r)}{\sqrt{2m}}\sqrt{\frac{1 - 1/n}{\pi r^2} + \frac1{n\sqrt\pi\,r}}.

    The hybrid therefore gains a factor of :math:`\sqrt{nr}` at fixed n, and a factor of r only while r is small against
    n.
    """
    owner = "log_max_angular_error_bound"
    r = check_numbers(
        owner, "radius", radius, "finite and at least one, where the bound holds", lambda v: (v >= 1) & (v < 1e100)
    )
    m, n = check_count(owner, "m", m), check_count(owner, "n", n)
    return np.asarray(
        log_max_relative_rmse(r, m) + np.log((1 - 1 / n) / (np.pi * r**2) + 1 / (n * np.sqrt(np.pi) * r)) / 2
    )
