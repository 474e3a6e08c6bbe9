"""
Which kernel for which table?
=============================

A smooth target wants a smooth kernel, a target with kinks and jumps a rougher one.
``KernelRidge()`` tries several kernels and metrics and keeps the one whose left-out rows have
the smallest error; ``selection_`` says what it tried.
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner.learn import KernelRidge

rng = np.random.default_rng(0)
X, T = rng.uniform(-2, 2, (2, 400, 3))
targets = {
    "smooth": lambda X: np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2],
    "kinks": lambda X: np.abs(X[:, 0]) + np.abs(X[:, 1] - X[:, 2]),
    "steps": lambda X: np.floor(X[:, 0]) + (X[:, 1] > 0.5),
}
kernels = ("gaussian", "matern-3/2", "laplacian", "auto")

# %%
# The first three are told their kernel and choose all else; the last one chooses the kernel
# too.
errors = np.zeros((len(targets), len(kernels)))
for i, f in enumerate(targets.values()):
    y = f(X) + 0.05 * rng.standard_normal(len(X))
    for j, kernel in enumerate(kernels):
        model = KernelRidge(kernel, metric=None, random_state=0).fit(X, y)
        errors[i, j] = np.std(model.predict(T) - f(T)) / np.std(f(T))
print(model.selection_.reason)

figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
for j, kernel in enumerate(kernels):
    ax.bar(
        np.arange(3) + 0.2 * (j - 1.5),
        errors[:, j],
        0.2,
        label=kernel,
        color="black" if kernel == "auto" else f"C{j}",
    )
ax.set_xticks(range(3), list(targets))
ax.set_ylabel("error / deviation of the target")
ax.legend(title="kernel")
plt.show()
