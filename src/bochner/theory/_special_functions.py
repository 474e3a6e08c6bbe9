r"""Logarithms of small differences and large sums, Poisson series, and Kummer's function 1F1(d; d/2; t).

A power series with positive coefficients is a mean over a Poisson count: :math:`\sum_k \frac{V^k}{k!} a_k =
e^V\,E[a_K]` with K Poisson of mean V.  The coefficients do not depend on V, so all pairs share them, and no term
overflows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def log_expm1(L: Any) -> np.ndarray:
    r"""Logarithm of :math:`e^L - 1`: of a relative variance, given the logarithm of the relative second moment.

    Minus infinity at L = 0 and, since a second moment below one can only be rounding, for L < 0.
    """
    L = np.asarray(L, dtype=np.float64)
    positive = np.maximum(L, np.finfo(float).tiny)
    return np.where(L > 0, positive + np.log(-np.expm1(-positive)), -np.inf)


def log_cosh_minus_one(V: Any) -> np.ndarray:
    r"""Logarithm of :math:`\cosh V - 1 = 2\sinh^2(V/2)` for V >= 0, without cancellation or overflow."""
    V = np.asarray(V, dtype=np.float64)
    return np.asarray(V - np.log(2) + 2 * log_expm1_negative(V))


def log_expm1_negative(V: Any) -> np.ndarray:
    r"""Logarithm of :math:`1 - e^{-V}` for V >= 0."""
    with np.errstate(divide="ignore"):
        return np.log(-np.expm1(-np.asarray(V, dtype=np.float64)))


def log_signed_sum(log_terms: list[np.ndarray], weights: list[Any]) -> np.ndarray:
    """Logarithm of sum_k weights_k exp(log_terms_k), a sum known not to be negative."""
    terms = np.stack(np.broadcast_arrays(*log_terms))
    factors = np.stack(np.broadcast_arrays(*weights, terms[0])[: len(weights)])
    top = np.max(np.where(factors != 0, terms, -np.inf), axis=0)
    shift = np.where(np.isfinite(top), top, 0.0)
    scaled = np.where(factors != 0, np.exp(np.minimum(terms - shift, 0.0)), 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(shift + np.log(np.maximum((factors * scaled).sum(0), 0.0)))


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


def log_rising_ratio(n: int, d: int) -> np.ndarray:
    r"""Logarithms of :math:`r_k = (d)_k/(2^k (d/2)_k) = \prod_{j<k} (1 - j/(d + 2j))` for k < n."""
    j = np.arange(n - 1)
    return np.concatenate([[0.0], np.cumsum(np.log1p(-j / (d + 2 * j)))])


FAR = 400.0  # from here on SciPy's function may not return
N_FAR_TERMS = 12  # at t = 400 the next terms are below rounding: 20 change no bit


def hyp1f1_negative(d: int, t: Any) -> np.ndarray:
    r""":math:`{}_1F_1(d; d/2; -t)` for t >= 0, at any t.

    For even d = 2n it is :math:`e^{-t} L_n^{(n-1)}(t)/\binom{2n-1}n`; it changes sign.  SciPy's is right to
    :math:`10^{-15}` (absolute) against 60-digit values for d up to 4096 and t up to 400; its ``hyp0f1``, by which
    papers write some of these means, is not a number at large d and small t.  From t = 400 on SciPy's may not return,
    and the asymptotic series is summed.
    """
    from scipy.special import hyp1f1

    t = np.asarray(t, dtype=np.float64)
    near = hyp1f1(d, d / 2, -np.minimum(t, FAR))
    return np.where(t > FAR, _asymptotic(d, np.maximum(t, FAR)), near)


def _asymptotic(d: int, t: np.ndarray) -> np.ndarray:
    r""":math:`\frac{\Gamma(d/2)}{\Gamma(-d/2)}t^{-d}\sum_k\frac{(d)_k(d/2+1)_k}{k!\,t^k}`, for t >= 400.

    What is left out is below :math:`e^{-t/2}`; so is all of it for even d, where the first factor is zero, and from d =
    9 on it is below :math:`10^{-18}`.
    """
    if d % 2 == 0 or d > 9:
        return np.zeros_like(t)
    k = np.arange(N_FAR_TERMS - 1)
    coefficients = np.cumprod(np.concatenate([[1.0], (d + k) * (d / 2 + 1 + k) / (k + 1)]))
    with np.errstate(under="ignore"):
        series = np.polynomial.polynomial.polyval(1 / t, coefficients)
        return np.asarray(math.gamma(d / 2) / math.gamma(-d / 2) * series * t ** -float(d))
