"""Exactly uniform orthogonal matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._random import RNG, streams
from .._validation import check_memory
from ..linalg.engine import single_threaded_blas
from ._drawn_rotation import DrawnMatrices, DrawnRotation
from ._rotation import DenseRotation, Directions

_LARGE = 512  # dimension from which the rows that a cut block does not need are not drawn


@dataclass(frozen=True)
class Haar(DenseRotation):
    r"""Uniformly distributed orthogonal matrices, stored in full.

    The default rotation.  Every coupling is exactly unbiased with it; use `StructuredGivens` in high dimensions.

    Notes
    -----
    :math:`R = Q\,\mathrm{diag}(\mathrm{sign}\,\mathrm{diag}\,U)`, where :math:`G = QU` is the QR factorisation of a
    matrix of independent normal numbers.  Without the signs Q is not Haar: with LAPACK's convention the diagonal
    entries have means near -0.4 at d = 4, and a positive random feature along :math:`e_1` averages 0.52 instead of
    1.649, although second moments, and therefore cosine features, are correct.

    Time :math:`O(d^3)` and memory :math:`O(d^2)` per block, for any d.  If only r rows of a large matrix are needed,
    the others are not drawn, and the cost is :math:`O(d r^2)` and :math:`O(d r)`.  Every direction of the result is
    exactly uniform.

    References
    ----------
    mezzadri2007, OMC Section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.rotations import Haar
    >>> R = Haar().sample(5, rng=0).to_dense()[0]
    >>> bool(np.allclose(R @ R.T, np.eye(5)))
    True
    """

    name: ClassVar[str] = "haar"
    exchangeable: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("mezzadri2007", "omc")

    @property
    def uniform_directions(self) -> Directions:
        return "all"

    def _draw_rows(self, d: int, n_rows: int, rng: RNG) -> DrawnRotation:
        """Draw only the first rows of a large matrix, uniform on the Stiefel manifold as those of the full matrix."""
        if d < _LARGE or 2 * n_rows > d:
            return super()._draw_rows(d, n_rows, rng)
        check_memory(repr(self), 8.0 * d * n_rows, "use fewer rows or dimensions")
        (stream,) = streams(rng, "directions")
        return DrawnMatrices(repr(self), _orthonormal_rows(stream, d, n_rows)[None])

    def matrices(self, dim: int, n_blocks: int, rng: np.random.Generator) -> np.ndarray:
        """Return Q with the signs of the diagonal of U."""
        return _orthonormal_columns(rng, n_blocks, dim, dim)


def _orthonormal_rows(rng: np.random.Generator, dim: int, n_rows: int) -> np.ndarray:
    r"""A uniform matrix of a few orthonormal rows, (n_rows, dim): those of the signed QR factorisation, by Cholesky.

    With :math:`G^TG = U^TU` and a positive diagonal of U, :math:`GU^{-1}` is the same Q up to rounding, at a fraction of
    the time.  It is accurate because :math:`n \le d/2` normal columns are well conditioned.
    """
    from scipy.linalg.blas import dtrsm

    G = rng.standard_normal((dim, n_rows))
    with single_threaded_blas:
        U = np.linalg.cholesky(G.T @ G, upper=True)
        return np.asarray(dtrsm(1.0, U, G.T, trans_a=1, overwrite_b=1))


def _orthonormal_columns(rng: np.random.Generator, n_blocks: int, dim: int, n_columns: int) -> np.ndarray:
    """Uniform matrices of orthonormal columns, (n_blocks, dim, n_columns)."""
    with single_threaded_blas:  # so that the number of threads cannot change a bit of the draw
        q, u = np.linalg.qr(rng.standard_normal((n_blocks, dim, n_columns)))
    diagonal = np.diagonal(u, axis1=-2, axis2=-1)
    signed: np.ndarray = q * np.where(diagonal < 0, -1.0, 1.0)[:, None, :]
    return signed
