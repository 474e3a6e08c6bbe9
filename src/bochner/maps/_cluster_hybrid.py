"""Hybrids adapted to clusters of queries and keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .._arrays import array_namespace, is_numpy, like
from .._validation import check_count, check_flag, check_fraction, check_instance, check_option, check_positive
from ..kernels import Kernel
from ..projections import IID, Projection
from ._classical import Hyperbolic
from ._complex import ComplexExponential, DiagonalPairs
from ._data import Data
from ._drawing import Draws
from ._error import ErrorCase
from ._features import Features, Scaled, as_tuple, parts_of
from ._hybrid import Hybrid, HybridMap, check_base
from ._map import Layout, Map, unplanned
from .coefficients import GaussianCoefficient

COEFFICIENTS = ("zero-one", "gaussian")
DIAGONALS = ("complex", "real")
_CLIP = (1e-2, 1e2)  # bounds of |a_k|: with extreme ratios the features explode away from the centres
_USABLE = 0.1
"""Relative error at the centres up to which a Gaussian mixture is drawn, even if its default base has a smaller one."""
_SMALL = 1 << 20  # size of the data up to which k-means is faster on one thread than on several


@dataclass(frozen=True)
class ClusterHybrid(HybridMap):
    r"""Cluster hybrid features (HRF Sections 2.4 and H): a complex exponential base for each pair of clusters.

    Use it if queries and keys form clusters; `Approximation.plan` finds them.

    Parameters
    ----------
    n_query_clusters, n_key_clusters : int
        Numbers of clusters.
    coefficients : {"zero-one", "gaussian"}
        The weights of the bases, see Notes.
    diagonal : {"complex", "real"}
        Whether entries of A may be imaginary.
    default : Map
        Base for light pairs of clusters, and for the remaining weight of Gaussian coefficients.
    light : float
        Pairs of clusters with less than this fraction of all pairs of points use the default base.
    width : float, optional
        Width tau of Gaussian coefficients; 1 by default.
    n_coefficients : int, optional
        Number of projections of each Gaussian coefficient; 8 by default.
    shared : bool
        Whether all bases use the same W.
    query_centers, key_centers : sequences of points, optional
        Centres of the clusters; found by k-means by default.
    diagonals : nested sequence (n_query_clusters, n_key_clusters, d), optional
        A for each pair of clusters; chosen from the data by default.
    light_pairs : sequence of pairs (i, j), optional
        Pairs of clusters that use the default base; chosen from the data by default.

    Notes
    -----
    Queries and keys are clustered by k-means.  For clusters i of queries and j of keys the base is
    `ComplexExponential` with the diagonal :math:`A^{(ij)}` that makes :math:`Ax + A^{-1}y` small there:
    :math:`|a_k| = (E y_k^2/E x_k^2)^{1/4}`, imaginary where :math:`E x_k\,E y_k > 0` (``diagonal="complex"``), which is
    HRF Eq. 86-88 for tight clusters and stays finite for centres at zero.

    ``coefficients="zero-one"``: the weight of base (i, j) is one for queries nearest to centre i and keys nearest to
    centre j; a query fills the blocks (i, .), a key the blocks (., j).  ``"gaussian"``: the weights
    :math:`e^{-|Ax + A^{-1}y|^2/(2\tau^2)}` are estimated by trigonometric features, and the default base has the
    remaining weight.  Both are unbiased for any clusters.  The bumps of Definition H.1 need not vanish at the centres of
    other pairs, whose bases have large errors there, and their estimates have a variance of their own.  Where this makes
    the error at a pair of centres larger than that of the default base alone, by the closed forms for independent rows,
    the mixture defeats its purpose and drawing it is refused with both numbers; with one pair of clusters it is exact at
    the centres.

    References
    ----------
    hrf (Sections 2.4 and H).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> X = np.random.default_rng(0).standard_normal((40, 3))
    >>> plan = Approximation(kernels.Softmax(), maps.ClusterHybrid(2, 3), n_projections=4).plan(X, rng=0)
    >>> plan.n_features_out, len(plan.map.key_centers)
    (48, 3)
    """

    n_query_clusters: int = 3
    n_key_clusters: int = 3
    coefficients: str = "zero-one"
    diagonal: str = "complex"
    default: Map = Hyperbolic()
    light: float = 0.0
    width: float | None = None
    n_coefficients: int | None = None
    shared: bool = True
    query_centers: tuple[tuple[float, ...], ...] | None = None
    key_centers: tuple[tuple[float, ...], ...] | None = None
    diagonals: tuple[tuple[tuple[complex, ...], ...], ...] | None = None
    light_pairs: tuple[tuple[int, int], ...] | None = None
    name: ClassVar[str] = "cluster-hybrid"
    formula: ClassVar[str] = r"\sum_{ij}\hat\lambda_{ij}\,\hat k_{A_{ij}}"

    def __post_init__(self) -> None:
        for name in ("n_query_clusters", "n_key_clusters"):
            object.__setattr__(self, name, check_count("ClusterHybrid", name, getattr(self, name)))
        check_option("ClusterHybrid", "coefficients", self.coefficients, COEFFICIENTS)
        check_option("ClusterHybrid", "diagonal", self.diagonal, DIAGONALS)
        check_flag("ClusterHybrid", "shared", self.shared)
        check_instance("ClusterHybrid", "default", self.default, Map, "Hyperbolic()")
        check_base("ClusterHybrid", self.default)
        if not (isinstance(self.light, int | float) and self.light == 0):
            object.__setattr__(self, "light", check_fraction("ClusterHybrid", "light", self.light))
        if self.width is not None:
            object.__setattr__(self, "width", check_positive("ClusterHybrid", "width", self.width))
        if self.n_coefficients is not None:
            object.__setattr__(
                self, "n_coefficients", check_count("ClusterHybrid", "n_coefficients", self.n_coefficients)
            )
        if self.coefficients == "zero-one" and (self.width, self.n_coefficients) != (None, None):
            raise ValueError("ClusterHybrid: width and n_coefficients belong to coefficients='gaussian'.")
        self._check_plan()

    def _check_plan(self) -> None:
        """Check that the constants of a plan are complete and consistent."""
        found = {name: getattr(self, name) for name in _FOUND}
        if all(value is None for value in found.values()):
            return
        if any(value is None for value in found.values()):
            raise ValueError(
                f"ClusterHybrid: {', '.join(_FOUND)} must be given together; leave them out to choose them from the data."
            )
        queries, keys = (np.asarray(found[name], dtype=np.float64) for name in _FOUND[:2])
        A, light = np.asarray(found["diagonals"], dtype=np.complex128), np.asarray(found["light_pairs"], dtype=np.int64)
        n, p = self.n_query_clusters, self.n_key_clusters
        right = queries.ndim == 2 and len(queries) == n and keys.shape == (p, queries.shape[1])
        if not (
            right and A.shape == (n, p, queries.shape[1]) and all(np.isfinite(Z).all() for Z in (queries, keys, A))
        ):
            raise ValueError(f"ClusterHybrid: centres and diagonals must be finite numbers for {n} and {p} clusters.")
        if light.size and not (light.shape[1:] == (2,) and (light >= 0).all() and (light < (n, p)).all()):
            raise ValueError(f"ClusterHybrid: light_pairs must be pairs of clusters below ({n}, {p}).")
        values = (as_tuple(queries), as_tuple(keys), as_tuple(A), tuple(tuple(pair) for pair in light.tolist()))
        for name, value in zip(_FOUND, values, strict=True):
            object.__setattr__(self, name, value)

    def serves(self, kernel: Kernel | None) -> bool:
        return super().serves(kernel) and self.default.serves(kernel)

    @property
    def planned(self) -> bool:
        return self.query_centers is not None and self.default.planned

    def plan(self, data: Data, projection: Projection, kernel: Kernel | None, rng: np.random.Generator, m: int) -> Map:
        """Find the clusters and choose the diagonals."""
        default = self.default.plan(data, projection, kernel, rng, m)
        if self.query_centers is not None:
            return replace(self, default=default)
        queries = Clusters.of(data.X, self.n_query_clusters, "queries", rng)
        keys = Clusters.of(data.Y, self.n_key_clusters, "keys", rng)
        A = diagonals(queries, keys, imaginary=self.diagonal == "complex")
        light = np.argwhere(queries.fractions[:, None] * keys.fractions[None, :] < self.light)
        if self.coefficients == "gaussian" and len(light) == A.shape[0] * A.shape[1]:
            raise ValueError(f"ClusterHybrid: all pairs of clusters hold less than light = {self.light} of the data.")
        return replace(
            self,
            default=default,
            query_centers=as_tuple(queries.centres),
            key_centers=as_tuple(keys.centres),
            diagonals=as_tuple(A),
            light_pairs=tuple((i, j) for i, j in light.tolist()),
        )

    def _heavy(self) -> list[tuple[int, int]]:
        """Pairs of clusters that have their own base."""
        pairs = [(i, j) for i in range(self.n_query_clusters) for j in range(self.n_key_clusters)]
        return [pair for pair in pairs if pair not in set(self.light_pairs or ())]

    def _light(self) -> dict[int, list[int]]:
        """Key clusters of the light pairs, for each query cluster that has some."""
        light: dict[int, list[int]] = {}
        for i, j in sorted(self.light_pairs or ()):
            light.setdefault(i, []).append(j)
        return light

    def _base(self, i: int, j: int) -> ComplexExponential:
        assert self.diagonals is not None  # planned
        a = np.array(self.diagonals[i][j])
        return ComplexExponential(as_tuple(a if a.imag.any() else a.real))

    def layout(self, projection: Projection) -> Layout:
        if self.diagonals is None:
            raise unplanned(self, "the width")
        if self.coefficients == "gaussian":
            return self._gaussian().layout(projection)
        blocks = [self._base(i, j).layout(projection) for i, j in self._heavy()]
        blocks += [self.default.layout(projection)] * len(self._light())
        return Layout(sum(block.per_row for block in blocks), sum(block.extra for block in blocks), False, False)

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        if self.coefficients == "gaussian":
            self._require_gain_at_centers(kernel, draws.m)
            return self._gaussian().draw(draws, kernel)
        blocks: list[tuple[Features, list[int], list[int]]] = [
            (self._base(i, j).draw(draws if self.shared else draws.apart(f"base-{i}-{j}"), kernel), [i], [j])
            for i, j in self._heavy()
        ]
        if self._light():
            default = self.default.draw(draws if self.shared else draws.apart("default"), kernel)
            blocks += [(default, [i], keys) for i, keys in self._light().items()]
        return ZeroOneFeatures(np.array(self.query_centers), np.array(self.key_centers), blocks)

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Error of the base of each pair's clusters, or of the hybrid with Gaussian coefficients."""
        if self.coefficients == "gaussian":
            return self._gaussian().mse(case)
        error = np.empty(case.pairs.plus.shape)
        counts = self.n_query_clusters, self.n_key_clusters
        found = [nearest(np, case.X, np.array(self.query_centers)), nearest(np, case.Y, np.array(self.key_centers))]
        rows, columns = ([np.flatnonzero(f == k) for k in range(n)] for f, n in zip(found, counts, strict=True))
        light = set(self.light_pairs or ())
        for i, x in enumerate(rows):
            for j, y in enumerate(columns):
                if len(x) and len(y):
                    base: Map = self.default if (i, j) in light else self._base(i, j)
                    error[np.ix_(x, y)] = base.mse(replace(case, X=case.X[x], Y=case.Y[y]))
        return error

    def _require_gain_at_centers(self, kernel: Kernel | None, m: int) -> None:
        """Raise a ValueError if the Gaussian mixture errs more at a pair of centres than its default base alone."""
        case = ErrorCase(kernel, IID(), m, np.array(self.query_centers), np.array(self.key_centers))
        with np.errstate(over="ignore", invalid="ignore"):
            errors = (
                replace(self._gaussian(), shared=False).mse(case),
                self.default.mse(case),
            )  # every base has this one
            mixture, alone = (np.sqrt(error / case.squared_kernel) for error in errors)
        worse = ~(mixture <= np.maximum(alone, _USABLE))
        if worse.any():
            i, j = np.unravel_index(np.argmax(np.where(worse, mixture / np.maximum(alone, _USABLE), 0)), worse.shape)
            raise ValueError(
                f"ClusterHybrid: at the centres of cluster {i} of the queries and cluster {j} of the keys, Gaussian "
                f"coefficients have a relative error of {mixture[i, j]:.3g}, and the default base alone has "
                f"{alone[i, j]:.3g}: bumps of other pairs do not vanish there. Use coefficients='zero-one', or a smaller "
                f"width."
            )

    def _gaussian(self) -> Hybrid:
        """Bump ij is K(B x, -S y / B), B = abs(A)/tau, S = -1 for imaginary entries: the Hermitian norm of Ax + A^{-1}y."""
        tau, n = self.width or 1.0, self.n_coefficients or 8
        heavy = self._heavy()
        arrays = [np.array(self.diagonals[i][j]) for i, j in heavy] if self.diagonals is not None else []
        coefficients = tuple(
            GaussianCoefficient(as_tuple(abs(a) / tau), as_tuple(np.where(a.imag == 0, -1, 1) / abs(a) / tau), n)
            for a in arrays
        )
        return Hybrid((*(self._base(i, j) for i, j in heavy), self.default), coefficients, self.shared)


_FOUND = ("query_centers", "key_centers", "diagonals", "light_pairs")  # what `ClusterHybrid.plan` fills in


class ZeroOneFeatures(Features):
    """Blocks of bases, of which a query in cluster i fills (i, .) and a key in cluster j fills (., j).

    The light pairs of each query cluster share one block of the default base: a query in i fills block i, a key in j
    all blocks i whose pair (i, j) is light.

    Parameters
    ----------
    query_centers, key_centers : arrays (n, d)
    blocks : list of (Features, query clusters, key clusters)
        Each block with the clusters whose rows fill it.
    """

    symmetric = False
    positive = False

    def __init__(
        self,
        query_centers: np.ndarray,
        key_centers: np.ndarray,
        blocks: list[tuple[Features, list[int], list[int]]],
    ) -> None:
        self.centres, self.blocks = (query_centers, key_centers), blocks
        self.width = sum(features.width for features, _, _ in blocks)
        every = len(blocks) == len(query_centers) * len(key_centers)
        self.pairs = (
            DiagonalPairs.of([b for b, _, _ in blocks], len(query_centers), len(key_centers)) if every else None
        )

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """Fill the blocks of each row's cluster; zeros elsewhere."""
        xp, lead = array_namespace(X), tuple(X.shape[:-1])
        rows = xp.reshape(X, (-1, X.shape[-1]))
        cluster = nearest(xp, rows, self.centres[key])
        if self.pairs is not None and not is_numpy(X):
            parts = self.pairs.scaled(rows, cluster, key=key)
            return xp.reshape(parts[0], (*lead, self.width)), xp.reshape(parts[1], (*lead, self.width))
        fill = _gathered if is_numpy(X) else _masked
        found = [fill(features, rows, cluster, members[key], key=key) for features, *members in self.blocks]
        mantissa, logarithm = (xp.reshape(xp.concat(p, axis=-1), (*lead, self.width)) for p in zip(*found, strict=True))
        return mantissa, logarithm


def _gathered(features: Features, rows: np.ndarray, cluster: np.ndarray, members: list[int], *, key: bool) -> Scaled:
    """A block computed for its own rows only."""
    chosen = np.flatnonzero(np.isin(cluster, members))
    mantissa, logarithm = (np.zeros((len(rows), features.width), rows.dtype) for _ in range(2))
    if len(chosen):
        mantissa[chosen], logarithm[chosen] = parts_of(features, rows[chosen], key=key)
    return mantissa, logarithm


def _masked(features: Features, rows: Any, cluster: Any, members: list[int], *, key: bool) -> Scaled:
    """A block computed for all rows and masked, so that shapes do not depend on values."""
    xp = array_namespace(rows)
    own = cluster == members[0]
    for member in members[1:]:
        own = own | (cluster == member)
    mantissa, logarithm = parts_of(features, rows, key=key)
    zero = xp.zeros_like(logarithm)
    return xp.where(own[:, None], mantissa, zero), xp.where(own[:, None], logarithm, zero)


def nearest(xp: Any, rows: Any, centres: np.ndarray) -> Any:
    """Index of the nearest centre of each row."""
    squares = like((centres**2).sum(axis=1), rows)
    return xp.argmin(squares - 2 * xp.matmul(rows, like(np.ascontiguousarray(centres.T), rows)), axis=1)


@dataclass(frozen=True, eq=False)
class Clusters:
    """Cluster centres, and the moments of the points nearest to each."""

    centres: np.ndarray  # (n, d)
    means: np.ndarray  # (n, d)
    squares: np.ndarray  # (n, d)
    fractions: np.ndarray  # (n,)

    @classmethod
    def of(cls, points: np.ndarray, n: int, name: str, rng: np.random.Generator) -> Clusters:
        """k-means clusters of the points."""
        from sklearn.cluster import KMeans
        from threadpoolctl import threadpool_limits

        distinct = len(np.unique(points, axis=0))
        if distinct < n:
            raise ValueError(f"ClusterHybrid: {n} clusters of {name} need {n} distinct rows, got {distinct}.")
        points = points.astype(np.float64)
        with threadpool_limits(1 if points.size < _SMALL else None, user_api="openmp"):
            found = KMeans(n, n_init=4, random_state=int(rng.integers(2**31))).fit(points)
        members = [points[found.labels_ == k] for k in range(n)]
        means, squares = (np.stack([np.mean(part**power, axis=0) for part in members]) for power in (1, 2))
        return cls(found.cluster_centers_, means, squares, np.array([len(part) for part in members]) / len(points))


def diagonals(queries: Clusters, keys: Clusters, *, imaginary: bool) -> np.ndarray:
    r"""A for every pair of clusters, complex (n_q, n_k, d): :math:`|a_k| = (E y_k^2/E x_k^2)^{1/4}`."""
    x, y = queries.squares[:, None, :], keys.squares[None, :, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.clip((y / x) ** 0.25, *_CLIP)
    size = np.where((x == 0) & (y == 0), 1.0, size)
    same_sign = queries.means[:, None, :] * keys.means[None, :, :] > 0
    return np.where(same_sign & imaginary, 1j, 1.0) * size
