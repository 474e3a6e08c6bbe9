"""
When are boosted trees better?
==============================

Boosted trees are better where a target jumps, a kernel machine where it is smooth; both are
used as they come, without tuning.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import train_test_split

from bochner.learn import KernelRidge

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (600, 8))
noise = 0.1 * rng.standard_normal(600)
tables = {
    "smooth: sine of the sum": (X, np.sin(X.sum(axis=1)) + noise),
    "steps of three columns": (
        X,
        (X[:, 0] > 0.3) + 2.0 * (X[:, 1] > -0.5) * (X[:, 2] > 0) + noise,
    ),
    "diabetes": load_diabetes(return_X_y=True),
}
models = {
    "KernelRidge()": KernelRidge(random_state=0),
    "boosted trees": HistGradientBoostingRegressor(random_state=0),
}

figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
for k, (name, model) in enumerate(models.items()):
    errors = []
    for X, y in tables.values():
        X, T, y, t = train_test_split(X, y, test_size=0.3, random_state=0)
        errors.append(np.sqrt(np.mean((model.fit(X, y).predict(T) - t) ** 2)) / t.std())
    ax.bar(np.arange(3) + 0.4 * k - 0.2, errors, 0.4, label=name)
    print(
        f"{name}: "
        + ", ".join(
            f"{table} {error:.3f}" for table, error in zip(tables, errors, strict=True)
        )
    )
ax.set_xticks(range(3), list(tables))
ax.set_ylabel("error over the deviation of the targets")
ax.legend()
plt.show()
