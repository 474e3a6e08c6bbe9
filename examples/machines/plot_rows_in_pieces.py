"""
What if the rows come in pieces?
================================

``partial_fit`` reads rows once and holds none of their features: time is linear in the rows,
and memory does not depend on them. Here 200,000 rows come in ten pieces; a million take five
times as long.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge

from bochner.learn import KernelRidge

rng = np.random.default_rng(0)


def rows(n):
    """Rows of a function that is not linear, with noise of standard deviation 0.1."""
    X = rng.standard_normal((n, 6), dtype=np.float32)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(
        n, dtype=np.float32
    )


T, t = rows(3_000)
model = KernelRidge(
    "gaussian", gamma=0.08, map=None, n_components=512, metric=None, alpha=0.01, random_state=0
)
seen, errors, seconds = [], [], []
for piece in range(10):
    X, y = rows(20_000)  # for instance one file each
    start = time.perf_counter()
    model.partial_fit(X, y)
    seconds.append(time.perf_counter() - start)
    seen.append(20_000 * (piece + 1))
    errors.append(np.sqrt(np.mean((model.predict(T) - t) ** 2)))
linear = np.sqrt(np.mean((Ridge().fit(X, y).predict(T) - t) ** 2))
print(
    f"{seen[-1]:,} rows in {sum(seconds):.1f} s: error {errors[-1]:.3f}; linear model {linear:.3f}; noise 0.1"
)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(seen, errors, "o-", label="kernel machine")
left.axhline(linear, color="C1", linestyle="--", label="linear model")
left.set(xlabel="rows read", ylabel="error on test rows", ylim=(0, None))
left.legend()
right.plot(seen, np.cumsum(seconds), "o-")
right.set(xlabel="rows read", ylabel="seconds", ylim=(0, None))
plt.show()
