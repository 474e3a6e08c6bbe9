r"""Stabilised ratios: features as logarithms, and sums over keys that do not overflow.

Normalised kernel estimates divide one sum over keys by another,

.. math:: \frac{\sum_j \phi_q(x)\cdot\phi_k(y_j)\,v_j}{\sum_j \phi_q(x)\cdot\phi_k(y_j)},

so any factor per feature that is moved from the keys to the queries cancels, and so does any factor per query.  With
features written as mantissa times :math:`e^l`, the keys are divided by :math:`e^{c_m}`, where :math:`c_m` is the
largest logarithm of feature m over the keys; queries are multiplied by it and divided by their own largest product.
Nothing overflows, however long the vectors, and for positive features each denominator is at least the weight of one
key.

The normalised Gram matrix, Nadaraya-Watson averages, linear attention, kernel sampling and the attention report all use
these functions, on the arrays of NumPy, torch or JAX.  `LogFeatures` own their arrays: functions that turn them into
features overwrite the logarithms where the library allows it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._arrays import array_namespace, detached, is_numpy, is_torch
from ..maps import Features

NOTHING = -1e30
"""Stabiliser of a feature that is zero for all keys: finite, so that differences are defined, and below every logarithm."""


class LogFeatures(NamedTuple):
    """Features of some rows as mantissa times exponential.

    Attributes
    ----------
    mantissa : array that broadcasts to (..., n, D), or None
        The mantissa; None means one.
    log : array (..., n, D)
        The logarithm; minus infinity where the mantissa is zero, so that such a feature does not determine a maximum.
    """

    mantissa: Any
    log: Any

    def values(self) -> Any:
        """Return the features themselves, overwriting the logarithms if possible."""
        return _scaled(self.mantissa, _exp(self.log))


def log_features(features: Features, X: Any, *, key: bool) -> LogFeatures:
    """Return the features of checked rows as mantissa times exponential, with a new array of logarithms.

    Parameters
    ----------
    features : Features
        A drawn map.
    X : array (..., n, d), or CSR matrix (n, d) for maps that take one
        Rows at the kernel's unit scale.
    key : bool
        Whether the rows are keys.

    Returns
    -------
    LogFeatures
    """
    shape = (*X.shape[:-1], features.width)
    mantissa, log = features.scaled(X, key=key)
    xp = array_namespace(log if mantissa is None else mantissa)
    if mantissa is None:
        return LogFeatures(None, xp.broadcast_to(log, shape) + 0.0 if tuple(log.shape) != shape else log)
    if log is None:
        log = xp.zeros_like(mantissa)
    return LogFeatures(mantissa, xp.where(mantissa == 0, -np.inf, xp.broadcast_to(log, shape)))


def stabiliser(keys: LogFeatures, floor: Any = None) -> Any:
    """Return the largest logarithm of each feature over the keys; it has no gradient, since it cancels.

    Parameters
    ----------
    keys : LogFeatures
        Features of the keys.
    floor : array, optional
        Lower bound of the result.

    Returns
    -------
    array (..., 1, D)
    """
    xp = array_namespace(keys.log)
    log = detached(keys.log)
    if not log.shape[-2]:
        shift = xp.full_like(xp.sum(log, axis=-2, keepdims=True), NOTHING)
    else:
        shift = _at_least(xp, xp.max(log, axis=-2, keepdims=True), NOTHING)
    return shift if floor is None else xp.maximum(shift, floor)


def key_values(keys: LogFeatures, shift: Any) -> Any:
    """Return the features of keys divided by the exponential of the stabiliser, overwriting their logarithms if possible.

    Parameters
    ----------
    keys : LogFeatures
        Features of the keys.
    shift : array (..., 1, D)
        The stabiliser.

    Returns
    -------
    array (..., p, D)
    """
    return _scaled(keys.mantissa, _exp(_subtracted(keys.log, shift)))


def query_values(queries: LogFeatures, shift: Any) -> Any:
    """Return the features of queries times the exponential of the stabiliser, scaled so that the largest per row is one.

    Parameters
    ----------
    queries : LogFeatures
        Features of the queries; their logarithms are overwritten if possible.
    shift : array (..., 1, D)
        The stabiliser.

    Returns
    -------
    array (..., n, D)
    """
    return scaled_query_values(queries, shift)[0]


def scaled_query_values(queries: LogFeatures, shift: Any) -> tuple[Any, Any]:
    """Return what `query_values` returns, (..., n, D), and the logarithm of the factor that was divided out, (..., n, 1)."""
    log = _added(queries.log, shift)
    xp = array_namespace(log)
    top = _at_least(xp, xp.max(detached(log), axis=-1, keepdims=True), 2 * NOTHING)
    return _scaled(queries.mantissa, _exp(_subtracted(log, top))), top


class KeySums(NamedTuple):
    r"""Sums of key features times values, under a stabiliser: :math:`S_m = \sum_j \phi_m(y_j) e^{-c_m} v_j^T`.

    The sums are immutable: adding keys returns new sums, so an interrupted update leaves the old sums intact.

    Attributes
    ----------
    values : array (..., D, e)
        The sums; append a column of ones to the values to include the denominators.
    shift : array (..., 1, D)
        The stabiliser c; `NOTHING` for features that are zero for all keys.
    """

    values: Any
    shift: Any

    @classmethod
    def of(cls, keys: LogFeatures, values: Any, shift: Any = None) -> KeySums:
        """Sum over keys with values (..., n, e), with their own stabiliser or a higher one."""
        shift = stabiliser(keys) if shift is None else shift
        xp = array_namespace(values)
        return cls(xp.matmul(xp.matrix_transpose(key_values(keys, shift)), values), shift)

    def __add__(self, other: object) -> KeySums:
        """Sums over both sets of keys, in any order."""
        if not isinstance(other, KeySums):
            return NotImplemented
        shift = array_namespace(self.shift).maximum(self.shift, other.shift)
        return KeySums(self.at(shift) + other.at(shift), shift)

    def at(self, shift: Any) -> Any:
        """Return the sums under another stabiliser, which must not be lower than their own."""
        xp = array_namespace(self.values)
        return self.values * xp.matrix_transpose(xp.exp(self.shift - shift))

    def read(self, queries: LogFeatures) -> Any:
        """Return the sums weighted by queries, (..., n, e), each row up to a positive factor that cancels in a ratio."""
        return array_namespace(self.values).matmul(query_values(queries, self.shift), self.values)


def weights_of(queries: Any, keys: Any) -> Any:
    """Return products of stabilised features with rows divided by their sums.

    Parameters
    ----------
    queries : array (..., n, D)
        Result of `query_values`.
    keys : array (..., p, D)
        Result of `key_values`.

    Returns
    -------
    array (..., n, p)
    """
    xp = array_namespace(queries)
    weights = xp.matmul(queries, xp.matrix_transpose(keys))
    return weights / xp.sum(weights, axis=-1, keepdims=True)


def _scaled(mantissa: Any, exponential: Any) -> Any:
    return exponential if mantissa is None else exponential * mantissa


def _at_least(xp: Any, x: Any, lowest: float) -> Any:
    return xp.clip(x, lowest, None)


def _exp(log: Any) -> Any:
    if is_numpy(log):
        return np.exp(log, out=log) if log.flags.writeable else np.exp(log)
    return log.exp_() if is_torch(log) else array_namespace(log).exp(log)


def _subtracted(log: Any, shift: Any) -> Any:
    """``log - shift``, in place where arrays can be changed and the shapes allow it."""
    if not _overwritable(log, shift):
        return log - shift
    return np.subtract(log, shift, out=log) if is_numpy(log) else log.sub_(shift)


def _added(log: Any, shift: Any) -> Any:
    if not _overwritable(log, shift):
        return log + shift
    return np.add(log, shift, out=log) if is_numpy(log) else log.add_(shift)


def _overwritable(log: Any, shift: Any) -> bool:
    """Whether ``log`` can take the result in place: an array that can be changed, and no smaller than the result."""
    if not (is_torch(log) or (is_numpy(log) and log.flags.writeable)) or log.dtype != shift.dtype:
        return False
    sizes = zip(reversed(shift.shape), reversed(log.shape), strict=False)
    return len(shift.shape) <= len(log.shape) and all(size in (1, whole) for size, whole in sizes)
