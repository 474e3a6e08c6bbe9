"""Benchmarks of black-box optimisation and of angular hashing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._table import seconds
from ..learn import AngularHash
from ..optimize import EvolutionStrategy
from ..projections import Orthogonal
from ..rotations import Haar, Hadamard, Rotation, StructuredGivens
from .bench import Result, at_least, at_most, best_of, best_of_each, measured

_D, _DIRECTIONS = 1000, 256


def run() -> Iterator[Result]:
    """All cases, in order."""
    for rotation in (StructuredGivens(), Hadamard()):
        yield _ask(rotation)
    yield from _hashing()


def _ask(rotation: Rotation) -> Result:
    """One step's points, a new draw each time."""
    strategy = EvolutionStrategy(
        np.zeros(_D), n_directions=_DIRECTIONS, projection=Orthogonal(rotation), shaping="ranks", rng=0
    )
    values = np.random.default_rng(0).standard_normal(2 * _DIRECTIONS)

    def ask() -> object:
        strategy.sigma = 0.1  # forgets the points that were asked for
        return strategy.ask()

    asked = best_of(ask, 20)
    everything = best_of(lambda: np.asarray(strategy.ask()), 10)
    told = best_of(lambda: strategy.tell(values), 10)
    details = (
        f"{seconds(asked)}; all {len(values)} points as a matrix {seconds(everything)}, ask and tell {seconds(told)}"
    )
    name = type(rotation).__name__
    return at_most(f"EvolutionStrategy.ask, d = {_D}, {_DIRECTIONS} directions, {name}", 1e3 * asked, 2, "ms", details)


def _hashing(n: int = 20_000, d: int = 768) -> Iterator[Result]:
    """Clusters of synthetic embeddings: time to encode and to query, recall against exact search and against Haar."""
    rng, k = np.random.default_rng(0), 10
    centres = rng.standard_normal((n // 20, d), dtype=np.float32)
    X = centres[rng.integers(0, n // 20, n)] + 0.8 * rng.standard_normal((n, d), dtype=np.float32)
    queries = X[:200] + 0.4 * rng.standard_normal((200, d), dtype=np.float32)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)

    def exact() -> np.ndarray:
        return np.argpartition(-queries @ unit.T, k, axis=1)[:, :k]

    truth = exact()
    fast, haar = (
        AngularHash(128, projection=projection, n_candidates=100, n_neighbors=k, random_state=0).fit(X)
        for projection in ("hadamard", Orthogonal(Haar()))
    )

    def recall(index: AngularHash) -> float:
        found = index.kneighbors(queries, return_distance=False)
        return float(np.mean([np.isin(t, f).mean() for t, f in zip(truth, found, strict=True)]))

    ours, product = best_of_each([lambda: fast.transform(X), lambda: haar.transform(X)], 3)
    searched, brute = best_of_each([lambda: fast.kneighbors(queries), exact], 3)
    yield measured(
        f"AngularHash.transform, {n} x {d} to 128 bits", n / ours / 1e6, "million rows/s", f"Haar {seconds(product)}"
    )
    times = f"200 queries {seconds(searched)}; exact search {seconds(brute)}"
    yield measured(f"AngularHash.kneighbors among {n}", 200 / searched, "queries/s", times)
    mine, theirs = recall(fast), recall(haar)
    yield at_least(
        "recall at 10, 128 bits, Hadamard minus Haar", mine - theirs, -0.01, "", f"{mine:.3f} and {theirs:.3f}"
    )
