"""Drawn projections that never form W: blocks of D S R with a fast rotation R."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import array_namespace, like, pad_last
from ..geometries import Geometry
from ..linalg.lanes import LANES, tile_groups
from ..linalg.tiles import for_each_tile
from ..rotations.drawn import FastRotation
from .dense import product
from .operator import Operator

SMALL = 64
"""Up to this dimension a product with W itself is faster than the transforms (measured: `bochner bench`)."""


def groups_of(block_sizes: tuple[int, ...]) -> list[tuple[slice, slice, int]]:
    """Blocks of one size together: their numbers, their rows of W, and their size; only the last may be cut."""
    size, count = block_sizes[0], block_sizes.count(block_sizes[0])
    groups = [(slice(0, count), slice(0, count * size), size)]
    if count < len(block_sizes):
        groups.append((slice(count, count + 1), slice(count * size, sum(block_sizes)), block_sizes[-1]))
    return groups


class StructuredOperator(Operator):
    """W = D S R, block by block; O(m) numbers for most rotations, O(m log d) operations a row."""

    def __init__(self, name: str, d: int, rotation: FastRotation, geometry: Geometry, radii: np.ndarray,
                 block_sizes: tuple[int, ...], **options: Any) -> None:  # fmt: skip
        super().__init__(name, d, rotation.dim, radii, block_sizes, **options)
        self.rotation, self.geometry = rotation, geometry

    @property
    def nbytes(self) -> int:
        """Bytes of rotation, geometry and radii."""
        return self.rotation.nbytes + self.geometry.nbytes + int(self.radii.nbytes + self.weights.nbytes)

    def _blocks(self) -> list[tuple[int, slice]]:
        ends = np.cumsum(self.block_sizes).tolist()
        return [(b, slice(end - size, end)) for b, (end, size) in enumerate(zip(ends, self.block_sizes, strict=True))]

    def _matrix(self, dtype: np.dtype) -> np.ndarray:
        """W itself, for the small dimensions where a product with it is faster."""
        if dtype not in self._cast:
            self._cast[dtype] = self.to_dense().astype(dtype, copy=False)
        return self._cast[dtype]

    def _apply_rows(self, X: Any) -> Any:
        xp, lead = array_namespace(X), tuple(X.shape[:-1])
        X = pad_last(X, self.dim)[..., None, :]
        parts = []
        for blocks, rows, r in groups_of(self.block_sizes):
            y = self.geometry.product(self.rotation.rows(X, blocks, back=False), blocks, r)
            parts.append(like(self.radii[rows], X) * xp.reshape(y, (*lead, rows.stop - rows.start)))
        return xp.concat(parts, axis=-1)

    def _adjoint_rows(self, Z: Any) -> Any:
        xp, lead = array_namespace(Z), tuple(Z.shape[:-1])
        total = like(np.zeros((*lead, self.dim)), Z)
        for blocks, rows, r in groups_of(self.block_sizes):
            y = xp.reshape(like(self.radii[rows], Z) * Z[..., rows], (*lead, -1, r))
            turned = self.rotation.rows(self.geometry.adjoint(y, blocks, self.dim), blocks, back=True)
            total = total + xp.sum(turned, axis=-2)
        return total[..., : self.shape[1]]

    def _apply_tensor(self, X: Any) -> Any:
        if self.dim > SMALL:
            return self._apply_rows(X)
        return array_namespace(X).matmul(X, like(self._matrix(np.dtype(np.float64)), X).T)

    def _adjoint_tensor(self, Z: Any) -> Any:
        if self.dim > SMALL:
            return self._adjoint_rows(Z)
        return array_namespace(Z).matmul(Z, like(self._matrix(np.dtype(np.float64)), Z))

    def _apply_numpy(self, X: np.ndarray, out: np.ndarray) -> None:
        if self.dim <= SMALL:
            product(X, self._matrix(X.dtype).T, out)
        else:
            self.transform(X, out)

    def _adjoint_numpy(self, Z: np.ndarray, out: np.ndarray) -> None:
        if self.dim <= SMALL:
            product(Z, self._matrix(Z.dtype), out)
        else:
            self.transform_back(Z, out)

    def transform(self, X: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (n, m) with the products of ``X`` (n, d), by compiled transforms on tiles of rows."""
        from ..linalg.compiled.lanes import load, store_scaled

        radii = self.radii.astype(X.dtype)

        def work(start: int, stop: int) -> None:
            lanes = self._lanes(stop - start, X.dtype)
            for block, rows in self._blocks():
                load(X[start:stop], lanes, self.dim)
                self.rotation.lanes(lanes, block, back=False)
                self.geometry.product_lanes(lanes, block, self.block_sizes[block])
                store_scaled(lanes, radii[rows], out[start:stop, rows])

        for_each_tile(len(X), self._tile_rows(X.dtype), work)

    def transform_back(self, Z: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (n, d) with the adjoint products of ``Z`` (n, m), by compiled transforms on tiles of rows."""
        from ..linalg.compiled.lanes import add_to, load

        radii = self.radii.astype(Z.dtype)

        def work(start: int, stop: int) -> None:
            lanes = self._lanes(stop - start, Z.dtype)
            out[start:stop] = 0
            for block, rows in self._blocks():
                load(radii[rows] * Z[start:stop, rows], lanes, self.dim)
                self.geometry.adjoint_lanes(lanes, block, self.block_sizes[block], self.dim)
                self.rotation.lanes(lanes, block, back=True)
                add_to(lanes, out[start:stop])

        for_each_tile(len(Z), self._tile_rows(Z.dtype), work)

    def _tile_rows(self, dtype: np.dtype) -> int:
        return tile_groups(self.dim, dtype) * LANES

    def _lanes(self, n: int, dtype: np.dtype) -> np.ndarray:
        """Room for n rows; a geometry with more rows than dimensions has its extra lines after the coordinates."""
        capacity = max(self.dim, self.geometry.rows_per_block(self.dim))
        return np.empty((-(-n // LANES), capacity, LANES), dtype)
