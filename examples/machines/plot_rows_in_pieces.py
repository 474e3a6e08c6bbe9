"""
What if the rows come in pieces?
================================

``partial_fit`` reads rows once and holds none of their features: time is linear in the rows,
and memory does not depend on them. Here the rows are pixels of two photographs: how blue is a
pixel, given the red and the green of the nine around it? Nine pieces are read.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images
from sklearn.linear_model import Ridge

from bochner.learn import KernelRidge


def pixels(photo):
    """Red and green of nine neighbouring pixels, and the blue of the middle one."""
    scaled = photo.astype(np.float32) / 255
    windows = np.lib.stride_tricks.sliding_window_view(scaled, (3, 3), axis=(0, 1))
    return windows[:, :, :2].reshape(-1, 18), windows[:, :, 2, 1, 1].ravel()


photos = load_sample_images().images
X, y = (np.concatenate(parts) for parts in zip(*map(pixels, photos), strict=True))
order = np.random.default_rng(0).permutation(len(X))
T, t = X[order[:10_000]], y[order[:10_000]]
model = KernelRidge(
    "gaussian", gamma=0.5, map=None, n_components=512, metric=None, alpha=0.01, random_state=0
)
seen, errors, seconds = [0], [], []
for size in [1000, *1000 * 2 ** np.arange(8)]:
    rows = order[10_000 + seen[-1] :][:size]  # for instance one file each
    start = time.perf_counter()
    model.partial_fit(X[rows], y[rows])
    seconds.append(time.perf_counter() - start)
    seen.append(seen[-1] + size)
    errors.append(np.sqrt(np.mean((model.predict(T) - t) ** 2)))
linear = np.sqrt(np.mean((Ridge().fit(X[rows], y[rows]).predict(T) - t) ** 2))
print(
    f"{seen[-1]:,} of {len(X):,} rows in {sum(seconds):.1f} s: error {errors[-1]:.4f}; linear model {linear:.4f}"
)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.semilogx(seen[1:], errors, "o-", label="kernel machine")
left.axhline(linear, color="C1", linestyle="--", label="linear model")
left.set(xlabel="rows read", ylabel="error on test rows", ylim=(0, None))
left.legend(loc="lower left")
right.plot(np.array(seen[1:]) / 1000, np.cumsum(seconds), "o-")
right.set(xlabel="thousands of rows read", ylabel="seconds", ylim=(0, None))
plt.show()
