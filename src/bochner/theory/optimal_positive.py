"""Optimal positive features (OPRF): their constant and their variance."""

from __future__ import annotations

from typing import Any

import numpy as np

from .logarithms import log_expm1


def optimal_rho(V: Any, d: int) -> np.ndarray:
    r"""The minimiser :math:`\rho^* = 1/(1 - 8A^*)` of the variance of positive features with real A.

    Notes
    -----
    CRT Theorem 3.3: the positive root of :math:`2V\rho^2 + (2V + d)\rho - d = 0`, :math:`V = |x+y|^2`.  The printed form
    (Eq. 7) is 0/0 at V = 0 and cancels near it, up to :math:`\rho > 1` and unbounded features; this one does neither:
    :math:`2d/((2V + d) + \sqrt{(2V+d)^2 + 8dV})`.

    Examples
    --------
    >>> from bochner.theory import optimal_rho
    >>> float(optimal_rho(0.0, 64))
    1.0
    """
    V = np.asarray(V, dtype=np.float64)
    return np.asarray(2 * d / ((2 * V + d) + np.hypot(2 * V + d, np.sqrt(8 * d * V))))


def optimal_A(V: Any, d: int) -> np.ndarray:
    r""":math:`A^* = (1 - 1/\rho^*)/8 \le 0` of CRT Theorem 3.3."""
    return (1 - 1 / optimal_rho(V, d)) / 8


def _log_alpha(rho: np.ndarray, d: int) -> np.ndarray:
    return np.asarray(d * np.log((1 + rho) / 2) - d / 2 * np.log(rho))


def rho_log_second_moment(rho: Any, V: Any, d: int) -> np.ndarray:
    r"""Logarithm of :math:`E[\hat Z^2]/k^2`: :math:`d\log\frac{1+\rho}2 - \frac d2\log\rho + \rho V` (CRT Theorem 3.3)."""
    rho, V = np.asarray(rho, dtype=np.float64), np.asarray(V, dtype=np.float64)
    return np.asarray(_log_alpha(rho, d) + rho * V)


def optimal_positive_variance(V: Any, d: int) -> np.ndarray:
    r"""Logarithm of the relative variance of optimal positive features, each pair at its own :math:`\rho^*`."""
    return log_expm1(rho_log_second_moment(optimal_rho(V, d), V, d))


def antithetic_optimal_positive_variance(V: Any, d: int, rho: Any = None) -> np.ndarray:
    r"""The same for the mean over a projection and its negative.

    Notes
    -----
    :math:`\alpha(e^{\rho V} + e^{-V})/2 - 1` with :math:`\alpha = ((1+\rho)^2/(4\rho))^{d/2}`; it is below that of two
    independent projections whenever :math:`\alpha < e^V`, as it is at :math:`\rho^*`.  At :math:`\rho = 1` it is that of
    hyperbolic features.  In no paper.
    """
    V = np.asarray(V, dtype=np.float64)
    rho = optimal_rho(V, d) if rho is None else np.asarray(rho, dtype=np.float64)
    return log_expm1(_log_alpha(rho, d) + np.logaddexp(rho * V, -V) - np.log(2))
