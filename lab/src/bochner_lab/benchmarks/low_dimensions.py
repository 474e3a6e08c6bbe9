"""Benchmarks of Gaussian processes in few columns: millions of rows on a grid of frequencies, next to the exact process."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from bochner.kernels import Matern
from bochner.learn import FourierProcess
from bochner.reporting import seconds

from ._bench import Result, at_most, measured, peak_memory

_ROWS, _PREDICTED, _EXACT_ROWS, _JUDGED = 10_000_000, 1_000_000, 4000, 1000
_KERNEL, _NOISE = Matern(1.5, 0.1), 0.1


def run() -> Iterator[Result]:
    """All cases, in order."""
    yield from accuracy(_EXACT_ROWS)
    yield from speed(_ROWS, _PREDICTED)


def _data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the unit square with a kink and a bump, denser on one side, and noisy targets."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 1, (n, 2))
    X[:, 0] **= 1.5
    y = np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1]) + np.abs(X[:, 0] - 0.4) + np.exp(-80 * ((X - 0.6) ** 2).sum(axis=1))
    return X, y + np.sqrt(_NOISE) * rng.standard_normal(n)


def _process() -> FourierProcess:
    box = (np.zeros(2), np.ones(2))
    return FourierProcess(_KERNEL, noise=_NOISE, optimize=False, box=box, random_state=0)


def accuracy(n: int) -> Iterator[Result]:
    """The mean and the standard deviation, next to those of the exact process."""
    X, y = _data(n, 0)
    Z, _ = _data(_JUDGED, 1)
    K, across, mean = _KERNEL(X), _KERNEL(Z, X), y.mean()
    K[np.diag_indices_from(K)] += _NOISE
    both = np.linalg.solve(K, np.column_stack([y - mean, across.T]))
    exact, spread = across @ both[:, 0], np.sqrt(1 - np.einsum("ij,ji->i", across, both[:, 1:]))
    found = _process().fit(X, y)
    ours, std = found.predict(Z, return_std=True)
    error = float(np.abs(ours - mean - exact).max() / np.abs(exact).max())
    details = f"{found.features_.n_features_out} features, {found.n_steps_} steps, at {_JUDGED} points"
    yield at_most(f"FourierProcess, largest error of the mean / its largest value, {n} rows", error, 1e-3, "", details)
    ratio = std / spread
    yield measured("FourierProcess, standard deviation / exact", float(ratio.mean()), "", f"spread {ratio.std():.3f}")


def speed(n: int, predicted: int) -> Iterator[Result]:
    """Fit and prediction, after one of few rows that compiles."""
    _process().fit(*_data(1000, 2)).predict(_data(10, 3)[0])
    X, y = _data(n, 0)
    Z, _ = _data(predicted, 1)
    start = time.perf_counter()
    found = _process().fit(X, y)
    fitted = time.perf_counter() - start
    details = f"{found.features_.n_features_out} features, {found.n_steps_} steps, peak {peak_memory() / 1e9:.2f} GB"
    yield at_most(f"FourierProcess.fit, {n} x 2, Matern-3/2", fitted, 60, "s", details)
    start = time.perf_counter()
    found.predict(Z)
    took = time.perf_counter() - start
    yield measured(f"FourierProcess.predict, {predicted} rows", took, "s", f"{seconds(took / predicted)} a row")
