"""Logarithms of small differences and of large sums."""

from __future__ import annotations

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
