"""Tiles of lanes (see `bochner.linalg.compiled`): their shape, and the walk over them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .tiles import for_each_tile

LANES = 16
_TILE_BYTES = 1 << 18
"""Size aimed at: half a second-level cache of the smaller machines."""


def for_each_tile_of_lanes(
    n_rows: int, dim: int, capacity: int, dtype: np.dtype, work: Callable[[np.ndarray, int, int], None]
) -> None:
    """Call ``work(lanes, start, stop)`` for every tile of rows, with room for their ``capacity`` lines each."""
    groups = max(1, _TILE_BYTES // (dim * LANES * dtype.itemsize))

    def on_tile(start: int, stop: int) -> None:
        work(np.empty((-(-(stop - start) // LANES), capacity, LANES), dtype), start, stop)

    for_each_tile(n_rows, groups * LANES, on_tile)
