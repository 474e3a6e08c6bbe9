r"""Cholesky factors and symmetric products of matrices of any order.

OpenBLAS, the BLAS of NumPy's and SciPy's wheels, ends the process with a segmentation fault in products
:math:`AA^T` and Cholesky factorisations of large matrices on several threads: its symmetric product gives each thread a
share of the columns, up to :math:`n/\sqrt 2` of them, and packs all of it into a buffer of a fixed 32 MB.  With two threads
on a processor with AVX-512 this holds up to order 15000 or so in float64, and twice that in float32.  From half of that
on, the functions here ask for symmetric products of blocks only, so that no order is too large.
"""

from __future__ import annotations

import contextlib
import mmap
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import LinAlgError, get_blas_funcs, get_lapack_funcs

from .._validation import check_memory
from .engine import blas_for

LARGE_ORDER = 8192  # from here on matrices are taken in blocks
_LARGE_BYTES = 1 << 28  # size from which the half of a matrix that is never written should take no memory
BLOCK = 1024  # at order 9000 as fast as 2048 and a sixth faster than 4096; copies of blocks take 8 MB


@dataclass(frozen=True)
class Cholesky:
    r"""The lower triangular factor of a positive definite matrix, :math:`A = LL^T`, and equations that it solves.

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

    # (n, n): L on and below the diagonal, in columns; what is above it means nothing
    packed: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, matrix: np.ndarray, *, overwrite: bool = False) -> Cholesky:
        """Factor a matrix.

        Parameters
        ----------
        matrix : float32 or float64 array (n, n)
            Of which only the part on and above the diagonal is read.
        overwrite : bool
            Whether the factor may take the place of the matrix, if its rows are contiguous.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the matrix is not positive definite.
        """
        A = matrix.T if overwrite and matrix.flags.c_contiguous else np.array(matrix.T, order="F")
        with blas_for(len(A)):
            _factor(A, len(A) if len(A) < LARGE_ORDER else BLOCK)
        return cls(A)

    @property
    def lower(self) -> np.ndarray:
        """L, with zeros above the diagonal."""
        return np.triu(self.packed.T).T  # in columns

    @property
    def diagonal(self) -> np.ndarray:
        """Diagonal of L, shape (n,)."""
        return np.diag(self.packed)

    @property
    def log_determinant(self) -> float:
        """Log-determinant of A."""
        return 2 * float(np.log(self.diagonal).sum())

    def solve(self, B: np.ndarray) -> np.ndarray:
        r""":math:`A^{-1}B`, for columns B (n, k)."""
        potrs = get_lapack_funcs("potrs", (self.packed,))
        with blas_for(len(self.packed)):
            return np.asarray(potrs(self.packed, B, lower=1)[0] if B.size else B.astype(self.packed.dtype))

    def solve_lower(self, B: np.ndarray) -> np.ndarray:
        r""":math:`L^{-1}B`, for columns B (n, k)."""
        trsm = get_blas_funcs("trsm", (self.packed,))
        with blas_for(len(self.packed)):
            return np.asarray(trsm(1.0, self.packed, B, lower=1) if B.size else B.astype(self.packed.dtype))

    def inverse_root(self) -> np.ndarray:
        r""":math:`R = L^{-T}` (n, n), upper triangular, with :math:`RR^T = A^{-1}`."""
        lower = self.lower
        if lower.size:
            with blas_for(len(lower)):
                lower = get_lapack_funcs("trtri", (lower,))(lower, lower=1, overwrite_c=1)[0]
        return np.asarray(lower.T)

    def inverse(self) -> np.ndarray:
        r""":math:`A^{-1}` (n, n)."""
        n = len(self.packed)
        if n >= LARGE_ORDER or n == 0:  # LAPACK's own multiplies the root by itself as a whole
            return symmetric_product(self.inverse_root())
        potri = get_lapack_funcs("potri", (self.packed,))
        with blas_for(n):
            upper: np.ndarray = np.triu(potri(self.packed, lower=1)[0].T)
        upper += np.triu(upper, 1).T
        return upper


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
    with blas_for(n):
        if n < LARGE_ORDER:
            return np.asarray(rows @ rows.T)
        out = np.empty((n, n), rows.dtype)
        for i in range(0, n, BLOCK):
            for j in range(0, i + 1, BLOCK):
                block = rows[i : i + BLOCK] @ rows[j : j + BLOCK].T
                out[i : i + BLOCK, j : j + BLOCK] = block
                out[j : j + BLOCK, i : i + BLOCK] = block.T
    return out


def room_for_triangle(order: int, dtype: np.dtype) -> np.ndarray:
    """Return zeros (order, order), of which a triangle that is never written takes no memory if it is large.

    Pages of memory that are never written take none.  NumPy asks for pages of 2 MB, which hold several rows of a matrix
    and so a part of both triangles; small ones are asked for here.

    Parameters
    ----------
    order : int
        Number of rows and of columns.
    dtype : numpy.dtype
        Kind of the numbers.

    Returns
    -------
    array (order, order)
    """
    size = order * order * dtype.itemsize
    check_memory(f"a matrix of order {order}", size, "use fewer components")
    if size < _LARGE_BYTES:
        return np.zeros((order, order), dtype)
    pages = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without pages of 2 MB
            pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, dtype).reshape(order, order)


def _factor(A: np.ndarray, step: int) -> None:
    """Factor in place: a block of the diagonal, the columns below it, and what these leave of the columns after them."""
    potrf, trsm = get_lapack_funcs("potrf", (A,)), get_blas_funcs("trsm", (A,))
    for k in range(0, len(A), step or 1):
        end = k + step
        corner = A[k:end, k:end]
        lower, failed = potrf(corner, lower=1, clean=0, overwrite_a=1)
        if failed or not np.isfinite(np.diag(lower)).all():
            _refuse(corner, k + failed)
        if step < len(A):  # the whole matrix is factored in place, a block in a copy
            corner[:] = lower
        for i in range(end, len(A), step):
            A[i : i + step, k:end] = trsm(1.0, lower, A[i : i + step, k:end], side=1, lower=1, trans_a=1)
        for i in range(end, len(A), step):
            for j in range(end, i + 1, step):
                A[i : i + step, j : j + step] -= (A[j : j + step, k:end] @ A[i : i + step, k:end].T).T


def _refuse(corner: np.ndarray, order: int) -> None:
    if not np.isfinite(np.tril(corner)).all():
        raise ValueError("Cholesky: matrix must be finite, got NaN or infinity.")
    raise LinAlgError(
        f"Cholesky: matrix must be positive definite, but its leading minor of order {order} is not; add to its diagonal."
    )
