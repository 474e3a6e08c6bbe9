"""Regression on a million rows.

A kernel machine with random features reads the rows once, in pieces, and holds none of their features: its time is linear in
the rows, and its memory does not depend on them. Its error falls until a linear model is left far behind.
"""

from __future__ import annotations

import time

import numpy as np
from matplotlib.figure import Figure
from sklearn.linear_model import Ridge

from bochner.learn import KernelRidge

PIECES = 10


def draw(smoke: bool = False) -> tuple[Figure, str]:
    """Test error and time against the rows read so far."""
    rng = np.random.default_rng(0)
    n = 20_000 if smoke else 1_000_000
    test = rows(rng, 5_000)
    model = KernelRidge(gamma=0.08, map=None, n_components=128 if smoke else 512, alpha=0.01, random_state=0)
    seen, errors, seconds = [], [], []
    for k in range(PIECES):
        X, y = rows(rng, n // PIECES)  # for instance one file each
        start = time.perf_counter()
        model.partial_fit(X, y)
        seconds.append(time.perf_counter() - start)
        seen.append((k + 1) * (n // PIECES))
        errors.append(rmse(model, *test))
    linear = rmse(Ridge().fit(X, y), *test)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(seen, errors, "o-", label="kernel machine")
    left.axhline(linear, color="C1", linestyle="--", label="linear model")
    left.set(xlabel="rows read", ylabel="error on test rows", ylim=(0, None))
    left.legend()
    right.plot(seen, np.cumsum(seconds), "o-")
    right.set(xlabel="rows read", ylabel="seconds", ylim=(0, None))
    return figure, (
        f"{n:,} rows in {sum(seconds):.0f} s; root mean square error {errors[-1]:.3f}, noise {0.1:.3f}, "
        f"linear model {linear:.3f}."
    )


def rows(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a function that is not linear, with noise of standard deviation 0.1."""
    X = rng.standard_normal((n, 6), dtype=np.float32)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n, dtype=np.float32)
    return X, y


def rmse(model, X: np.ndarray, y: np.ndarray) -> float:
    """Root mean square error of a fitted model."""
    return float(np.mean((model.predict(X) - y) ** 2) ** 0.5)


if __name__ == "__main__":
    figure, caption = draw()
    figure.savefig("million_rows.png", dpi=120)
    print(caption)
