r"""Distances between all rows of two arrays, accurate for close points as well as for far ones.

The expansion :math:`|a|^2 + |b|^2 - 2 a\cdot b` is one matrix product, but its rounding error is of the size of
:math:`|a|^2 + |b|^2`, so it has no correct digit left where a and b are close.  The points are therefore centred
first, which leaves their differences as they are and makes the norms small; and the pairs that are still close,
measured by their norms, are computed again from their differences.  Equal points are at distance exactly zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from .._arrays import array_namespace, detached, is_sparse, like

Lengthscale: TypeAlias = float | Sequence[float]

CLOSE = 2.0**-5  # pairs below this share of |a|^2 + |b|^2 are close: the expansion of others loses five bits at most
MANY = 1 / 8  # the share of close pairs from which on all pairs are computed from differences
NARROW = 8  # the width up to which differences cost no more than the matrix product
GATHERED = 2**18  # how many numbers the close pairs gather at a time
CENTRED = 2**17  # how many numbers are centred at a time, which are still in a cache when they are multiplied
FEWEST = 64  # rows that are multiplied at a time
LARGE = 8192  # rows from which on their products with themselves are made in blocks, where OpenBLAS ends the process
POINTS = 1024  # whose coordinates are read again for each row
STORED = 16  # cost of a stored number of a sparse row, in numbers of a dense one


def squared_distances(xp: Any, X: Any, Y: Any, lengthscale: Lengthscale = 1.0) -> Any:
    r"""Return :math:`\sum_i ((x_i - y_i)/\ell_i)^2` for all rows x of X (..., n, d) and y of Y (..., p, d)."""
    if X.shape[-1] <= NARROW or 1 in (X.shape[-2], Y.shape[-2]):
        return _from_differences(xp, X, Y, lengthscale, 2)
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow leaves inf or NaN, which is not far
        norms, q = _expansion(xp, X, Y, lengthscale)
        far = q > CLOSE * norms
    n_close = math.prod(far.shape) - int(xp.count_nonzero(far))
    if n_close > MANY * math.prod(far.shape):
        return _from_differences(xp, X, Y, lengthscale, 2)
    return _corrected(xp, q, ~far, X, Y, lengthscale) if n_close else q


class DistancesTo:
    r"""Squared distances between rows and fixed points, as `squared_distances`, whose part for the points is done once.

    One product of the centred rows :math:`(a, |a|^2, 1)` with the columns :math:`(-2b, 1, |b|^2)` is the whole expansion.
    """

    def __init__(self, Y: np.ndarray, lengthscale: Lengthscale = 1.0) -> None:
        self.Y, self.lengthscale = Y, lengthscale
        self.direct = Y.shape[1] <= NARROW or len(Y) == 1
        self._sparse: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        if self.direct:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            self.centre = Y.mean(axis=0)
            B = self._centred(Y, np.empty_like(Y))
            squares = np.vecdot(B, B)
        self.close = min(CLOSE, float(np.finfo(Y.dtype).eps) ** 0.25)  # at most a quarter of the digits is lost
        self.columns = np.concatenate([-2 * B, np.ones((len(B), 1), B.dtype), squares[:, None]], axis=1).T
        self.farthest = squares.max()

    def __call__(self, X: Any) -> np.ndarray:
        """Squared distances of rows X (n, d) of the type of the points, an array or a CSR matrix, (n, p)."""
        if is_sparse(X):
            if not self.direct and X.nnz * STORED < math.prod(X.shape):
                return self._of_sparse(X)
            X = X.toarray()
        if self.direct or len(X) <= 1:
            return np.asarray(squared_distances(np, X, self.Y, self.lengthscale))
        q = np.empty((len(X), len(self.Y)), X.dtype)
        step = min(len(X), max(FEWEST, CENTRED // X.shape[1]))
        rows = np.empty((step, X.shape[1] + 2), X.dtype)
        rows[:, -1] = 1
        with np.errstate(over="ignore", invalid="ignore"):  # an overflow leaves inf or NaN, which is not far
            for start in range(0, len(X), step):
                x = X[start : start + step]
                self._fill(x, rows[: len(x)], q[start : start + step])
        return q

    def _fill(self, X: np.ndarray, rows: np.ndarray, q: np.ndarray) -> None:
        A = self._centred(X, rows[:, :-2])
        rows[:, -2] = np.vecdot(A, A)
        np.matmul(rows, self.columns, out=q)
        suspect = np.flatnonzero(~(q.min(axis=1) > self.close * (rows[:, -2] + self.farthest)))
        if len(suspect):
            self._correct(q, suspect, X[suspect], rows[:, -2], self.columns[-1])

    def _of_sparse(self, X: Any) -> np.ndarray:
        """The expansion without a centre, which would fill the zeros."""
        if self._sparse is None:
            scale = np.broadcast_to(scale_like(self.lengthscale, self.Y), self.Y.shape[1:])
            B = self.Y / scale
            self._sparse = scale**-2, np.ascontiguousarray((-2 * B / scale).T), np.vecdot(B, B)
        weights, columns, squares = self._sparse
        with np.errstate(over="ignore", invalid="ignore"):
            own = X.multiply(X) @ weights
            q = np.asarray(X @ columns)
            q += squares
            q += own[:, None]
            suspect = np.flatnonzero(~(q.min(axis=1) > self.close * (own + squares.max())))
            if len(suspect):
                self._correct(q, suspect, X[suspect].toarray(), own, squares)
        return q

    def _centred(self, X: np.ndarray, out: np.ndarray) -> np.ndarray:
        np.subtract(X, self.centre, out=out)
        if self.lengthscale != 1.0:
            out /= scale_like(self.lengthscale, X)
        return out

    def _correct(self, q: np.ndarray, suspect: np.ndarray, X: np.ndarray, own: np.ndarray, squares: np.ndarray) -> None:
        """Replace the distances of close pairs, which are all in the ``suspect`` rows X, by norms of rows and points."""
        row, column = np.nonzero(~(q[suspect] > self.close * (own[suspect, None] + squares)))
        if len(row) > MANY * q.size:
            q[suspect] = _from_differences(np, X, self.Y, self.lengthscale, 2)
            return
        step = max(1, GATHERED // X.shape[1])
        for start in range(0, len(row), step):
            i, j = row[start : start + step], column[start : start + step]
            differences = X[i] - self.Y[j]
            if self.lengthscale != 1.0:
                differences /= scale_like(self.lengthscale, X)
            q[suspect[i], j] = np.vecdot(differences, differences)


def manhattan_distances(xp: Any, X: Any, Y: Any, lengthscale: Lengthscale = 1.0) -> Any:
    r"""Return :math:`\sum_i |x_i - y_i|/\ell_i` for all rows x of X (..., n, d) and y of Y (..., p, d)."""
    return _from_differences(xp, X, Y, lengthscale, 1)


def scale_like(lengthscale: Lengthscale, X: Any) -> Any:
    """Return the lengthscale as an array like X: above zero also where it underflows the type of X, so that 0/0 is 0."""
    smallest = float(array_namespace(X).finfo(X.dtype).smallest_normal)
    return like(np.maximum(np.asarray(lengthscale), smallest), X)


def dot_products(xp: Any, X: Any, Y: Any) -> Any:
    """Return x . y for all rows x of X (..., n, d) and y of Y (..., p, d); where terms overflow, a number or an infinity."""
    if xp is not np:
        return X @ xp.matrix_transpose(Y)
    with np.errstate(over="ignore", invalid="ignore"):
        K = _with_themselves(X) if _same(X, Y) and len(X) >= LARGE else X @ np.matrix_transpose(Y)
        if not np.isfinite(K.sum()) and np.any(np.isnan(K)):
            x, y = (np.maximum(np.abs(Z).max(axis=-1, keepdims=True), 1.0) for Z in (X, Y))
            K = (X / x) @ np.matrix_transpose(Y / y) * x * np.matrix_transpose(y)
    return K


def _same(X: np.ndarray, Y: np.ndarray) -> bool:
    """Whether two arrays (n, d) are the same numbers in memory, so that NumPy takes their product for a symmetric one."""
    return X.ndim == 2 and (X.ctypes.data, X.shape, X.strides) == (Y.ctypes.data, Y.shape, Y.strides)


def _with_themselves(X: np.ndarray) -> np.ndarray:
    from ..linalg.cholesky import symmetric_product

    return symmetric_product(X)


def _expansion(xp: Any, X: Any, Y: Any, lengthscale: Lengthscale) -> tuple[Any, Any]:
    """Return the sums of squared norms |a|^2 + |b|^2 of the centred points, and their squared distances."""
    scale = scale_like(lengthscale, X)
    centre = detached(_mean_row(xp, X) + _mean_row(xp, Y)) / 2
    A = (X - centre) / scale
    B = A if Y is X else (Y - centre) / scale
    norms = xp.sum(A * A, axis=-1)[..., :, None] + xp.sum(B * B, axis=-1)[..., None, :]
    q = (-2 * A) @ xp.matrix_transpose(B)
    q += norms
    return norms, q


def _mean_row(xp: Any, X: Any) -> Any:
    return xp.mean(X, axis=tuple(range(X.ndim - 1)))


def _corrected(xp: Any, q: Any, close: Any, X: Any, Y: Any, lengthscale: Lengthscale) -> Any:
    """Replace the ``close`` entries of ``q`` by sums of squared differences."""
    scale = scale_like(lengthscale, X)
    batch = tuple(q.shape[:-2])
    X = xp.broadcast_to(X, (*batch, *X.shape[-2:]))
    Y = xp.broadcast_to(Y, (*batch, *Y.shape[-2:]))
    places = xp.nonzero(close)
    step = max(1, GATHERED // X.shape[-1])
    for start in range(0, places[0].shape[0], step):
        *outer, row, column = (place[start : start + step] for place in places)
        q[(*outer, row, column)] = _sum_of_terms(xp, X[(*outer, row)] - Y[(*outer, column)], scale, 2)
    return q


def _from_differences(xp: Any, X: Any, Y: Any, lengthscale: Lengthscale, power: int) -> Any:
    """Sum the absolute values or the squares of scaled differences, without an array of shape (n, p, d)."""
    scale = scale_like(lengthscale, X)
    with np.errstate(over="ignore"):  # points so far apart that their distance is infinite
        if 1 in (X.shape[-2], Y.shape[-2]):
            return _sum_of_terms(xp, X[..., :, None, :] - Y[..., None, :, :], scale, power)
        if xp is np:
            return _compiled(X, Y, scale, power) if _is_tame(X, Y) else _by_scipy(X, Y, lengthscale, power)
        scale = xp.broadcast_to(scale, X.shape[-1:])
        columns = [slice(i, i + 1) for i in range(X.shape[-1])]
        return sum(_sum_of_terms(xp, X[..., :, None, i] - Y[..., None, :, i], scale[i], power) for i in columns)


def _sum_of_terms(xp: Any, differences: Any, scale: Any, power: int) -> Any:
    z = differences / scale
    return xp.sum(z * z if power == 2 else xp.abs(z), axis=-1)


def _is_tame(X: np.ndarray, Y: np.ndarray) -> bool:
    """Whether no difference overflows; it may in the type of X although its quotient by the lengthscale is a number."""
    half = np.finfo(X.dtype).max / 2
    return all(not Z.size or max(Z.max(), -Z.min()) < half for Z in (X, Y))


def _compiled(X: np.ndarray, Y: np.ndarray, scale: np.ndarray, power: int) -> np.ndarray:
    """Sums in tiles of points that stay in the cache."""
    from ..linalg.loops import manhattan, squared

    fill, (n, d), p = (manhattan, squared)[power - 1], X.shape[-2:], Y.shape[-2]
    inverse = np.broadcast_to(1 / scale, (d,)).astype(X.dtype)
    batch = np.broadcast_shapes(X.shape[:-2], Y.shape[:-2])
    X_all, Y_all = np.broadcast_to(X, (*batch, n, d)), np.broadcast_to(Y, (*batch, p, d))
    sums = np.empty((*batch, n, p), X.dtype)
    for index in np.ndindex(batch):
        rows = np.ascontiguousarray(X_all[index])
        for start in range(0, p, POINTS):
            points = np.ascontiguousarray(Y_all[index][start : start + POINTS].T)
            fill(rows, points, inverse, sums[index][:, start : start + POINTS])
    return sums


def _by_scipy(X: np.ndarray, Y: np.ndarray, lengthscale: Lengthscale, power: int) -> np.ndarray:
    from scipy.spatial.distance import cdist

    metric = {1: "cityblock", 2: "sqeuclidean"}[power]
    weights = None
    if isinstance(lengthscale, tuple):
        weights = np.minimum(
            np.asarray(lengthscale) ** -float(power), np.finfo(np.float64).max
        )  # zero times it is zero
    batch = np.broadcast_shapes(X.shape[:-2], Y.shape[:-2])
    X_all = np.broadcast_to(X, (*batch, *X.shape[-2:]))
    Y_all = np.broadcast_to(Y, (*batch, *Y.shape[-2:]))
    sums = np.empty((*batch, X.shape[-2], Y.shape[-2]))
    for index in np.ndindex(batch):
        sums[index] = cdist(X_all[index], Y_all[index], metric, w=weights)
    for _ in range(power if weights is None else 0):
        sums /= lengthscale  # its square may underflow
    return sums.astype(X.dtype, copy=False)
