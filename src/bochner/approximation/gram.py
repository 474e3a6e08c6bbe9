"""Gram matrices of features, chunked, and normalised with exactly cancelling stabilisers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import array_namespace, detached
from ..maps.features import Features, parts_of

_CHUNK_NUMBERS = 1 << 23
"""Features held at a time on each side: 64 MB in float64."""


def gram(features: Features, X: Any, Y: Any) -> Any:
    """Products of all features of queries and keys; NumPy inputs of one batch go in chunks."""
    xp = array_namespace(X)
    rows = max(1, _CHUNK_NUMBERS // features.width)
    if xp is not np or X.ndim > 2 or Y.ndim > 2:
        return xp.matmul(features(X, key=False), xp.matrix_transpose(features(Y, key=True)))
    out = np.empty((len(X), len(Y)), X.dtype)
    for j in range(0, len(Y), rows):
        keys = features(Y[j : j + rows], key=True).T
        for i in range(0, len(X), rows):
            np.matmul(features(X[i : i + rows], key=False), keys, out=out[i : i + rows, j : j + rows])
    return out


def normalized_gram(features: Features, X: Any, Y: Any) -> Any:
    r"""Gram matrix with rows divided by their sums.

    With :math:`c_m` the largest logarithm of feature m over all keys, keys are :math:`e^{l_k - c}` and queries
    :math:`e^{l_q + c - \max}`: c is taken from one side and given to the other, and the maximum is a constant of the query,
    so both cancel in the ratio.  For positive features every row sum is at least one before the division, since the
    largest feature of a query meets a key whose feature is one.
    """
    xp = array_namespace(X)
    mantissa, logarithm = _parts(xp, features, Y, key=True)
    shift = _finite_max(xp, logarithm, axis=-2)
    keys = xp.matrix_transpose(mantissa * xp.exp(logarithm - shift))

    def rows(part: Any) -> Any:
        mantissa, logarithm = _parts(xp, features, part, key=False)
        logarithm = logarithm + shift
        queries = mantissa * xp.exp(logarithm - _finite_max(xp, logarithm, axis=-1))
        weights = xp.matmul(queries, keys)
        return weights / xp.sum(weights, axis=-1, keepdims=True)

    if xp is not np or X.ndim != 2:
        return rows(X)
    step = max(1, _CHUNK_NUMBERS // features.width)
    return np.concatenate([rows(X[i : i + step]) for i in range(0, max(len(X), 1), step)])


def _parts(xp: Any, features: Features, X: Any, *, key: bool) -> tuple[Any, Any]:
    """Mantissa and logarithm, minus infinity where the feature is zero: such a feature is no maximum."""
    mantissa, logarithm = parts_of(features, X, key=key)
    return mantissa, xp.where(mantissa == 0, xp.full_like(logarithm, -np.inf), logarithm)


def _finite_max(xp: Any, logarithm: Any, *, axis: int) -> Any:
    """Largest logarithm, without its gradient since it cancels; zero where all features vanish."""
    largest = detached(xp.max(logarithm, axis=axis, keepdims=True))
    return xp.where(xp.isfinite(largest), largest, xp.zeros_like(largest))
