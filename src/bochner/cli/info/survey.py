"""Draws every projection once, and measures it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...projections import IID, QMC, GaussHermite, Operator, Orthogonal, Projection, Quadrature, Simplex, SimplexPlus
from ...rotations import Butterfly, Haar, Hadamard, Kac, MultiHadamard, StructuredGivens
from ...selection.candidates import label
from ..bench.measure import best_of

SHOWN: tuple[Projection, ...] = (
    IID(),
    QMC("halton"),
    QMC("sobol"),
    GaussHermite(5),
    Orthogonal(Haar()),
    Orthogonal(StructuredGivens()),
    Orthogonal(Butterfly()),
    Orthogonal(Hadamard(3)),
    Orthogonal(Hadamard(3), radii="fixed"),
    Orthogonal(MultiHadamard()),
    Orthogonal(Kac()),
    Simplex(Haar()),
    Simplex(Hadamard(3)),
    SimplexPlus(Haar()),
    Quadrature(Haar()),
    Quadrature(Butterfly("tree"), "orthoplex"),
)


@dataclass(frozen=True)
class Survey:
    """What one drawn projection looks like."""

    name: str
    unbiased: bool
    shape: tuple[int, int]
    nbytes: int
    draw: float
    apply: float
    cosine_mean: float
    cosine_spread: float


def survey(d: int, m: int) -> Iterator[Survey]:
    """Measure every projection of `SHOWN`."""
    X = np.random.default_rng(0).standard_normal((1000, d), dtype=np.float32)
    for projection in SHOWN:
        start = time.perf_counter()
        P = projection.sample(d, m, 0)
        draw = time.perf_counter() - start
        apply = best_of(lambda P=P: P(X), 3)  # type: ignore[misc]
        mean, spread = cosines(P)
        yield Survey(label(projection), projection.unbiased, P.shape, P.nbytes, draw, apply, mean, spread)


def cosines(P: Operator, rows: int = 64) -> tuple[float, float]:
    """Mean and standard deviation of the cosines between the first rows of W, of one block where they are coupled."""
    count = min(rows, P.shape[0], P.block_sizes[0] if P.block_sizes[0] > 1 else P.shape[0])  # or all, if independent
    W = P.to_dense()[:count]
    norms = np.linalg.norm(W, axis=1, keepdims=True)
    U = W / np.where(norms > 0, norms, 1)
    pairs = (U @ U.T)[np.triu_indices(count, 1)]
    return (float(pairs.mean()), float(pairs.std())) if len(pairs) else (0.0, 0.0)
