"""
Do orthogonal directions help a search?
=======================================

With the same number of evaluations, an evolution strategy whose directions are orthogonal
reaches lower values than one with independent directions: medians and quartiles over 15
searches on an ellipsoid.
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner.optimize import EvolutionStrategy
from bochner.projections import IID, Orthogonal
from bochner.rotations import StructuredGivens

d, steps = 64, 80


def ellipsoid(X):
    """A quadratic function with curvatures from 0.2 to 1."""
    return X**2 @ np.geomspace(0.2, 1, d)


def search(projection, seed):
    """Values of a search, relative to its start."""
    start = np.random.default_rng(seed).standard_normal(d)
    strategy = EvolutionStrategy(
        start, sigma=0.05, learning_rate=0.15, projection=projection, n_directions=d, rng=seed
    )
    values = []
    for _ in range(steps):
        strategy.tell(ellipsoid(np.asarray(strategy.ask())))
        values.append(ellipsoid(strategy.x) / ellipsoid(start))
    return values


figure, ax = plt.subplots(figsize=(6.5, 4.0), layout="constrained")
evaluations = 2 * d * np.arange(1, steps + 1)
for name, projection in {
    "independent": IID(),
    "orthogonal": Orthogonal(StructuredGivens()),
}.items():
    runs = np.array([search(projection, seed) for seed in range(15)])
    low, middle, high = np.quantile(runs, [0.25, 0.5, 0.75], axis=0)
    ax.semilogy(evaluations, middle, label=name)
    ax.fill_between(evaluations, low, high, alpha=0.25)
    print(
        f"{name} directions: median {middle[-1]:.1e} of the start after {evaluations[-1]:,} evaluations"
    )
ax.set(
    xlabel="evaluations",
    ylabel="value over that at the start",
    title=f"an ellipsoid in {d} dimensions",
)
ax.legend()
plt.show()
