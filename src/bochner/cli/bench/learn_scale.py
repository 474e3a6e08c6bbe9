"""A million rows on one machine: memory, and time against streaming normal equations in NumPy."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ..._table import seconds
from ...kernels import Gaussian
from .measure import Result, at_least, at_most

ROWS, COLUMNS, WIDTH, FEWER = 1_000_000, 64, 2048, 1024
LENGTHSCALE = float(np.sqrt(2 * COLUMNS))
"""The median distance between standard normal rows."""
ALPHA = 1e-3
_CHUNK = 4096


def run() -> Iterator[Result]:
    """Each fit in a process of its own, for its memory; all in one run, for their times."""
    ours, fewer, theirs = (_in_process(method, width) for method, width in
                           (("ours", WIDTH), ("ours", FEWER), ("sampler", WIDTH)))  # fmt: skip
    shape = f"{ROWS} x {COLUMNS} float32 -> {WIDTH}"
    peak = f"features would be {4e-9 * ROWS * WIDTH:.1f} GB"
    yield at_most(f"peak memory of a fit, {shape}", ours["memory"] / 1e9, 1.5, "GB", peak)
    times = f"{seconds(ours['time'])}; RBFSampler and NumPy {seconds(theirs['time'])}"
    yield at_least(
        f"RBFSampler + normal equations / KernelRidge, {shape}", theirs["time"] / ours["time"], 1, "x", times
    )
    errors = f"relative test error {fewer['error']:.3g} at width {FEWER}; RBFSampler {theirs['error']:.3g} at {WIDTH}"
    yield at_most(f"test error at width {FEWER} / that of RBFSampler at {WIDTH}, same rows",
                  fewer["error"] / theirs["error"], 1, "x", errors)  # fmt: skip
    times = f"{seconds(fewer['time'])}; RBFSampler and NumPy {seconds(theirs['time'])}"
    yield at_least("the same in time, at no larger error", theirs["time"] / fewer["time"], 2, "x", times)


def _in_process(method: str, width: int) -> dict[str, float]:
    command = [sys.executable, "-m", __name__, method, str(width)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows, and a smooth function of them: a random combination of kernels at 500 points, of unit variance."""
    centres = np.random.default_rng(1).standard_normal((500, COLUMNS)).astype(np.float32)
    weights = np.random.default_rng(2).standard_normal(500).astype(np.float32)
    X = np.random.default_rng(seed).standard_normal((n, COLUMNS), dtype=np.float32)
    kernel = Gaussian(LENGTHSCALE)
    y = np.concatenate([kernel(X[i : i + 20000], centres) @ weights for i in range(0, n, 20000)])
    return X, y


def fit_ours(X: np.ndarray, y: np.ndarray, width: int) -> Any:
    """Our fit, as a function that predicts."""
    from ...learn import KernelRidge

    model = KernelRidge(Gaussian(LENGTHSCALE), alpha=ALPHA, n_components=width, random_state=0, verbose=1)
    return model.fit(X, y).predict


def fit_sampler(X: np.ndarray, y: np.ndarray, width: int) -> Any:
    """What one would write with RBFSampler and NumPy, as a function that predicts."""
    from sklearn.kernel_approximation import RBFSampler

    sampler = RBFSampler(gamma=1 / (2 * LENGTHSCALE**2), n_components=width, random_state=0).fit(X[:2])
    A, b, total, mean = np.zeros((width, width)), np.zeros(width), np.zeros(width), y.mean(dtype=np.float64)
    for i in range(0, len(X), _CHUNK):
        Phi = sampler.transform(X[i : i + _CHUNK])
        A += Phi.T @ Phi
        b += Phi.T @ (y[i : i + _CHUNK] - mean).astype(np.float32)
        total += Phi.sum(axis=0)
    centre = total / len(X)
    A -= len(X) * np.outer(centre, centre)
    A.flat[:: width + 1] += ALPHA
    coefficients = np.linalg.solve(A, b)
    return lambda Z: (sampler.transform(Z) - centre) @ coefficients + mean


def main(method: str, width: int) -> None:
    """Measure one fit in this process."""
    X, y = data(ROWS, 3)
    fit = fit_ours if method == "ours" else fit_sampler
    fit(X[:5000], y[:5000], width)  # compiles, and is not counted
    start = perf_counter()
    predict = fit(X, y, width)
    time = perf_counter() - start
    X_test, y_test = data(20000, 4)
    error = float(np.sqrt(np.mean((predict(X_test) - y_test) ** 2)) / y_test.std())
    print(json.dumps({"time": time, "error": error, "memory": peak_memory()}))


def peak_memory() -> float:
    """Largest resident memory of this process in bytes.

    Linux counts the memory of the process that started it in ``ru_maxrss``, so its own record is read there.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if found:
            return 1024.0 * int(found[1])
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
