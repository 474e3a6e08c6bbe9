"""Gradients of Gaussian smoothings of a black box, and the points at which they evaluate it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import as_numpy
from .._random import RNG, as_generator
from .._validation import as_real, check_count, check_option, check_positive, check_rows
from ..catalogue import as_projection
from ..linalg.engine import for_each_tile, rows_per_tile
from ..projections import Operator, Orthogonal, Projection
from ..rotations import StructuredGivens
from ._evaluation import EvaluationError, Evaluator

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
        unit = int(np.frexp(np.abs(used).max())[1])  # squares of values in their own unit neither overflow nor vanish
        used = np.ldexp(used, -unit)
        pairs = used[self._n_first :].reshape(-1, len(self._signs))
        coefficients = np.zeros(len(valid))
        coefficients[valid] = pairs @ self._signs / len(self._signs) - (used[0] if self._n_first else 0.0)
        gradient, error = _combined(self.operator, coefficients / self.sigma, valid)
        gradient, error = np.ldexp(gradient, unit), float(np.ldexp(error, unit))
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


def as_values(owner: str, values: Any) -> np.ndarray:
    """Real numbers of any array library as a new float64 array; they may be NaN or infinite."""
    return np.array(as_numpy(as_real(owner, values)), dtype=np.float64)


def as_vector(owner: str, name: str, x: Any) -> np.ndarray:
    """A finite vector, float64, as a copy."""
    x = as_values(f"{owner}: {name}", x)
    if x.ndim != 1 or not len(x):
        raise ValueError(f"{owner}: {name} must be a vector, an array of shape (d,), got shape {x.shape}.")
    return np.asarray(check_rows(f"{owner}: {name}", x, len(x)))


def directions_of(owner: str, projection: Projection | str | None) -> Projection:
    """The law of the directions: orthogonal ones by exact fast rotations, unless another one is asked for."""
    return Orthogonal(StructuredGivens()) if projection is None else as_projection(owner, projection)


def smoothed_gradient(
    f: Callable[[np.ndarray], Any],
    theta: Any,
    *,
    sigma: float,
    projection: Projection | str | None = None,
    n_directions: int | None = None,
    estimator: str = "antithetic",
    rng: RNG = None,
    batched: bool = False,
    map: Any = None,
) -> GradientEstimate:
    r"""Estimate the gradient of the Gaussian smoothing of a black box from its values.

    Use it where f has no useful gradient: simulators, policies, functions with steps or noise.  In a loop of descent
    steps, use `minimize` or `EvolutionStrategy`.

    Parameters
    ----------
    f : callable
        The function: of a vector (d,), or with ``batched=True`` of a matrix (k, d) with one value per row.
    theta : array (d,)
        Where the gradient is taken.
    sigma : float
        Width of the smoothing.
    projection : Projection or str, optional
        Law of the directions; orthogonal ones by exact fast rotations, ``Orthogonal(StructuredGivens())``, by default.
        Rotations other than `Haar` and `Kac` draw directions in the next power of two and cut them.
    n_directions : int, optional
        How many directions; d by default.
    estimator : {"antithetic", "forward", "plain"}
        Differences of opposite points (2n evaluations), differences to the value at ``theta`` (n + 1), or values alone
        (n).
    rng : int, numpy.random.Generator or None
        Source of randomness.
    batched : bool
        Whether f takes matrices.
    map : callable or Dask client, optional
        Function that evaluates f over a list of points, called as the built-in ``map``: ``pool.map`` of threads or
        processes.  The result does not depend on the number of workers.

    Returns
    -------
    GradientEstimate
        The gradient, its standard error, and how many evaluations failed.

    See Also
    --------
    minimize : descent along such gradients.
    bochner.extending.smoothing_gradient_mse : the error in closed form where f is quadratic.

    Notes
    -----
    :math:`F_\sigma(\theta) = E f(\theta + \sigma g)`, g ~ N(0, I), has the gradient
    :math:`E f(\theta + \sigma g) g/\sigma` (OMC Eq. 10, 11).  With directions :math:`w_i`, the rows of the projection,
    the estimate is :math:`\frac1{n\sigma}\sum_i c_i w_i` with
    :math:`c_i = \frac12[f(\theta + \sigma w_i) - f(\theta - \sigma w_i)]` (antithetic),
    :math:`f(\theta + \sigma w_i) - f(\theta)` (forward) or :math:`f(\theta + \sigma w_i)` (plain).  All are unbiased if
    each row is N(0, I), however rows are coupled.  Weighted nodes, those of `projections.Quadrature`, are unbiased too,
    and with orthoplex vertices and n = d the antithetic estimate is exact where f is linear or quadratic.

    The directions are never stored: with fast rotations memory is O(n + d).  Exceptions and values that are not finite
    leave out their direction, and are reported by an `EvaluationWarning`.

    References
    ----------
    OMC Section 6.3.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.optimize import smoothed_gradient
    >>> from bochner.projections import Orthogonal
    >>> slope = np.arange(5.0)
    >>> found = smoothed_gradient(lambda x: slope @ x, np.zeros(5), sigma=0.1, projection=Orthogonal(radii="fixed"), rng=0)
    >>> bool(np.allclose(found.gradient, slope))  # fixed lengths, n = d: exact for linear functions
    True
    """
    owner = "smoothed_gradient"
    theta, sigma = as_vector(owner, "theta", theta), check_positive(owner, "sigma", sigma)
    check_option(owner, "estimator", estimator, ESTIMATORS)
    n = len(theta) if n_directions is None else check_count(owner, "n_directions", n_directions)
    evaluator = Evaluator(owner, f, batched, map)
    operator = directions_of(owner, projection).sample(len(theta), n, as_generator(rng))
    points = Candidates(theta, sigma, operator, estimator)
    values = evaluator.values(points.tiles())
    try:
        found = points.estimate(values)
    except EvaluationError as error:
        raise EvaluationError(f"{owner}: {error} The first failure: {evaluator.reason}.") from None
    evaluator.warn()
    return found
