"""Features of rows, computed tile by tile whenever they are used, and sums over the rows that are made from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...approximation import FeatureMap
from ...linalg.engine import for_each_tile, rows_per_tile

_TILE_ROWS = 96  # fewest rows of a tile: with fewer, the product with W is slower per row
_PARTS, _PART_NUMBERS = 32, 1 << 24
"""Most parts of the rows, each with sums of its own, and the size of all of these sums: 128 MB."""

Work = Callable[[np.ndarray, int, int], np.ndarray]
"""From features F (r, D) of rows i to j to values V (r, k) of these rows, in the precision of F."""


@dataclass(frozen=True)
class FeatureTiles:
    """Features of rows that need not be in memory all at once.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels
    >>> X = np.random.default_rng(0).standard_normal((500, 3))
    >>> phi = Approximation(kernels.Gaussian(), n_projections=100).draw(3, rng=0)
    >>> tiles, ones = FeatureTiles(phi, X, exact=True), np.ones((200, 1))
    >>> sums = tiles.sums(lambda F, i, j: F @ ones, 1)         # of F^T F 1, and behind it of F 1
    >>> F = phi.queries(X)
    >>> bool(np.allclose(sums[:-1], F.T @ F @ ones)), bool(np.isclose(sums[-1, 0], F.sum()))
    (True, True)
    """

    phi: FeatureMap
    X: Any = field(repr=False)  # (n, d): of float32 or float64
    # whether features are given in float64 even for float32 rows; they are computed in the precision of the rows
    exact: bool
    # (n, D): the features in the precision of the rows, for few rows that are used again and again
    held: np.ndarray | None = field(default=None, repr=False)

    def rows(self, i: int, j: int, room: np.ndarray | None = None) -> np.ndarray:
        """Features of rows i to j - 1, (j - i, D), in ``room`` if there is any."""
        if self.held is not None:
            return self.held[i:j].astype(np.float64 if self.exact else self.held.dtype, copy=False)
        X, D = self.X[i:j], self.phi.n_features_out
        F = np.empty((X.shape[0], D), X.dtype) if room is None else room[: X.shape[0]]
        self.phi.fill_queries(X, F)
        return F.astype(np.float64, copy=False) if self.exact else F

    def sums(self, work: Work, n_columns: int) -> np.ndarray:
        """Sum F^T V and V over the rows: (D + 1, k).

        Features are used while they are in a cache, and overwritten by those of the next tile.  The number of parts
        does not depend on the number of threads, and parts are added in their order.
        """
        n, D, tile = self.X.shape[0], self.phi.n_features_out, self._tile_rows
        parts = int(np.clip(_PART_NUMBERS // (n_columns * D), 4, _PARTS))
        part_rows = max(-(-n // (parts * tile)), 1) * tile
        totals = np.zeros((-(-n // part_rows), n_columns, D + 1))

        def part(start: int, stop: int) -> None:
            own, room = totals[start // part_rows], np.empty((min(tile, stop - start), D), self.X.dtype)
            for i in range(start, stop, tile):
                j = min(i + tile, stop)
                F = self.rows(i, j, room)
                V = work(F, i, j)
                own[:, :D] += V.T @ F
                own[:, D] += V.sum(axis=0)

        for_each_tile(n, part_rows, part)
        return np.asarray(totals.sum(axis=0).T)

    def products(self, R: np.ndarray) -> np.ndarray:
        """F R, (n, k), in the precision of R."""
        out = np.empty((self.X.shape[0], R.shape[1]), R.dtype)

        def tile(i: int, j: int) -> None:
            np.matmul(self.rows(i, j), R, out=out[i:j])

        for_each_tile(len(out), self._tile_rows, tile)
        return out

    @property
    def _tile_rows(self) -> int:
        return max(rows_per_tile(self.phi.n_features_out * self.X.dtype.itemsize), _TILE_ROWS)
