"""Benchmarks of kernel statistics, kernel principal components and polynomial sketches, next to what others have."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from bochner import Approximation, kernels
from bochner.learn import KernelPCA
from bochner.maps import Maclaurin, TensorSketch
from bochner.projections import IID
from bochner.reporting import as_json, seconds
from bochner.statistics import hsic_test, mmd_test

from ..datasets import load
from ._bench import Result, at_least, at_most, best_of_each, in_process, measured, peak_memory

_PUBLISHED = {1024: 0.0469, 4096: 0.0217}
"""Relative errors of the best of a published comparison of polynomial sketches on letter, by width."""
_LETTER = kernels.Polynomial(3, 0.5, 0.5)


def run() -> Iterator[Result]:
    """All cases, in order."""
    yield from two_samples(7207, 93070, 79)
    yield independence(20_000)
    yield from sizes(3000)
    yield components(80_000, 30)
    yield from letter()
    yield from sparse_rows()


def two_samples(n: int, p: int, d: int) -> Iterator[Result]:
    """The request that others answered with "impossible in 64 GB", in a process of its own."""
    found = in_process(__name__, "two_samples", n, p, d)
    case = f"mmd_test, {n} against {p} rows of {d} columns"
    yield at_most(case, found["wall"], 2, "s", f"{seconds(found['cpu'])} of CPU, p-value {found['p_value']:g}")
    yield at_most(
        "its memory beyond the rows", found["memory"] / 1e9, 1, "GB", f"the rows have {found['rows'] / 1e6:.0f} MB"
    )


def _two_samples(n: float, p: float, d: float) -> dict[str, float]:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((int(n), int(d))), rng.standard_normal((int(p), int(d)))
    mmd_test(X[:100], Y[:100], rng=0)
    before, times = peak_memory(), []
    for _ in range(3):
        start, cpu = time.perf_counter(), time.process_time()
        found = mmd_test(X, Y, rng=0)
        times.append((time.perf_counter() - start, time.process_time() - cpu))
    took, used = min(times)
    rows = float(X.nbytes + Y.nbytes)
    return {"wall": took, "cpu": used, "memory": peak_memory() - before, "p_value": found.p_value, "rows": rows}


def independence(n: int) -> Result:
    """The independence test of pairs of rows of three and two columns."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((n, 3)), rng.standard_normal((n, 2))
    start = time.perf_counter()
    hsic_test(X, Y, rng=0)
    return measured(f"hsic_test, {n} pairs of rows", time.perf_counter() - start, "s", "")


def sizes(simulations: int, level: float = 0.05) -> Iterator[Result]:
    """How often both tests reject where the hypothesis holds, at the least number of permutations for the level."""
    rng, error = np.random.default_rng(1), np.sqrt(level * (1 - level) / simulations)
    for test in (mmd_test, hsic_test):
        rejected = 0
        for _ in range(simulations):
            X, Y = rng.standard_normal((100, 3)), rng.standard_normal((100, 3))
            if test is hsic_test:
                Y = rng.standard_exponential((100, 2))
            rejected += test(X, Y, n_permutations=round(1 / level) - 1, rng=rng).p_value <= level
        share = rejected / simulations
        details = (
            f"rejected {share:.4f} of {simulations} simulations, with a standard error of {error:.4f} if it is {level}"
        )
        yield at_most(f"size of {test.__name__}, distance from {level}", abs(share - level), 0.01, "", details)


def components(n: int, d: int) -> Result:
    """Kernel principal components: fit and transform."""
    X = np.random.default_rng(0).standard_normal((n, d))
    start, cpu = time.perf_counter(), time.process_time()
    KernelPCA(10, random_state=0).fit(X).transform(X)
    took, used = time.perf_counter() - start, time.process_time() - cpu
    details = f"{seconds(used)} of CPU, peak {peak_memory() / 1e9:.2f} GB; scikit-learn's matrix alone would have 51 GB"
    return at_most(f"KernelPCA, fit and transform, {n} x {d}", took, 10, "s", details)


def letter(rows: int = 1000, draws: int = 20) -> Iterator[Result]:
    """Relative error of the Gram matrix in the Frobenius norm, on rows of unit norm."""
    X = np.asarray(load("letter").X[:rows], dtype=np.float64)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    exact = _LETTER(X)
    laws: dict[str, Any] = {
        "Maclaurin()": (Maclaurin(), None),
        "Maclaurin(exact=False)": (Maclaurin(exact=False), None),
        "Maclaurin(exact=False), independent rows": (Maclaurin(exact=False), IID()),
        "TensorSketch()": (TensorSketch(), None),
    }
    for width, best in _PUBLISHED.items():
        for name, (feature_map, projection) in laws.items():
            spec = Approximation(_LETTER, feature_map, projection).with_width(width)
            grams = (spec.draw(X.shape[1], rng=i).gram(X) for i in range(draws))
            errors = [np.linalg.norm(found - exact) / np.linalg.norm(exact) for found in grams]
            error, spread = float(np.mean(errors)), float(np.std(errors) / np.sqrt(draws))
            case = f"letter, ((1 + x.y)/2)^3, {width} features, {name}"
            details = f"± {spread:.1g}, {draws} draws, {rows} rows; best of a published comparison {best}"
            judged = name.startswith("Maclaurin(") and projection is None
            row = at_most(case, error, best, "", details) if judged else measured(case, error, "", details)
            yield row.with_numbers(width=width, map=name, error=error, published=best)


def sparse_rows(n: int = 2000, width: int = 1024) -> Iterator[Result]:
    """TensorSketch on rows with fifty entries, next to PolynomialCountSketch."""
    from sklearn.kernel_approximation import PolynomialCountSketch

    for d in (300, 3000):  # its time grows with the columns, ours does not
        X = sparse.random_array((n, d), density=50 / d, rng=np.random.default_rng(0), format="csr")
        theirs = PolynomialCountSketch(degree=3, coef0=1, n_components=width, random_state=0).fit(X)
        ours = Approximation(kernels.Polynomial(3, 1.0), TensorSketch()).with_width(width).draw(d, rng=0)
        fast, slow = best_of_each([partial(ours.queries, X), partial(theirs.transform, X)], 2)
        case = f"PolynomialCountSketch / TensorSketch, {n} sparse rows, {d} columns, {width} features"
        yield at_least(case, slow / fast, 5, "x", f"{seconds(fast)}; PolynomialCountSketch {seconds(slow)}")


if __name__ == "__main__":
    print(as_json({"two_samples": _two_samples}[sys.argv[1]](*map(float, sys.argv[2:]))))
