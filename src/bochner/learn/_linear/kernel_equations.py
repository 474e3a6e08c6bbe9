r"""The equations of exact kernel ridge regression, :math:`(K + \alpha W^{-1})c = y - b` with :math:`1^Tc = 0`.

Up to `DIRECT_ROWS` rows a Cholesky factor solves them, in float64 or, from `DOUBLE_ROWS` on, in float32 with a few steps of
conjugate gradients on tiles in float64, which give back the digits.  For more rows conjugate gradients run on tiles of the
kernel in float32, with landmarks as preconditioner; tiles stay in memory as far as `HELD_BYTES` allows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..._progress import note, progress
from ...approximation import Approximation
from ...kernels import Kernel
from ...linalg.cholesky import Cholesky
from ...linalg.engine import blas_for, for_each_tile
from ...maps import Landmarks
from .conjugate_gradients import ConjugateGradients

DIRECT_ROWS, DOUBLE_ROWS = 20_000, 8192
"""Most rows of a Cholesky factor, 1.6 GB in float32, and of one in float64, .5 GB."""
HELD_BYTES = 3 << 30  # tiles of the kernel that are kept from one product to the next: those of 40,000 rows
_BLOCK, _STRIP = 2048, 256  # rows and columns of a tile, 16 MB in float32, and columns of a product of features
_COLUMNS, _EVEN, _STRIPE = 32, 4, 128
"""Vectors that are multiplied at a time, of which BLAS likes a multiple of four, and rows of a tile, 1 MB, which both of
its products find in a cache: on one core 19 vectors take 24 % less time than with whole tiles."""
_LANDMARKS, _ROWS_PER_LANDMARK = 2048, 12
"""Landmarks of the preconditioner at most, and rows for each: their factor is held beside the tiles.  Not tuned."""
_STEPS = 400  # of conjugate gradients at most: a fit that needs more is told to regularise
_PROBES = 8
"""Random signs from which the diagonal of the inverse is estimated, to a tenth or two: each costs as much as a target."""
_ROUGH = 100.0  # tolerance of probes, in units of that of targets: a hundredth of what they estimate to a tenth
_SINGLE = 1e-5
"""Share of the largest eigenvalue from which the shift of a preconditioner is far above the rounding of float32."""
_CLEAR = 1.0
"""Standard error of an estimate of probes, in units of its bound by landmarks, from which the bound is used instead."""
_COMPARED = 16
"""Rows without a clear estimate that are solved for, to see how far the diagonal is above the bound of the others."""
_NOTHING_LEFT = 1e-6  # share of the kernel of a row below which features hold all of it: float32 rounds there
_TOLERANCE, _FLOAT32_TOLERANCE = 1e-8, 1e-4
"""Errors at which the iteration ends, relative to the fit, in the norm of the matrix: products in float32 round there."""


@dataclass(frozen=True)
class KernelTiles:
    r"""Products with :math:`\sqrt WK\sqrt W`, by tiles on and below the diagonal, each used twice."""

    kernel: Kernel
    X: np.ndarray = field(repr=False)  # (n, d): rows, in the precision of the tiles
    roots: np.ndarray = field(repr=False)  # (n,): roots of the weights
    held: dict[tuple[int, int], np.ndarray] = field(default_factory=dict, repr=False)  # tiles that are kept

    def __call__(self, V: np.ndarray) -> np.ndarray:
        """Products (n, k) in float64 with vectors V (n, k)."""
        out = np.zeros(V.shape)
        scaled = (self.roots[:, None] * V).astype(self.X.dtype)
        for k in range(0, V.shape[1], _COLUMNS):
            some = scaled[:, k : k + _COLUMNS]
            even = np.zeros((len(some), -(-some.shape[1] // _EVEN) * _EVEN), some.dtype)
            even[:, : some.shape[1]] = some
            out[:, k : k + _COLUMNS] = self._products(even)[:, : some.shape[1]]
        return self.roots[:, None] * out

    def matrix(self) -> np.ndarray:
        """The kernel matrix (n, n), on and above the diagonal."""
        n, starts = len(self.X), self._starts
        out = np.zeros((n, n), self.X.dtype)
        roots = self.roots.astype(self.X.dtype)

        def row(first: int, last: int) -> None:
            for i in starts[first:last]:
                for j in starts[starts >= i]:
                    a, b = slice(i, i + _BLOCK), slice(j, j + _BLOCK)
                    out[a, b] = roots[a, None] * self._computed(a, b) * roots[b]

        for_each_tile(len(starts), 1, row)
        return out

    @property
    def _starts(self) -> np.ndarray:
        return np.arange(0, len(self.X), _BLOCK)

    def _computed(self, a: slice, b: slice) -> np.ndarray:
        return self.kernel.columns(self.X[b])(self.X[a])

    def _products(self, V: np.ndarray) -> np.ndarray:
        pairs = [(int(i), int(j)) for i in self._starts for j in self._starts if j <= i]
        found: list[Any] = [None] * len(pairs)
        each = self.X.dtype.itemsize * _BLOCK**2

        def work(first: int, last: int) -> None:
            for p in range(first, last):
                i, j = pairs[p]
                tile = self.held.get((i, j))
                if tile is None:
                    tile = self._computed(slice(i, i + _BLOCK), slice(j, j + _BLOCK))
                    if (len(self.held) + 1) * each <= HELD_BYTES:
                        self.held[i, j] = tile
                found[p] = _both_products(tile, V[j : j + _BLOCK], V[i : i + _BLOCK] if i > j else None)

        for_each_tile(len(pairs), 1, work)
        out = np.zeros(V.shape)
        for (i, j), (below, above) in zip(pairs, found, strict=True):  # in their order, whatever the threads
            out[i : i + _BLOCK] += below
            if above is not None:
                out[j : j + _BLOCK] += above
        return out


def _both_products(tile: np.ndarray, V: np.ndarray, U: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Products of a tile with V and, unless U is None, of its transpose with U."""
    below, above = np.empty((len(tile), V.shape[1]), tile.dtype), None if U is None else np.zeros_like(V)
    for start in range(0, len(tile), _STRIPE):
        rows = slice(start, start + _STRIPE)
        np.matmul(tile[rows], V, out=below[rows])
        if above is not None and U is not None:
            above += tile[rows].T @ U[rows]
    return below, above


class LandmarkPreconditioner(NamedTuple):
    r"""The inverse of :math:`FF^T + \delta`, with features F (n, m) of landmarks and :math:`\delta\ge\alpha`."""

    F: np.ndarray  # (n, m)
    factor: Cholesky  # of F^TF + delta
    shift: float  # delta
    stretch: np.ndarray  # (t,): delta/alpha
    residual: np.ndarray  # (n,): diagonal of what the landmarks leave out of the kernel

    @classmethod
    def of(
        cls, kernel: Kernel, X: np.ndarray, roots: np.ndarray, alpha: float, n_targets: int
    ) -> LandmarkPreconditioner:
        """Landmarks among the rows, and a shift as large as what they leave out of the kernel."""
        m = int(np.clip(len(X) // _ROWS_PER_LANDMARK, 1, _LANDMARKS))
        spec = Approximation(kernel, Landmarks("rpcholesky"), n_projections=m)
        phi = spec.fit(X, rng=0)
        for dtype in (np.float32, np.float64):  # float32 has half of the memory that each step reads
            F = roots[:, None].astype(dtype) * phi.queries(X.astype(dtype))
            squares = np.einsum("nm,nm->n", F, F).astype(np.float64)
            residual = np.maximum(roots**2 * kernel.diagonal(X).astype(np.float64) - squares, 0.0)
            shift = alpha + float(residual.sum()) / m  # as if what is left were spread over as many directions again
            S = _squares(F)
            if shift > _SINGLE * float(np.linalg.norm(S)):
                break
        S.flat[:: len(S) + 1] += shift
        with blas_for(m):
            factor = Cholesky.of(S, overwrite=True)
        stretch = np.full(n_targets, max(shift / alpha, 1.0))
        return cls(F, factor, shift, stretch, residual)

    def solve(self, R: np.ndarray, which: Any) -> np.ndarray:
        """Residuals (n, k), preconditioned."""
        starts = range(0, len(R), _BLOCK)
        size = np.maximum(np.abs(R).max(axis=0), np.finfo(np.float64).tiny)  # float32 has few exponents
        scaled = (R / size).astype(self.F.dtype)
        parts = np.empty((len(starts), self.F.shape[1], R.shape[1]))
        out = np.empty(R.shape)

        def inwards(first: int, last: int) -> None:
            for p in range(first, last):
                rows = slice(starts[p], starts[p] + _BLOCK)
                parts[p] = self.F[rows].T @ scaled[rows]

        for_each_tile(len(starts), 1, inwards)
        with blas_for(len(self.factor.packed)):
            inner = self.factor.solve(parts.sum(axis=0)).astype(self.F.dtype)  # in their order, whatever the threads

        def outwards(i: int, j: int) -> None:
            out[i:j] = (R[i:j] - size * (self.F[i:j] @ inner)) / self.shift

        for_each_tile(len(R), _BLOCK, outwards)
        return out

    def for_columns(self, n_targets: int) -> LandmarkPreconditioner:
        """Return the preconditioner for as many right-hand sides."""
        return self._replace(stretch=np.full(n_targets, self.stretch[0]))

    def diagonal(self) -> np.ndarray:
        """Diagonal (n,) of the inverse."""
        out, factor = np.empty(len(self.F)), Cholesky(self.factor.packed.astype(self.F.dtype))

        def rows(i: int, j: int) -> None:
            half = factor.solve_lower(self.F[i:j].T)
            out[i:j] = (1 - np.einsum("mn,mn->n", half, half, dtype=np.float64)) / self.shift

        for_each_tile(len(out), _BLOCK, rows)
        return out

    def bound(self, rows: np.ndarray, alpha: float) -> np.ndarray:
        r"""Lower bounds of the diagonal of :math:`(K+\alpha)^{-1}` at these rows: landmarks alone tell less than all do.

        One over an entry is the variance of a row given the others.  Given some of them, those of which nothing is left
        out, it is larger, and follows from features alone.
        """
        inside = self.residual <= _NOTHING_LEFT * (self.residual + np.einsum("nm,nm->n", self.F, self.F))
        S = self.F[inside].astype(np.float64)
        S = S.T @ S
        S.flat[:: len(S) + 1] += alpha
        half = Cholesky.of(S, overwrite=True).solve_lower(np.asfortranarray(self.F[rows].T.astype(np.float64)))
        h = np.einsum("mn,mn->n", half, half)
        return np.asarray(np.where(inside[rows], (1 - h) / alpha, 1 / (alpha * (1 + h) + self.residual[rows])))


def _squares(F: np.ndarray) -> np.ndarray:
    """F^T F in float64, from products in the precision of F (n, m)."""
    S = np.empty((F.shape[1], F.shape[1]))

    def columns(i: int, j: int) -> None:
        S[i:j] = F[:, i:j].T @ F

    for_each_tile(len(S), _STRIP, columns)
    return np.asarray((S + S.T) / 2)


class FactorPreconditioner(NamedTuple):
    """The inverse by a factor in float32, which leaves a few digits to conjugate gradients."""

    factor: Cholesky
    stretch: np.ndarray

    def solve(self, R: np.ndarray, which: Any) -> np.ndarray:
        """Residuals (n, k), preconditioned."""
        size = np.maximum(np.abs(R).max(axis=0), np.finfo(np.float64).tiny)  # float32 has few exponents
        return np.asarray(self.factor.solve((R / size).astype(np.float32)).astype(np.float64) * size)


class KernelSolution(NamedTuple):
    """Coefficients of the rows (n, t), intercepts (t,), and errors (m, t) of rows that are left out, or None."""

    coefficients: np.ndarray
    intercept: np.ndarray
    left_out: np.ndarray | None


def solve_kernel(
    owner: str,
    kernel: Kernel,
    X: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None,
    alpha: float,
    *,
    intercept: bool,
    solver: str = "auto",
    left_out: np.ndarray | None = None,
    enough: float = 1.0,
    single: bool = False,
    verbose: Any = 0,
) -> KernelSolution:
    r"""Solve :math:`(K + \alpha W^{-1})c = y - b`, :math:`1^Tc = 0`.

    Parameters
    ----------
    owner : str
    kernel : Kernel
    X : array (n, d)
        Rows in the coordinates of the kernel.
    Y : array (n, t)
    weights : array (n,) or None
    alpha : float
        Positive.
    intercept : bool
        Whether there is b; it is zero otherwise, and the sum of c is free.
    solver : {"auto", "dual", "cg"}
    left_out : array (m,) of int or None
        Rows whose errors without them are wanted: :math:`c_i/G_{ii}` with the inverse G of the matrix, without its part
        along the intercept.  A factor gives the diagonal of G.  Without one, :math:`D + z\circ(G-P)z` for random signs z
        estimates it, with the preconditioner P and its diagonal D, in the mean over `_PROBES` of them; rows whose
        estimate drowns in its noise take a multiple of their bound by landmarks, by what `_COMPARED` of them have.
    enough : float
        Tolerances of conjugate gradients to which targets are solved.
    single : bool
        Whether a factor in float32 is enough, without steps that give back the digits.
    verbose : int

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import kernels
    >>> X = np.random.default_rng(0).standard_normal((50, 2))
    >>> c, b, _ = solve_kernel("example", kernels.Gaussian(), X, np.sin(X), None, 0.1, intercept=True)
    >>> c.shape, bool(np.allclose(c.sum(axis=0), 0)), bool(np.allclose(kernels.Gaussian()(X) @ c + b, np.sin(X) - 0.1 * c))
    ((50, 2), True, True)
    """
    n, t = Y.shape
    roots = np.ones(n) if weights is None else np.sqrt(weights)
    Z = Y.astype(np.float64)
    right = roots[:, None] * (np.hstack([Z, np.ones((n, 1))]) if intercept else Z)
    tiles = KernelTiles(kernel, X.astype(np.float32 if single else np.float64, copy=False), roots)
    direct = solver == "dual" or (solver == "auto" and n <= DIRECT_ROWS)
    factor = _factor(tiles, alpha) if direct else None
    G = None
    if factor is not None:
        if factor.packed.dtype == tiles.X.dtype:
            found = factor.solve(right).astype(np.float64)
        else:
            preconditioner = FactorPreconditioner(factor, np.ones(right.shape[1]))
            found = _iterated(owner, tiles, right, alpha, preconditioner, verbose)
        G = None if left_out is None else _diagonal(factor, left_out)
    else:
        rounded = KernelTiles(kernel, X.astype(np.float32), roots)
        probes = _signs(n, 0 if left_out is None else _PROBES)
        k = right.shape[1]
        landmarks = LandmarkPreconditioner.of(kernel, tiles.X, roots, alpha, k + probes.shape[1])
        each = np.repeat([enough, _ROUGH], [k, probes.shape[1]])
        found = _iterated(owner, rounded, np.hstack([right, probes]), alpha, landmarks, verbose, each)
        if left_out is not None:
            spread = probes * (found[:, k:] - landmarks.solve(probes, None))
            bounds = landmarks.bound(left_out, alpha)
            G = np.maximum((landmarks.diagonal() + spread.mean(axis=1))[left_out], bounds)
            noise = spread[left_out].std(axis=1) / np.sqrt(_PROBES - 1)
            doubtful = np.flatnonzero(noise > _CLEAR * bounds)
            if len(doubtful):  # with little regularisation the other entries of a row drown that on the diagonal
                some = doubtful[np.linspace(0, len(doubtful) - 1, min(_COMPARED, len(doubtful))).astype(int)]
                units = np.zeros((n, len(some)))
                units[left_out[some], range(len(some))] = 1.0
                solved = _iterated(owner, rounded, units, alpha, landmarks.for_columns(len(some)), verbose, _ROUGH)
                ratios = np.maximum(solved[left_out[some], range(len(some))] / bounds[some], 1.0)
                G[doubtful] = np.exp(np.log(ratios).mean()) * bounds[doubtful]
            # rounding and probes never leave less than a row that is told by nothing but itself
            alone = 1 / (alpha + roots[left_out] ** 2 * kernel.diagonal(X[left_out]))
            G = np.clip(G, alone, 1 / alpha)
    u = found[:, :t]
    b = np.zeros(t)
    if intercept:
        ones = found[:, t]
        b = roots @ u / (roots @ ones)
        u = u - np.outer(ones, b)
        G = None if G is None else G - ones[left_out] ** 2 / (roots @ ones)
    errors = None
    if G is not None:
        errors = u[left_out] / np.maximum(G, np.finfo(np.float64).tiny)[:, None] / roots[left_out, None]
    return KernelSolution(roots[:, None] * u, b, errors)


def far_above_rounding(kernel: Kernel, X: np.ndarray, alpha: float) -> bool:
    """Whether alpha is far above the rounding errors of a factor in float32 of the kernel of rows X."""
    return alpha > 100 * float(np.finfo(np.float32).eps) * float(kernel.diagonal(X).sum())


def _signs(n: int, k: int) -> np.ndarray:
    """Random signs (n, k), equal for all fits of as many rows."""
    return np.random.default_rng(0).choice([-1.0, 1.0], (n, k))


def _factor(tiles: KernelTiles, alpha: float) -> Cholesky | None:
    """A factor in float64 of few rows, or one in float32; None where rounding leaves none."""
    precise = len(tiles.X) <= DOUBLE_ROWS
    used = tiles if precise else KernelTiles(tiles.kernel, tiles.X.astype(np.float32), tiles.roots)
    A = used.matrix()
    A.flat[:: len(A) + 1] += alpha
    try:
        return Cholesky.of(A, overwrite=True)
    except np.linalg.LinAlgError:
        return None


def _diagonal(factor: Cholesky, rows: np.ndarray) -> np.ndarray:
    """Diagonal of the inverse at some rows."""
    out = np.empty(len(rows))
    for i in range(0, len(rows), 256):
        some = rows[i : i + 256]
        unit = np.zeros((len(factor.packed), len(some)), factor.packed.dtype, order="F")
        unit[some, np.arange(len(some))] = 1
        half = factor.solve_lower(unit)
        out[i : i + 256] = np.einsum("nk,nk->k", half, half, dtype=np.float64)
    return out


def _iterated(
    owner: str,
    tiles: KernelTiles,
    right: np.ndarray,
    alpha: float,
    preconditioner: Any,
    verbose: Any,
    enough: Any = 1.0,
) -> np.ndarray:
    """Conjugate gradients for all columns at once, each to ``enough`` tolerances of the precision of the tiles."""
    k, tolerance = right.shape[1], _TOLERANCE if tiles.X.dtype == np.float64 else _FLOAT32_TOLERANCE
    descent = ConjugateGradients(
        right.copy(), np.full(k, alpha), preconditioner, tolerance, known=np.inf, enough=enough
    )
    bar = progress(range(_STEPS), label="exact kernel", shown=bool(verbose))
    for _ in bar:
        if not len(descent.active):
            break
        descent.step(tiles(descent.directions))
        note(bar, f"error {descent.error.max():.1e}")
    if (descent.error / descent.enough).max() > 10 * tolerance:
        warnings.warn(
            f"{owner}: conjugate gradients on the exact kernel stopped after {descent.steps} steps at a relative error of "
            f"about {descent.error.max():.1e}; raise alpha, or use map='auto'.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return descent.B
