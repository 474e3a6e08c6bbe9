"""Benchmarks of black-box optimisation and of angular hashing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._table import seconds
from ..datasets import load
from ..learn import AngularHash
from ..linalg.engine import available_threads
from ..optimize import EvolutionStrategy
from ..projections import Orthogonal
from ..rotations import Haar, Hadamard, Rotation, StructuredGivens
from .bench import Result, at_least, at_most, best_of, best_of_each, measured, not_measured

_D, _DIRECTIONS = 1000, 256
_PEERS = 'pip install "bochner[peers]"'


def run() -> Iterator[Result]:
    """All cases, in order."""
    for rotation in (StructuredGivens(), Hadamard()):
        yield _ask(rotation)
    yield from _hashing("embeddings", *_embeddings(100_000, 768))
    try:
        images = _images()
    except (OSError, ValueError) as error:
        yield not_measured("AngularHash on MNIST", str(error).partition("\n")[0])
    else:
        yield from _hashing("MNIST", *images)


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


def _embeddings(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Synthetic rows in clusters of fifty, and queries near some of them."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((max(n // 50, 1), d), dtype=np.float32)
    X = centres[rng.integers(0, len(centres), n)] + 0.8 * rng.standard_normal((n, d), dtype=np.float32)
    return X, X[:200] + 0.4 * rng.standard_normal((200, d), dtype=np.float32)


def _images() -> tuple[np.ndarray, np.ndarray]:
    """MNIST: the last two hundred images are queries."""
    X = load("mnist").X.astype(np.float32)
    return X[:-200], X[-200:]


def _hashing(label: str, X: np.ndarray, queries: np.ndarray, bits: int = 256) -> Iterator[Result]:
    """Time to encode and to query, and recall among a thousand candidates, against exact search, Haar rows and faiss."""
    case = f"{label}, {len(X)} x {X.shape[1]} to {bits} bits"
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-30)
    similarity = queries @ unit.T
    truth = np.argsort(-similarity, axis=1)[:, :100]
    fast, haar = (
        AngularHash(bits, projection=projection, n_candidates=1000, n_neighbors=100, random_state=0).fit(X)
        for projection in ("hadamard", Orthogonal(Haar()))
    )
    found, other = (index.kneighbors(queries, return_distance=False) for index in (fast, haar))
    for k in (10, 100):
        ours, theirs = (_recall(truth, neighbors, k) for neighbors in (found, other))
        details = f"{ours:.3f} and {theirs:.3f}"
        yield at_least(f"recall at {k}, Hadamard minus Haar: {case}", ours - theirs, -0.01, "", details)
    searched, brute = best_of_each([lambda: fast.kneighbors(queries), lambda: np.argsort(-queries @ unit.T, axis=1)], 2)
    times = f"{seconds(searched / len(queries))}; exact search {seconds(brute / len(queries))}"
    yield measured(f"AngularHash.kneighbors, per query: {case}", 1e3 * searched / len(queries), "ms", times)
    yield _encoding(case, fast, haar, X, bits)


def _recall(truth: np.ndarray, found: np.ndarray, k: int) -> float:
    """Fraction of the k nearest rows that were found."""
    return float(np.mean([np.isin(t[:k], f).mean() for t, f in zip(truth, found, strict=True)]))


def _encoding(case: str, fast: AngularHash, haar: AngularHash, X: np.ndarray, bits: int) -> Result:
    """Time to encode, over that of faiss's Hadamard rotation."""
    name = f"AngularHash.transform / faiss Hadamard rotation: {case}"
    try:
        import faiss
    except ImportError:
        return not_measured(name, f"needs faiss-cpu: {_PEERS}")
    if not hasattr(faiss, "HadamardRotation"):
        return not_measured(name, f"this faiss has no Hadamard rotation: {_PEERS}")
    faiss.omp_set_num_threads(available_threads())
    hadamard, dense = faiss.HadamardRotation(X.shape[1]), faiss.RandomRotationMatrix(X.shape[1], bits)
    hadamard.train(X[:1])
    dense.init(0)
    ours, slow, theirs, product = best_of_each(
        [
            lambda: fast.transform(X),
            lambda: haar.transform(X),
            lambda: np.packbits(hadamard.apply(X)[:, :bits] > 0, axis=1),
            lambda: np.packbits(dense.apply(X) > 0, axis=1),
        ],
        3,
    )
    times = f"{seconds(ours)}, Haar {seconds(slow)}; faiss {seconds(theirs)}, its random rotation {seconds(product)}"
    return at_most(name, ours / theirs, 1.2, "x", times)
