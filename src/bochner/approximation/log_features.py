r"""The stabilised ratio, written once: features as logarithms, and sums over keys that cannot overflow.

Normalised kernel estimates divide one sum over keys by another,

.. math:: \frac{\sum_j \phi_q(x)\cdot\phi_k(y_j)\,v_j}{\sum_j \phi_q(x)\cdot\phi_k(y_j)},

so any factor per feature that is taken from the keys and given to the queries, and any factor per query, cancels.  With
features written as mantissa times :math:`e^l`, the keys are divided by :math:`e^{c_m}`, :math:`c_m` the largest logarithm of
feature m over the keys; queries are multiplied by it and divided by their own largest product.  Nothing overflows,
however long the vectors, and for positive features each denominator is at least one key's weight.

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
"""Stabiliser of a feature that no key has: finite, so that differences are numbers, and below every logarithm."""


class LogFeatures(NamedTuple):
    """Features of some rows as mantissa times exponential.

    Attributes
    ----------
    mantissa : array that broadcasts to (..., n, D), or None
        None means one.
    log : array (..., n, D)
        Minus infinity where the mantissa is zero, since such a feature must not set a maximum.
    """

    mantissa: Any
    log: Any

    def values(self) -> Any:
        """The features themselves, in place of their logarithms."""
        return _scaled(self.mantissa, _exp(self.log))


def log_features(features: Features, X: Any, *, key: bool) -> LogFeatures:
    """Features of checked rows X (..., n, d) at unit scale, with a fresh array of logarithms.

    Parameters
    ----------
    features : Features
        A drawn map.
    X : array (..., n, d)
        Rows at the kernel's unit scale.
    key : bool
        Whether the rows are keys.
    """
    xp, shape = array_namespace(X), (*X.shape[:-1], features.width)
    mantissa, log = features.scaled(X, key=key)
    if mantissa is None:
        return LogFeatures(None, xp.broadcast_to(log, shape) + 0.0 if tuple(log.shape) != shape else log)
    if log is None:
        log = xp.zeros_like(mantissa)
    return LogFeatures(mantissa, xp.where(mantissa == 0, xp.full_like(mantissa, -np.inf), xp.broadcast_to(log, shape)))


def stabiliser(keys: LogFeatures, floor: Any = None) -> Any:
    """Largest logarithm of each feature over the keys, (..., 1, D), at least ``floor``: no gradient, since it cancels."""
    xp = array_namespace(keys.log)
    log = detached(keys.log)
    if not log.shape[-2]:
        shift = xp.full_like(xp.sum(log, axis=-2, keepdims=True), NOTHING)
    else:
        shift = _at_least(xp, xp.max(log, axis=-2, keepdims=True), NOTHING)
    return shift if floor is None else xp.maximum(shift, floor)


def key_values(keys: LogFeatures, shift: Any) -> Any:
    """Features of keys divided by the exponential of the stabiliser, in place of their logarithms."""
    return _scaled(keys.mantissa, _exp(_subtracted(keys.log, shift)))


def query_values(queries: LogFeatures, shift: Any) -> Any:
    """Features of queries times the stabiliser's exponential, the largest of each row one, in place of their logarithms."""
    log = _added(queries.log, shift)
    xp = array_namespace(log)
    top = _at_least(xp, xp.max(detached(log), axis=-1, keepdims=True), 2 * NOTHING)
    return _scaled(queries.mantissa, _exp(_subtracted(log, top)))


class KeySums(NamedTuple):
    r"""Sums of key features times values, under a stabiliser: :math:`S_m = \sum_j \phi_m(y_j) e^{-c_m} v_j^T`.

    Immutable: adding keys gives new sums, so an interruption leaves what was there.

    Attributes
    ----------
    values : array (..., D, e)
        The sums; give the values a last column of ones to have the denominators among them.
    shift : array (..., 1, D)
        The stabiliser c; `NOTHING` for features that no key has.
    """

    values: Any
    shift: Any

    @classmethod
    def of(cls, keys: LogFeatures, values: Any, shift: Any = None) -> KeySums:
        """Sums over keys with values (..., n, e), under their own stabiliser or a higher one."""
        shift = stabiliser(keys) if shift is None else shift
        xp = array_namespace(values)
        return cls(xp.matmul(xp.matrix_transpose(key_values(keys, shift)), values), shift)

    def absorb(self, keys: LogFeatures, values: Any) -> KeySums:
        """These sums with more keys."""
        added = KeySums.of(keys, values, stabiliser(keys, self.shift))
        return KeySums(self.at(added.shift) + added.values, added.shift)

    def __add__(self, other: object) -> KeySums:
        """Sums over both sets of keys, in any order."""
        if not isinstance(other, KeySums):
            return NotImplemented
        shift = array_namespace(self.shift).maximum(self.shift, other.shift)
        return KeySums(self.at(shift) + other.at(shift), shift)

    def at(self, shift: Any) -> Any:
        """The sums under another stabiliser, nowhere lower than their own."""
        xp = array_namespace(self.values)
        return self.values * xp.matrix_transpose(xp.exp(self.shift - shift))

    def read(self, queries: LogFeatures) -> Any:
        """Sums seen by queries, (..., n, e), each row up to a positive factor, which cancels in a ratio of its entries."""
        return array_namespace(self.values).matmul(query_values(queries, self.shift), self.values)

    @property
    def seen(self) -> Any:
        """Whether there is any key in the sums, (..., 1)."""
        return array_namespace(self.shift).any(self.shift > NOTHING, axis=-1)


def normalized_weights(queries: LogFeatures, keys: LogFeatures) -> Any:
    """Estimated kernel (..., n, p) with rows divided by their sums."""
    shift = stabiliser(keys)
    return weights_of(query_values(queries, shift), key_values(keys, shift))


def weights_of(queries: Any, keys: Any) -> Any:
    """Products of stabilised features with rows divided by their sums."""
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
