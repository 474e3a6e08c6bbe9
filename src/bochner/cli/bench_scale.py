"""A million rows, and wide features, on one machine: memory, and time against normal equations."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np

from .._table import seconds
from ..kernels import Gaussian
from .bench import Result, at_least, at_most, peak_memory

ROWS, COLUMNS, WIDTH, FEWER = 1_000_000, 64, 2048, 1024
LENGTHSCALE = float(np.sqrt(2 * COLUMNS))
"""The median distance between standard normal rows."""
ALPHA = 1e-3
SEGMENTS = 20
_CHUNK = 4096
WIDE_ALPHA, WIDE_BOTH, WIDE = 1.0, (20_000, 12_288), (200_000, 32_768)
"""Rows and features on which conjugate gradients meet the normal equations, and on which they are alone."""


def run() -> Iterator[Result]:
    """Memory of a fit in a separate process, and times of interleaved fits, so that noise affects all of them equally."""
    alone, (ours, fewer, theirs) = _in_process("memory"), _in_process("times")
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
    yield from wide_features()


def wide_features() -> Iterator[Result]:
    """Conjugate gradients: both solvers in one run, and the largest case, where the other time follows from operations."""
    from ..learn._linear.conjugate_gradients import direct_cost

    both, alone = _in_process("both_solvers"), _in_process("wide_fit")
    shape = f"{WIDE_BOTH[0]} x {COLUMNS} float32 -> {WIDE_BOTH[1]}, alpha {WIDE_ALPHA:g}"
    ratio = both["primal"] / both["cg"]
    times = f"{seconds(both['cg'])}; normal equations {seconds(both['primal'])}"
    yield at_least(f"normal equations / conjugate gradients, {shape}", ratio, 2, "x", times)
    yield at_most("difference of their predictions, relative", both["difference"], 1e-4, "", "on 2000 new rows")
    expected = both["primal"] * direct_cost(*WIDE) / direct_cost(*WIDE_BOTH)
    shape = f"{WIDE[0]} x {COLUMNS} float32 -> {WIDE[1]}"
    times = (
        f"{seconds(alone['time'])}; normal equations {seconds(expected)}, expected from the time above by operations"
    )
    yield at_least(f"the same, {shape}", expected / alone["time"], 4, "x", times)
    square = f"normal equations would be {8e-9 * WIDE[1] ** 2:.1f} GB"
    yield at_most("peak memory of this fit", alone["memory"] / 1e9, 2, "GB", square)


def _in_process(what: str) -> Any:
    done = subprocess.run([sys.executable, "-m", __name__, what], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


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
    from ..learn import KernelRidge

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


def both_solvers() -> dict[str, float]:
    """Seconds of a fit by either solver, and how far their predictions are apart."""
    (n, width), X_test = WIDE_BOTH, data(2000, 4)[0]
    X, y = data(n, 3)
    fits = {solver: our_fit(width, WIDE_ALPHA, solver) for solver in ("cg", "primal")}
    our_fit(64, WIDE_ALPHA, "cg").fit(X[:500], y[:500])  # compiles, and is not counted
    spent = {solver: _seconds(lambda f=fit: f.fit(X, y)) for solver, fit in fits.items()}  # type: ignore[misc]
    ours, direct = (fit.predict(X_test) for fit in fits.values())
    return spent | {"difference": float(np.linalg.norm(ours - direct) / np.linalg.norm(direct - direct.mean()))}


def wide_fit() -> dict[str, float]:
    """Seconds and peak memory of the largest fit by conjugate gradients."""
    n, width = WIDE
    X, y = data(n, 3)
    our_fit(64, WIDE_ALPHA, "cg").fit(X[:500], y[:500])
    spent = _seconds(lambda: our_fit(width, WIDE_ALPHA, "cg").fit(X, y))
    return {"time": spent, "memory": peak_memory()}


def _seconds(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


if __name__ == "__main__":
    parts: dict[str, Callable[[], Any]] = {work.__name__: work for work in (memory, times, both_solvers, wide_fit)}
    print(json.dumps(parts[sys.argv[1]]()))
