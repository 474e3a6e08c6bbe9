"""Benchmarks of angular hashing: recall and time against exact search, Haar rotations and faiss."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bochner.learn import AngularHash
from bochner.linalg.engine import available_threads
from bochner.projections import Orthogonal
from bochner.reporting import seconds
from bochner.rotations import Haar

from ..datasets import load
from ._bench import Result, at_least, at_most, best_of_each, measured, not_measured

_PEERS = 'pip install -e "lab[peers]"'
_BITS, _CANDIDATES, _NEIGHBORS, _QUERIES, _DRAWS = (256, 768), 1000, (10, 100), 200, 3
_PROJECTIONS = {"Hadamard": "unpadded-hadamard", "Haar": Orthogonal(Haar()), "padded Hadamard": "hadamard"}

Encoder = Callable[[np.ndarray], np.ndarray]
"""Packed bits of rows; every method here makes one of a seed."""


def run() -> Iterator[Result]:
    """All cases, in order."""
    yield from _cases("embeddings", *_embeddings(100_000, 768))
    try:
        images = load("mnist").X.astype(np.float32)
    except (OSError, ValueError) as error:
        yield not_measured("AngularHash on MNIST", str(error).partition("\n")[0])
    else:
        yield from _cases("MNIST", images[:-_QUERIES], images[-_QUERIES:])


def _embeddings(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Synthetic rows in clusters of fifty, and queries near some of them."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((max(n // 50, 1), d), dtype=np.float32)
    X = centres[rng.integers(0, len(centres), n)] + 0.8 * rng.standard_normal((n, d), dtype=np.float32)
    return X, X[:_QUERIES] + 0.4 * rng.standard_normal((min(_QUERIES, n), d), dtype=np.float32)


def _cases(label: str, X: np.ndarray, queries: np.ndarray) -> Iterator[Result]:
    """Recall with equally many candidates, and times to encode and to query, for every number of bits."""
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-30)
    truth = _nearest(queries, unit, max(_NEIGHBORS))
    for bits in _BITS:
        case = f"{label}, {len(X)} x {X.shape[1]} to {bits} bits"
        peers = _faiss(X.shape[1], bits)
        encoders = {name: _ours(bits, rows, X) for name, rows in _PROJECTIONS.items()} | peers
        recall = {name: _recalls(truth, new, X, queries) for name, new in encoders.items()}
        for i, k in enumerate(_NEIGHBORS):
            details = ", ".join(f"{name} {found[i]:.3f}" for name, found in recall.items())
            gap = float(recall["Hadamard"][i] - recall["Haar"][i])
            yield at_least(f"recall at {k}, Hadamard minus Haar: {case}", gap, -0.01, "", details)
        yield _query_time(case, _index(bits, "unpadded-hadamard", 0).fit(X), queries, unit)
        yield _encoding_time(case, {name: new(0) for name, new in encoders.items()}, X)


def _nearest(queries: np.ndarray, unit: np.ndarray, k: int) -> np.ndarray:
    """Exact search: the k rows with the largest products, nearest first."""
    similarity = queries @ unit.T
    some = np.argpartition(-similarity, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(similarity, some, axis=1), axis=1)
    return np.take_along_axis(some, order, axis=1)


def _index(bits: int, projection: Any, seed: int) -> AngularHash:
    return AngularHash(bits, projection=projection, n_candidates=_CANDIDATES, n_neighbors=100, random_state=seed)


def _ours(bits: int, projection: Any, X: np.ndarray) -> Callable[[int], Encoder]:
    return lambda seed: _index(bits, projection, seed).fit(X[:1]).transform


def _faiss(d: int, bits: int) -> dict[str, Callable[[int], Encoder]]:
    """Signs after the rotations of faiss; none if it is not installed."""
    try:
        import faiss
    except ImportError:
        return {}
    faiss.omp_set_num_threads(available_threads())

    def dense(seed: int) -> Encoder:
        rotation = faiss.RandomRotationMatrix(d, bits)
        rotation.init(seed)
        return lambda X: np.packbits(rotation.apply(X) > 0, axis=1)

    def hadamard(seed: int) -> Encoder:
        rotation = faiss.HadamardRotation(d, seed)
        rotation.train(np.zeros((1, d), np.float32))
        return lambda X: np.packbits(rotation.apply(X)[:, :bits] > 0, axis=1)

    found: dict[str, Callable[[int], Encoder]] = {"faiss random rotation": dense}
    return found | ({"faiss Hadamard": hadamard} if hasattr(faiss, "HadamardRotation") else {})


def _recalls(truth: np.ndarray, new: Callable[[int], Encoder], X: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Fractions of the nearest rows that are among the candidates: the recall after exact re-ranking, over all draws."""
    hits = []
    for seed in range(_DRAWS):
        encode = new(seed)
        rows, codes = (encode(Z).view(np.uint64) for Z in (X, queries))
        for nearest, code in zip(truth, codes, strict=True):
            distances = np.bitwise_count(rows ^ code).sum(axis=1, dtype=np.int32)
            candidates = np.argpartition(distances, min(_CANDIDATES, len(X)) - 1)[:_CANDIDATES]
            hits.append([np.isin(nearest[:k], candidates).mean() for k in _NEIGHBORS])
    return np.asarray(np.mean(hits, axis=0))


def _query_time(case: str, index: AngularHash, queries: np.ndarray, unit: np.ndarray) -> Result:
    """Per query, next to that of exact search."""
    n, k = len(queries), max(_NEIGHBORS)
    ours, exact = best_of_each([lambda: index.kneighbors(queries), lambda: _nearest(queries, unit, k)], 2)
    times = f"{seconds(ours / n)}; exact search {seconds(exact / n)}"
    return measured(f"AngularHash.kneighbors, per query: {case}", 1e3 * ours / n, "ms", times)


def _encoding_time(case: str, encoders: dict[str, Encoder], X: np.ndarray) -> Result:
    """Time to encode, over that of faiss's Hadamard rotation."""
    name = f"AngularHash.transform / faiss Hadamard rotation: {case}"
    if "faiss Hadamard" not in encoders:
        return not_measured(name, f"needs faiss-cpu with its Hadamard rotation: {_PEERS}")
    works = [functools.partial(encode, X) for encode in encoders.values()]
    times = dict(zip(encoders, best_of_each(works, 5), strict=True))
    details = ", ".join(f"{peer} {seconds(time)}" for peer, time in times.items())
    return at_most(name, times["Hadamard"] / times["faiss Hadamard"], 1.2, "x", details)
