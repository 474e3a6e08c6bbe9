"""Which rows are equal, by keys of their bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

_KEY_NUMBERS = 1 << 20  # numbers whose keys are made at a time


def equal_rows(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the first rows of their kind, in order, and for each row the place of its kind among them."""
    _, first, home = np.unique(row_keys(X), return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), dtype=int)
    place[order] = np.arange(len(order))
    return first[order], place[home]


def row_keys(X: Any) -> np.ndarray:
    """Keys (n,) of rows that are equal for equal rows, and for others with a chance of one in 2^64: sums modulo 2^64."""
    d = X.shape[1]
    odd = np.random.default_rng(0).integers(0, 2**63, d, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    if not sparse.issparse(X):
        keys, step = np.empty(len(X), np.uint64), max(_KEY_NUMBERS // max(d, 1), 1)
        for i in range(0, len(X), step):  # of many rows, copies in float64 would take far more than the rows
            keys[i : i + step] = (_bits(X[i : i + step]) * odd).sum(axis=1, dtype=np.uint64)
        return keys
    products = np.where(X.data == 0, np.uint64(0), _bits(X.data) * odd[X.indices])
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(products, dtype=np.uint64)])
    return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])


def _bits(values: np.ndarray) -> np.ndarray:
    return _mixed((values.astype(np.float64) + 0.0).view(np.uint64))  # minus zero equals zero


def _mixed(bits: np.ndarray) -> np.ndarray:
    """Bits of numbers whose low ones depend on all: those of round numbers are zero."""
    bits = (bits ^ (bits >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.asarray(bits ^ (bits >> np.uint64(29)))
