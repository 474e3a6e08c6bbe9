"""Landmarks: Nystrom features, the usual alternative to random features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .._arrays import as_numpy, is_numpy, like
from .._validation import check_option, shown
from ..kernels import Kernel, Radial
from ..kernels._distances import squared_distances
from ..linalg.engine import single_threaded_blas
from ..projections import Projection
from ._data import Data
from ._drawing import Draws
from ._error import ErrorCase
from ._features import Features, Scaled
from ._map import Coupling, Layout, Map

PIVOTS = ("uniform", "rpcholesky", "kmeans")
_SAMPLE = 20_000
"""Rows of the data that landmarks are chosen from, at most, unless more landmarks are asked for."""
_POOL, _POOL_PER_PIVOT = 4096, 8
"""Rows that pivots are drawn from, at most: this many, or this many for each pivot."""
_STEP = 1e-5
"""Relative step of central differences: the cube root of the rounding error of float64."""
_SAME = 1e-12
"""Squared distance, in lengthscales, below which two points are the same."""
_JUDGED = 1024
"""Rows of the data that the trace error is measured on, at most."""
_SHOWN = 64
"""Numbers up to which ``repr`` shows landmarks in full."""
_PROPOSALS = 64
"""Pivots proposed at a time by the blocked Cholesky factorisation."""
_JITTERS = (0.0, 1e-12, 1e-10, 1e-8)
"""Shares of the mean diagonal tried in turn until K_SS has a Cholesky factor."""


@dataclass(frozen=True, eq=False)
class Landmarks(Map):
    r"""Nystrom features: the kernel between a point and m landmarks of the data, whitened.

    They depend on the data and work for every kernel.  If the spectrum of the Gram matrix decays quickly they need far
    fewer features than random features; if it is flat, random features are better.  The error of a plan is not random,
    so `Approximation.mse` is exact.

    Parameters
    ----------
    pivots : {"uniform", "rpcholesky", "kmeans"} or array (m, d)
        How landmarks are chosen: rows of the data at random, randomly pivoted Cholesky, centres of k-means, or given
        ones.
    points : array (m, d), optional
        The landmarks at unit scale, filled in by the plan.
    jitter : float, optional
        Number that the plan adds to the diagonal of :math:`K_{SS}`, in units of its mean, so that it has a Cholesky
        factor.
    trace_error : float, optional
        The share of the trace of the Gram matrix of the data (of 1024 random rows, if there are more) that the landmarks
        do not capture, filled in by the plan.

    See Also
    --------
    Trigonometric : Random features of the same kernels, unbiased and independent of data.

    Notes
    -----
    With landmarks S and :math:`K_{SS} = LL^T`,

    .. math:: \phi(x) = L^{-1} k_S(x), \qquad \phi(x)\cdot\phi(y) = k_S(x)^T K_{SS}^{-1} k_S(y),

    the best approximation by functions of the kernel at S; exact at the landmarks.  Its residual
    :math:`k(x, x) - |\phi(x)|^2 \ge 0`, summed over the data, is the trace error.  Biased: always from below on the
    diagonal.  Whitening by a Cholesky factor costs a fraction of the usual singular value decomposition, for the same
    Gram matrix.

    Randomly pivoted Cholesky draws each landmark with probability proportional to the residual diagonal of those before
    it; blocks of proposals are thinned by rejection, which keeps that law exactly.  Pivots are drawn from at most 4096
    random rows of the data, or eight per pivot if that is more.

    References
    ----------
    williams2001, chen2025 (randomly pivoted Cholesky), epperly2024 (its blocks by rejection).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> X = np.random.default_rng(0).standard_normal((200, 2))
    >>> plan = Approximation(kernels.Gaussian(2.0), maps.Landmarks(), n_projections=40).plan(X, rng=0)
    >>> plan.n_features_out, plan.map.trace_error < 1e-3
    (40, True)
    """

    pivots: Any = "uniform"
    points: Any = None
    jitter: float | None = None
    trace_error: float | None = None
    family: ClassVar[str] = "landmarks"
    requirement: ClassVar[str] = "a kernel"
    uses_rows: ClassVar[bool] = False
    keeps_points: ClassVar[bool] = True
    from_below: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("williams2001", "chen2025", "epperly2024")

    def __post_init__(self) -> None:
        if isinstance(self.pivots, str):
            check_option("Landmarks", "pivots", self.pivots, PIVOTS)
        else:
            object.__setattr__(self, "pivots", _matrix("pivots", self.pivots))
        if self.points is not None:
            object.__setattr__(self, "points", _matrix("points", self.points))

    @classmethod
    def variants(cls) -> dict[str, Any]:
        """Return uniform landmarks, those of pivoted Cholesky, and those of k-means."""
        return {"landmarks": cls(), "landmarks-rpcholesky": cls("rpcholesky"), "landmarks-kmeans": cls("kmeans")}

    def serves(self, kernel: Kernel | None) -> bool:
        return kernel is not None

    @property
    def coupling(self) -> Coupling:
        return "independent"

    def unbiased(self, projection: Projection) -> bool:
        return False

    @property
    def most_rows(self) -> int | None:
        """The landmarks that were found."""
        return None if self.points is None else len(self.points)

    def worth_trying(self, projection: Projection) -> bool:
        """Random rows of the data: k-means takes long."""
        return self.pivots in ("uniform", "rpcholesky") if isinstance(self.pivots, str) else False

    def why(self, facts: Any) -> str:
        lost = (
            ""
            if self.trace_error is None
            else f", and these landmarks leave {100 * self.trace_error:.2g} % of its trace"
        )
        return f"Landmarks win: few eigenvectors carry most of the Gram matrix{lost}."

    @property
    def planned(self) -> bool:
        return self.points is not None

    def layout(self, projection: Projection) -> Layout:
        return Layout(1, 0, True, False)

    def plan(self, data: Data, projection: Projection, kernel: Kernel | None, rng: np.random.Generator, m: int) -> Map:
        """Choose the landmarks, find the jitter they need, and measure what they leave out."""
        if self.points is not None:
            return self
        assert kernel is not None  # it serves no other
        unit, rows = _at_unit(kernel), _sampled(data, max(_SAMPLE, 10 * m), rng)
        points = self._chosen(unit, kernel, rows, rng, m)
        T, jitter = whitening(unit, points)
        judged = _subset(rows, _JUDGED, rng).astype(np.float64)
        planned = replace(self, points=points, jitter=jitter, trace_error=_trace_error(unit, judged, points, T))
        object.__setattr__(planned, "_whitening", T)  # for the draw that follows
        return planned

    def _chosen(self, unit: Kernel, kernel: Kernel, rows: np.ndarray, rng: np.random.Generator, m: int) -> np.ndarray:
        if not isinstance(self.pivots, str):
            return np.asarray(kernel.scaled(self.pivots), dtype=np.float64)
        m = min(m, len(rows))
        if self.pivots == "uniform":
            return _distinct(rows, rng.permutation(len(rows)), m)
        if self.pivots == "rpcholesky":
            pool = _subset(rows, max(_POOL, _POOL_PER_PIVOT * m), rng).astype(np.float64)
            return np.asarray(pool[rpcholesky(unit, pool, m, rng)])
        distinct = _distinct(rows, np.arange(len(rows)), m + 1)
        if len(distinct) <= m:
            return distinct
        from sklearn.cluster import MiniBatchKMeans

        found = MiniBatchKMeans(m, n_init=1, random_state=int(rng.integers(2**31)), batch_size=max(1024, m)).fit(rows)
        return np.asarray(found.cluster_centers_, dtype=np.float64)

    def rescaled(self, old: Kernel, new: Kernel) -> Map:
        """The same points of the data; what they leave out at the new bandwidth is not known."""
        if self.points is None or old == new:
            return self
        one = np.ones((1, self.points.shape[1]))
        points = self.points * (new.at_unit_scale(one) / old.at_unit_scale(one))
        T, jitter = whitening(_at_unit(new), points)
        moved = replace(self, points=points, jitter=jitter, trace_error=None)
        object.__setattr__(moved, "_whitening", T)
        return moved

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        if self.points.shape[1] != draws.d:
            raise ValueError(f"Landmarks: they have {self.points.shape[1]} columns, the data has {draws.d}.")
        assert kernel is not None
        known = self.__dict__.get("_whitening") if draws.m >= len(self.points) else None
        return LandmarkFeatures(_at_unit(kernel), self.points, self.jitter or 0.0, draws.m, known)

    def mse(self, case: ErrorCase) -> np.ndarray:
        """The squared error itself, which is not random."""
        unit = _at_unit(case.kernel)
        features = LandmarkFeatures(unit, self.points, self.jitter or 0.0, case.m)
        return np.asarray((features(case.X, key=False) @ features(case.Y, key=True).T - unit(case.X, case.Y)) ** 2)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Landmarks) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        arrays = [a.tobytes() if isinstance(a, np.ndarray) else a for a in (self.pivots, self.points)]
        return (*arrays, self.jitter, self.trace_error)

    def __repr__(self) -> str:
        pivots = repr(self.pivots) if isinstance(self.pivots, str) else _in_short(self.pivots)
        if self.points is None:
            return f"Landmarks(pivots={pivots})"
        found = f"points={_in_short(self.points)}, jitter={self.jitter}, trace_error={self.trace_error}"
        return f"Landmarks(pivots={pivots}, {found})"


def _in_short(points: np.ndarray) -> str:
    """All numbers of a few points, which rebuild them; the number of many."""
    return repr(points.tolist()) if points.size <= _SHOWN else f"<{len(points)} landmarks>"


class LandmarkFeatures(Features):
    """The kernel between points and landmarks, whitened; columns that the landmarks do not fill are zero."""

    symmetric = True
    positive = False

    def __init__(
        self, unit: Kernel, points: np.ndarray, jitter: float, width: int, whitened: np.ndarray | None = None
    ) -> None:
        self.unit, self.points, self.width = unit, points[:width], width
        whitened = whitening(unit, self.points, jitter)[0] if whitened is None else whitened
        self.transform = np.zeros((len(self.points), width))
        self.transform[:, : whitened.shape[1]] = whitened
        self.triangular = width == len(self.points) and not np.tril(self.transform, -1).any()

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """One Gram matrix with the landmarks, and one product."""
        lead = tuple(X.shape[:-1])
        rows = X.reshape(-1, X.shape[-1])
        values = self.unit(rows, like(self.points, X))
        values = self._whitened(values, like(self.transform, X))
        return values.reshape(*lead, self.width), None

    def _whitened(self, values: Any, T: Any) -> Any:
        """The product with T, in half the operations where T is triangular and BLAS can be asked for it."""
        if not (self.triangular and is_numpy(values) and len(values)):
            return values @ T
        from scipy.linalg import blas

        multiply = blas.strmm if values.dtype == np.float32 else blas.dtrmm
        return multiply(1.0, T.T, values.T, lower=1, overwrite_b=1).T  # transposed: BLAS has columns first


    def stretch(self, X: np.ndarray, values: np.ndarray, gradient: np.ndarray) -> np.ndarray | None:
        r"""For kernels of the distance; landmarks are divided by the lengthscales as well.

        With G the given gradient, :math:`\Phi = K_{XS}T` and :math:`TT^T = K_{SS}^{-1}`, a function of
        :math:`\Phi\Phi^T` has the gradients :math:`GT^T` in :math:`K_{XS}` and
        :math:`-\tfrac12T\Phi^TGT^T` in :math:`K_{SS}`.
        """
        if not isinstance(self.unit, Radial):
            return None
        T, S = self.transform, self.points
        within = -0.5 * (T @ (values.T @ gradient) @ T.T)
        return _stretch(self.unit, X, S, gradient @ T.T) + _stretch(self.unit, S, S, within)


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
    eigenvectors of the eigenvalues that rounding leaves.  On one thread: the number of threads cannot change a bit, and
    threads of a factorisation stall each other on a busy machine.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        K = np.asarray(unit(points), dtype=np.float64)
    if not np.isfinite(K).all():
        raise ValueError(f"Landmarks: {unit!r} overflows between the landmarks; rescale the data.")
    with single_threaded_blas:
        return _inverse_root(K, _JITTERS if jitter is None else (jitter,))


def _inverse_root(K: np.ndarray, jitters: tuple[float, ...]) -> tuple[np.ndarray, float]:
    from scipy.linalg import solve_triangular

    size = float(np.trace(K)) / len(K) or 1.0
    for share in jitters:
        try:
            L = np.linalg.cholesky(K + share * size * np.eye(len(K)))
        except np.linalg.LinAlgError:
            continue
        diagonal = np.diag(L)
        if diagonal.min() > 1e-7 * diagonal.max() or share == _JITTERS[-1]:
            return np.asarray(solve_triangular(L, np.eye(len(K)), lower=True).T), share
    values, vectors = np.linalg.eigh(K)
    kept = values > len(K) * np.finfo(np.float64).eps * values.max()
    return vectors[:, kept] / np.sqrt(values[kept]), 0.0


def _trace_error(unit: Kernel, rows: np.ndarray, points: np.ndarray, T: np.ndarray) -> float:
    """Sum of the residual diagonal over that of the kernel."""
    captured = ((np.asarray(unit(rows, points)) @ T) ** 2).sum(axis=1)
    diagonal = unit.diagonal(rows)
    return float(np.maximum(diagonal - captured, 0).sum() / max(diagonal.sum(), 1e-300))


def rpcholesky(unit: Kernel, rows: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of m pivots, each drawn in proportion to the residual diagonal of those before it.

    Proposals are drawn in blocks from the diagonal at the start of a block, and accepted with the share of their
    diagonal that is left when their turn comes: the law is that of one pivot at a time.  Fewer pivots where nothing is
    left.
    """
    from scipy.linalg import solve_triangular

    left = np.asarray(unit.diagonal(rows), dtype=np.float64).copy()
    floor = left.sum() * len(rows) * np.finfo(np.float64).eps
    factor, pivots = np.zeros((len(rows), m)), np.zeros(0, dtype=np.int64)
    while len(pivots) < m and left.sum() > floor:
        k = len(pivots)
        proposed = rng.choice(len(rows), min(_PROPOSALS, m - k), p=left / left.sum())
        part = factor[proposed, :k]
        accepted, L = _accepted(np.asarray(unit(rows[proposed])) - part @ part.T, rng)
        new = proposed[accepted]
        columns = np.asarray(unit(rows, rows[new])) - factor[:, :k] @ factor[new, :k].T
        factor[:, k : k + len(new)] = solve_triangular(L, columns.T, lower=True).T
        pivots = np.append(pivots, new)
        left = np.maximum(left - (factor[:, k : k + len(new)] ** 2).sum(axis=1), 0)
        left[pivots] = 0
    return pivots


def _accepted(H: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Which proposals are accepted, in order, and the Cholesky factor of their residual Gram matrix H."""
    start, H = np.diag(H).copy(), H.copy()
    accepted, rows = [], []
    for i in range(len(H)):
        if rng.random() * start[i] < H[i, i]:
            column = H[:, i] / np.sqrt(H[i, i])
            accepted.append(i)
            rows.append(column)
            H -= np.outer(column, column)
    chosen = np.array(accepted)
    return chosen, np.tril(np.stack(rows, axis=1)[chosen])


def _at_unit(kernel: Kernel) -> Kernel:
    return kernel.with_bandwidth(1.0) if kernel.has_bandwidth else kernel


def _distinct(rows: np.ndarray, order: np.ndarray, m: int) -> np.ndarray:
    """The first m rows in an order that differ from all before them, or as many as there are, in float64."""
    for most in (2 * m, len(rows)):
        some = rows[order[:most]]
        first = np.unique(some, axis=0, return_index=True)[1]
        if len(first) >= m:
            break
    return np.asarray(some[np.sort(first)[:m]], dtype=np.float64)


def _sampled(data: Data, most: int, rng: np.random.Generator) -> np.ndarray:
    """Rows of both sides to choose from."""
    return _subset(data.X if data.same else np.concatenate([data.X, data.Y]), most, rng)


def _subset(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """All rows, or so many random ones in their order."""
    return rows if len(rows) <= most else rows[np.sort(rng.choice(len(rows), most, replace=False))]


def _matrix(name: str, value: Any) -> np.ndarray:
    try:
        array = np.array(value if is_numpy(value) else as_numpy(value), dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"Landmarks: {name} must be a matrix of points as rows, got {shown(value)}.") from None
    if array.ndim != 2 or not array.size or not np.isfinite(array).all():
        raise ValueError(f"Landmarks: {name} must be a matrix of finite points as rows, got {shown(value)}.")
    array.flags.writeable = False
    return array
