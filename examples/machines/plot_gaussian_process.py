"""
How many features does a posterior need?
========================================

A Gaussian process with random features takes time linear in the rows, and agrees with the
exact one where there are enough features. With too few, the band is far too narrow where there
are no data.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from bochner import kernels
from bochner.learn import GaussianProcess

noise, length, n = 0.1, 0.4, 1200
rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(-3, -0.8, n // 2), rng.uniform(0.8, 3, n // 2)])[:, None]
y = np.sin(3 * x[:, 0]) + noise * rng.standard_normal(n)
grid = np.linspace(-3.3, 3.3, 300)[:, None]


def features(width):
    """Process with random features and the same hyperparameters as the exact one."""
    given = {
        "noise": noise**2,
        "amplitude": 1.0,
        "optimize": False,
        "fit_intercept": False,
        "standardize": False,
    }
    return GaussianProcess(
        kernels.Gaussian(length), map=None, n_components=width, random_state=0, **given
    )


models = {
    "exact": GaussianProcessRegressor(RBF(length), alpha=noise**2, optimizer=None),
    "1024 features": features(1024),
    "12 features": features(12),
}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.4), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    start = time.perf_counter()
    mean, std = model.fit(x, y).predict(grid, return_std=True)
    seconds = time.perf_counter() - start
    ax.plot(x[::8], y[::8], "k.", markersize=2, alpha=0.5)
    ax.plot(grid, mean, color="C0")
    ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, alpha=0.25)
    ax.set(title=name, ylim=(-3, 3))
    middle = np.interp(0, grid[:, 0], std)
    print(
        f"{name}: standard deviation in the middle of the gap {middle:.2f}, {seconds:.2f} s with {n} rows"
    )
plt.show()
