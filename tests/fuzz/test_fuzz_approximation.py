"""Specifications, drawn features, and the choice among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bochner
from bochner import Approximation, kernels, maps, projections, rotations, selection
from fuzz.exploring import explore
from fuzz.targets import Good, Target, constant, public, target_of
from fuzz.values import D, rows

GOOD: Good = {
    "X": rows,
    "Y": lambda: rows(4, seed=1),
    "d": constant(D),
    "kernel": constant(kernels.Softmax()),
    "map": constant(maps.Positive()),
    "n": constant(20),
    "n_draws": constant(3),
    "n_features": constant(16),
    "n_projections": constant(5),
    "name": constant("favor++"),
    "obj": constant(kernels.Gaussian()),
    "projection": constant(projections.IID()),
    "rng": constant(0),
    "spec": constant(Approximation(kernels.Softmax(), n_projections=5)),
    "width": constant(20),
}


def used(**arguments: Any) -> np.ndarray:
    return Approximation(**arguments).fit(rows(), rng=0).gram(rows())


SPEC = target_of("Approximation", Approximation, GOOD)
FUNCTIONS = [
    Target("Approximation", used, SPEC.good, required=("kernel",)),
    *(
        target_of(name, thing, GOOD)
        for name, thing in public(selection, leave_out=("Candidate", "Decision", "Judged", "Recommendation"))
    ),
    *(target_of(name, getattr(bochner, name), GOOD) for name in ("citation", "mechanism")),
]


def squashed(x: Any) -> Any:
    return x / (1 + abs(x))


SPECS = [
    Approximation(kernels.Gaussian(), n_projections=5),
    Approximation(kernels.Softmax(), maps.OptimalPositive(), projections.SimplexPlus(), 5),
    Approximation(kernels.Softmax(), maps.Poisson(positive=True), n_projections=5),
    Approximation(kernels.Softmax(), maps.ClusterHybrid(2, 2), n_projections=5),
    Approximation(kernels.Softmax(2.0), maps.ComplexExponential(1.2), projections.Orthogonal(rotations.Hadamard()), 5),
    Approximation(kernels.Gaussian(2.0), maps.AngularHybrid(3), n_projections=5),
    Approximation(kernels.Matern(1.5), maps.Trigonometric(), projections.Quadrature(), 9),
    Approximation(kernels.ArcCosine(1), n_projections=5),
    Approximation(map=maps.Pointwise(squashed), n_projections=5),
]


def methods(label: str, thing: Any, *names: str) -> list[Target]:
    found = [name for name in names if hasattr(thing, name)]
    return [target_of(f"{label}.{name}", getattr(thing, name), GOOD, infinite="mse" in name) for name in found]


SPEC_METHODS = [
    target
    for spec in SPECS
    for target in methods(repr(spec), spec, "plan", "fit", "draw", "with_width", "mse", "simulate_mse")
]
DRAWN_METHODS = [
    target
    for spec in SPECS
    for target in methods(
        f"<drawn {spec!r}>", spec.fit(rows(), rng=0), "queries", "keys", "log_queries", "log_keys", "gram"
    )
]


@pytest.mark.parametrize("target", [*FUNCTIONS, *SPEC_METHODS, *DRAWN_METHODS], ids=str)
def test_hostile_arguments(target):
    explore(target.name, target.spoils(), target.check)


@pytest.mark.parametrize(
    "target", [t for t in DRAWN_METHODS if not t.name.rpartition(".")[2].startswith("log")], ids=str
)
def test_makes_of_the_same_numbers(target):
    for name, make in target.makes():
        target.check_make(name, make)
