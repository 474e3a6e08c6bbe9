"""Gradients, descent, expectations and distances: arguments, and states that belong to another strategy."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import bochner
from bochner import optimize, rotations
from fuzz.exploring import explore
from fuzz.targets import Good, Target, constant, target_of
from fuzz.values import D, rows


def square(x: np.ndarray) -> float:
    return float(x @ x)


GOOD: Good = {
    "f": constant(square),
    "theta": lambda: rows(1)[0],
    "x0": lambda: rows(1)[0],
    "sigma": constant(0.1),
    "d": constant(D),
    "rotation": constant(rotations.Hadamard(1)),
    "values": lambda: np.arange(2.0 * D),
    "max_iterations": constant(2),
    "n": constant(5),
    "learning_rate": constant(0.1),
    "decay": constant(0.5),
    "beta1": constant(0.5),
    "beta2": constant(0.5),
    "epsilon": constant(1e-8),
}


def minimize(f: Any, x0: Any, max_iterations: Any = 2, n_directions: Any = 2, **options: Any) -> Any:
    found = optimize.minimize(f, x0, max_iterations=max_iterations, n_directions=n_directions, **options)
    return found.x, found.fun


def expectation(f: Any, d: Any, n_blocks: Any = 2, max_blocks: Any = 4, **options: Any) -> Any:
    return bochner.expectation(f, d, n_blocks=n_blocks, max_blocks=max_blocks, **options).value


def haar_distance(rotation: Any, d: Any, n: Any = 5, **options: Any) -> Any:
    return bochner.monte_carlo.haar_distance(rotation, d, n=n, **options).value


def strategy(x0: Any, **options: Any) -> Any:
    return np.asarray(optimize.EvolutionStrategy(x0, **options).ask())


def told(values: Any) -> Any:
    return optimize.EvolutionStrategy(np.zeros(D), rng=0).tell(values).gradient


def target(name: str, call: Any, own: Any) -> Target:
    """The parameters of ``own``, spoiled in calls of ``call``, which gives small values to the others."""
    made = target_of(name, own, GOOD)
    if "f" in made.required:  # what functions of the user do, and raise, is the user's
        call = functools.partial(call, square)
    good = {name: value for name, value in made.good.items() if name not in ("f", "map", "callback")}
    return Target(name, call, good, required=tuple(name for name in made.required if name in good))


TARGETS = [
    target("smoothed_gradient", optimize.smoothed_gradient, optimize.smoothed_gradient),
    target("minimize", minimize, optimize.minimize),
    target("EvolutionStrategy", strategy, optimize.EvolutionStrategy),
    target("EvolutionStrategy.tell", told, told),
    target("Momentum", optimize.Momentum, optimize.Momentum),
    target("Adam", optimize.Adam, optimize.Adam),
    target("expectation", expectation, bochner.expectation),
    target("haar_distance", haar_distance, bochner.monte_carlo.haar_distance),
]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_hostile_arguments(target):
    explore(target.name, target.spoils(), target.check, share=4)


STATE = optimize.EvolutionStrategy(np.zeros(D), rng=0).state_dict()


@pytest.mark.parametrize("name", STATE)
def test_hostile_states(name):
    def load(value: Any) -> None:
        optimize.EvolutionStrategy(np.zeros(D), rng=0).load_state_dict(STATE | {name: value})

    spoiled = Target(f"load_state_dict {name}", load, {"value": constant(None)}, required=("value",))
    explore(spoiled.name, spoiled.spoils(), spoiled.check, share=2)
