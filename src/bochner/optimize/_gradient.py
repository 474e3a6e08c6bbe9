"""Gradients of Gaussian smoothings of a black box."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arrays import as_numpy
from .._random import RNG, as_generator
from .._validation import as_real, check_count, check_option, check_positive, check_rows
from ..catalogue import as_projection
from ..projections import Orthogonal, Projection
from ..rotations import StructuredGivens
from ._candidates import ESTIMATORS, Candidates, GradientEstimate
from ._evaluation import EvaluationError, Evaluator


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

    Use it where f has no gradient, or a useless one: simulators, policies, functions with steps or noise.  In a loop of
    descent steps, use `minimize` or `EvolutionStrategy`.

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
        What evaluates f over a list of points, called as the built-in ``map``: ``pool.map`` of threads or processes.
        The result does not depend on the number of workers.

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
