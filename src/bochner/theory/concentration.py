"""Tail bounds of bounded positive features (CRT Theorem 4.2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .pairs import Pairs


def log_supremum(pairs: Pairs, A: float, d: int, *, sharp: bool = True) -> np.ndarray:
    r"""Logarithm of the largest value of one positive feature product with A < 0, for the Gaussian kernel.

    Notes
    -----
    :math:`\sup f_1f_2 = (1-4A)^{d/2}\exp(-N + \frac{(1-4A)|x+y|^2}{8|A|})`, :math:`N = |x|^2 + |y|^2`; without ``sharp``,
    the bound :math:`(1-4A)^{d/2}e^{N/(4|A|)}` of the paper.
    """
    if not A < 0:
        raise ValueError(f"log_supremum: A must be negative, or features are unbounded, got {A}.")
    N = pairs.x2 + pairs.y2
    exponent = -N - (1 - 4 * A) * pairs.plus / (8 * A) if sharp else -N / (4 * A)
    return np.asarray(d / 2 * np.log1p(-4 * A) + exponent)


def log_tail_bound(pairs: Pairs, epsilon: Any, m: int, A: float, d: int, *, sharp: bool = True) -> np.ndarray:
    r"""Logarithm of a bound on :math:`P(|\hat k - k| \ge \epsilon)`, m independent projections, Gaussian kernel, A < 0.

    Notes
    -----
    Hoeffding's :math:`2\exp(-2m\epsilon^2/\sup^2)`.  CRT Theorem 4.2 prints :math:`(1-4A)^{-d/2}` where
    :math:`\sup^{-2}` has :math:`(1-4A)^{-d}`, and is then exceeded by exact probabilities.  A bound above one (a positive
    logarithm) says nothing.
    """
    log_rate = np.log(2 * m) + 2 * np.log(np.asarray(epsilon, dtype=np.float64))
    with np.errstate(under="ignore"):
        return np.asarray(np.log(2) - np.exp(log_rate - 2 * log_supremum(pairs, A, d, sharp=sharp)))
