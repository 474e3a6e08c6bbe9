"""Benchmarks of Gaussian processes in few columns: millions of rows on a grid of frequencies, next to the exact process.

Errors are judged on functions of the prior at places that no constant of the rule for the number of features was chosen on,
and at full size against the exact process, which can be had for rows on a regular grid: its kernel matrix is a part of a
circulant one, by which Fourier transforms multiply.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from scipy import fft

from bochner.kernels import Matern
from bochner.learn import FourierProcess
from bochner.reporting import seconds

from ._bench import Result, at_most, measured, peak_memory

_SIDES, _EXACT_ROWS, _JUDGED = {1000: 100_000, 3168: 1_000_000}, 2000, 500
"""Rows of the grids along an axis and rows that are predicted, and rows of the dense process and of its predictions."""
_KERNEL, _NOISE = Matern(1.5, 0.1), 0.1
_SETTINGS = ((0.1, 0.1), (0.3, 0.01), (0.05, 0.1))
"""Lengthscales and variances of the noise."""
_SOLVED = 1e-7
"""Residual of the exact process, relative to the targets."""


def run() -> Iterator[Result]:
    """All cases, in order."""
    yield from accuracy(_EXACT_ROWS)
    for side, predicted in _SIDES.items():
        yield from full_size(side, predicted)


def _process(kernel: Matern, noise: float) -> FourierProcess:
    return FourierProcess(kernel, noise=noise, optimize=False, box=(np.zeros(2), np.ones(2)), random_state=0)


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


def _targets(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Noisy values of a function with a kink and a bump."""
    y = np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1]) + np.abs(X[:, 0] - 0.4) + np.exp(-80 * ((X - 0.6) ** 2).sum(axis=1))
    return np.asarray(y + np.sqrt(_NOISE) * rng.standard_normal(len(X)))


def full_size(side: int, predicted: int) -> Iterator[Result]:
    """Fit and prediction, after one of few rows that compiles, and the error against the exact process."""
    rng, n = np.random.default_rng(0), side * side
    few = rng.uniform(0, 1, (1000, 2))
    _process(_KERNEL, _NOISE).fit(few, _targets(few, rng)).predict(few)
    places = rng.permutation(n)  # rows that come in the order of the grid would be faster
    X = np.column_stack(np.divmod(places, side)) / (side - 1)
    y, Z = _targets(X, rng), rng.uniform(0, 1, (predicted, 2))
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
    values = np.empty((side, side))
    values.ravel()[places] = y - found.intercept_
    exact, steps = exact_mean(_KERNEL, _NOISE, values)
    gap = found.predict(X[:predicted]) - found.intercept_ - exact.ravel()[places[:predicted]]
    largest = float(np.abs(exact).max())
    details = (
        f"root mean square {np.sqrt((gap**2).mean()) / largest:.1e}, at {predicted} of the rows; exact process by {steps} "
        f"steps to a residual of {_SOLVED:g}"
    )
    case = f"largest error of the mean / its largest value, {n} rows, against the exact process"
    yield at_most(case, float(np.abs(gap).max()) / largest, 1e-3, "", details)


def exact_mean(kernel: Matern, noise: float, y: np.ndarray) -> tuple[np.ndarray, int]:
    """Posterior mean of the exact process at rows on a regular grid of the unit square, and the steps it took.

    Conjugate gradients multiply by the kernel matrix on a torus of twice the side, where it is circulant.  Their
    preconditioner is the inverse of the process on functions that are mirrored at the sides, by cosine transforms.

    Parameters
    ----------
    kernel, noise
        The process.
    y : array (side, side)
        Targets.
    """
    side = len(y)
    steps = np.column_stack(np.divmod(np.arange((side + 1) ** 2), side + 1)) / (side - 1)
    values = np.asarray(kernel(steps, np.zeros((1, 2)))).reshape(side + 1, side + 1)
    around = np.minimum(np.arange(2 * side), 2 * side - np.arange(2 * side))
    spectrum = fft.rfft2(values[np.ix_(around, around)], workers=-1).real
    mirrored = np.maximum(spectrum[:side, :side], 0) + noise

    def product(V: np.ndarray) -> np.ndarray:
        padded = fft.rfft2(V, s=(2 * side, 2 * side), workers=-1)
        padded *= spectrum
        return np.asarray(fft.irfft2(padded, s=(2 * side, 2 * side), overwrite_x=True, workers=-1)[:side, :side])

    def nearly_solved(V: np.ndarray) -> np.ndarray:
        return np.asarray(fft.idctn(fft.dctn(V, workers=-1) / mirrored, overwrite_x=True, workers=-1))

    found, R = np.zeros(y.shape), y
    goal, count = _SOLVED * np.linalg.norm(y), 0
    P = Z = nearly_solved(R)
    rz = float(np.vdot(R, Z))
    while np.linalg.norm(R) > goal:
        Q = product(P) + noise * P
        a, count = rz / float(np.vdot(P, Q)), count + 1
        found += a * P
        R = R - a * Q
        Z = nearly_solved(R)
        rz, before = float(np.vdot(R, Z)), rz
        P = Z + rz / before * P
    return product(found), count
