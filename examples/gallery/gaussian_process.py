"""A Gaussian process with uncertainty.

A process with random features takes time linear in the rows, and its mean and standard deviation agree with those of the
exact process where there are enough features. With too few, the band is far too narrow where there are no data.
"""

from __future__ import annotations

import time

import numpy as np
from matplotlib.figure import Figure
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from bochner import kernels
from bochner.learn import GaussianProcess

NOISE, LENGTH = 0.1, 0.4


def draw(smoke: bool = False) -> tuple[Figure, str]:
    """Bands of two standard deviations: exact, with many features, and with too few."""
    rng = np.random.default_rng(0)
    n = 150 if smoke else 5000
    x = np.concatenate([rng.uniform(-3, -0.8, n // 2), rng.uniform(0.8, 3, n - n // 2)])[:, None]
    y = np.sin(3 * x[:, 0]) + NOISE * rng.standard_normal(n)
    grid = np.linspace(-3.3, 3.3, 300)[:, None]
    models = {
        "exact": GaussianProcessRegressor(RBF(LENGTH), alpha=NOISE**2, optimizer=None),
        "2048 features": process(2048),
        "12 features": process(12),
    }
    figure = Figure(figsize=(12, 3.4), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    seconds, bands = {}, {}
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        start = time.perf_counter()
        mean, std = model.fit(x, y).predict(grid, return_std=True)
        seconds[name], bands[name] = time.perf_counter() - start, std
        ax.plot(x[:: max(1, n // 150)], y[:: max(1, n // 150)], "k.", markersize=2, alpha=0.5)
        ax.plot(grid, mean, color="C0")
        ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, alpha=0.25)
        ax.set(title=name, ylim=(-3, 3))
    middle = {name: float(np.interp(0, grid[:, 0], std)) for name, std in bands.items()}
    text = ", ".join(f"{name} {middle[name]:.2f} ({seconds[name]:.2f} s)" for name in models)
    return figure, f"Standard deviation in the middle of the gap, and time, with {n:,} rows: {text}."


def process(width: int) -> GaussianProcess:
    """The same process with random features; its hyperparameters are given, as in the exact one."""
    return GaussianProcess(
        kernels.Gaussian(LENGTH), n_components=width, noise=NOISE**2, amplitude=1.0, optimize=False, random_state=0
    )


if __name__ == "__main__":
    figure, caption = draw()
    figure.savefig("gaussian_process.png", dpi=120)
    print(caption)
