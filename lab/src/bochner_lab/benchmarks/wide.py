"""Ridge regression on 32768 features of 200000 rows: conjugate gradients against the normal equations.

The fit by conjugate gradients is run as it is, each in a process of its own.  The normal equations would take most of an
hour, so they are timed in parts: their products on some of the rows at the full width, and one factorisation at a quarter
of it, whose operations grow with the third power.  Both solutions are compared at a smaller size.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import linalg

from bochner.reporting import seconds

from ._bench import Result, at_least, at_most, in_process, peak_memory
from ._scale import COLUMNS, data, our_fit

ROWS, WIDTH = 200_000, 32_768
ALPHAS = (1.0, 0.1)
CHUNKS, CHUNK_ROWS = 4, 256
"""Parts of the rows on which products are timed, and their size: as `KernelRidge` takes them at this width."""
BLOCK = 2048
"""Columns whose products are taken at once."""
FACTOR = 4
"""The factorisation is timed at the width divided by this: LAPACK's own ends the process from order 15000 on, where threads
of OpenBLAS overflow a buffer."""
BOTH = (20_000, 8192)
"""Rows and features on which both solvers run, and are compared."""
SLOWEST, MOST_MEMORY, DIFFERENCE = 4.0, 2.0, 1e-4
"""Goals: times faster than the normal equations, GB, and relative difference."""


def run() -> Iterator[Result]:
    """Times, memory and differences."""
    normal = in_process(__name__, "normal_equations")
    total = normal["products"] + normal["factorisation"]
    parts = (
        f"normal equations {seconds(total)}: products {seconds(normal['products'])} from {CHUNKS * CHUNK_ROWS} rows, "
        f"factorisation {seconds(normal['factorisation'])} from one at width {WIDTH // FACTOR}"
    )
    for alpha in ALPHAS:
        shape, found = f"{ROWS} x {COLUMNS} float32 -> {WIDTH}, alpha {alpha:g}", in_process(__name__, "fit", alpha)
        times = f"{seconds(found['time'])}; {parts}"
        yield at_least(f"normal equations / conjugate gradients, {shape}", total / found["time"], SLOWEST, "x", times)
        square = f"the matrix of the normal equations alone has {8e-9 * WIDTH**2:.1f} GB"
        yield at_most(f"peak memory of this fit, alpha {alpha:g}", found["memory"] / 1e9, MOST_MEMORY, "GB", square)
    for alpha in ALPHAS:
        both = in_process(__name__, "difference", alpha)
        shape = f"{BOTH[0]} x {COLUMNS} float32 -> {BOTH[1]}, alpha {alpha:g}"
        times = f"{seconds(both['cg'])}; normal equations {seconds(both['primal'])}"
        yield at_most(f"difference of coefficients, relative, {shape}", both["coefficients"], DIFFERENCE, "", times)
        yield at_most("the same, of predictions on 2000 new rows", both["predictions"], DIFFERENCE, "", "")


def fit(alpha: float) -> dict[str, float]:
    """Seconds and peak memory of conjugate gradients."""
    X, y = data(ROWS, 3)
    our_fit(64, alpha, "cg").fit(X[:500], y[:500])  # compiles, and is not counted
    model = our_fit(WIDTH, alpha, "cg").set_params(verbose=1)
    return {"time": _seconds(lambda: model.fit(X, y)), "memory": peak_memory()}


def normal_equations() -> dict[str, float]:
    """Seconds that the normal equations would take, from a part of them."""
    X, y = data((CHUNKS + 1) * CHUNK_ROWS, 3)
    phi = our_fit(WIDTH, 1.0, "cg").fit(X[:500], y[:500]).features_
    total = np.zeros((WIDTH, WIDTH))

    def add(chunks: range) -> None:
        for k in chunks:
            _add_products(total, phi.queries(X[k * CHUNK_ROWS : (k + 1) * CHUNK_ROWS]))

    add(range(1))  # touches the memory, and is not counted
    each = _seconds(lambda: add(range(1, CHUNKS + 1))) / CHUNKS
    S = np.full((WIDTH // FACTOR, WIDTH // FACTOR), 1e-6)
    S.flat[:: len(S) + 1] += 1
    spent = _seconds(lambda: linalg.cholesky(S, overwrite_a=True, check_finite=False))
    return {"products": each * ROWS / CHUNK_ROWS, "factorisation": spent * FACTOR**3}


def _add_products(total: np.ndarray, F: np.ndarray) -> None:
    """Add the products of float32 features to a float64 sum, some columns at a time."""
    for k in range(0, F.shape[1], BLOCK):
        total[k : k + BLOCK] += F[:, k : k + BLOCK].T @ F


def difference(alpha: float) -> dict[str, float]:
    """Differences of coefficients and predictions between the solvers, and the times of both."""
    (n, width), X_test = BOTH, data(2000, 4)[0]
    X, y = data(n, 3)
    fits = {solver: our_fit(width, alpha, solver) for solver in ("cg", "primal")}
    our_fit(64, alpha, "cg").fit(X[:500], y[:500])
    spent = {solver: _seconds(lambda f=model: f.fit(X, y)) for solver, model in fits.items()}  # type: ignore[misc]
    ours, direct = (model.coef_ for model in fits.values())
    predicted, expected = (model.predict(X_test) for model in fits.values())
    return spent | {
        "coefficients": float(np.linalg.norm(ours - direct) / np.linalg.norm(direct)),
        "predictions": float(np.linalg.norm(predicted - expected) / np.linalg.norm(expected - expected.mean())),
    }


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    import json

    tasks: dict[str, Callable[..., Any]] = {task.__name__: task for task in (fit, normal_equations, difference)}
    print(json.dumps(tasks[sys.argv[1]](*map(float, sys.argv[2:]))))
