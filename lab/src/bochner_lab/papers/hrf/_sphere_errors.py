r"""Relative errors on a sphere, by angle and radius: trigonometric and hyperbolic features, and the angular hybrid."""

from __future__ import annotations

from typing import Any

import numpy as np

from bochner.extending import angular_coefficient, hyperbolic_log_relative_mse, trigonometric_log_relative_mse

_ANY = 2
"""A dimension; errors of independent rows do not depend on it."""


def trigonometric_log_relative_rmse(theta: Any, radius: Any, m: int) -> np.ndarray:
    r"""Logarithm of :math:`2\sinh(2r^2\sin^2(\theta/2))/\sqrt{2m}` (HRF Lemma 3.4)."""
    V = 4 * np.asarray(radius, dtype=np.float64) ** 2 * np.sin(np.asarray(theta) / 2) ** 2
    return trigonometric_log_relative_mse(V, m, _ANY) / 2


def hyperbolic_log_relative_rmse(theta: Any, radius: Any, m: int) -> np.ndarray:
    r"""Logarithm of the error of hyperbolic features, the trigonometric one at :math:`\pi - \theta`."""
    V = 4 * np.asarray(radius, dtype=np.float64) ** 2 * np.cos(np.asarray(theta, dtype=np.float64) / 2) ** 2
    return hyperbolic_log_relative_mse(V, m, _ANY) / 2


def angular_log_relative_rmse(theta: Any, radius: Any, m: int, n: int) -> np.ndarray:
    """Logarithm of the error of the angular hybrid, with m rows of each base and n signs."""
    moments = angular_coefficient(theta, n)
    with np.errstate(divide="ignore"):
        far = np.log(moments.square) + 2 * hyperbolic_log_relative_rmse(theta, radius, m)
        near = np.log(moments.complement) + 2 * trigonometric_log_relative_rmse(theta, radius, m)
    return np.asarray(np.logaddexp(far, near) / 2)


def log_max_relative_rmse(radius: Any, m: int) -> np.ndarray:
    r"""Logarithm of the largest error of either base, :math:`W(r)/\sqrt{2m}`, :math:`W = e^{2r^2}(1 - e^{-4r^2})`."""
    return trigonometric_log_relative_rmse(np.pi, radius, m)


def log_small_angle_slope(radius: Any, m: int, n: int) -> np.ndarray:
    r"""Logarithm of the limit of :math:`\epsilon/\sqrt\theta` at 0, which is that at :math:`\pi` too.

    It is :math:`W(r)/\sqrt{2\pi mn}`; at :math:`\pi` the paper divides by :math:`\sqrt{\theta - \pi}`.
    """
    return np.asarray(log_max_relative_rmse(radius, m) - np.log(np.pi * n) / 2)
