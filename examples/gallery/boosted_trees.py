"""Where boosted trees win.

On tables whose columns mean different things and whose targets jump, boosted trees predict better than a kernel machine with
one lengthscale; on smooth targets the kernel machine is better. Both are used as they come, without tuning. Without the
folder that BOCHNER_DATA names, only the two tables that are made up are shown.
"""

from __future__ import annotations

import os

import numpy as np
from matplotlib.figure import Figure
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from bochner import datasets
from bochner.learn import KernelRidge

REAL = ("cpu_act", "abalone", "wine-quality-white", "parkinsons")


def draw(smoke: bool = False) -> tuple[Figure, str]:
    """Root mean square errors on test rows, over the standard deviation of the targets."""
    names = REAL if os.environ.get("BOCHNER_DATA") and not smoke else ()
    n = 200 if smoke else 2000
    tables = {"smooth": made_up(n, smooth=True), "steps": made_up(n, smooth=False)}
    tables |= {name: (found.X, found.y.astype(float)) for name in names for found in [datasets.load(name)]}
    models = {
        "kernel machine": KernelRidge(n_components=32 if smoke else 1024, random_state=0),
        "boosted trees": HistGradientBoostingRegressor(random_state=0),
    }
    errors = {name: [error(model, *table) for table in tables.values()] for name, model in models.items()}
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    ax = figure.subplots()
    for k, (name, values) in enumerate(errors.items()):
        ax.bar(np.arange(len(tables)) + 0.4 * k - 0.2, values, 0.4, label=name)
    ax.set_xticks(range(len(tables)), list(tables))
    ax.set_ylabel("error over the deviation of the targets")
    ax.margins(y=0.2)
    ax.legend(loc="upper left", ncols=2)
    pairs = zip(tables, *errors.values(), strict=True)
    return figure, "Kernel machine, boosted trees: " + "; ".join(
        f"{name} {a:.2f}, {b:.2f}" for name, a, b in pairs
    ) + "."


def made_up(n: int, smooth: bool) -> tuple[np.ndarray, np.ndarray]:
    """Eight columns: all matter through a sine of their sum, or two of them through steps."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 8))
    signal = np.sin(X.sum(axis=1)) if smooth else (X[:, 0] > 0.3).astype(float) + (X[:, 1] > -0.5)
    return X, signal + 0.1 * rng.standard_normal(n)


def error(model, X: np.ndarray, y: np.ndarray) -> float:
    """Relative error on a fifth of the rows that the model has not seen."""
    X, T, y, t = train_test_split(X, y, test_size=0.2, random_state=0)
    return float(np.mean((model.fit(X, y).predict(T) - t) ** 2) ** 0.5 / t.std())


if __name__ == "__main__":
    figure, caption = draw()
    figure.savefig("boosted_trees.png", dpi=120)
    print(caption)
