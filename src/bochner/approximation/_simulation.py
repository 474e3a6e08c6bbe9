"""The mean squared error of an approximation, estimated by redrawing its plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._random import RNG, as_generator
from ..linalg.engine import single_threaded_blas

if TYPE_CHECKING:
    from ._specification import Approximation


class SimulatedError(NamedTuple):
    """Mean squared errors estimated over redraws, and their standard errors.

    Attributes
    ----------
    mse : float64 array (n, p)
        Mean squared error of each entry of the Gram matrix.
    standard_error : float64 array (n, p)
        Standard error of ``mse``.
    """

    mse: np.ndarray
    standard_error: np.ndarray


def squared_errors(plan: Approximation, X: Any, Y: Any, n_draws: int, rng: RNG) -> Iterator[np.ndarray]:
    """Yield the squared errors of the Gram matrix for independent draws of a plan.

    Parameters
    ----------
    plan : Approximation
        An approximation with all constants chosen.
    X : array (n, d)
        Queries.
    Y : array (p, d)
        Keys.
    n_draws : int
        Number of draws.
    rng : int, numpy.random.Generator or None
        Source of randomness.

    Yields
    ------
    float64 array (n, p)
    """
    assert plan.kernel is not None
    rng, exact = as_generator(rng), plan.kernel(X, Y)
    for _ in range(n_draws):
        with single_threaded_blas, np.errstate(over="ignore", invalid="ignore"):  # threads cost more than such products
            yield (plan.draw(X.shape[1], rng).gram(X, Y) - exact) ** 2


def simulate(plan: Approximation, X: Any, Y: Any, n_draws: int, rng: RNG) -> SimulatedError:
    """Return the mean of squared errors over redraws, and its standard error."""
    total, squares = np.zeros((len(X), len(Y))), np.zeros((len(X), len(Y)))
    for error in squared_errors(plan, X, Y, n_draws, rng):
        total += error
        squares += error**2
    mean = total / n_draws
    variance = np.maximum(squares / n_draws - mean**2, 0) / (n_draws - 1)
    return SimulatedError(mean, np.sqrt(variance))
