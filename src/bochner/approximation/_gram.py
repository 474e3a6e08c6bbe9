"""Gram matrices of drawn features, in tiles of bounded memory: products as they are, and with rows that sum to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..linalg.engine import CHUNK_BYTES, for_each_tile, rows_per_tile
from ._overflow import check_overflow
from .log_features import NOTHING, key_values, query_values, stabiliser, weights_of

if TYPE_CHECKING:
    from ._feature_map import FeatureMap

_PRODUCT_ROWS = 384  # fewest rows of a tile of products: below it, BLAS is slower per number


def products(phi: FeatureMap, xp: Any, X: Any, Y: Any) -> Any:
    """Features of a tile of queries, and their products with those of all keys that may be held, in one walk."""
    if xp is not np or X.ndim > 2 or Y.ndim > 2:
        x = phi.spec.at_unit_scale(X)
        y = x if Y is X else phi.spec.at_unit_scale(Y)
        return xp.matmul(phi.features(x, key=False), xp.matrix_transpose(phi.features(y, key=True)))
    D, out = phi.n_features_out, np.empty((len(X), len(Y)), X.dtype)
    # keys are held as long as they take no more memory than the result
    step = max(rows_per_tile(D * X.itemsize, CHUNK_BYTES), out.size // D)
    for start in range(0, len(Y), step):
        part = Y[start : start + step]
        held = phi.evaluate(part, key=True, refuse=False)
        with np.errstate(over="ignore", invalid="ignore"):
            same = Y is X and phi.symmetric and len(held) == len(X)
            _fill(phi, X, held, out[:, start : start + step], held if same else None)
            total = out[:, start : start + step].sum()
        if np.isnan(total):  # some features overflow where others vanish
            out[:, start : start + step] = _in_logarithms(phi, X, part)
            found = out[:, start : start + step]
            check_overflow("FeatureMap.gram", found, X, phi.spec.kernel, accepted=(-np.inf, np.inf))
    return out


def _fill(phi: FeatureMap, X: np.ndarray, keys: np.ndarray, out: np.ndarray, queries: np.ndarray | None) -> None:
    """``out`` tile by tile; ``queries`` are the features of X where they are the keys, and ``out`` is symmetric."""

    def tile(i: int, j: int) -> None:
        if queries is not None:  # the upper triangle, and its mirror image
            np.matmul(queries[i:j], keys[i:].T, out=out[i:j, i:])
            out[j:, i:j] = out[i:j, j:].T
            return
        features = phi.evaluate(X[i:j], key=False, refuse=False)
        with np.errstate(over="ignore", invalid="ignore"):  # in this thread, to which the caller's state does not reach
            np.matmul(features, keys.T, out=out[i:j])

    for_each_tile(len(X), max(rows_per_tile(phi.n_features_out * X.itemsize), _PRODUCT_ROWS), tile)


def _in_logarithms(phi: FeatureMap, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Products of features that overflow: the largest of each row is factored out on both sides and restored last."""
    queries, keys = phi.log_features(X, key=False), phi.log_features(Y, key=True)
    tops = [np.clip(side.log.max(axis=1), NOTHING, None) for side in (queries, keys)]
    x, y = (key_values(side, top[:, None]) for side, top in zip((queries, keys), tops, strict=True))
    with np.errstate(over="ignore", invalid="ignore"):
        found = x @ y.T
        return np.where(found == 0, 0, found * np.exp(tops[0][:, None] + tops[1][None]))


def normalized(phi: FeatureMap, xp: Any, X: Any, Y: Any) -> Any:
    """Products divided by the sums of their rows; all features of the keys are held."""
    keys = phi.log_features(Y, key=True)
    shift = stabiliser(keys)
    values = key_values(keys, shift)

    def rows(part: Any) -> Any:
        with np.errstate(invalid="ignore"):  # zero by zero, where all features vanish
            found = weights_of(query_values(phi.log_features(part, key=False), shift), values)
        if xp is np and np.isnan(found.sum()):
            check_overflow("FeatureMap.gram", found, part, phi.spec.kernel)
        return found

    if xp is not np or X.ndim != 2:
        return rows(X)
    step = rows_per_tile(phi.n_features_out * X.itemsize, CHUNK_BYTES)
    return np.concatenate([rows(X[i : i + step]) for i in range(0, len(X), step)])
