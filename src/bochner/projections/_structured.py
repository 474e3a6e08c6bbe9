"""Drawn projections that do not form W: blocks of D S R with a fast rotation R."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import array_namespace, like, pad_last
from ..geometries import FastGeometry
from ..linalg.engine import CACHE_BYTES, LANES, multiply, rows_per_tile
from ..linalg.transforms import for_each_tile_of_lanes
from ..rotations._drawn_rotation import DrawnStages
from ._operator import Operator

if TYPE_CHECKING:
    from ._projection import Projection

LARGEST_MATRIX = 1 << 21
"""Largest size of W up to which it may be formed if a product with it is faster: 8 MB in float32."""

# Costs in multiply-adds of a matrix product, measured; `bochner-lab bench` compares both sides of the rule they make.
_MOVE = 50  # a number into lanes and out of them
_CALL = 100_000  # one stage on one tile
_PLAIN = 2  # how much longer transforms take in NumPy, measured; walks take far longer, and W is better there
_ROW_OF_PRODUCT = 13  # reading W for a single row costs as much as multiplying that many


def groups_of(block_sizes: tuple[int, ...]) -> list[tuple[slice, slice, int]]:
    """Group blocks of equal size: their indices, their rows of W, and their size; only the last block may be smaller."""
    size, count = block_sizes[0], block_sizes.count(block_sizes[0])
    groups = [(slice(0, count), slice(0, count * size), size)]
    if count < len(block_sizes):
        groups.append((slice(count, count + 1), slice(count * size, sum(block_sizes)), block_sizes[-1]))
    return groups


class StructuredOperator(Operator):
    """W = D S R, block by block; O(m) numbers for most rotations, O(m log d) operations per row."""

    largest_matrix = 1 << 26  # 512 MB in float64

    def __init__(
        self,
        projection: Projection,
        d: int,
        rotation: DrawnStages,
        geometry: FastGeometry,
        radii: np.ndarray,
        weights: np.ndarray | None = None,
        order: np.ndarray | None = None,
    ) -> None:
        super().__init__(projection, d, radii, weights)
        self.rotation, self.geometry = rotation, geometry
        self.order = None if order is None else order.astype(np.int32)  # of the coordinates of the last block
        self._back = None if order is None else np.argsort(order)

    @property
    def nbytes(self) -> int:
        order = 0 if self.order is None else self.order.nbytes
        return self.rotation.nbytes + int(self.radii.nbytes + self.weights.nbytes + order)

    def to_dense(self) -> np.ndarray:
        return np.ascontiguousarray(self._apply_rows(np.eye(self.shape[1])).T)

    def rows(self, start: int, stop: int, out: np.ndarray | None = None) -> np.ndarray:
        """Return these rows: transforms of the blocks that they belong to."""
        from ..linalg.loops import room_for, store_scaled

        out, ones = np.empty((stop - start, self.shape[1])) if out is None else out, np.ones(self.shape[1])
        step = min(rows_per_tile(8 * self.dim, CACHE_BYTES), stop - start)
        for block, own in self._blocks():
            for first in range(max(start, own.start), min(stop, own.stop), step):
                k = np.arange(min(step, stop - first, own.stop - first))
                lanes = room_for(len(k), self._capacity, np.float64)
                lanes[:], side_by_side = 0, lanes.shape[2]
                axes = k // side_by_side, first - own.start + k, k % side_by_side
                lanes[axes] = self.radii[first + k]  # each an axis of the block
                self.geometry.adjoint_lanes(lanes, self.block_sizes[block], self.dim)
                self._reorder(lanes, block, self._back)
                self.rotation.lanes(lanes, block, back=True)
                store_scaled(lanes, ones, out[first - start : first - start + len(k)])
        return out

    def combine(self, Z: np.ndarray) -> np.ndarray:
        """Return the product, by transforms."""
        out = np.empty((len(Z), self.shape[1]))
        self.transform_back(Z, out)
        return out

    def _dense(self) -> np.ndarray:
        """W for products, by the compiled transforms: much faster than `to_dense`, up to rounding the same."""
        rows = np.empty((self.shape[1], self.shape[0]))
        self.transform(np.eye(self.shape[1]), rows)
        return np.ascontiguousarray(rows.T)

    def _own_arrays(self) -> dict[str, np.ndarray]:
        return self.rotation.to_arrays() | ({} if self.order is None else {"order": self.order})

    def _reorder(self, lanes: np.ndarray, block: int, order: np.ndarray | None) -> None:
        """Put the coordinates of a cut block into another order, in place."""
        if order is not None and block == len(self.block_sizes) - 1:
            lanes[:, : self.dim] = lanes[:, order]

    def _blocks(self) -> list[tuple[int, slice]]:
        ends = np.cumsum(self.block_sizes).tolist()
        return [(b, slice(end - size, end)) for b, (end, size) in enumerate(zip(ends, self.block_sizes, strict=True))]

    def cost(self, n: int) -> float:
        """The lower of the costs of a product with W and of transforms."""
        return min(super().cost(n), self._transform_cost(n))

    def _transform_cost(self, n: int) -> float:
        from ..linalg import loops

        full_lanes = -(-n // LANES) * LANES
        blocks = len(self.block_sizes)
        each = _MOVE + sum(stage.cost(self.dim) for stage in self.rotation.on_lanes)
        compiled = full_lanes * blocks * self.dim * each + blocks * len(self.rotation.stages) * _CALL
        return compiled if loops.ENGINE == "Numba" else _PLAIN * compiled

    def product_is_faster(self, n: int) -> bool:
        """Whether a product of n rows with W itself is faster than the transforms: in small dimensions, and for few rows."""
        m, d = self.shape
        if m * d > LARGEST_MATRIX:
            return False
        return m * d * (n + _ROW_OF_PRODUCT) < self._transform_cost(n)

    def _apply_rows(self, X: Any) -> Any:
        """Product for any array library."""
        xp, lead = array_namespace(X), tuple(X.shape[:-1])
        X = pad_last(X, self.dim)[..., None, :]
        parts = []
        for blocks, rows, r in groups_of(self.block_sizes):
            turned = self.rotation.rows(X, blocks, back=False)
            if self.order is not None and blocks.stop == len(self.block_sizes):
                turned = turned[..., self.order]
            y = self.geometry.product(turned, r)
            parts.append(like(self.radii[rows], X) * xp.reshape(y, (*lead, rows.stop - rows.start)))
        return xp.concat(parts, axis=-1)

    def _adjoint_rows(self, Z: Any) -> Any:
        """Adjoint product for any array library."""
        xp, lead = array_namespace(Z), tuple(Z.shape[:-1])
        total = like(np.zeros((*lead, self.dim)), Z)
        for blocks, rows, r in groups_of(self.block_sizes):
            y = xp.reshape(like(self.radii[rows], Z) * Z[..., rows], (*lead, blocks.stop - blocks.start, r))
            y = self.geometry.adjoint(y, self.dim)
            if self._back is not None and blocks.stop == len(self.block_sizes):
                y = y[..., self._back]
            turned = self.rotation.rows(y, blocks, back=True)
            total = total + xp.sum(turned, axis=-2)
        return total[..., : self.shape[1]]

    def _apply_tensor(self, X: Any) -> Any:
        if self.shape[0] * self.shape[1] > LARGEST_MATRIX:
            return self._apply_rows(X)
        return array_namespace(X).matmul(X, self._matrix_like(X).T)

    def _adjoint_tensor(self, Z: Any) -> Any:
        if self.shape[0] * self.shape[1] > LARGEST_MATRIX:
            return self._adjoint_rows(Z)
        return array_namespace(Z).matmul(Z, self._matrix_like(Z))

    def _apply_numpy(self, X: np.ndarray, out: np.ndarray) -> None:
        if self.product_is_faster(len(X)):
            multiply(X, self._matrix_like(X).T, out)
        else:
            self.transform(X, out)

    def _adjoint_numpy(self, Z: np.ndarray, out: np.ndarray) -> None:
        if self.product_is_faster(len(Z)):
            multiply(Z, self._matrix_like(Z), out)
        else:
            self.transform_back(Z, out)

    def transform(self, X: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (n, m) with the products of ``X`` (n, d), by compiled transforms on tiles of rows."""
        from ..linalg.loops import load, store_scaled

        radii = self.radii.astype(X.dtype)

        def work(lanes: np.ndarray, start: int, stop: int) -> None:
            for block, rows in self._blocks():
                load(X[start:stop], lanes, self.dim)
                self.rotation.lanes(lanes, block, back=False)
                self._reorder(lanes, block, self.order)
                self.geometry.product_lanes(lanes, self.block_sizes[block], self.dim)
                store_scaled(lanes, radii[rows], out[start:stop, rows])

        for_each_tile_of_lanes(len(X), self.dim, self._capacity, X.dtype, work)

    def transform_back(self, Z: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (n, d) with the adjoint products of ``Z`` (n, m), by compiled transforms on tiles of rows."""
        from ..linalg.loops import add_to, load

        radii = self.radii.astype(Z.dtype)

        def work(lanes: np.ndarray, start: int, stop: int) -> None:
            out[start:stop] = 0
            for block, rows in self._blocks():
                load(radii[rows] * Z[start:stop, rows], lanes, self.dim)
                self.geometry.adjoint_lanes(lanes, self.block_sizes[block], self.dim)
                self._reorder(lanes, block, self._back)
                self.rotation.lanes(lanes, block, back=True)
                add_to(lanes, out[start:stop])

        for_each_tile_of_lanes(len(Z), self.dim, self._capacity, Z.dtype, work)

    @property
    def _capacity(self) -> int:
        """Number of lines of a tile; a geometry with more rows than dimensions needs an extra line after the coordinates."""
        return max(self.dim, self.geometry.rows_per_block(self.dim))
