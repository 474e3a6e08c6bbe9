"""
How many features does an error take?
=====================================

The error of random features falls as one over the root of their number, so half the error takes
four times as many. ``bochner.recommend`` with a tolerance finds the mechanism that reaches it
with the fewest features, on the rows of a table.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import bochner
from bochner import Approximation, maps, projections

X = load_wine().data
X = (X - X.mean(axis=0)) / X.std(axis=0)
tolerance = 0.2
advice = bochner.recommend(X, kernel="gaussian", tolerance=tolerance, rng=0)
print(advice)

# %%
# The reason, in a picture: the error of the kernel between other rows, in closed form. Landmarks
# (rows of the table) need far fewer here. With a tolerance they are left out, since how many it
# takes depends on the rows at hand; with ``n_features=`` they are ranked.
kernel, first, second, others = (
    advice.best.kernel,
    X[::4],
    X[1::4],
    np.vstack([X[2::4], X[3::4]]),
)
kinds = {
    "cosines, independent rows": (maps.Trigonometric(), projections.IID()),
    "cosines, orthogonal rows": (maps.Trigonometric(), projections.Orthogonal()),
    "landmarks": (maps.Landmarks(), None),
}
figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for name, (feature_map, projection) in kinds.items():
    most = len(others) if projection is None else 1024
    widths = [width for width in (16, 32, 64, 128, 256, 512, 1024) if width <= most]
    plans = [
        Approximation(kernel, feature_map, projection).with_width(width).plan(others, rng=0)
        for width in widths
    ]
    scale = (kernel(first, second) ** 2).mean()
    errors = [np.sqrt(plan.mse(first, second).mean() / scale) for plan in plans]
    ax.loglog(widths, errors, "o-", label=name)
ax.axhline(tolerance, color="black", linestyle=":", label="tolerance")
ax.set(xlabel="features", ylabel="relative error of the kernel")
ax.set_xticks((16, 64, 256, 1024), (16, 64, 256, 1024))
ax.set_yticks((0.1, 0.2, 0.5, 1), (0.1, 0.2, 0.5, 1))
ax.minorticks_off()
ax.legend()
plt.show()
