"""Benchmarks of black-box optimisation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bochner.extending import Rotation
from bochner.optimize import EvolutionStrategy
from bochner.projections import Orthogonal
from bochner.reporting import seconds
from bochner.rotations import Hadamard, StructuredGivens

from ._bench import Result, at_most, best_of_each

_D, _DIRECTIONS = 1000, 256


def run() -> Iterator[Result]:
    """All cases, in order."""
    for rotation in (StructuredGivens(), Hadamard()):
        yield from _ask(rotation)


def _ask(rotation: Rotation) -> Iterator[Result]:
    """One step's points, a new draw each time: as a sequence, and all of them as a matrix."""
    strategy = EvolutionStrategy(
        np.zeros(_D), n_directions=_DIRECTIONS, projection=Orthogonal(rotation), shaping="ranks", rng=0
    )
    values = np.random.default_rng(0).standard_normal(2 * _DIRECTIONS)

    def ask() -> object:
        strategy.sigma = 0.1  # forgets the points that were asked for
        return strategy.ask()

    asked, points, told = best_of_each([ask, lambda: np.asarray(ask()), lambda: strategy.tell(values)], 100)
    case = f"d = {_D}, {_DIRECTIONS} directions, {type(rotation).__name__}"
    yield at_most(f"EvolutionStrategy.ask, {case}", 1e3 * asked, 2, "ms", f"ask and tell {seconds(told)}")
    details = f"float64, {8e-6 * points_of(strategy):.1f} MB"
    yield at_most(f"ask, and its {len(values)} points as a matrix, {case}", 1e3 * points, 2, "ms", details)


def points_of(strategy: EvolutionStrategy) -> int:
    """Numbers in the matrix of the points."""
    return len(strategy.ask()) * len(strategy.x)
