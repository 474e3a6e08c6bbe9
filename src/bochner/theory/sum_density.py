"""The law of the length of the sum of two rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .sine_law import chi_mean, sine_law


def _log_chi_density(r: np.ndarray, k: int) -> np.ndarray:
    from scipy.special import xlogy

    return np.asarray(xlogy(k - 1, r) - r**2 / 2 - (k / 2 - 1) * math.log(2) - math.lgamma(k / 2))


def sum_density(w: Any, d: int, c: float | None = None) -> np.ndarray:
    r"""Density at w of :math:`|w_i + w_j|` for two rows of law N(0, I), independent (c None) or at cosine c.

    Notes
    -----
    Independent rows: :math:`\sqrt2\,\chi_d` (SimRF Eq. 18).  At cosine c the length is :math:`r\sqrt{1 + cs}` with
    :math:`r \sim \chi_{2d}` and s of `sine_law`, which is SimRF Eq. 20 with its integral made one of s.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory import sum_density
    >>> w = np.linspace(0, 20, 2001)
    >>> bool(abs(np.trapezoid(sum_density(w, 8, -1 / 7), w) - 1) < 1e-9)
    True
    """
    w = np.asarray(w, dtype=np.float64)
    if c is None:
        return np.asarray(np.exp(_log_chi_density(w / math.sqrt(2), d)) / math.sqrt(2))
    s, weights = sine_law(d)
    scale = np.sqrt(1 + c * s)
    return np.asarray((np.exp(_log_chi_density(w[..., None] / scale, 2 * d)) / scale) @ weights)


def sum_second_moment(d: int, c: float = 0.0) -> float:
    r""":math:`E|w_i + w_j|^2 = 2d + 2c\mu_d^2` at cosine c."""
    return 2 * d + 2 * c * chi_mean(d) ** 2
