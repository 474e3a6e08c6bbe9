"""
Are two variables independent?
==============================

Correlation sees straight lines only. ``hsic_test`` sees any dependence, in time linear in the
rows, and rejects no more often than its level where there is none.
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner.statistics import hsic_test

rng = np.random.default_rng(0)
x, e = rng.uniform(-1, 1, 300), rng.standard_normal(300)
pairs = {
    "independent": (x, e),
    "a line": (x, x + e),
    "a parabola": (x, x**2 + 0.15 * e),
    "a circle": (np.cos(3 * x) + 0.2 * e, np.sin(3 * x) + 0.2 * rng.standard_normal(300)),
}
figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
for ax, (name, (a, b)) in zip(axes, pairs.items(), strict=True):
    p = hsic_test(a, b, rng=0).p_value
    ax.plot(a, b, ".", markersize=4)
    ax.set(
        title=f"{name}\ncorrelation {np.corrcoef(a, b)[0, 1]:.2f}, p = {p:.3f}",
        xticks=(),
        yticks=(),
    )
    print(f"{name}: p = {p:.3f}")
plt.show()
