"""Clusters of points, and the diagonals of complex exponentials that fit pairs of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_CLIP = (1e-2, 1e2)
"""Bounds of |a_k|: extreme ratios explode away from the centres."""

_SMALL = 1 << 20
"""Numbers up to which one thread is quicker than waking several at every step of k-means."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """Centres, and the moments of the points nearest to each."""

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


def light_pairs(queries: Clusters, keys: Clusters, threshold: float) -> np.ndarray:
    """Which pairs of clusters hold less than a fraction of all pairs of points, (n_q, n_k)."""
    fractions: np.ndarray = queries.fractions[:, None] * keys.fractions[None, :]
    return fractions < threshold
