"""
How far does a season repeat?
=============================

A kernel is a sentence about a function: here a smooth trend plus a season whose shape changes
slowly. Sums and products of kernels have features too, and the Gaussian process continues the
curve with a band that grows as the season becomes uncertain.
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner import kernels
from bochner.learn import GaussianProcess

rng = np.random.default_rng(0)
t = np.linspace(0, 8, 400)
y = 0.3 * t + np.sin(2 * np.pi * t) * (1 + 0.1 * t) + 0.1 * rng.standard_normal(len(t))
seasonal = kernels.Product(
    (kernels.Periodic(lengthscale=1.0, period=1.0), kernels.Gaussian(lengthscale=4.0))
)
candidates = {
    "Gaussian": kernels.Gaussian(lengthscale=0.5),
    "trend + season": kernels.Sum((kernels.Gaussian(lengthscale=4.0), seasonal)),
}
future = np.linspace(0, 11, 500)

figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), sharey=True, layout="constrained")
for ax, (name, kernel) in zip(axes, candidates.items(), strict=True):
    given = {"noise": 0.01, "amplitude": 2.0, "optimize": False, "standardize": False}
    model = GaussianProcess(kernel, map=None, n_components=1500, random_state=0, **given).fit(
        t[:, None], y
    )
    mean, std = model.predict(future[:, None], return_std=True)
    ax.plot(t, y, "k.", markersize=2)
    ax.plot(future, mean, color="C0")
    ax.fill_between(future, mean - 2 * std, mean + 2 * std, alpha=0.25)
    ax.axvline(8, color="black", linestyle=":")
    ax.set(title=name, xlabel="years", ylim=(-4, 8))
plt.show()
