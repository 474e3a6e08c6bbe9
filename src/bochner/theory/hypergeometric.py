"""Kummer's function 1F1(d; d/2; t), which couples two orthogonal rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .poisson_series import log_poisson_mean


def log_rising_ratio(n: int, d: int) -> np.ndarray:
    r"""Logarithms of :math:`r_k = (d)_k/(2^k (d/2)_k) = \prod_{j<k} (1 - j/(d + 2j))` for k < n."""
    j = np.arange(n - 1)
    return np.concatenate([[0.0], np.cumsum(np.log1p(-j / (d + 2 * j)))])


def log_hyp1f1(d: int, t: Any) -> np.ndarray:
    r"""Logarithm of :math:`{}_1F_1(d; d/2; t)` for t >= 0, at any d and t.

    The series :math:`\sum_k \frac{(2t)^k}{k!} r_k` (see `log_rising_ratio`) has positive terms; it is summed in logarithms.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.theory import log_hyp1f1
    >>> np.allclose(log_hyp1f1(2, 3.0), 3.0 + np.log(4.0))  # e^t (1 + t)
    True
    """
    t = np.asarray(t, dtype=np.float64)
    return np.asarray(2 * t + log_poisson_mean(2 * t, lambda n: log_rising_ratio(n, d)))


FAR = 400.0
N_TERMS = 12


def hyp1f1_negative(d: int, t: Any) -> np.ndarray:
    r""":math:`{}_1F_1(d; d/2; -t)` for t >= 0, at any t.

    For even d = 2n it is :math:`e^{-t} L_n^{(n-1)}(t)/\binom{2n-1}n`; it changes sign.  SciPy's is right to
    :math:`10^{-15}` (absolute) against 60-digit values for d up to 4096 and t up to 400; its ``hyp0f1``, by which papers
    write some of these means, is not a number at large d and small t.  From t = 400 on SciPy's may not return, and the
    asymptotic series is summed.
    """
    from scipy.special import hyp1f1

    t = np.asarray(t, dtype=np.float64)
    near = hyp1f1(d, d / 2, -np.minimum(t, FAR))
    return np.where(t > FAR, _asymptotic(d, np.maximum(t, FAR)), near)


def _asymptotic(d: int, t: np.ndarray) -> np.ndarray:
    r""":math:`\frac{\Gamma(d/2)}{\Gamma(-d/2)}t^{-d}\sum_k\frac{(d)_k(d/2+1)_k}{k!\,t^k}`, for t >= 400.

    What is left out is below :math:`e^{-t/2}`; so is all of it for even d, where the first factor is zero, and from d = 9
    on it is below :math:`10^{-18}`.
    """
    if d % 2 == 0 or d > 9:
        return np.zeros_like(t)
    k = np.arange(N_TERMS - 1)
    coefficients = np.cumprod(np.concatenate([[1.0], (d + k) * (d / 2 + 1 + k) / (k + 1)]))
    with np.errstate(under="ignore"):
        series = np.polynomial.polynomial.polyval(1 / t, coefficients)
        return np.asarray(math.gamma(d / 2) / math.gamma(-d / 2) * series * t ** -float(d))
