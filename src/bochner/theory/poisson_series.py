r"""Power series with positive coefficients, as means over a Poisson count.

:math:`\sum_k \frac{V^k}{k!} a_k = e^V\,E[a_K]` with K Poisson of mean V.  The coefficients do not depend on V, so all
pairs share them, and no term overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

NUMBERS = 2**20  # terms of all pairs that are held at once


def _log_pmf(V: np.ndarray, n_terms: int) -> np.ndarray:
    from scipy.special import gammaln, xlogy

    k = np.arange(n_terms)
    return np.asarray(xlogy(k, V[:, None]) - V[:, None] - gammaln(k + 1))


def n_terms(V: float, growth: float = 1.0) -> int:
    """Terms after which coefficients that grow no faster than growth^k add less than rounding."""
    rate = V * growth
    return int(rate + 12 * np.sqrt(rate) + 60)


def _over_chunks(V: Any, growth: float, rule: Callable[[np.ndarray, int], np.ndarray]) -> np.ndarray:
    """Apply a rule to V in sorted chunks, so that small V pay for few terms."""
    V = np.asarray(V, dtype=np.float64)
    flat = V.ravel()
    result = np.empty_like(flat)
    order = np.argsort(flat, kind="stable")
    start = 0
    while start < flat.size:
        index = order[start : start + 1024]
        index = index[: max(1, NUMBERS // n_terms(flat[index[-1]], growth))]
        result[index] = rule(flat[index], n_terms(flat[index[-1]], growth))
        start += len(index)
    return np.asarray(result.reshape(V.shape))


def poisson_mean(V: Any, coefficients: Callable[[int], np.ndarray], growth: float = 1.0) -> np.ndarray:
    """E[a_K] over K ~ Poisson(V), for every V; ``coefficients(n)`` gives the first n of a."""

    def rule(part: np.ndarray, n: int) -> np.ndarray:
        weights = np.exp(_log_pmf(part, n))
        return np.asarray(weights @ coefficients(n) / weights.sum(1))  # the sum is one, but for rounding at large V

    return _over_chunks(V, growth, rule)


def log_poisson_mean(V: Any, log_coefficients: Callable[[int], np.ndarray], growth: float = 1.0) -> np.ndarray:
    """Logarithm of E[a_K] over K ~ Poisson(V) for positive a, given the logarithms of a."""
    from scipy.special import logsumexp

    return _over_chunks(V, growth, lambda part, n: logsumexp(_log_pmf(part, n) + log_coefficients(n), axis=1))
