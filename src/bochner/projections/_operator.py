"""Drawn projections: the base class of linear operators W, and operators stored as a matrix."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import array_namespace, cast, in_working_precision, is_sparse, is_traced, like
from .._validation import check_rows
from ..linalg.engine import CHUNK_BYTES, multiply, rows_per_tile

if TYPE_CHECKING:
    from ._projection import Projection


_PART_BYTES = 1 << 19  # size of a part of a product that is used while it is in a cache: half of the second level
_STORED = 16
"""Cost of a stored number of a sparse row times a row of W, in multiply-adds of a matrix product for each of its entries."""


class Operator(ABC):
    r"""A drawn matrix W of m rows in d dimensions, as a linear operator.

    ``P(X)`` returns :math:`X W^T` for arrays of shape (..., d), and ``P.adjoint(Z)`` returns :math:`Z W` for arrays of
    shape (..., m), both for NumPy arrays and for tensors, in the precision of the input.

    Attributes
    ----------
    projection : Projection
        The law that W was drawn from.
    shape : tuple
        (m, d).
    dim : int
        Dimension in which the rows were drawn: d, or the power of two to which d was padded.
    radii : float64 array (m,)
        Lengths of the rows in ``dim`` dimensions.
    weights : float64 array (m,)
        Weight of each row in an average over W: 1/m, except for quadrature.
    origin_weight : float
        Weight of a node at zero; zero except for quadrature.
    origin : bool
        Whether there is a node at zero, whatever its weight.
    reflected : bool
        Whether each row stands for the pair of w and -w, each with half of the weight.
    signed : bool
        Whether the weight of the node at zero may be negative.
    gaussian_lengths : bool
        Whether the lengths follow the kernel's law, in contrast to fixed lengths and those of weighted nodes.
    block_sizes : tuple of int
        Number of rows of each independently drawn block, in order.
    largest_matrix : int
        Numbers up to which W is formed for sparse rows.
    """

    largest_matrix: float = math.inf

    def __init__(self, projection: Projection, d: int, radii: np.ndarray, weights: np.ndarray | None = None) -> None:
        m = len(radii)
        self.projection, self.shape, self.dim = projection, (m, d), projection.padded(d)
        self.block_sizes = projection.block_sizes(d, m)
        self.origin, self.reflected, self.signed = projection.has_origin, projection.reflected, projection.signed
        self.gaussian_lengths = projection.gaussian_lengths
        self.radii = radii
        self.weights = np.full(m, 1 / m) if weights is None else weights
        self.origin_weight = 0.0 if weights is None else float(1 - weights.sum())
        self._cast: dict[tuple[Any, ...], Any] = {}
        for array in (self.radii, self.weights):
            array.flags.writeable = False

    @property
    def name(self) -> str:
        """Name of the projection in error messages and ``repr``."""
        return repr(self.projection)

    def __call__(self, X: Any) -> Any:
        """Return :math:`X W^T`, shape (..., m)."""
        return self.apply(check_rows(self.name, X, self.shape[1]))

    def apply(self, X: Any) -> Any:
        """Return :math:`X W^T` for checked input, a matrix in CSR format included."""
        if is_sparse(X):
            return self._apply_sparse(X)
        return self._in_working_precision(X, self.shape[0], self._apply_numpy, self._apply_tensor)

    def apply_parts(self, X: Any) -> Iterator[tuple[int, np.ndarray]]:
        """Columns of :math:`X W^T` for rows X (n, d) as `apply` takes them, part after part, which share their memory.

        Yields
        ------
        first : int
            Number of the first column.
        part : array (n, k)
            These columns, until the next ones are asked for.
        """
        yield 0, self.apply(X)

    def adjoint(self, Z: Any) -> Any:
        """Return :math:`Z W`, shape (..., d)."""
        Z = check_rows(f"{self.name}.adjoint", Z, self.shape[0])
        return self._in_working_precision(Z, self.shape[1], self._adjoint_numpy, self._adjoint_tensor)

    @abstractmethod
    def to_dense(self) -> np.ndarray:
        """Return the matrix W, (m, d), in float64."""

    @abstractmethod
    def rows(self, start: int, stop: int, out: np.ndarray | None = None) -> np.ndarray:
        """Return rows ``start`` to ``stop - 1`` of W, float64, without forming the others where the rotation is fast.

        Parameters
        ----------
        start, stop : int
            Which rows.
        out : float64 array (stop - start, d), optional
            Where they are written; its last axis is contiguous.
        """

    @abstractmethod
    def combine(self, Z: np.ndarray) -> np.ndarray:
        """Return :math:`Z W` for float64 ``Z`` (k, m), as `adjoint` does, but keep nothing: for a W that is used once."""

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the numbers that define the draw under stable names, for `Projection.restore`.

        Returns
        -------
        dict of str to array
            ``"radii"``; ``"weights"`` if the rows have weights; and ``"W"``, or ``"stages.0.signs"`` and so on for the
            stages of a fast rotation.
        """
        shared = {"radii": self.radii} | ({"weights": self.weights} if self.origin else {})
        return shared | self._own_arrays()

    @abstractmethod
    def _own_arrays(self) -> dict[str, np.ndarray]:
        """The numbers of the directions."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Size in bytes of the numbers that define W."""

    @abstractmethod
    def _apply_tensor(self, X: Any) -> Any:
        """Product of a tensor."""

    @abstractmethod
    def _adjoint_tensor(self, Z: Any) -> Any:
        """Adjoint product of a tensor."""

    @abstractmethod
    def _apply_numpy(self, X: np.ndarray, out: np.ndarray) -> None:
        """Product of a float32 or float64 matrix (n, d), by the fastest path, into ``out`` (n, m)."""

    @abstractmethod
    def _adjoint_numpy(self, Z: np.ndarray, out: np.ndarray) -> None:
        """Adjoint product of a float32 or float64 matrix (n, m), by the fastest path, into ``out`` (n, d)."""

    def _apply_sparse(self, X: Any) -> np.ndarray:
        """Product of a float32 or float64 matrix in CSR format, with W as a matrix where few numbers are stored."""
        m, d = self.shape
        if X.nnz * m * _STORED < self.cost(X.shape[0]) and m * d <= self.largest_matrix:
            return np.asarray(X @ self._columns_like(X.dtype))
        out, step = np.empty((X.shape[0], m), X.dtype), rows_per_tile(d * X.dtype.itemsize, CHUNK_BYTES)
        for start in range(0, X.shape[0], step):
            self._apply_numpy(X[start : start + step].toarray(), out[start : start + step])
        return out

    def cost(self, n: int) -> float:
        """Cost of the product of n dense rows, in multiply-adds of a matrix product."""
        return float(n) * self.shape[0] * self.shape[1]

    def _columns_like(self, dtype: np.dtype) -> np.ndarray:
        """The transpose of W as a contiguous matrix (d, m), of which a stored number reads one row; cached."""
        key = ("columns", dtype)
        if key not in self._cast:
            self._cast[key] = np.ascontiguousarray(self._rows_once().T, dtype=dtype)
        return np.asarray(self._cast[key])

    def _rows_once(self) -> np.ndarray:
        """W in float64, which may be the operator's own, and is not kept."""
        return self.rows(0, self.shape[0])

    @staticmethod
    def _in_working_precision(X: Any, width: int, on_numpy: Any, on_tensor: Any) -> Any:
        """Compute half precision in float32 and cast back; flatten leading axes for the NumPy paths."""
        if isinstance(X, np.ndarray):
            working = X.dtype if X.dtype.itemsize >= 4 else np.dtype(np.float32)
            rows = np.ascontiguousarray(X.reshape(-1, X.shape[-1]), dtype=working)
            out = np.empty((len(rows), width), rows.dtype)
            on_numpy(rows, out)
            return out.reshape(*X.shape[:-1], width).astype(X.dtype, copy=False)
        if "float16" in str(X.dtype):  # float16 and bfloat16
            return cast(on_tensor(in_working_precision(X)), X.dtype)
        return on_tensor(X)

    def _matrix_like(self, X: Any) -> Any:
        """W in the library, type and device of X, cached unless it was made inside a trace."""
        key = ("numpy" if isinstance(X, np.ndarray) else "", str(X.dtype), str(getattr(X, "device", "")))
        matrix = self._cast.get(key)
        if matrix is None:
            matrix = like(self._dense(), X)
            if not is_traced(matrix) and type(matrix).__name__ != "FakeTensor":
                self._cast[key] = matrix
        return matrix

    def _dense(self) -> np.ndarray:
        """W in float64, which may be the operator's own."""
        return self.to_dense()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_cast": {}}  # casts are made again when needed

    def __repr__(self) -> str:
        m, d = self.shape
        padding = f" (padded to {self.dim})" if self.dim != d else ""
        return f"<{self.name} drawn: m={m}, d={d}{padding}, {len(self.block_sizes)} blocks, {self.nbytes} bytes>"


class DenseOperator(Operator):
    """An operator that stores W as a float64 matrix (m, d)."""

    def __init__(
        self, projection: Projection, W: np.ndarray, radii: np.ndarray, weights: np.ndarray | None = None
    ) -> None:
        super().__init__(projection, W.shape[1], radii, weights)
        self.W = W

    @property
    def nbytes(self) -> int:
        return int(self.W.nbytes)

    def to_dense(self) -> np.ndarray:
        """Return a copy of W, (m, d), in float64."""
        return self.W.copy()

    def rows(self, start: int, stop: int, out: np.ndarray | None = None) -> np.ndarray:
        """Return a copy of these rows."""
        if out is None:
            return self.W[start:stop].copy()
        out[:] = self.W[start:stop]
        return out

    def combine(self, Z: np.ndarray) -> np.ndarray:
        """Return the product."""
        out = np.empty((len(Z), self.shape[1]))
        multiply(Z, self.W, out)
        return out

    def _own_arrays(self) -> dict[str, np.ndarray]:
        return {"W": self.W}

    def _rows_once(self) -> np.ndarray:
        return self.W

    def _dense(self) -> np.ndarray:
        return self.W

    def _apply_tensor(self, X: Any) -> Any:
        return array_namespace(X).matmul(X, self._matrix_like(X).T)

    def _adjoint_tensor(self, Z: Any) -> Any:
        return array_namespace(Z).matmul(Z, self._matrix_like(Z))

    def apply_parts(self, X: Any) -> Iterator[tuple[int, np.ndarray]]:
        """Columns of few rows at a time, so that a wide product need not leave the cache before it is used."""
        m, step = self.shape[0], rows_per_tile(X.shape[0] * X.dtype.itemsize, _PART_BYTES)
        if is_sparse(X) or X.dtype.itemsize < 4 or m <= 2 * step:
            yield from super().apply_parts(X)
            return
        W, room = self._columns_like(X.dtype), np.empty(len(X) * step, X.dtype)
        for first in range(0, m, step):
            columns = W[:, first : first + step]
            part = room[: len(X) * columns.shape[1]].reshape(len(X), -1)
            multiply(X, columns, part)
            yield first, part

    def _apply_numpy(self, X: np.ndarray, out: np.ndarray) -> None:
        multiply(X, self._columns_like(X.dtype), out)

    def _adjoint_numpy(self, Z: np.ndarray, out: np.ndarray) -> None:
        multiply(Z, self._matrix_like(Z), out)
