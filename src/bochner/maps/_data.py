"""Statistics that maps compute from data: moments of two sets of points in O(n d), and random pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._arrays import as_numpy

_CHUNK = 65536  # rows converted to float64 at a time: 32 MB at 64 columns


@dataclass(frozen=True)
class RowMoments:
    """Mean, mean square and minimum of each coordinate of a set of points."""

    mean: np.ndarray
    square: np.ndarray
    minimum: np.ndarray

    @classmethod
    def of(cls, points: np.ndarray, weights: np.ndarray | None = None) -> RowMoments:
        """Compute the moments in one pass in float64, whatever the precision of the points."""
        total, squares = np.zeros(points.shape[1]), np.zeros(points.shape[1])
        minimum = np.full(points.shape[1], np.inf)
        for start in range(0, len(points), _CHUNK):
            part = points[start : start + _CHUNK].astype(np.float64)
            weighted = part if weights is None else part * weights[start : start + _CHUNK, None]
            with np.errstate(over="ignore"):
                squares += np.einsum("nd,nd->d", part, weighted)
            total += weighted.sum(axis=0)
            minimum = np.minimum(minimum, part.min(axis=0))
        if not np.isfinite(squares).all():
            raise ValueError("Approximation.plan: expected finite numbers whose squares are finite too.")
        count = len(points) if weights is None else weights.sum()
        return cls(total / count, squares / count, minimum)


class Data:
    """Two sets of points, queries and keys, at unit scale; they may have different sizes.

    Parameters
    ----------
    X, Y : arrays (..., n, d) and (..., p, d)
        Leading axes are flattened; tensors are detached.  Passing the same object twice means the same points.
    scale : callable, optional
        Brings rows of X and Y to unit scale; it is called for the rows that are used.
    weights : float64 array (n,), optional
        Positive weights of points that are queries and keys: as if each of them were there so many times.  Rows that are
        chosen as points of a map (`rows`) do not depend on them.
    """

    def __init__(
        self,
        X: Any,
        Y: Any,
        scale: Callable[[np.ndarray], np.ndarray] | None = None,
        weights: np.ndarray | None = None,
    ) -> None:
        self.same, self._scale, self.weights = X is Y, scale, weights
        self._sides = [_points(X)] if self.same else [_points(X), _points(Y)]

    def _scaled(self, points: np.ndarray) -> np.ndarray:
        return points if self._scale is None else self._scale(points)

    @cached_property
    def X(self) -> np.ndarray:
        """All queries."""
        return self._scaled(self._sides[0])

    @cached_property
    def Y(self) -> np.ndarray:
        """All keys."""
        return self.X if self.same else self._scaled(self._sides[1])

    @property
    def count(self) -> int:
        """Number of points, of queries and keys together."""
        return sum(map(len, self._sides))

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """Points by their numbers below `count`, those of the keys after those of the queries."""
        if self.same:
            return self._scaled(self._sides[0][numbers])
        n, (X, Y) = len(self._sides[0]), self._sides
        chosen = np.where((numbers < n)[:, None], X[np.minimum(numbers, n - 1)], Y[np.maximum(numbers - n, 0)])
        return self._scaled(chosen)

    @cached_property
    def queries(self) -> RowMoments:
        """Moments of X."""
        return RowMoments.of(self.X, self.weights)

    @cached_property
    def keys(self) -> RowMoments:
        """Moments of Y."""
        return self.queries if self.same else RowMoments.of(self.Y, self.weights)

    @property
    def d(self) -> int:
        """Dimension of the points."""
        return int(self._sides[0].shape[1])

    def mean_square(self, s: int) -> float:
        r"""Mean of :math:`|x + s y|^2` over all pairs: :math:`E|x|^2 + E|y|^2 + 2 s\, Ex \cdot Ey` (CRT Eq. 8)."""
        cross = float(self.queries.mean @ self.keys.mean)
        return max(float(self.queries.square.sum() + self.keys.square.sum()) + 2 * s * cross, 0.0)

    def covariance(self, *, key: bool) -> np.ndarray:
        """Covariance of the keys or of the queries, (d, d), in one pass of O(n d^2) in float64."""
        points, mean = (self.Y, self.keys.mean) if key else (self.X, self.queries.mean)
        total = np.zeros((self.d, self.d))
        for start in range(0, len(points), _CHUNK):
            part = points[start : start + _CHUNK] - mean
            weighted = part if self.weights is None else part * self.weights[start : start + _CHUNK, None]
            total += part.T @ weighted
        return total / (len(points) if self.weights is None else self.weights.sum())

    def pairs(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return ``count`` random pairs, or all pairs if there are no more than that; in proportion to weights."""
        n, p = len(self.X), len(self.Y)
        if self.weights is not None:
            x, y = rng.choice(n, (2, count), p=self.weights / self.weights.sum())
            return self.X[x].astype(np.float64), self.Y[y].astype(np.float64)
        chosen = np.arange(n * p) if n * p <= count else rng.integers(0, n * p, count)
        return self.X[chosen // p].astype(np.float64), self.Y[chosen % p].astype(np.float64)


def _points(Z: Any) -> np.ndarray:
    points: np.ndarray = as_numpy(Z)
    return points.reshape(-1, points.shape[-1])
