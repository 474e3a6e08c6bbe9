"""
How wide must an interval be?
=============================

``KernelRidge.predict(X, interval=0.9)`` adds the errors that the model made on rows left out
of its fit (the jackknife+). No refit is needed, and nine of ten new values lie inside,
whatever the law of the noise. Here it predicts the progress of diabetes within a year.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from bochner.learn import KernelRidge

X, y = load_diabetes(return_X_y=True, scaled=False)
inside = []
for seed in range(5):
    parts = train_test_split(X, y, test_size=142, random_state=seed)
    train, new, values, truth = parts
    _, bounds = KernelRidge(random_state=0).fit(train, values).predict(new, interval=0.9)
    inside.append((truth >= bounds[:, 0]) & (truth <= bounds[:, 1]))
print(f"{np.mean(inside):.1%} of {np.size(inside)} new values lie inside intervals of 90 %.")

bmi = X[:, 2:3]
model = KernelRidge(random_state=0).fit(bmi, y)
grid = np.linspace(bmi.min() - 2, bmi.max() + 2, 200)
figure, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
ax.plot(bmi, y, "k.", markersize=3, alpha=0.6, label="patients")
for level, shade in ((0.9, 0.25), (0.5, 0.45)):
    mean, bounds = model.predict(grid[:, None], interval=level)
    ax.fill_between(
        grid,
        bounds[:, 0],
        bounds[:, 1],
        color="C0",
        alpha=shade,
        label=f"{level:.0%} interval",
        linewidth=0,
    )
ax.plot(grid, mean, color="C0", label="prediction")
ax.set(xlabel="body mass index", ylabel="progress of diabetes")
ax.legend(ncols=2, loc="upper left")
plt.show()
