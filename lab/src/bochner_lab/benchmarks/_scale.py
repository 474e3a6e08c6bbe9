"""A million rows on one machine: memory, and time against what one would write with scikit-learn and NumPy."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

from bochner.kernels import Gaussian
from bochner.reporting import seconds

from ._bench import Result, at_least, at_most, in_process, peak_memory

ROWS, COLUMNS, WIDTH, FEWER = 1_000_000, 64, 2048, 1024
LENGTHSCALE = float(np.sqrt(2 * COLUMNS))
"""The median distance between standard normal rows."""
ALPHA = 1e-3
SEGMENTS = 20
_CHUNK = 4096


def run() -> Iterator[Result]:
    """Memory of a fit in a separate process, and times of interleaved fits, so that noise affects all of them equally."""
    alone, (ours, fewer, theirs) = in_process(__name__, "memory"), in_process(__name__, "times")
    shape = f"{ROWS} x {COLUMNS} float32 -> {WIDTH}"
    peak = f"features would be {4e-9 * ROWS * WIDTH:.1f} GB"
    yield at_most(f"peak memory of a fit, {shape}", alone / 1e9, 1.5, "GB", peak)
    times = f"{seconds(ours['time'])}; RBFSampler and NumPy {seconds(theirs['time'])}"
    yield at_least(
        f"RBFSampler + normal equations / KernelRidge, {shape}", theirs["time"] / ours["time"], 1, "x", times
    )
    errors = f"relative test error {fewer['error']:.3g} at width {FEWER}; RBFSampler {theirs['error']:.3g} at {WIDTH}"
    yield at_most(
        f"test error at width {FEWER} / that of RBFSampler at {WIDTH}, same rows",
        fewer["error"] / theirs["error"],
        1,
        "x",
        errors,
    )
    times = f"{seconds(fewer['time'])}; RBFSampler and NumPy {seconds(theirs['time'])}"
    yield at_least("the same in time, at no larger error", theirs["time"] / fewer["time"], 2, "x", times)


def data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows, and a smooth function of them: a random combination of kernels at 500 points, of unit variance."""
    centres = np.random.default_rng(1).standard_normal((500, COLUMNS)).astype(np.float32)
    weights = np.random.default_rng(2).standard_normal(500).astype(np.float32)
    X = np.random.default_rng(seed).standard_normal((n, COLUMNS), dtype=np.float32)
    kernel = Gaussian(LENGTHSCALE)
    y = np.concatenate([kernel(X[i : i + 20000], centres) @ weights for i in range(0, n, 20000)])
    return X, y


def our_fit(width: int, alpha: float = ALPHA, solver: str = "auto") -> Any:
    """Our estimator."""
    from bochner.learn import KernelRidge

    return KernelRidge(Gaussian(LENGTHSCALE), map=None, alpha=alpha, n_components=width, solver=solver, random_state=0)


class SamplerFit:
    """What one would write with RBFSampler and NumPy: normal equations, summed over chunks of rows."""

    def __init__(self, width: int) -> None:
        from sklearn.kernel_approximation import RBFSampler

        self.sampler = RBFSampler(gamma=1 / (2 * LENGTHSCALE**2), n_components=width, random_state=0)
        self.sampler.fit(np.zeros((1, COLUMNS), np.float32))
        self.A, self.b, self.total = np.zeros((width, width)), np.zeros(width), np.zeros(width)
        self.n, self.y_total = 0, 0.0

    def partial_fit(self, X: np.ndarray, y: np.ndarray) -> SamplerFit:
        """Add rows."""
        for i in range(0, len(X), _CHUNK):
            Phi, part = self.sampler.transform(X[i : i + _CHUNK]), y[i : i + _CHUNK]
            self.A += Phi.T @ Phi
            self.b += Phi.T @ part
            self.total += Phi.sum(axis=0)
            self.n += len(Phi)
            self.y_total += float(part.sum(dtype=np.float64))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Solve about the means, and predict."""
        centre, mean = self.total / self.n, self.y_total / self.n
        A = self.A - self.n * np.outer(centre, centre) + ALPHA * np.eye(len(centre))
        coefficients = np.linalg.solve(A, self.b - self.n * mean * centre)
        return np.asarray((self.sampler.transform(X) - centre) @ coefficients + mean)


def times() -> list[dict[str, float]]:
    """Seconds and test errors of three fits that take turns, a segment of rows at a time."""
    (X, y), (X_test, y_test) = data(ROWS, 3), data(20000, 4)
    fits: list[Any] = [our_fit(WIDTH), our_fit(FEWER), SamplerFit(WIDTH)]
    our_fit(WIDTH).fit(X[:5000], y[:5000])  # compiles, and is not counted
    spent = np.zeros(3)
    for rows in np.array_split(np.arange(ROWS), SEGMENTS):
        part = slice(rows[0], rows[-1] + 1)
        spent += [_seconds(lambda f=fit, p=part: f.partial_fit(X[p], y[p])) for fit in fits]  # type: ignore[misc]
    spent += [_seconds(lambda f=fit: f.predict(X_test[:1])) for fit in fits]  # type: ignore[misc]
    errors = [float(np.sqrt(np.mean((fit.predict(X_test) - y_test) ** 2)) / y_test.std()) for fit in fits]
    return [{"time": float(t), "error": e} for t, e in zip(spent, errors, strict=True)]


def memory() -> float:
    """Peak memory of one fit on all rows."""
    our_fit(WIDTH).set_params(verbose=1).fit(*data(ROWS, 3))
    return peak_memory()


def _seconds(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


if __name__ == "__main__":
    parts: dict[str, Callable[[], Any]] = {work.__name__: work for work in (memory, times)}
    print(json.dumps(parts[sys.argv[1]]()))
