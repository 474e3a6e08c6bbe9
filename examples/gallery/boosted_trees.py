"""Where boosted trees win.

On tables whose columns mean different things and whose targets jump, boosted trees predict better than a kernel machine with
one lengthscale; on smooth targets the kernel machine is better. Both are used as they come, without tuning. Without the
folder that BOCHNER_DATA names, only the two tables that are made up are shown.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from bochner.learn import KernelRidge

REAL = {
    "cpu_act": "cpu_act.npz",
    "abalone": "abalone.csv.gz",
    "wine-quality-white": "winequality_white.npz",
    "parkinsons": "parkinsons_telemonitoring.csv.gz",
}
TARGETS = {"parkinsons": ("total_UPDRS", ["subject#", "motor_UPDRS"])}
"""Target, and columns to leave out; elsewhere the last column is the target."""


def draw(smoke: bool = False) -> tuple[Figure, str]:
    """Root mean square errors on test rows, over the standard deviation of the targets."""
    folder = os.environ.get("BOCHNER_DATA")
    n = 200 if smoke else 2000
    tables = {"smooth": made_up(n, smooth=True), "steps": made_up(n, smooth=False)}
    if folder and not smoke:
        tables |= {name: read(Path(folder) / file, *TARGETS.get(name, ())) for name, file in REAL.items()}
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


def read(path: Path, target: str | None = None, left_out: list[str] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Columns and target of a file; text becomes codes."""
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return arrays["X"].astype(np.float32), arrays["y"].astype(float)
    import pandas as pd

    table = pd.read_csv(path).drop(columns=left_out or [])
    y = table.pop(target or table.columns[-1])
    numbers = [
        column if column.dtype.kind in "if" else column.astype("category").cat.codes for _, column in table.items()
    ]
    return np.stack(numbers, axis=1).astype(np.float32), y.to_numpy(float)


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
