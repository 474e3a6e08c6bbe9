"""Hybrids adapted to clusters of queries and keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import array_namespace, as_numpy, like
from .._validation import check_count, check_flag, check_fraction, check_instance, check_option, check_positive
from ..kernels import Kernel
from .base import Map
from .clusters import Clusters, diagonals, light_pairs
from .coefficients import GaussianCoefficient
from .complex_exponential import ComplexExponential, ComplexExponentialFeatures
from .draws import Draws
from .exponential import norm_coefficient
from .features import Features, Scaled, parts_of
from .hybrid import Hybrid, HybridMap, check_base
from .hyperbolic import Hyperbolic
from .linear import as_tuple
from .nodes import Nodes
from .statistics import Data

COEFFICIENTS = ("zero-one", "gaussian")
DIAGONALS = ("complex", "real")


@dataclass(frozen=True)
class ClusterHybrid(HybridMap):
    r"""Cluster hybrid features (HRF Sections 2.4 and H): a complex exponential base for each pair of clusters.

    Notes
    -----
    Queries and keys are clustered by k-means.  For clusters i of queries and j of keys the base is
    `ComplexExponential` with the diagonal :math:`A^{(ij)}` that makes :math:`Ax + A^{-1}y` small there:
    :math:`|a_k| = (E y_k^2/E x_k^2)^{1/4}`, imaginary where :math:`E x_k\,E y_k > 0` (``diagonal="complex"``), which is
    HRF Eq. 86-88 for tight clusters and stays finite for centres at zero.

    ``coefficients="zero-one"``: the weight of base (i, j) is one for queries nearest to centre i and keys nearest to
    centre j; a query fills the blocks (i, .), a key the blocks (., j).  ``"gaussian"``: weights
    :math:`e^{-|Ax + A^{-1}y|^2/(2\tau^2)}`, by trigonometric features, and a default base with the rest.  Unbiased in both
    cases, whatever the clusters.

    Parameters
    ----------
    n_query_clusters, n_key_clusters : int
        Numbers of clusters.
    coefficients : {"zero-one", "gaussian"}
        The weights.
    diagonal : {"complex", "real"}
        Whether entries of A may be imaginary.
    default : Map
        Base of light pairs of clusters, and of the remaining weight of Gaussian coefficients.
    light : float
        Pairs of clusters that hold less than this fraction of all pairs of points use the default base.
    width : float, optional
        tau, with Gaussian coefficients (1 without it).
    n_coefficients : int, optional
        Number of projections of each Gaussian coefficient (8 without it).
    shared : bool
        Whether all bases use the same W.

    References
    ----------
    hrf (Sections 2.4 and H).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> X = np.random.default_rng(0).standard_normal((40, 3))
    >>> phi = Approximation(kernels.Softmax(), maps.ClusterHybrid(2, 3), n_projections=4).fit(X, rng=0)
    >>> phi.n_features_out
    48
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

    def __post_init__(self) -> None:
        for name in ("n_query_clusters", "n_key_clusters"):
            object.__setattr__(self, name, check_count("ClusterHybrid", name, getattr(self, name)))
        check_option("ClusterHybrid", "coefficients", self.coefficients, COEFFICIENTS)
        check_option("ClusterHybrid", "diagonal", self.diagonal, DIAGONALS)
        check_flag("ClusterHybrid", "shared", self.shared)
        check_instance("ClusterHybrid", "default", self.default, Map, "Hyperbolic()")
        check_base("ClusterHybrid", self.default)
        if self.light != 0:
            object.__setattr__(self, "light", check_fraction("ClusterHybrid", "light", self.light))
        if self.width is not None:
            object.__setattr__(self, "width", check_positive("ClusterHybrid", "width", self.width))
        if self.n_coefficients is not None:
            object.__setattr__(
                self, "n_coefficients", check_count("ClusterHybrid", "n_coefficients", self.n_coefficients)
            )
        if self.coefficients == "zero-one" and (self.width, self.n_coefficients) != (None, None):
            raise ValueError("ClusterHybrid: width and n_coefficients belong to coefficients='gaussian'.")

    def serves(self, kernel: Kernel | None) -> bool:
        """The Gaussian and the softmax kernel, if the default base does."""
        return super().serves(kernel) and self.default.serves(kernel)

    @property
    def needs_data(self) -> bool:
        """For the clusters."""
        return True

    def draw(self, draws: Draws, kernel: Kernel | None, data: Data | None) -> Features:
        """Find the clusters, choose the diagonals, and draw."""
        assert data is not None
        rng = draws.stream("clusters")
        queries = Clusters.of(data.X, self.n_query_clusters, "queries", rng)
        keys = Clusters.of(data.Y, self.n_key_clusters, "keys", rng)
        A = diagonals(queries, keys, imaginary=self.diagonal == "complex")
        light = light_pairs(queries, keys, self.light)
        if self.coefficients == "gaussian":
            return self._gaussian(A, light).draw(draws, kernel, data)
        return self._zero_one(A, light, queries, keys, draws, kernel, data)

    def _gaussian(self, A: np.ndarray, light: np.ndarray) -> Hybrid:
        """Bump ij is K(B x, -S y / B), B = abs(A)/tau, S = -1 for imaginary entries: the Hermitian norm of Ax + A^{-1}y."""
        tau, n = self.width or 1.0, self.n_coefficients or 8
        heavy = [A[i, j] for i, j in zip(*np.nonzero(~light), strict=True)]
        if not heavy:
            raise ValueError(f"ClusterHybrid: all pairs of clusters hold less than light = {self.light} of the data.")
        coefficients = [
            GaussianCoefficient(as_tuple(abs(a) / tau), as_tuple(np.where(a.imag == 0, -1, 1) / abs(a) / tau), n)
            for a in heavy
        ]
        return Hybrid(
            (*(ComplexExponential(as_tuple(a)) for a in heavy), self.default), tuple(coefficients), self.shared
        )

    def _zero_one(self, A: np.ndarray, light: np.ndarray, queries: Clusters, keys: Clusters, draws: Draws,
                  kernel: Kernel | None, data: Data) -> Features:  # fmt: skip
        def nodes(name: str) -> Nodes:
            operator = (draws if self.shared else draws.apart(name)).operator()
            return Nodes(operator, reflect=operator.reflected)

        c = norm_coefficient(kernel, -0.5)
        bases = {
            (int(i), int(j)): ComplexExponentialFeatures(nodes(f"base-{i}-{j}"), _real_if_real(A[i, j]), c)
            for i, j in zip(*np.nonzero(~light), strict=True)
        }
        default = self.default.draw(draws if self.shared else draws.apart("default"), kernel, data)
        return ZeroOneFeatures(queries.centres, keys.centres, bases, default, light)


class ZeroOneFeatures(Features):
    """Blocks of bases, of which a query in cluster i fills (i, .) and a key in cluster j fills (., j).

    Light pairs share one block of the default base for each query cluster that has some: a query in i fills block i, a
    key in j all blocks i whose pair (i, j) is light.
    """

    symmetric = False
    positive = False

    def __init__(self, query_centres: np.ndarray, key_centres: np.ndarray,
                 bases: dict[tuple[int, int], ComplexExponentialFeatures], default: Features,
                 light: np.ndarray) -> None:  # fmt: skip
        self.centres = (query_centres, key_centres)
        self.light = light
        # each block: its features, the query clusters that fill it, the key clusters that fill it
        self.blocks: list[tuple[Features, list[int], list[int]]] = [(f, [i], [j]) for (i, j), f in bases.items()]
        for i in np.flatnonzero(light.any(axis=1)).tolist():
            self.blocks.append((default, [i], np.flatnonzero(light[i]).tolist()))
        self.width = sum(features.width for features, _, _ in self.blocks)

    def scaled(self, X: Any, *, key: bool) -> Scaled:
        """Fill the blocks of each row's cluster; zeros elsewhere."""
        xp, lead = array_namespace(X), tuple(X.shape[:-1])
        rows = xp.reshape(X, (-1, X.shape[-1]))
        cluster = nearest(rows, self.centres[key])
        mantissas, logarithms = [], []
        for features, *members in self.blocks:
            chosen = np.flatnonzero(np.isin(cluster, members[key]))
            mantissa, logarithm = (like(np.zeros((rows.shape[0], features.width)), rows) for _ in range(2))
            if len(chosen):
                mantissa[chosen], logarithm[chosen] = parts_of(features, rows[chosen], key=key)
            mantissas.append(mantissa)
            logarithms.append(logarithm)
        full = (xp.reshape(xp.concat(part, axis=-1), (*lead, self.width)) for part in (mantissas, logarithms))
        mantissa, logarithm = full
        return mantissa, logarithm


def nearest(rows: Any, centres: np.ndarray) -> np.ndarray:
    """Number of the nearest centre of each row, as a NumPy array without gradient."""
    distances: np.ndarray = (centres**2).sum(axis=1) - 2 * as_numpy(rows) @ centres.T
    numbers: np.ndarray = np.argmin(distances, axis=1)
    return numbers


def _real_if_real(a: np.ndarray) -> np.ndarray:
    return a if a.imag.any() else a.real
