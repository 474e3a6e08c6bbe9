"""Benchmarks of transforms and projections."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...linalg import fwht
from ...projections import Orthogonal, Simplex
from ...projections.structured import SMALL, StructuredOperator
from ...rotations import Hadamard, StructuredGivens
from ..table import seconds, size
from .measure import Result, at_least, at_most, best_of


def run() -> Iterator[Result]:
    """All cases, in order."""
    yield from _transform()
    yield from _fast_projections()
    yield from _large()
    yield from _rule()


def _transform() -> Iterator[Result]:
    X = np.random.default_rng(0).standard_normal((8000, 4096), dtype=np.float32)
    H = fwht(np.eye(4096, dtype=np.float32))
    ours, copy, dense = best_of(lambda: fwht(X), 9), best_of(X.copy, 9), best_of(lambda: X @ H, 2)
    times = f"{seconds(ours)}; copy {seconds(copy)}, product {seconds(dense)}"
    yield at_most("fwht 8000 x 4096 float32 / copy of the array", ours / copy, 5, "x", times)
    yield at_least("dense product / fwht 8000 x 4096 float32", dense / ours, 25, "x", times)


def _fast_projections() -> Iterator[Result]:
    X = np.random.default_rng(0).standard_normal((4000, 3072), dtype=np.float32)
    m = 8192
    W = np.random.default_rng(1).standard_normal((m, 3072), dtype=np.float32)
    dense = best_of(lambda: X @ W.T, 3)
    hadamard, givens = Orthogonal(Hadamard(3)).sample(3072, m, 0), Orthogonal(StructuredGivens()).sample(3072, m, 0)
    simplex = Simplex(Hadamard(3)).sample(3072, m, 0)
    ours, exact = best_of(lambda: hadamard(X)), best_of(lambda: givens(X))
    coupled = best_of(lambda: simplex(X))
    yield at_least(
        "dense product / Orthogonal(Hadamard(3)), 4000 x 3072 -> 8192 float32", dense / ours, 10, "x",
        f"{seconds(ours)}; product {seconds(dense)}",
    )  # fmt: skip
    yield at_least(
        "dense product / Orthogonal(StructuredGivens()), 4000 x 3072 -> 8192 float32", dense / exact, 1, "x",
        f"{seconds(exact)}; product {seconds(dense)}",
    )  # fmt: skip
    yield at_most("Simplex(Hadamard(3)) / Orthogonal(Hadamard(3)), same", coupled / ours, 1.15, "x", seconds(coupled))


def _large() -> Iterator[Result]:
    P = Orthogonal(Hadamard(3)).sample(65536, 262144, 0)
    x = np.random.default_rng(0).standard_normal((1, 65536), dtype=np.float32)
    row = best_of(lambda: P(x))
    yield at_most("memory of Orthogonal(Hadamard(3)), d = 65536, m = 262144", P.nbytes / 1e6, 16, "MB", size(P.nbytes))
    yield at_most("the same applied to one row", row, 0.2, "s", seconds(row))


def _rule() -> Iterator[Result]:
    """Where the transform begins to win: the rule `SMALL` holds on both of its sides."""
    X = np.random.default_rng(0).standard_normal((8192, 2 * SMALL), dtype=np.float32)
    for d, faster in ((SMALL, "product"), (2 * SMALL, "transform")):
        P = Orthogonal(Hadamard(3)).sample(d, 1024, 0)
        assert isinstance(P, StructuredOperator)
        W, out = P.to_dense().astype(np.float32), np.empty((len(X), 1024), np.float32)
        rows = np.ascontiguousarray(X[:, :d])
        product = best_of(lambda rows=rows, W=W: rows @ W.T, 9)  # type: ignore[misc]
        transform = best_of(lambda P=P, rows=rows, out=out: P.transform(rows, out), 9)  # type: ignore[misc]
        ratio = product / transform if faster == "transform" else transform / product
        yield at_least(
            f"gain of the path taken at d = {d} (the {faster}), 8192 x {d} -> 1024", ratio, 1, "x",
            f"product {seconds(product)}, transform {seconds(transform)}",
        )  # fmt: skip
