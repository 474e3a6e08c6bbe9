"""
What should I use on this table?
================================

``bochner.compare`` judges our machines and what a user would pick instead on the same folds,
within a budget of seconds, and says what to use, by how much, and in which code.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

import bochner

X, y = load_diabetes(return_X_y=True)
found = bochner.compare(X[:200], y[:200], budget=10, rng=0)
print(found)

# %%
# Errors of all estimators, relative to predicting the mean.
names = [result.name for result in found.results]
errors = [sum(result.errors) / len(result.errors) for result in found.results]
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
ax.barh(names, errors, color=["C1" if name == found.best.name else "C0" for name in names])
ax.invert_yaxis()
ax.set_xlabel(f"{found.measure}, mean of {found.n_folds} folds")
plt.show()
