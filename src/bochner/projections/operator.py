"""The drawn projection: W as a linear operator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arrays import cast, in_working_precision, like
from .._validation import check_rows


class Operator(ABC):
    r"""A drawn matrix W of m rows in d dimensions, known by its products.

    ``P(X)`` is :math:`X W^T` for arrays of shape (..., d), ``P.adjoint(Z)`` is :math:`Z W` for (..., m), both for
    NumPy arrays and for tensors, in the precision of the input.

    Attributes
    ----------
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
    reflected : bool
        Whether each row stands for the pair of w and -w, half of the weight each.
    origin : bool
        Whether there is a node at zero, whatever its weight came out as.
    signed : bool
        Whether the weight of the node at zero may be negative.
    gaussian_lengths : bool
        Whether lengths are those of the kernel's law, and not fixed ones or those of weighted nodes.
    block_sizes : tuple of int
        Rows of each independently drawn block, in order.
    """

    def __init__(
        self,
        name: str,
        d: int,
        dim: int,
        radii: np.ndarray,
        block_sizes: Sequence[int],
        *,
        gaussian_lengths: bool = True,
        weights: np.ndarray | None = None,
        reflected: bool = False,
        signed: bool = False,
    ) -> None:
        m = len(radii)
        self.name, self.dim, self.shape = name, dim, (m, d)
        self.radii, self.block_sizes, self.reflected = radii, tuple(block_sizes), reflected
        self.gaussian_lengths, self.signed = gaussian_lengths, signed
        self.weights = np.full(m, 1 / m) if weights is None else weights
        self.origin = weights is not None
        self.origin_weight = 0.0 if weights is None else float(1 - weights.sum())
        self._cast: dict[tuple[str, str], Any] = {}
        for array in (self.radii, self.weights):
            array.flags.writeable = False

    def __call__(self, X: Any) -> Any:
        """Return :math:`X W^T`, shape (..., m)."""
        return self.apply(check_rows(self.name, X, self.shape[1]))

    def apply(self, X: Any) -> Any:
        """Return :math:`X W^T` of checked input."""
        return self._in_working_precision(X, self.shape[0], self._apply_numpy, self._apply_tensor)

    def adjoint(self, Z: Any) -> Any:
        """Return :math:`Z W`, shape (..., d)."""
        Z = check_rows(f"{self.name}.adjoint", Z, self.shape[0])
        return self._in_working_precision(Z, self.shape[1], self._adjoint_numpy, self._adjoint_tensor)

    def to_dense(self) -> np.ndarray:
        """Return W itself, (m, d), in float64."""
        return np.ascontiguousarray(self._apply_rows(np.eye(self.shape[1])).T)

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the numbers that define W."""

    @abstractmethod
    def _apply_rows(self, X: Any) -> Any:
        """Product for any array library."""

    @abstractmethod
    def _adjoint_rows(self, Z: Any) -> Any:
        """Adjoint product for any array library."""

    def _apply_tensor(self, X: Any) -> Any:
        """Product of a tensor, by the fastest path."""
        return self._apply_rows(X)

    def _adjoint_tensor(self, Z: Any) -> Any:
        """Adjoint product of a tensor, by the fastest path."""
        return self._adjoint_rows(Z)

    @abstractmethod
    def _apply_numpy(self, X: np.ndarray, out: np.ndarray) -> None:
        """Product of a float32 or float64 matrix (n, d), by the fastest path, into ``out`` (n, m)."""

    @abstractmethod
    def _adjoint_numpy(self, Z: np.ndarray, out: np.ndarray) -> None:
        """Adjoint product of a float32 or float64 matrix (n, m), by the fastest path, into ``out`` (n, d)."""

    @staticmethod
    def _in_working_precision(X: Any, width: int, on_numpy: Any, on_tensor: Any) -> Any:
        """Run in float32 what came in less, and cast back; flatten leading axes for the NumPy paths."""
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
        """W in the library, type and place of X, kept for the next time."""
        key = (str(X.dtype), str(getattr(X, "device", "")))
        if key not in self._cast:
            self._cast[key] = like(self._dense(), X)
        return self._cast[key]

    def _dense(self) -> np.ndarray:
        """W in float64."""
        return self.to_dense()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_cast": {}}  # casts are made again when needed

    def __repr__(self) -> str:
        m, d = self.shape
        padding = f" (padded to {self.dim})" if self.dim != d else ""
        return f"<{self.name} drawn: m={m}, d={d}{padding}, {len(self.block_sizes)} blocks, {self.nbytes} bytes>"
