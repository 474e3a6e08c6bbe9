"""Drawn projections stored as a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import array_namespace, like
from ..linalg.tiles import for_each_tile
from .operator import Operator

_TILE_ROWS = 512
"""Rows multiplied at a time: enough for BLAS to reach its speed, few enough to share among threads."""


def product(X: np.ndarray, matrix: np.ndarray, out: np.ndarray) -> None:
    """``out = X @ matrix`` by tiles, with results that do not depend on the number of threads."""

    def work(start: int, stop: int) -> None:
        np.matmul(X[start:stop], matrix, out=out[start:stop])

    for_each_tile(len(X), _TILE_ROWS, work)


class DenseOperator(Operator):
    """W as a float64 matrix (m, d), and casts of it as they are needed."""

    def __init__(self, name: str, W: np.ndarray, *arguments: Any, **options: Any) -> None:
        super().__init__(name, W.shape[1], *arguments, **options)
        self.W = W

    @property
    def nbytes(self) -> int:
        """Bytes of W."""
        return int(self.W.nbytes)

    def _matrix(self, dtype: np.dtype) -> np.ndarray:
        if dtype not in self._cast:
            self._cast[dtype] = self.W.astype(dtype, copy=False)
        return self._cast[dtype]

    def _apply_rows(self, X: Any) -> Any:
        return array_namespace(X).matmul(X, like(self.W, X).T)

    def _adjoint_rows(self, Z: Any) -> Any:
        return array_namespace(Z).matmul(Z, like(self.W, Z))

    def _apply_numpy(self, X: np.ndarray, out: np.ndarray) -> None:
        product(X, self._matrix(X.dtype).T, out)

    def _adjoint_numpy(self, Z: np.ndarray, out: np.ndarray) -> None:
        product(Z, self._matrix(Z.dtype), out)
