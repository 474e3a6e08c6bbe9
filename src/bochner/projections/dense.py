"""Drawn projections stored as a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import array_namespace
from ..linalg.tiles import for_each_tile
from .operator import Operator

_TILE_ROWS = 512
_TILE_COLUMNS = 1024
"""Parts multiplied at a time: enough for BLAS to reach its speed, few enough to share among threads."""


def product(X: np.ndarray, matrix: np.ndarray, out: np.ndarray) -> None:
    """``out = X @ matrix`` by tiles, with results that do not depend on the number of threads.

    Many rows are cut into tiles of rows; few rows leave the columns of the matrix to be cut.
    """
    if len(X) > _TILE_ROWS:
        for_each_tile(len(X), _TILE_ROWS, lambda i, j: _multiply(X[i:j], matrix, out[i:j]))
    else:
        for_each_tile(out.shape[1], _TILE_COLUMNS, lambda i, j: _multiply(X, matrix[:, i:j], out[:, i:j]))


def _multiply(X: np.ndarray, matrix: np.ndarray, out: np.ndarray) -> None:
    np.matmul(X, matrix, out=out)


class DenseOperator(Operator):
    """W as a float64 matrix (m, d)."""

    def __init__(self, name: str, W: np.ndarray, *arguments: Any, **options: Any) -> None:
        super().__init__(name, W.shape[1], *arguments, **options)
        self.W = W

    @property
    def nbytes(self) -> int:
        """Bytes of W."""
        return int(self.W.nbytes)

    def _dense(self) -> np.ndarray:
        return self.W

    def to_dense(self) -> np.ndarray:
        """Return W itself, (m, d), in float64."""
        return self.W.copy()

    def _apply_rows(self, X: Any) -> Any:
        return array_namespace(X).matmul(X, self._matrix_like(X).T)

    def _adjoint_rows(self, Z: Any) -> Any:
        return array_namespace(Z).matmul(Z, self._matrix_like(Z))

    def _apply_numpy(self, X: np.ndarray, out: np.ndarray) -> None:
        product(X, self._matrix_like(X).T, out)

    def _adjoint_numpy(self, Z: np.ndarray, out: np.ndarray) -> None:
        product(Z, self._matrix_like(Z), out)
