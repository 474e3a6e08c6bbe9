"""Benchmarks of Gaussian processes in few columns: millions of rows on a grid of frequencies, next to the exact process.

Errors are judged on functions of the prior at places that no constant of the rule for the number of features was chosen on,
and at full size against the same process on a small part of the square, where three times the accuracy can be had.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from bochner.kernels import Matern
from bochner.learn import FourierProcess
from bochner.reporting import seconds

from ._bench import Result, at_most, measured, peak_memory

_ROWS, _PREDICTED, _EXACT_ROWS, _JUDGED = 10_000_000, 1_000_000, 2000, 500
_KERNEL, _NOISE = Matern(1.5, 0.1), 0.1
_SETTINGS = ((0.1, 0.1), (0.3, 0.01), (0.05, 0.1))
"""Lengthscales and variances of the noise."""
_TOLERANCE, _FINER = 1e-3, 3.0
_PART, _INNER = (0.4, 0.6), (0.48, 0.52)
"""Rows of the reference at full size, and where it is compared: rows ten lengths of the smoothing away do not matter."""


def run() -> Iterator[Result]:
    """All cases, in order."""
    yield from accuracy(_EXACT_ROWS)
    yield from full_size(_ROWS, _PREDICTED)


def _process(kernel: Matern, noise: float, low: float = 0.0, high: float = 1.0, finer: float = 1.0) -> FourierProcess:
    box = (np.full(2, low), np.full(2, high))
    tolerance = _TOLERANCE / finer
    return FourierProcess(kernel, noise=noise, optimize=False, box=box, tolerance=tolerance, random_state=0)


def accuracy(n: int) -> Iterator[Result]:
    """Means and standard deviations next to those of the exact process, of functions of the prior."""
    for places in ("uniform", "in clusters"):
        for lengthscale, noise in _SETTINGS:
            yield from _accuracy(n, places, Matern(1.5, lengthscale), noise)


def _accuracy(n: int, places: str, kernel: Matern, noise: float) -> Iterator[Result]:
    rng = np.random.default_rng(7)
    X, Z = rng.uniform(0, 1, (n, 2)), rng.uniform(0, 1, (_JUDGED, 2))
    if places == "in clusters":
        centers = rng.uniform(0.1, 0.9, (12, 2))
        X = np.clip(centers[rng.integers(12, size=n)] + 0.06 * rng.standard_normal((n, 2)), 0, 1)
    K = kernel(np.vstack([X, Z]))
    root = np.linalg.cholesky(K + 1e-9 * np.eye(len(K)))
    y = (root @ rng.standard_normal(len(K)))[:n] + np.sqrt(noise) * rng.standard_normal(n)
    across, mean = K[n:, :n], y.mean()
    both = np.linalg.solve(K[:n, :n] + noise * np.eye(n), np.column_stack([y - mean, across.T]))
    exact, spread = across @ both[:, 0], np.sqrt(1 - np.einsum("ij,ji->i", across, both[:, 1:]))
    found = _process(kernel, noise).fit(X, y)
    ours, std = found.predict(Z, return_std=True)
    gap, ratio = ours - mean - exact, std / spread
    details = (
        f"root mean square {np.sqrt((gap**2).mean()):.1e}, largest {np.abs(gap).max():.1e} standard deviations of the "
        f"prior; {found.features_.n_features_out} features, {found.n_steps_} steps; standard deviations / exact "
        f"{ratio.mean():.3f} ± {ratio.std():.3f}"
    )
    setting = f"lengthscale {kernel.lengthscale}, noise {noise}"
    case = f"largest error of the mean / its largest value, {n} rows {places}, {setting}"
    yield at_most(case, float(np.abs(gap).max() / np.abs(exact).max()), 1e-3, "", details)


def _data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the unit square with a kink and a bump, denser on one side, and noisy targets."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 2))
    X[:, 0] **= 1.5
    y = np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1]) + np.abs(X[:, 0] - 0.4) + np.exp(-80 * ((X - 0.6) ** 2).sum(axis=1))
    return X, y + np.sqrt(_NOISE) * rng.standard_normal(n)


def full_size(n: int, predicted: int) -> Iterator[Result]:
    """Fit and prediction, after one of few rows that compiles, and the error against a finer process on a part of them."""
    _process(_KERNEL, _NOISE).fit(*_data(1000, 2)).predict(_data(10, 3)[0])
    X, y = _data(n, 0)
    Z, _ = _data(predicted, 1)
    start, cpu = time.perf_counter(), time.process_time()
    found = _process(_KERNEL, _NOISE).fit(X, y)
    fitted, used = time.perf_counter() - start, time.process_time() - cpu
    details = (
        f"{seconds(used)} of CPU, {found.features_.n_features_out} features, {found.n_steps_} steps, "
        f"peak {peak_memory() / 1e9:.2f} GB"
    )
    yield at_most(f"FourierProcess.fit, {n} x 2, Matern-3/2", fitted, 60, "s", details)
    start = time.perf_counter()
    found.predict(Z)
    took = time.perf_counter() - start
    yield measured(f"FourierProcess.predict, {predicted} rows", took, "s", f"{seconds(took / predicted)} a row")
    yield _against_finer(found, X, y)


def _against_finer(found: FourierProcess, X: np.ndarray, y: np.ndarray) -> Result:
    low, high = _PART
    own = ((X > low) & (X < high)).all(axis=1)
    finer = _process(_KERNEL, _NOISE, low, high, _FINER).set_params(fit_intercept=False)
    finer.fit(X[own], y[own] - found.intercept_)
    Z = np.random.default_rng(5).uniform(*_INNER, (1000, 2))
    reference = finer.predict(Z)
    gap = found.predict(Z) - found.intercept_ - reference
    largest = float(np.abs(found.predict(np.random.default_rng(6).uniform(0, 1, (4000, 2))) - found.intercept_).max())
    details = (
        f"root mean square {np.sqrt((gap**2).mean()) / largest:.1e}; the reference has a tolerance of "
        f"{finer.tolerance:.1e}, {own.sum()} rows, {finer.features_.n_features_out} features, {finer.n_steps_} steps"
    )
    case = f"largest error of the mean / its largest value, {len(X)} rows, against a finer process"
    return at_most(case, float(np.abs(gap).max()) / largest, 1e-3, "", details)
