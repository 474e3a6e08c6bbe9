"""The mean squared error of an approximation: in closed form where there is one, and by simulation everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._random import RNG, as_generator
from ..linalg.engine import single_threaded_blas
from ..maps.statistics import Data
from .closed_forms import closed_form

if TYPE_CHECKING:
    from .spec import Approximation

_CHUNK_NUMBERS = 1 << 22


class SimulatedError(NamedTuple):
    """Mean squared errors estimated over redraws, and their standard errors."""

    mse: np.ndarray
    standard_error: np.ndarray


def mean_squared_error(spec: Approximation, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Mean squared error of each entry of the Gram matrix of X and Y (points as rows), constants chosen from them."""
    X, Y = (np.asarray(spec.at_unit_scale(Z), dtype=np.float64) for Z in (X, Y))
    data = Data(X, Y)
    step = max(1, _CHUNK_NUMBERS // Y.size)
    parts = [closed_form(spec.map, spec, X[i : i + step, None, :], Y[None], data) for i in range(0, len(X), step)]
    return np.concatenate(parts)


def squared_errors(spec: Approximation, X: Any, Y: Any, n_draws: int, rng: RNG) -> Iterator[np.ndarray]:
    """Squared errors of the Gram matrix of independent redraws, constants chosen from X and Y each time."""
    assert spec.kernel is not None
    rng, exact = as_generator(rng), spec.kernel(X, Y)
    for _ in range(n_draws):
        with single_threaded_blas, np.errstate(over="ignore", invalid="ignore"):  # threads cost more than such products
            yield (spec.fit(X, Y, rng).gram(X, Y) - exact) ** 2


def simulate(spec: Approximation, X: Any, Y: Any, n_draws: int, rng: RNG) -> SimulatedError:
    """Mean of squared errors over redraws, and its standard error."""
    total, squares = np.zeros((len(X), len(Y))), np.zeros((len(X), len(Y)))
    for error in squared_errors(spec, X, Y, n_draws, rng):
        total += error
        squares += error**2
    mean = total / n_draws
    variance = np.maximum(squares / n_draws - mean**2, 0) / (n_draws - 1)
    return SimulatedError(mean, np.sqrt(variance))
