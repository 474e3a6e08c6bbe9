"""Large results, tile by tile: the temporaries stay at tens of megabytes however large the inputs are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

Compute: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]

SIDE = 768  # of a square tile
LONG = 2**19  # entries in a tile of few columns or few rows
NUMBERS = 2**20  # input numbers behind one side of a tile
FEWEST = 64  # rows, however wide the inputs are


def gram_by_tiles(compute: Compute, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return ``compute(X, Y)`` of shape (..., n, p), with ``compute`` called on tiles; symmetric where Y is X."""
    batch = np.broadcast_shapes(X.shape[:-2], Y.shape[:-2])
    n, p, d = X.shape[-2], Y.shape[-2], X.shape[-1]
    K = np.empty((*batch, n, p), dtype=X.dtype)
    if K.size <= LONG and max(X.size, Y.size) <= NUMBERS:
        _fill(compute, X, Y, K, (n, p))
        return K
    X_all = np.broadcast_to(X, (*batch, n, d))
    Y_all = np.broadcast_to(Y, (*batch, p, d))
    for index in np.ndindex(batch):
        x = X_all[index]
        _fill(compute, x, x if Y is X else Y_all[index], K[index], _tile_shape(n, p, d))
    return K


def paired_by_chunks(compute: Compute, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return ``compute(X, Y)`` of shape (..., n), with ``compute`` called on chunks of shape (rows, d)."""
    shape = np.broadcast_shapes(X.shape, Y.shape)
    rows = np.broadcast_to(X, shape).reshape(-1, shape[-1])
    partners = rows if Y is X else np.broadcast_to(Y, shape).reshape(-1, shape[-1])
    values = np.empty(len(rows), dtype=X.dtype)
    step = max(FEWEST, NUMBERS // shape[-1])
    for start in range(0, len(rows), step):
        chunk = slice(start, start + step)
        x = rows[chunk]
        values[chunk] = compute(x, x if partners is rows else partners[chunk])
    return values.reshape(shape[:-1])


def _tile_shape(n: int, p: int, d: int) -> tuple[int, int]:
    most = max(FEWEST, NUMBERS // d)
    return min(most, max(SIDE, LONG // min(p, SIDE))), min(most, max(SIDE, LONG // min(n, SIDE)))


def _fill(compute: Compute, X: np.ndarray, Y: np.ndarray, K: np.ndarray, tile: tuple[int, int]) -> None:
    """Write ``compute(X, Y)`` into K; where Y is X, tiles below the diagonal mirror those above."""
    for top in range(0, K.shape[-2], tile[0]):
        rows = slice(top, top + tile[0])
        x = X[..., rows, :]
        for left in range(top if Y is X else 0, K.shape[-1], tile[1]):
            columns = slice(left, left + tile[1])
            if Y is X and left == top:
                K[..., rows, rows] = _symmetric(compute(x, x))
                continue
            K[..., rows, columns] = compute(x, Y[..., columns, :])
            if Y is X:
                K[..., columns, rows] = np.matrix_transpose(K[..., rows, columns])


def _symmetric(K: np.ndarray) -> np.ndarray:
    """Copy the upper triangle of K to the lower one: a matrix product may round the two differently."""
    return np.where(np.tri(K.shape[-1], k=-1, dtype=bool), np.matrix_transpose(K), K)
