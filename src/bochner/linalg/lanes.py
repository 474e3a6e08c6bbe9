"""The shape of a tile of lanes (see `bochner.linalg.compiled`)."""

from __future__ import annotations

import numpy as np

LANES = 16
_TILE_BYTES = 1 << 18
"""Size aimed at: half a second-level cache of the smaller machines."""


def tile_groups(dim: int, dtype: np.dtype) -> int:
    """How many groups of sixteen rows make a tile: as many as fit the cache, at least one."""
    return max(1, _TILE_BYTES // (dim * LANES * dtype.itemsize))
