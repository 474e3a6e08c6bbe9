"""Tests of kernels and kernels between nodes: hostile arguments, streams and graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from bochner import Approximation, graphs, kernels, statistics
from fuzz.exploring import explore
from fuzz.targets import Good, Target, constant, target_of
from fuzz.values import D, rows

PHI = Approximation(kernels.Gaussian(), n_projections=5).draw(D, rng=0)
RING = sparse.csr_array(np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0))
WALKS = graphs.Walks(graphs.Diffusion(), n_walks=2)
GOOD: Good = {
    "X": rows,
    "Y": lambda: rows(seed=1),
    "Z": rows,
    "features": constant(PHI),
    "features_y": constant(PHI),
    "n_features": constant(8),
    "n_permutations": constant(19),
    "rng": constant(0),
    "graph": RING.copy,
    "kernel": constant(graphs.Diffusion()),
    "n_walks": constant(2),
    "halting": constant(0.3),
    "walks": constant(WALKS),
    "noise": constant(0.1),
    "tolerance": constant(1e-6),
    "nodes": lambda: np.arange(6),
    "others": lambda: np.arange(3),
    "y": lambda: np.arange(6.0),
    "n_samples": constant(2),
    "n": constant(4),
    "values": lambda: np.linspace(0.0, 2.0, 5),
    "time": constant(0.5),
    "scale": constant(0.5),
    "power": constant(1.0),
    "half_steps": constant(1),
    "laziness": constant(2.0),
    "coefficients": constant((1.0, 0.5)),
}


def stream(X: Any, Y: Any, n_permutations: Any = 19) -> Any:
    return statistics.TwoSampleTest(PHI, n_permutations=n_permutations, rng=0).update(X, Y).result().p_value


def pairs(X: Any, Y: Any, n_permutations: Any = 19) -> Any:
    return statistics.IndependenceTest(PHI, PHI, n_permutations=n_permutations, rng=0).update(X, Y).result().p_value


def witness(Z: Any) -> Any:
    return statistics.TwoSampleTest(PHI, n_permutations=19, rng=0).update(rows(), rows(seed=1)).witness(Z)


def walks(graph: Any, kernel: Any = WALKS.kernel, rng: Any = 0, **options: Any) -> Any:
    return graphs.Walks(kernel, **({"n_walks": 2} | options)).draw(graph, rng).gram(np.arange(3))


def gram(nodes: Any, others: Any = None) -> Any:
    return WALKS.draw(RING, 0).gram(nodes, others)


def process(graph: Any, nodes: Any, y: Any, **options: Any) -> Any:
    return graphs.NodeRegression(WALKS, **({"rng": 0} | options)).fit(graph, nodes, y).predict(np.arange(6))


def sample(nodes: Any, n_samples: Any = 1, rng: Any = 0) -> Any:
    fitted = graphs.NodeRegression(WALKS, rng=0).fit(RING, np.arange(6), np.arange(6.0))
    return fitted.sample(nodes, n_samples, rng=rng)


def mmd(X: Any, Y: Any, n_features: Any = 8, n_permutations: Any = 19, rng: Any = 0) -> Any:
    return statistics.mmd_test(X, Y, n_features=n_features, n_permutations=n_permutations, rng=rng).p_value


def hsic(X: Any, Y: Any, n_features: Any = 8, n_permutations: Any = 19, rng: Any = 0) -> Any:
    return statistics.hsic_test(X, Y, n_features=n_features, n_permutations=n_permutations, rng=rng).p_value


def target(name: str, call: Any, own: Any = None) -> Target:
    made = target_of(name, own or call, GOOD)
    return Target(name, call, {name: good for name, good in made.good.items() if name in GOOD}, required=made.required)


NODE_KERNELS = {
    "Diffusion": graphs.Diffusion,
    "RegularizedLaplacian": graphs.RegularizedLaplacian,
    "Series": graphs.Series,
    "WalkSteps": graphs.WalkSteps,
}
TARGETS = [
    *(target(call.__name__, call) for call in (stream, pairs, witness, gram, process, sample, mmd, hsic)),
    target("TwoSampleTest", statistics.TwoSampleTest),
    target("IndependenceTest", statistics.IndependenceTest),
    target("walks", walks, lambda graph, kernel, n_walks=2, halting=0.3, rng=0: None),
    *(target(name, kernel) for name, kernel in NODE_KERNELS.items()),
    *(
        target(f"{type(k).__name__}.root", k.root)
        for k in (graphs.Diffusion(), graphs.Series((1.0,)), graphs.WalkSteps())
    ),
    target("RegularizedLaplacian.root", graphs.RegularizedLaplacian().root),
    target("Diffusion.matrix", graphs.Diffusion().matrix),
]


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_hostile_arguments(target):
    explore(target.name, target.spoils(), target.check, share=4)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_good_arguments_are_accepted(target):
    target.ask({})


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_makes_of_the_same_numbers(target):
    for name, value in target.makes():
        target.check_make(name, value)
