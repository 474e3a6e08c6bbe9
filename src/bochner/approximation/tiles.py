"""Features of NumPy arrays, tile by tile: projected, mapped and written once, while they are in the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arrays import working_dtype
from ..linalg.engine import for_each_tile
from ..maps import Features

_TILE_BYTES = 1 << 20
_LEAST_ROWS = 16
"""One group of lanes of the fast rotations."""


def features_by_tiles(features: Features, scale: Callable[[Any], Any], X: np.ndarray, *, key: bool) -> np.ndarray:
    """Features of the rows of X (..., d), in its type; ``scale`` brings a tile of rows to unit scale."""
    rows = X.reshape(-1, X.shape[-1])
    out = np.empty((len(rows), features.width), X.dtype)
    working = working_dtype(np, X.dtype)

    def tile(start: int, stop: int) -> None:
        x, part = scale(rows[start:stop]), out[start:stop]
        if working == X.dtype:
            features.fill(x, part, key=key)
        else:  # half precision: computed in float32
            part[...] = features(x, key=key)

    for_each_tile(len(rows), tile_rows(features.width, X.itemsize), tile)
    return out.reshape(*X.shape[:-1], features.width)


def tile_rows(width: int, itemsize: int) -> int:
    """Rows of a tile, a multiple of a group of lanes."""
    return max(_TILE_BYTES // (width * itemsize) // _LEAST_ROWS, 1) * _LEAST_ROWS
