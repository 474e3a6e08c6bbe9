"""Relative errors over the sphere, and their maxima (HRF Lemma 3.4, Theorem 3.5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .coefficients import angular_coefficient
from .logarithms import log_cosh_minus_one, log_expm1_negative, log_signed_sum


def log_trigonometric_error(theta: Any, radius: Any, m: int) -> np.ndarray:
    r"""Log root relative error of trigonometric features at angle :math:`\theta` on the sphere of radius r.

    HRF Lemma 3.4: :math:`\epsilon = 2\sinh(2r^2\sin^2(\theta/2))/\sqrt{2m}`.
    """
    V = 4 * np.asarray(radius, dtype=np.float64) ** 2 * np.sin(np.asarray(theta) / 2) ** 2
    return np.asarray((log_cosh_minus_one(V) - np.log(m)) / 2)


def log_hyperbolic_error(theta: Any, radius: Any, m: int) -> np.ndarray:
    r"""Log root relative error of hyperbolic features: the trigonometric one at :math:`\pi - \theta` (HRF Lemma 3.4)."""
    return log_trigonometric_error(np.pi - np.asarray(theta, dtype=np.float64), radius, m)


def log_angular_error(theta: Any, radius: Any, m: int, n: int) -> np.ndarray:
    r"""Log root relative error of the angular hybrid (m base projections each, n signs) on the sphere of radius r."""
    moments = angular_coefficient(theta, n)
    logs = [2 * log_hyperbolic_error(theta, radius, m), 2 * log_trigonometric_error(theta, radius, m)]
    return log_signed_sum(logs, [moments.square, moments.complement]) / 2


def log_max_error(radius: Any, m: int) -> np.ndarray:
    r"""Log of the largest error of either base on the sphere of radius r.

    :math:`W(r)/\sqrt{2m}`, :math:`W = e^{2r^2}(1 - e^{-4r^2})` (HRF Lemma 3.4).
    """
    r2 = np.asarray(radius, dtype=np.float64) ** 2
    return np.asarray(2 * r2 + log_expm1_negative(4 * r2) - np.log(2 * m) / 2)


def log_max_angular_error_bound(radius: Any, m: int, n: int) -> np.ndarray:
    r"""Log of a bound on the largest error of the angular hybrid on the sphere of radius r >= 1.

    Notes
    -----
    HRF Theorem 3.5 (Eq. 27) is false as printed, because Eq. 64 has :math:`r^2` where r is right.  Corrected:

    .. math:: \epsilon_{\max} \le \frac{W(r)}{\sqrt{2m}}\sqrt{\frac{1 - 1/n}{\pi r^2} + \frac1{n\sqrt\pi\,r}},

    so the hybrid gains a factor :math:`\sqrt{nr}` at fixed n, and r only while r is small against n.
    """
    r = np.asarray(radius, dtype=np.float64)
    return np.asarray(log_max_error(r, m) + np.log((1 - 1 / n) / (np.pi * r**2) + 1 / (n * np.sqrt(np.pi) * r)) / 2)


def log_small_angle_slope(radius: Any, m: int, n: int) -> np.ndarray:
    r"""Log of the limit of :math:`\epsilon/\sqrt\theta` at 0, and of :math:`\epsilon/\sqrt{\pi-\theta}` at :math:`\pi`.

    It is :math:`W(r)/\sqrt{2\pi mn}`; the print has :math:`\sqrt{\theta - \pi}`.
    """
    return np.asarray(log_max_error(radius, m) - np.log(np.pi * n) / 2)
