r"""Cholesky factors of large matrices, in blocks, on the pool of threads.

OpenBLAS, the BLAS of NumPy's and SciPy's wheels, ends the process with a segmentation fault in products
:math:`AA^T` and Cholesky factorisations of large matrices on several threads: its symmetric product gives each thread a
share of the columns, up to :math:`n/\sqrt 2` of them, and packs all of it into a buffer of a fixed 32 MB.  With two threads
on a processor with AVX-512 this holds up to order 15000 or so in float64, and twice that in float32.  The functions here
call BLAS for blocks only, on one thread each, and share the blocks among the threads of the engine: no order is too large,
and the number of threads cannot change a bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, get_blas_funcs, get_lapack_funcs

from .engine import for_each_tile, single_threaded_blas

BLOCKED_ORDER = 2048
"""From here on blocks on two threads are faster than LAPACK on one, of which they take three quarters of the time."""
LARGE_ORDER = 4096
_PANELS = (256, 512), (512, 512)
"""Columns of a panel and rows of its tiles, below and from order 4096."""
_SOLVED_COLUMNS = 256


@dataclass(frozen=True)
class Cholesky:
    r"""The lower triangular factor of a positive definite matrix, :math:`A = LL^T`, and equations that it solves.

    Attributes
    ----------
    packed : array (n, n)
        L on and below the diagonal, in columns; what is above it means nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.linalg.cholesky import Cholesky
    >>> A = np.array([[4.0, 2.0], [2.0, 5.0]])
    >>> factor = Cholesky.of(A)
    >>> factor.lower
    array([[2., 0.],
           [1., 2.]])
    >>> bool(np.allclose(A @ factor.solve(np.ones((2, 1))), 1))
    True
    """

    packed: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, matrix: np.ndarray, *, overwrite: bool = False, blocks: tuple[int, int] | None = None) -> Cholesky:
        """Factor a matrix.

        Parameters
        ----------
        matrix : float32 or float64 array (n, n)
            Of which only the part on and above the diagonal is read.
        overwrite : bool
            Whether the factor may take the place of the matrix, if its rows are contiguous.
        blocks : tuple of int, optional
            Columns of a panel and rows of a tile; by default LAPACK takes small matrices whole, and the size of the blocks
            of others depends on their order only.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the matrix is not positive definite.
        """
        A = matrix.T if overwrite and matrix.flags.c_contiguous else np.array(matrix.T, order="F")
        with single_threaded_blas:
            _factor(A, *(blocks or panels(len(A))))
        return cls(A)

    @property
    def lower(self) -> np.ndarray:
        """L, with zeros above the diagonal."""
        return np.tril(self.packed)

    @property
    def diagonal(self) -> np.ndarray:
        """Of L, (n,)."""
        return np.diag(self.packed)

    @property
    def log_determinant(self) -> float:
        """Of A."""
        return 2 * float(np.log(self.diagonal).sum())

    def solve(self, B: np.ndarray) -> np.ndarray:
        r""":math:`A^{-1}B`, for columns B (n, k)."""
        potrs = get_lapack_funcs("potrs", (self.packed,))
        return self._in_columns(B, lambda part: potrs(self.packed, part, lower=1)[0])

    def solve_lower(self, B: np.ndarray) -> np.ndarray:
        r""":math:`L^{-1}B`, for columns B (n, k)."""
        trsm = get_blas_funcs("trsm", (self.packed,))
        return self._in_columns(B, lambda part: trsm(1.0, self.packed, part, lower=1))

    def _in_columns(self, B: np.ndarray, solve: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Solve for parts of the columns, which the threads share; in the order of B in memory."""
        out = np.empty_like(B, dtype=self.packed.dtype)

        def columns(start: int, stop: int) -> None:
            out[:, start:stop] = solve(B[:, start:stop])

        for_each_tile(B.shape[1] if len(B) else 0, _SOLVED_COLUMNS, columns)
        return out

    def inverse_root(self) -> np.ndarray:
        r""":math:`R = L^{-T}` (n, n), upper triangular, with :math:`RR^T = A^{-1}`."""
        n, inverse = len(self.packed), np.zeros_like(self.packed)
        step, trtri = panels(n)[0], get_lapack_funcs("trtri", (inverse,))
        with single_threaded_blas:
            for k in range(0, n, step):
                panel = slice(k, min(k + step, n))
                block = np.tril(trtri(self.packed[panel, panel], lower=1)[0])
                inverse[panel, panel] = block
                _below_the_inverse(self.packed[panel], block, inverse, k)
        return inverse.T

    def inverse(self) -> np.ndarray:
        r""":math:`A^{-1}` (n, n)."""
        if len(self.packed) >= BLOCKED_ORDER:
            return symmetric_product(self.inverse_root())
        potri = get_lapack_funcs("potri", (self.packed,))
        with single_threaded_blas:
            lower: np.ndarray = np.tril(potri(self.packed, lower=1)[0])
        lower += np.tril(lower, -1).T
        return lower


def panels(n: int) -> tuple[int, int]:
    """Columns of a panel and rows of its tiles, for a matrix of this order: below 2048 the matrix as a whole."""
    return (max(n, 1), max(n, 1)) if n < BLOCKED_ORDER else _PANELS[n >= LARGE_ORDER]


def symmetric_product(rows: np.ndarray) -> np.ndarray:
    """Return ``rows @ rows.T`` (n, n), for rows of any number.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.linalg.cholesky import symmetric_product
    >>> symmetric_product(np.array([[1.0, 2.0], [0.0, 3.0]]))
    array([[5., 6.],
           [6., 9.]])
    """
    n = len(rows)
    out = np.empty((n, n), rows.dtype)

    def block(start: int, stop: int) -> None:
        i, j = n - stop, n - start  # the longest first
        np.matmul(rows[i:j], rows[:j].T, out=out[i:j, :j])
        out[:i, i:j] = out[i:j, :i].T

    for_each_tile(n, panels(n)[0], block)
    return out


def _factor(A: np.ndarray, width: int, height: int) -> None:
    """Factor in place: each panel of columns less the product of those before it, and then its own factor, tile by tile."""
    potrf, trsm = get_lapack_funcs("potrf", (A,)), get_blas_funcs("trsm", (A,))
    for k in range(0, len(A), width):
        end = min(k + width, len(A))
        before, corner = A[k:end, :k], A[k:end, k:end]
        if k:
            corner -= before @ before.T
        lower, failed = potrf(corner, lower=1, clean=0, overwrite_a=1)
        if failed or not np.isfinite(np.diag(lower)).all():
            _refuse(corner, k + failed)
        if end - k < len(A):  # the whole matrix is factored in place, a block in a copy
            corner[:] = lower
        _below(A[end:, :end], before, lower, trsm, height)


def _below(A: np.ndarray, before: np.ndarray, lower: np.ndarray, trsm: Any, height: int) -> None:
    """The last columns of A, those of a panel below its corner."""
    k = before.shape[1]

    def tile(start: int, stop: int) -> None:
        part = A[start:stop, k:]
        if k:
            part -= A[start:stop, :k] @ before.T
        part[:] = trsm(1.0, lower, part, side=1, lower=1, trans_a=1)

    for_each_tile(len(A), height, tile)


def _below_the_inverse(panel: np.ndarray, block: np.ndarray, inverse: np.ndarray, k: int) -> None:
    """Rows of the inverse left of column k, given those above them and the inverse of their own block."""

    def columns(start: int, stop: int) -> None:
        product = panel[:, start:k] @ inverse[start:k, start:stop]
        np.matmul(-block, product, out=inverse[k : k + len(panel), start:stop])

    for_each_tile(k, _SOLVED_COLUMNS, columns)


def _refuse(corner: np.ndarray, order: int) -> None:
    if not np.isfinite(corner).all():
        raise ValueError("Cholesky: matrix must be finite, got NaN or infinity.")
    raise LinAlgError(
        f"Cholesky: matrix must be positive definite, but its leading minor of order {order} is not; add to its diagonal."
    )
