"""Benchmarks of transforms, projections and Gram matrices."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation
from bochner.extending import Rotation, fwht
from bochner.kernels import Gaussian
from bochner.projections import Orthogonal, Simplex
from bochner.reporting import seconds, size
from bochner.rotations import Hadamard, StructuredGivens

from ._bench import Result, at_least, at_most, best_of, best_of_each

_SHAPES = ((1, 128), (64, 300), (4000, 64), (4000, 100), (4000, 128), (4000, 256), (4000, 512))
"""Rows and dimensions at which the rule between products and transforms is held to its choice."""


def run() -> Iterator[Result]:
    """All cases, in order."""
    yield from _imports()
    yield from _transform()
    yield from _fast_projections()
    yield from _large()
    yield from _gram(4000, 64, 1024, np.float32)
    yield from _gram(4000, 16, 256, np.float64)
    for rotation in catalogue.rotations().values():
        operators = [(n, Orthogonal(rotation).sample(d, 1024, 0)) for n, d in _SHAPES]
        structured = [(n, P) for n, P in operators if hasattr(P, "product_is_faster")]
        if structured:
            yield _rule(rotation, structured)


def _imports() -> Iterator[Result]:
    def importing(module: str) -> object:
        return subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    bare, ours, numpy = best_of_each(
        [lambda: importing("sys"), lambda: importing("bochner"), lambda: importing("numpy")]
    )
    times = f"{seconds(ours - bare)}; numpy {seconds(numpy - bare)}"
    yield at_most("import bochner / import numpy", max(ours - bare, 0) / (numpy - bare), 1.5, "x", times)


def _transform() -> Iterator[Result]:
    X = np.random.default_rng(0).standard_normal((8000, 4096), dtype=np.float32)
    H = fwht(np.eye(4096, dtype=np.float32))
    ours, copy = best_of_each([lambda: fwht(X), X.copy], 9)
    dense = best_of(lambda: X @ H, 2)
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
    ours, exact, coupled = best_of_each([lambda: hadamard(X), lambda: givens(X), lambda: simplex(X)], 9)
    shape = "4000 x 3072 -> 8192 float32"
    for name, time, goal in (("Hadamard(3)", ours, 10), ("StructuredGivens()", exact, 5)):
        times = f"{seconds(time)}; product {seconds(dense)}"
        yield at_least(f"dense product / Orthogonal({name}), {shape}", dense / time, goal, "x", times)
    yield at_most("Simplex(Hadamard(3)) / Orthogonal(Hadamard(3)), same", coupled / ours, 1.15, "x", seconds(coupled))


def _large() -> Iterator[Result]:
    P = Orthogonal(Hadamard(3)).sample(65536, 262144, 0)
    x = np.random.default_rng(0).standard_normal((1, 65536), dtype=np.float32)
    row = best_of(lambda: P(x))
    yield at_most("memory of Orthogonal(Hadamard(3)), d = 65536, m = 262144", P.nbytes / 1e6, 16, "MB", size(P.nbytes))
    yield at_most("the same applied to one row", row, 0.2, "s", seconds(row))


def _gram(n: int, d: int, width: int, dtype: type) -> Iterator[Result]:
    """The estimated Gram matrix against its features and the product that it cannot do without."""
    X: np.ndarray = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    Y = X + dtype(0.5)
    phi = Approximation(Gaussian(d**0.5)).with_width(width).draw(d, 0)

    def bare(keys: np.ndarray | None) -> np.ndarray:
        queries = phi.queries(X)
        return np.asarray(queries @ (queries if keys is None else phi.keys(keys)).T)

    whole, product, between, products = best_of_each(
        [lambda: phi.gram(X), lambda: bare(None), lambda: phi.gram(X, Y), lambda: bare(Y)], 9
    )
    shape = f"{n} x {d} -> {width} {np.dtype(dtype)}"
    times = f"{seconds(whole)}; features and product {seconds(product)}"
    yield at_most(f"gram(X) / queries(X) and the bare product, {shape}", whole / product, 1.15, "x", times)
    times = f"{seconds(between)}; features and product {seconds(products)}"
    yield at_most(
        f"gram(X, Y) / queries(X), keys(Y) and the bare product, {shape}", between / products, 1.15, "x", times
    )


def _rule(rotation: Rotation, operators: list[tuple[int, Any]]) -> Result:
    """The worst case of the rule that chooses between a product with W and the transforms: rows, dimensions, padding."""
    worst, where = np.inf, ""
    for n, P in operators:
        (m, d), W = P.shape, P.to_dense().astype(np.float32)
        X, out = np.ones((n, d), np.float32), np.empty((n, m), np.float32)
        product, transform = best_of_each([lambda X=X, W=W: X @ W.T, lambda P=P, X=X, out=out: P.transform(X, out)], 5)  # type: ignore[misc]
        taken, other = (product, transform) if P.product_is_faster(n) else (transform, product)
        if other / taken < worst:
            worst = other / taken
            where = f"n = {n}, d = {d}: product {seconds(product)}, transform {seconds(transform)}"
    return at_least(f"other path / path taken, at worst, m = 1024, {rotation!r}", worst, 0.7, "x", where)
