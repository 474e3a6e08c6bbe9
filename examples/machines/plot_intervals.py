"""
How wide must an interval be?
=============================

``KernelRidge.predict(X, interval=0.9)`` adds the errors that the model made on rows left out
of its fit (the jackknife+). No refit is needed, and nine of ten new values lie inside,
whatever the law of the noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner.learn import KernelRidge

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-3, 3, 250))
f = lambda x: np.sin(2 * x) + 0.3 * x  # noqa: E731
y = f(x) + 0.2 * rng.standard_t(3, len(x))
model = KernelRidge(random_state=0).fit(x[:, None], y)

new = rng.uniform(-3, 3, 4000)
values = f(new) + 0.2 * rng.standard_t(3, len(new))
_, bounds = model.predict(new[:, None], interval=0.9)
covered = np.mean((values >= bounds[:, 0]) & (values <= bounds[:, 1]))
print(f"{covered:.1%} of {len(new)} new values lie inside intervals of 90 %.")

grid = np.linspace(-3.2, 3.2, 200)
figure, ax = plt.subplots(figsize=(8, 3.8), layout="constrained")
ax.plot(x, y, "k.", markersize=3, alpha=0.6, label="training rows")
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
ax.plot(grid, f(grid), "k--", linewidth=1, label="truth")
ax.set_ylim(-3, 3)
ax.legend(ncols=2)
plt.show()
