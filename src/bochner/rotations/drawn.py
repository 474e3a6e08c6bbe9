"""Drawn rotations: several independent orthogonal matrices, as dense arrays or as chains of fast stages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arrays import array_namespace, cast, in_working_precision, like
from .._validation import check_count, check_rows
from ..linalg.lanes import for_each_tile_of_lanes
from .stages import Stage


class DrawnRotation(ABC):
    """``n_blocks`` independent orthogonal matrices R of size ``dim``, ready to be applied.

    ``R(X, block)`` is :math:`X R^T`: each row of ``X`` rotated.  ``R.adjoint`` is its inverse, and ``R.to_dense()``
    all matrices, (n_blocks, dim, dim).
    """

    def __init__(self, name: str, n_blocks: int, dim: int) -> None:
        self.name, self.n_blocks, self.dim = name, n_blocks, dim

    def __call__(self, X: Any, block: int = 0) -> Any:
        """Rotate the last axis of ``X`` by matrix ``block``."""
        return self._one(X, block, back=False)

    def adjoint(self, X: Any, block: int = 0) -> Any:
        """Rotate the last axis of ``X`` back."""
        return self._one(X, block, back=True)

    def to_dense(self) -> np.ndarray:
        """All matrices, (n_blocks, dim, dim), in float64."""
        columns = self.rows(np.eye(self.dim)[:, None, :], slice(None), back=False)  # (dim, n_blocks, dim)
        return np.ascontiguousarray(np.moveaxis(columns, 0, -1))

    def _one(self, X: Any, block: int, back: bool) -> Any:
        X = check_rows(self.name, X, self.dim, remedy=f"Data of fewer columns is padded with zeros to {self.dim}.")
        check_count(self.name, "block", block, 0)
        if block >= self.n_blocks:
            raise ValueError(f"{self.name}: block must be below {self.n_blocks}, the number drawn, got {block}.")
        return cast(self._rotate(in_working_precision(X), block, back), X.dtype)

    def _rotate(self, X: Any, block: int, back: bool) -> Any:
        """Product of one matrix, by the fastest path."""
        return self.rows(X[..., None, :], slice(block, block + 1), back=back)[..., 0, :]

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the numbers that define the matrices."""

    @abstractmethod
    def rows(self, x: Any, blocks: slice, *, back: bool) -> Any:
        """Unchecked products of several matrices: (..., b or 1, dim) gives (..., b, dim)."""

    def __repr__(self) -> str:
        return f"<{self.name} drawn: {self.n_blocks} x {self.dim} x {self.dim}, {self.nbytes} bytes>"


class DenseRotation(DrawnRotation):
    """Orthogonal matrices stored in full, float64 (n_blocks, dim, dim), or their first rows, (n_blocks, r, dim)."""

    def __init__(self, name: str, matrices: np.ndarray) -> None:
        super().__init__(name, matrices.shape[0], matrices.shape[2])
        self.matrices = matrices

    @property
    def nbytes(self) -> int:
        """Bytes of the matrices."""
        return int(self.matrices.nbytes)

    def rows(self, x: Any, blocks: slice, *, back: bool) -> Any:
        """Products with the matrices or their transposes."""
        matrices = like(self.matrices[blocks] if back else self.matrices[blocks].swapaxes(-1, -2), x)
        return array_namespace(x).matmul(x[..., None, :], matrices)[..., 0, :]


class FastRotation(DrawnRotation):
    """A chain of stages, applied first to last: O(d) or O(d log d) numbers, never d x d."""

    def __init__(self, name: str, n_blocks: int, dim: int, stages: Sequence[Stage]) -> None:
        super().__init__(name, n_blocks, dim)
        self.stages = tuple(stages)

    @property
    def nbytes(self) -> int:
        """Bytes of all stages' numbers."""
        return sum(int(array.nbytes) for stage in self.stages for array in stage.numbers)

    def _chain(self, back: bool) -> tuple[Stage, ...]:
        return self.stages[::-1] if back else self.stages

    def rows(self, x: Any, blocks: slice, *, back: bool) -> Any:
        """Run the chain on rows of any array library."""
        for stage in self._chain(back):
            x = stage.rows(x, blocks, back=back)
        return x

    def _rotate(self, X: Any, block: int, back: bool) -> Any:
        if not isinstance(X, np.ndarray):
            return super()._rotate(X, block, back)
        from ..linalg.compiled.lanes import load, store_scaled

        rows = np.ascontiguousarray(X.reshape(-1, self.dim))
        out, ones = np.empty_like(rows), np.ones(self.dim, rows.dtype)

        def work(lanes: np.ndarray, start: int, stop: int) -> None:
            load(rows[start:stop], lanes, self.dim)
            self.lanes(lanes, block, back=back)
            store_scaled(lanes, ones, out[start:stop])

        for_each_tile_of_lanes(len(rows), self.dim, self.dim, rows.dtype, work)
        return out.reshape(X.shape)

    def lanes(self, lanes: np.ndarray, block: int, *, back: bool) -> None:
        """Run the chain in place on compiled lanes."""
        for stage in self._chain(back):
            stage.lanes(lanes, block, back=back)
