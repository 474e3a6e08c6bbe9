"""Variances of discretely induced features: Poisson and geometric counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from .logarithms import log_expm1


def _products(X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """|x_l y_l| of paired rows, x.y, and d."""
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    return np.abs(X * Y), (X * Y).sum(-1), X.shape[-1]


def optimal_poisson_rate(X: Any, Y: Any) -> np.ndarray:
    r""":math:`\lambda^* = \sqrt{\sum_l x_l^2 y_l^2/d}`, the rate of smallest variance for each pair (CRT Eq. 12)."""
    t, _, d = _products(X, Y)
    return np.asarray(np.sqrt((t**2).sum(-1) / d))


def poisson_variance(X: Any, Y: Any, rate: Any) -> np.ndarray:
    r"""Logarithm of the relative variance of Poisson features, for paired rows.

    CRT Eq. 11 over :math:`k^2`: :math:`\exp(\lambda d + \sum_l x_l^2y_l^2/\lambda - 2x\cdot y) - 1`.  (In the features,
    Eq. 10, the print's :math:`x_i^{\omega_l}` is :math:`x_l^{\omega_l}`.)
    """
    t, dot, d = _products(X, Y)
    rate = np.asarray(rate, dtype=np.float64)
    return log_expm1(rate * d + (t**2).sum(-1) / rate - 2 * dot)


def geometric_variance(X: Any, Y: Any, p: Any) -> np.ndarray:
    r"""Logarithm of the relative variance of geometric features, for paired rows.

    CRT Eq. 13 over :math:`k^2`: :math:`p^{-d}\prod_l I_0(2|x_ly_l|/\sqrt{1-p})\,e^{-2x\cdot y} - 1`.
    """
    from scipy.special import ive

    t, dot, d = _products(X, Y)
    p = np.asarray(p, dtype=np.float64)
    z = 2 * t / np.sqrt(1 - p)[..., None]
    return log_expm1(-d * np.log(p) + (np.log(ive(0, z)) + z).sum(-1) - 2 * dot)


def optimal_geometric_p(X: Any, Y: Any) -> np.ndarray:
    r"""The p of smallest variance for each pair, the root of :math:`d/p = \sum_l \frac{I_1}{I_0}(z_l)\,t_l(1-p)^{-3/2}`.

    With :math:`t_l = |x_ly_l|` and :math:`z_l = 2t_l/\sqrt{1-p}`; the left side falls with p and the right one rises, so
    bisection (here in the logit of p) finds it.  After CRT Eq. 14, where the print says (11) for (13) twice.
    """
    from scipy.special import ive

    t, _, d = _products(X, Y)
    low, high = np.full(t.shape[:-1], -40.0), np.full(t.shape[:-1], 30.0)
    for _ in range(70):
        logit = (low + high) / 2
        p, q = 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(logit))
        z = 2 * t / np.sqrt(q)[..., None]
        rising = (ive(1, z) / ive(0, z) * t).sum(-1) * q**-1.5
        above = rising > d / p
        low, high = np.where(above, low, logit), np.where(above, logit, high)
    return np.asarray(1 / (1 + np.exp(-(low + high) / 2)))
