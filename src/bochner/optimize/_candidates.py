"""The points at which a black box is evaluated, and the gradient estimate made of its values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..linalg.engine import for_each_tile, rows_per_tile
from ..projections import Operator
from ._evaluation import EvaluationError

ESTIMATORS = ("antithetic", "forward", "plain")
_MOST_GROUPS = 16
"""Groups of independent blocks that standard errors are computed from: as many as compiled transforms take side by side."""


@dataclass(frozen=True)
class GradientEstimate:
    r"""An estimate of the gradient of :math:`F_\sigma`.

    Attributes
    ----------
    gradient : array (d,)
        The estimate.
    standard_error : float
        Estimate of the root of :math:`E|\hat g - \nabla F_\sigma|^2`, from independent blocks of directions.  With a
        single block, whose rows depend on each other, directions are treated as independent, which overstates the error
        of orthogonal ones; NaN with a single direction.
    n_directions : int
        Directions that it was made of.
    n_evaluations, n_failed : int
        Evaluations, and how many of them raised or were not finite.
    """

    gradient: np.ndarray
    standard_error: float
    n_directions: int
    n_evaluations: int
    n_failed: int


class Candidates(Sequence[np.ndarray]):
    r"""Points to evaluate, as a sequence of vectors that are computed on access.

    ``for x in points`` computes them tile by tile, ``np.asarray(points)`` all at once, ``points[i]`` one of them.  The
    order is :math:`x + \sigma w_1, x - \sigma w_1, x + \sigma w_2, \ldots` for the antithetic estimator; x itself, then
    :math:`x + \sigma w_i`, for forward differences; and these without x for the plain one.

    Attributes
    ----------
    center : array (d,)
        x.
    sigma : float
        Width of the smoothing.
    operator : Operator
        Whose rows are the directions.
    estimator : {"antithetic", "forward", "plain"}
        Which evaluations there are.
    """

    def __init__(
        self,
        center: np.ndarray,
        sigma: float,
        operator: Operator,
        estimator: str,
    ) -> None:
        self.center, self.sigma, self.operator, self.estimator = center, sigma, operator, estimator
        self._signs = np.array([1.0, -1.0] if estimator == "antithetic" else [1.0])
        self._n_first = 1 if estimator == "forward" else 0

    def __len__(self) -> int:
        return self._n_first + len(self._signs) * self.operator.shape[0]

    def __iter__(self) -> Iterator[np.ndarray]:
        for tile in self.tiles():
            yield from tile

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index] - self._n_first
        if i < 0:
            return self.center.copy()
        row, sign = divmod(i, len(self._signs))
        return self.center + self.sigma * self._signs[sign] * self.operator.rows(row, row + 1)[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        n, d = self.operator.shape
        points = np.empty((len(self), d))
        points[: self._n_first] = self.center
        pairs = points[self._n_first :].reshape(n, len(self._signs), d)
        for_each_tile(n, self._directions_per_tile, lambda i, j: self._fill(pairs[i:j], i, j))
        return points.astype(dtype or np.float64, copy=False)

    def tiles(self) -> Iterator[np.ndarray]:
        """Matrices whose rows are the points, in order; the centre, if it is among them, is a tile of its own."""
        if self._n_first:
            yield self.center[None].copy()
        n, d = self.operator.shape
        for start in range(0, n, self._directions_per_tile):
            stop = min(start + self._directions_per_tile, n)
            pairs = np.empty((stop - start, len(self._signs), d))
            self._fill(pairs, start, stop)
            yield pairs.reshape(-1, d)

    @property
    def _directions_per_tile(self) -> int:
        return rows_per_tile(8 * self.operator.shape[1] * len(self._signs))

    def _fill(self, pairs: np.ndarray, start: int, stop: int) -> None:
        """Write the points of these directions into ``pairs``, (stop - start, number of signs, d)."""
        from ..linalg.loops import reflect

        self.operator.rows(start, stop, pairs[:, 0])
        reflect(pairs, self.center, self.sigma)

    def estimate(self, values: np.ndarray, shape: Callable[[np.ndarray], np.ndarray] | None = None) -> GradientEstimate:
        """The gradient estimate made of the values at all points.

        Parameters
        ----------
        values : array (len(self),)
            NaN or infinite where the evaluation failed: that direction is left out.
        shape : callable, optional
            What is done to all values that are used, first.
        """
        first, pairs = values[: self._n_first], values[self._n_first :].reshape(-1, len(self._signs))
        valid = np.isfinite(pairs).all(axis=1)
        n_failed = int((~np.isfinite(values)).sum())
        if not valid.any() or not np.isfinite(first).all():
            what = "every direction has a failed evaluation" if not valid.any() else "the evaluation at x failed"
            raise EvaluationError(f"{what}; there is no gradient to estimate.")
        used = np.concatenate([first, pairs[valid].ravel()])
        used = used if shape is None else shape(used)
        pairs = used[self._n_first :].reshape(-1, len(self._signs))
        coefficients = np.zeros(len(valid))
        coefficients[valid] = pairs @ self._signs / len(self._signs) - (used[0] if self._n_first else 0.0)
        gradient, error = _combined(self.operator, coefficients / self.sigma, valid)
        return GradientEstimate(gradient, error, int(valid.sum()), len(values), n_failed)


def _combined(operator: Operator, coefficients: np.ndarray, valid: np.ndarray) -> tuple[np.ndarray, float]:
    """The weighted sum of valid directions times their coefficients, and its standard error."""
    n_valid = int(valid.sum())
    sizes = operator.block_sizes
    weighted = operator.weights * (len(valid) / n_valid) * coefficients
    n_groups = min(len(sizes), _MOST_GROUPS)
    group = np.repeat(np.arange(len(sizes)) * n_groups // len(sizes), sizes)
    parts = operator.combine(np.where(group == np.arange(n_groups)[:, None], weighted, 0.0))
    gradient = parts.sum(axis=0)
    p = np.bincount(group, valid, n_groups) / n_valid
    if (p > 0).sum() > 1:
        square = _squared_error(parts[p > 0], p[p > 0], gradient)
    else:
        lengths = operator.radii * math.sqrt(operator.shape[1] / operator.dim)
        spread = n_valid * ((weighted * lengths) ** 2).sum() - gradient @ gradient
        square = spread / (n_valid - 1) if n_valid > 1 else math.nan
    return gradient, math.sqrt(max(square, 0.0)) if square == square else math.nan


def _squared_error(parts: np.ndarray, p: np.ndarray, total: np.ndarray) -> float:
    r"""Estimate of :math:`V = E|\hat g - \nabla|^2` from independent parts :math:`p_b G_b` of a total.

    :math:`E|G_b - \hat g|^2 = (1 - 2p_b)V_b + V` and :math:`V = \sum_b p_b^2V_b`, whatever the variances :math:`V_b`:
    so V is found from a weighted sum of the squares if all shares are below one half.  Otherwise :math:`V_b` is taken
    to be proportional to :math:`1/p_b`.
    """
    squares = ((parts / p[:, None] - total) ** 2).sum(axis=1)
    if p.max() >= 0.5:
        return float(p @ squares / (len(p) - 1))
    weights = p**2 / (1 - 2 * p)
    return float(weights @ squares / (1 + weights.sum()))
