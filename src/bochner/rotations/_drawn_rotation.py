"""Drawn rotations: orthogonal matrices that are stored in full or applied as chains of stages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from .._arrays import array_namespace, cast, in_working_precision, like
from .._validation import check_count, check_rows
from ..linalg.transforms import for_each_tile_of_lanes
from ._stages import Stage, joined


class DrawnRotation(ABC):
    """``n_blocks`` independent orthogonal matrices R of size ``dim``, ready to be applied.

    ``R(X, block)`` returns :math:`X R^T`, that is each row of ``X`` rotated.  ``R.adjoint`` applies the inverse, and
    ``R.to_dense()`` returns all matrices, (n_blocks, dim, dim).
    """

    def __init__(self, name: str, n_blocks: int, dim: int) -> None:
        self.name, self.n_blocks, self.dim = name, n_blocks, dim

    def __call__(self, X: Any, block: int = 0) -> Any:
        """Rotate the last axis of ``X`` by matrix ``block``."""
        return self._one(X, block, back=False)

    def adjoint(self, X: Any, block: int = 0) -> Any:
        """Rotate the last axis of ``X`` by the inverse of matrix ``block``."""
        return self._one(X, block, back=True)

    def to_dense(self) -> np.ndarray:
        """Return all matrices, (n_blocks, dim, dim), in float64."""
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
        """Multiply unchecked rows by several matrices: (..., b or 1, dim) gives (..., b, dim)."""

    def __repr__(self) -> str:
        return f"<{self.name} drawn: {self.n_blocks} x {self.dim} x {self.dim}, {self.nbytes} bytes>"


class DrawnMatrices(DrawnRotation):
    """Orthogonal matrices stored in full.

    Parameters
    ----------
    name : str
        Name of the rotation, for error messages.
    matrices : float64 array (n_blocks, dim, dim) or (n_blocks, r, dim)
        The matrices, or their first r rows.
    """

    def __init__(self, name: str, matrices: np.ndarray) -> None:
        super().__init__(name, matrices.shape[0], matrices.shape[2])
        self.matrices = matrices

    @property
    def nbytes(self) -> int:
        return int(self.matrices.nbytes)

    def rows(self, x: Any, blocks: slice, *, back: bool) -> Any:
        matrices = like(self.matrices[blocks] if back else self.matrices[blocks].swapaxes(-1, -2), x)
        return array_namespace(x).matmul(x[..., None, :], matrices)[..., 0, :]


class DrawnStages(DrawnRotation):
    """A chain of stages.

    Parameters
    ----------
    name : str
        Name of the rotation, for error messages.
    n_blocks : int
        Number of matrices.
    dim : int
        Size of the matrices.
    stages : sequence of Stage
        The factors, in the order in which they are applied.
    """

    def __init__(self, name: str, n_blocks: int, dim: int, stages: Sequence[Stage]) -> None:
        super().__init__(name, n_blocks, dim)
        self.stages = tuple(stages)

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.to_arrays().values())

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the numbers of all stages under names such as ``"stages.0.signs"``."""
        return {f"stages.{k}.{name}": a for k, stage in enumerate(self.stages) for name, a in stage.to_arrays().items()}

    def _chain(self, back: bool) -> tuple[Stage, ...]:
        return self.stages[::-1] if back else self.stages

    def rows(self, x: Any, blocks: slice, *, back: bool) -> Any:
        for stage in self._chain(back):
            x = stage.rows(x, blocks, back=back)
        return x

    def _rotate(self, X: Any, block: int, back: bool) -> Any:
        if not isinstance(X, np.ndarray):
            return super()._rotate(X, block, back)
        from ..linalg.loops import load, store_scaled

        rows = np.ascontiguousarray(X.reshape(-1, self.dim))
        out, ones = np.empty_like(rows), np.ones(self.dim, rows.dtype)

        def work(lanes: np.ndarray, start: int, stop: int) -> None:
            load(rows[start:stop], lanes, self.dim)
            self.lanes(lanes, block, back=back)
            store_scaled(lanes, ones, out[start:stop])

        for_each_tile_of_lanes(len(rows), self.dim, self.dim, rows.dtype, work)
        return out.reshape(X.shape)

    def lanes(self, lanes: np.ndarray, block: int, *, back: bool) -> None:
        """Apply the chain in place to lanes."""
        for stage in self.on_lanes[::-1] if back else self.on_lanes:
            stage.lanes(lanes, block, self.dim, back=back)

    @cached_property
    def on_lanes(self) -> tuple[Stage, ...]:
        """The stages as the loops in use are fastest."""
        from ..linalg.loops import ENGINE

        return self.stages if ENGINE == "Numba" else joined(self.stages, self.dim, self.n_blocks)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "on_lanes"}
