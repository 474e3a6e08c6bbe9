"""Kummer's function 1F1(d; d/2; t), which couples two orthogonal rows."""

from __future__ import annotations

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


def hyp1f1_negative(d: int, t: Any) -> np.ndarray:
    r""":math:`{}_1F_1(d; d/2; -t)` for t >= 0.

    For even d = 2n it is :math:`e^{-t} L_n^{(n-1)}(t)/\binom{2n-1}n`; it changes sign.  SciPy's is right to
    :math:`10^{-15}` (absolute) against 60-digit values for d up to 4096 and t up to 900; its ``hyp0f1``, by which papers
    write some of these means, is not a number at large d and small t.
    """
    from scipy.special import hyp1f1

    return np.asarray(hyp1f1(d, d / 2, -np.asarray(t, dtype=np.float64)))
