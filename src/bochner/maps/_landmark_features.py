"""The features of landmarks: the kernel with them, whitened, and how they change with the lengthscales."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .._arrays import cast, is_numpy, is_sparse, is_torch, like
from ..kernels import Kernel, Radial
from ..kernels._distances import squared_distances
from ..linalg.engine import single_threaded_blas
from ._features import Factored, Features, Scaled

_STEP = 1e-5  # relative step of central differences: the cube root of the rounding error of float64
_SAME = 1e-12  # squared distance, in lengthscales, below which two points are the same
_BLOCK = 128  # columns that are whitened at a time: the triangle below the block is not multiplied
_JITTERS = (0.0, 1e-12, 1e-10, 1e-8)  # shares of the mean diagonal tried in turn until K_SS has a Cholesky factor
_ACCURATE = 1e-3  # relative error of features by rounding in float32 above which they are computed in float64


_DEPENDENT, _MOST_DEPENDENT = 1e-3, 64
"""A landmark whose residual given those before it is below this share is nearly dependent; one in so many at most."""
_POWER_STEPS = 8  # steps of the power method, which find a largest singular value within a few per cent


class KernelColumns(Features):
    """The kernel between points and landmarks, as it is, but for some columns, which are replaced by whitened ones."""

    symmetric = True
    positive = False
    sparse_rows = True

    def __init__(self, whitened: LandmarkFeatures, replaced: np.ndarray) -> None:
        self.whitened, self.width, self.replaced = whitened, len(whitened.points), replaced
        self._coefficients: dict[np.dtype, np.ndarray] = {}

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """One Gram matrix with the landmarks."""
        columns, T = self.whitened.prepared(X.dtype)
        values = columns(X)
        if len(self.replaced):
            if X.dtype not in self._coefficients:
                self._coefficients[X.dtype] = T[:, self.replaced]
            values[:, self.replaced] = values @ self._coefficients[X.dtype]
        return values, None


class LandmarkFeatures(Features):
    """The kernel between points and landmarks, whitened; columns that the landmarks do not fill are zero.

    Whitening multiplies the rounding errors of kernel values by up to the inverse root of the smallest eigenvalue of
    K_SS, while features are no longer than the root of k(x, x).  Where float32 would not be accurate enough, its rows are
    therefore computed in float64, and the features are cast.
    """

    symmetric = True
    positive = False
    sparse_rows = True
    tall = 256

    def __init__(
        self, unit: Kernel, points: np.ndarray, jitter: float, width: int, whitened: np.ndarray | None = None
    ) -> None:
        self.unit, self.points, self.width = unit, points[:width], width
        whitened = whitening(unit, self.points, jitter)[0] if whitened is None else whitened
        self.transform = np.zeros((len(self.points), width))
        self.transform[:, : whitened.shape[1]] = whitened
        self.triangular = not np.tril(self.transform, -1).any()
        self._factored: dict[bool, Factored] = {}
        length = np.sqrt(float(np.mean(unit.diagonal(self.points))))
        self.delicate = bool(np.finfo(np.float32).eps * np.linalg.norm(self.transform) * length > _ACCURATE)
        self._prepared: dict[np.dtype, tuple[Callable[[Any], np.ndarray], np.ndarray]] = {}

    def factored(self, *, stable: bool) -> Factored | None:
        """The kernel with the landmarks, and the whitening, if that is a triangle."""
        if not self.triangular:
            return None
        if stable not in self._factored:
            which = _nearly_dependent(np.diag(self.transform)) if stable else np.arange(0)
            Q = _without(self.transform, which)
            self._factored[stable] = Factored(KernelColumns(self, which), Q, _largest_square(Q))
        return self._factored[stable]

    def at_points(self, X: Any) -> np.ndarray:
        """Rows that are landmarks, by their distances."""
        rows = (X.toarray() if is_sparse(X) else X).astype(np.float64)
        nearest = squared_distances(np, rows, self.points, 1.0).min(axis=1)
        return np.asarray(nearest <= _SAME * np.maximum((rows**2).sum(axis=1), 1.0))

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """One Gram matrix with the landmarks, and one product."""
        lead = tuple(X.shape[:-1])
        rows = X if is_sparse(X) else X.reshape(-1, X.shape[-1])
        if is_numpy(X) or is_sparse(X):
            values = np.empty((rows.shape[0], self.width), X.dtype)
            self.fill(rows, values, key=key)
        else:
            rows = rows.double() if self.delicate and is_torch(X) else rows
            values = cast(self.unit(rows, like(self.points, rows)) @ like(self.transform, rows), X.dtype)
        return values.reshape(*lead, self.width), None

    def fill(self, X: Any, out: np.ndarray, *, key: bool) -> None:
        """Write the product by blocks of columns, without the zeros of a triangle."""
        dtype = np.dtype(np.float64) if self.delicate else X.dtype
        columns, T = self.prepared(dtype)
        values = columns(X.astype(dtype, copy=False))
        for start in range(0, self.width, _BLOCK):
            stop = min(start + _BLOCK, self.width)
            some = slice(stop) if self.triangular else slice(None)
            if out.dtype == dtype:
                np.matmul(values[:, some], T[some, start:stop], out=out[:, start:stop])
            else:
                out[:, start:stop] = values[:, some] @ T[some, start:stop]

    def prepared(self, dtype: np.dtype) -> tuple[Callable[[Any], np.ndarray], np.ndarray]:
        """The kernel with the landmarks, and the product, in one type; made once."""
        if dtype not in self._prepared:
            self._prepared[dtype] = (
                self.unit.columns(self.points.astype(dtype, copy=False)),
                self.transform.astype(dtype, copy=False),
            )
        return self._prepared[dtype]

    def stretch(self, X: np.ndarray, values: np.ndarray, gradient: np.ndarray) -> np.ndarray | None:
        r"""Gradient in the lengthscales, for kernels of the distance; they divide the landmarks as well.

        With G the given gradient, :math:`\Phi = K_{XS}T` and :math:`TT^T = K_{SS}^{-1}`, a function of
        :math:`\Phi\Phi^T` has the gradients :math:`GT^T` in :math:`K_{XS}` and
        :math:`-\tfrac12T\Phi^TGT^T` in :math:`K_{SS}`.
        """
        if not isinstance(self.unit, Radial):
            return None
        T, S = self.transform, self.points
        within = -0.5 * (T @ (values.T @ gradient) @ T.T)
        between = _stretch(self.unit, X, S, gradient @ T.T)
        between += _stretch(self.unit, S, S, within)
        return between


def _nearly_dependent(inverse_pivots: np.ndarray) -> np.ndarray:
    """Numbers of the few landmarks that those before them nearly determine: their features have the largest coefficients."""
    worst = np.argsort(-inverse_pivots, kind="stable")[: len(inverse_pivots) // _MOST_DEPENDENT]
    return np.sort(worst[inverse_pivots[worst] ** 2 * _DEPENDENT > inverse_pivots[0] ** 2])


def _without(T: np.ndarray, which: np.ndarray) -> np.ndarray:
    """Q with K T = F Q, where F is K but for some columns, which are those of K T.

    F = K A, where A is the identity but for these columns, and Q is the inverse of A times T.
    """
    from scipy.linalg import solve_triangular

    if not len(which):
        return T
    with single_threaded_blas:
        rows = solve_triangular(T[np.ix_(which, which)], T[which], check_finite=False)
        Q = T - T[:, which] @ rows
    Q[which] += rows
    return np.triu(Q)


def _largest_square(matrix: np.ndarray) -> float:
    """Square of the largest singular value, by the power method."""
    v, square = np.ones(len(matrix)), 0.0
    with single_threaded_blas:
        for _ in range(_POWER_STEPS):
            v = matrix @ (matrix.T @ v)
            square = float(np.linalg.norm(v))
            v /= square
    return square


def _stretch(unit: Radial, X: np.ndarray, Y: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    r"""Gradient in logarithms of lengthscales, from one in the Gram matrix :math:`\kappa(q)` of X and Y.

    :math:`\partial q/\partial\log\ell_c = -2(x_c-y_c)^2`, and :math:`q\kappa'(q)` is a difference of the profile at
    nearby scales.
    """
    q = squared_distances(np, X, Y, 1.0)
    slope = (unit.profile(np, q * (1 + _STEP)) - unit.profile(np, q * (1 - _STEP))) / (2 * _STEP)
    apart = q > _SAME
    weights = gradient * np.where(apart, slope / np.where(apart, q, 1.0), 0.0)
    squares = weights.sum(axis=1) @ X**2 + weights.sum(axis=0) @ Y**2 - 2 * np.einsum("nd,nd->d", X, weights @ Y)
    return np.asarray(-2 * squares)


def whitening(unit: Kernel, points: np.ndarray, jitter: float | None = None) -> tuple[np.ndarray, float]:
    """T with T T^T the inverse of K_SS, (m, rank), and the jitter in use.

    A Cholesky factor with the least jitter that gives one; where none does (duplicates, a flat kernel), the
    eigenvectors of the eigenvalues that rounding leaves.  The number of threads cannot change a bit.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        K = np.asarray(unit(points), dtype=np.float64)
    if not np.isfinite(K).all():
        raise ValueError(f"Landmarks: {unit!r} overflows between the landmarks; rescale the data.")
    with single_threaded_blas:
        return _inverse_root(K, _JITTERS if jitter is None else (jitter,))


def _inverse_root(K: np.ndarray, jitters: tuple[float, ...]) -> tuple[np.ndarray, float]:
    from ..linalg.cholesky import Cholesky

    size = float(np.trace(K)) / len(K) or 1.0
    for share in jitters:
        shifted = K.copy()
        shifted.flat[:: len(K) + 1] += share * size
        with contextlib.suppress(np.linalg.LinAlgError):
            factor = Cholesky.of(shifted, overwrite=True)
            if factor.diagonal.min() > 1e-7 * factor.diagonal.max() or share == _JITTERS[-1]:
                return factor.inverse_root(), share
    values, vectors = np.linalg.eigh(K)
    kept = values > len(K) * np.finfo(np.float64).eps * values.max()
    return vectors[:, kept] / np.sqrt(values[kept]), 0.0
