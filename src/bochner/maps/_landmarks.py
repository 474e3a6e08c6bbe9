"""Landmarks: Nystrom features, the usual alternative to random features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .._arrays import as_numpy, is_numpy
from .._validation import check_option, shown
from ..kernels import Kernel
from ..linalg.engine import single_threaded_blas
from ..projections import Projection
from ._data import Data
from ._drawing import Draws
from ._error import ErrorCase
from ._features import Features
from ._landmark_features import LandmarkFeatures, whitening
from ._map import Coupling, Layout, Map
from ._pivots import distinct, rpcholesky

PIVOTS = ("uniform", "rpcholesky", "kmeans")
_SAMPLE, _SAMPLE_PER_LANDMARK = 20_000, 10
"""Rows of the data that landmarks are chosen from, at most: this many, or this many for each landmark."""
_POOL, _POOL_PER_PIVOT = 4096, 8  # rows that pivots are drawn from, at most: this many, or this many for each pivot
_JUDGED = 512  # rows of the data that the trace error is measured on, at most
_SHOWN = 64  # numbers up to which ``repr`` shows landmarks in full


@dataclass(frozen=True, eq=False)
class Landmarks(Map):
    r"""Nystrom features: the kernel between a point and m landmarks of the data, whitened.

    They depend on the data and work for every kernel.  If the spectrum of the Gram matrix decays quickly they need far
    fewer features than random features; if it is flat, random features are better.  The error of a plan is not random,
    so `Approximation.mse` is exact.
    Use it where the spectrum of the Gram matrix decays quickly, and for kernels that have no other map.

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
        The share of the trace of the Gram matrix of the data (of 512 random rows, if there are more) that the landmarks
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
    formula: ClassVar[str] = r"L^{-1}k_S(x)"
    cost: ClassVar[str] = r"O(d + m)"
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
        return f"Landmarks are the most accurate: few eigenvectors carry most of the Gram matrix{lost}."

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
        unit, numbers = _at_unit(kernel), _subset(np.arange(data.count), max(_SAMPLE, _SAMPLE_PER_LANDMARK * m), rng)
        with single_threaded_blas:  # its threads would go on spinning, on cores that the features of the rows need
            points = self._chosen(unit, kernel, data, numbers, rng, m)
            T, jitter = whitening(unit, points)
            judged = data.rows(_subset(numbers, _JUDGED, rng)).astype(np.float64)
            trace_error = _trace_error(unit, judged, points, T)
        planned = replace(self, points=points, jitter=jitter, trace_error=trace_error)
        object.__setattr__(planned, "_whitening", T)  # for the draw that follows
        return planned

    def _chosen(
        self, unit: Kernel, kernel: Kernel, data: Data, numbers: np.ndarray, rng: np.random.Generator, m: int
    ) -> np.ndarray:
        """Landmarks among the points of these numbers."""
        if not isinstance(self.pivots, str):
            own, d = self.pivots.shape[1], data.rows(numbers[:1]).shape[1]
            if own != d:
                raise ValueError(f"Landmarks: pivots must have the columns of the data, {d} of them, got {own}.")
            return np.asarray(kernel.scaled(self.pivots), dtype=np.float64)
        m = min(m, len(numbers))
        if self.pivots == "uniform":
            return distinct(data.rows, rng.permutation(numbers), m)
        if self.pivots == "rpcholesky":
            pool = _subset(numbers, max(_POOL, _POOL_PER_PIVOT * m), rng)
            pivots = rpcholesky(unit, lambda some: data.rows(pool[some]), len(pool), m, rng)
            return np.asarray(data.rows(pool[pivots]), dtype=np.float64)
        different = distinct(data.rows, numbers, m + 1)
        if len(different) <= m:
            return different
        from sklearn.cluster import MiniBatchKMeans

        found = MiniBatchKMeans(m, n_init=1, random_state=int(rng.integers(2**31)), batch_size=max(1024, m)).fit(
            data.rows(numbers)
        )
        return np.asarray(found.cluster_centers_, dtype=np.float64)

    def rescaled(self, old: Kernel, new: Kernel) -> Map:
        """Return the map with its points of the data; what they leave out at the new bandwidth is not known."""
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
            raise ValueError(f"Landmarks: the landmarks have {self.points.shape[1]} columns, the data has {draws.d}.")
        assert kernel is not None
        known = self.__dict__.get("_whitening") if draws.m >= len(self.points) else None
        with single_threaded_blas:
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
    """Text of landmarks: all numbers of a few points, which rebuild them, or the number of many."""
    return repr(points.tolist()) if points.size <= _SHOWN else f"<{len(points)} landmarks>"


def _trace_error(unit: Kernel, rows: np.ndarray, points: np.ndarray, T: np.ndarray) -> float:
    """Sum of the residual diagonal over that of the kernel."""
    captured = (LandmarkFeatures(unit, points, 0.0, T.shape[1], T)(rows, key=False) ** 2).sum(axis=1)
    diagonal = unit.diagonal(rows)
    return float(np.maximum(diagonal - captured, 0).sum() / max(diagonal.sum(), 1e-300))


def _at_unit(kernel: Kernel) -> Kernel:
    return kernel.with_bandwidth(1.0) if kernel.has_bandwidth else kernel


def _subset(numbers: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return all numbers, or as many random ones as are asked for, in order."""
    return numbers if len(numbers) <= most else numbers[np.sort(rng.choice(len(numbers), most, replace=False))]


def _matrix(name: str, value: Any) -> np.ndarray:
    try:
        array = np.array(value if is_numpy(value) else as_numpy(value), dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"Landmarks: {name} must be a matrix of points as rows, got {shown(value)}.") from None
    if array.ndim != 2 or not array.size or not np.isfinite(array).all():
        raise ValueError(f"Landmarks: {name} must be a matrix of finite points as rows, got {shown(value)}.")
    array.flags.writeable = False
    return array
