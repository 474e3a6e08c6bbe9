"""Evaluations of a black box: one point or a matrix of them at a time, here or on workers, with failures caught."""

from __future__ import annotations

import builtins
import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validation import check_flag, shown


class EvaluationWarning(UserWarning):
    """Some evaluations failed or were not finite, and their directions were left out."""


class EvaluationError(ValueError):
    """No direction has all its evaluations, so that there is no gradient to estimate."""


def as_number(value: Any) -> float:
    """What f returned as a float: a number, or an array or tensor that holds one."""
    array = np.asarray(value, dtype=np.float64)  # which makes NaN of None
    if array.size != 1 or value is None:
        raise TypeError(f"f must return one number, got {shown(value)}")
    return float(array.reshape(()))


@dataclass(frozen=True)
class Guarded:
    """f with its exceptions caught where it runs, so that one of them does not end the work of a pool."""

    f: Callable[[np.ndarray], Any]

    def __call__(self, x: np.ndarray) -> tuple[float, str]:
        """The value and no reason, or NaN and the reason."""
        try:
            value = as_number(self.f(x))
        except Exception as error:  # whatever the user's function raises is data here: counted and reported
            return math.nan, f"{type(error).__name__}: {error}"
        return (value, "") if math.isfinite(value) else (math.nan, f"the value is {value}")


class Evaluator:
    """Evaluates f on tiles of points and keeps count.

    Attributes
    ----------
    n_evaluations, n_failed : int
        How many there were, and how many of them raised or were not finite.
    reason : str
        Of the first failure.
    """

    def __init__(self, owner: str, f: Any, batched: Any, map: Any) -> None:
        if not callable(f):
            raise TypeError(f"{owner}: f must be a function of one vector, got {shown(f)}.")
        check_flag(owner, "batched", batched)
        if batched and map is not None:
            raise ValueError(f"{owner}: a batched f takes whole matrices itself; pass batched=True or map=, not both.")
        self.owner, self._f, self._batched, self._map = owner, f, batched, _mapper(owner, map)
        self.n_evaluations, self.n_failed, self.reason = 0, 0, ""

    def values(self, tiles: Iterable[np.ndarray]) -> np.ndarray:
        """Values at the rows of all tiles, in order; NaN where f failed."""
        evaluate = self._of_matrix if self._batched else self._of_rows
        found = [pair for tile in tiles for pair in evaluate(tile)]
        failures = [reason for _, reason in found if reason]
        self.n_evaluations += len(found)
        self.n_failed += len(failures)
        self.reason = self.reason or next(iter(failures), "")
        return np.array([value for value, _ in found])

    def warn(self) -> None:
        """Report the failures so far."""
        if self.n_failed:
            warnings.warn(
                f"{self.owner}: {self.n_failed} of {self.n_evaluations} evaluations failed and were left out with their "
                f"antithetic partners; the first: {self.reason}.",
                EvaluationWarning,
                stacklevel=3,
            )

    def _of_rows(self, tile: np.ndarray) -> list[tuple[float, str]]:
        results = self._map(Guarded(self._f), list(tile))
        found = list(results) if isinstance(results, Iterable) else []
        if len(found) != len(tile) or not all(isinstance(pair, tuple) for pair in found):
            raise TypeError(f"{self.owner}: map must return one result per point, as the built-in map does.")
        return found

    def _of_matrix(self, tile: np.ndarray) -> list[tuple[float, str]]:
        """Evaluate all rows at once, and row by row if that fails, so that the others are not lost."""
        try:
            values = np.asarray(self._f(tile), dtype=np.float64)
        except Exception:  # which row it was shows below
            return [Guarded(self._f)(row[None]) for row in tile]
        if values.shape != (len(tile),):
            raise ValueError(
                f"{self.owner}: with batched=True f must return one value per row, shape ({len(tile)},), got {values.shape}."
            )
        return [(v, "") if math.isfinite(v) else (math.nan, f"the value is {v}") for v in values.tolist()]


def _mapper(owner: str, map: Any) -> Callable[[Any, list[np.ndarray]], Iterable[tuple[float, str]]]:
    """What runs a function over a list: the built-in ``map``, a pool's, or a Dask client."""
    if map is None:
        return builtins.map
    if hasattr(map, "map") and hasattr(map, "gather"):  # pure=False: equal points are evaluated again, f may be noisy
        return lambda function, items: map.gather(map.map(function, items, pure=False))
    if not callable(map):
        raise TypeError(
            f"{owner}: map must have the signature of the built-in map, such as Pool().map, or be a Dask client, got "
            f"{shown(map)}."
        )
    return map  # type: ignore[no-any-return]
