"""
How much does width buy?
========================

The error of a classifier with random features falls as features are added, until the kernel
itself is the limit. Landmarks of the data get there with fewer.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split

from bochner.learn import KernelClassifier

X, y = load_digits(return_X_y=True)
X, T, y, t = train_test_split(X / 16, y, test_size=0.5, random_state=0)
widths = (32, 64, 128, 256, 512)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name, feature_map in {"random features": None, "landmarks": "landmarks"}.items():
    errors = []
    for width in widths:
        given = {
            "gamma": 0.2,
            "map": feature_map,
            "n_components": width,
            "metric": None,
            "standardize": False,
        }
        model = KernelClassifier("gaussian", alpha=0.01, random_state=0, **given).fit(X, y)
        errors.append(1 - model.score(T, t))
    left.loglog(widths, errors, "o-", label=name)
    print(f"{name}, width {widths[-1]}: error {errors[-1]:.3f}")
linear = 1 - RidgeClassifier().fit(X, y).score(T, t)
left.axhline(linear, color="black", linestyle="--", label=f"linear ({linear:.3f})")
left.set(xlabel="width of the features", ylabel="error rate on test images")
left.set_xticks(widths, widths)
left.set_yticks((0.01, 0.02, 0.05, 0.1), ("0.01", "0.02", "0.05", "0.1"))
left.minorticks_off()
left.legend()
wrong = np.flatnonzero(model.predict(T) != t)[:8]
for k, i in enumerate(wrong):
    right.imshow(
        T[i].reshape(8, 8),
        cmap="gray_r",
        extent=(10 * (k % 4), 10 * (k % 4) + 8, -12 * (k // 4), -12 * (k // 4) + 8),
    )
    right.text(
        10 * (k % 4) + 4,
        -12 * (k // 4) - 2.2,
        f"{t[i]} read as {model.predict(T[i : i + 1])[0]}",
        ha="center",
        fontsize=8,
    )
right.set(xlim=(-1, 39), ylim=(-16, 9), title="misclassified", xticks=(), yticks=())
plt.show()
