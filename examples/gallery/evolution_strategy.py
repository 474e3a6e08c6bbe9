"""An evolution strategy with orthogonal directions.

With the same number of evaluations, an evolution strategy whose directions are orthogonal reaches lower values than one
with independent directions.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from bochner.optimize import EvolutionStrategy
from bochner.projections import IID, Orthogonal
from bochner.rotations import StructuredGivens

D = 64
DIRECTIONS = {"independent": IID(), "orthogonal": Orthogonal(StructuredGivens())}


def draw(smoke: bool = False) -> tuple[Figure, str]:
    """Values against evaluations, medians and quartiles over seeds."""
    seeds, steps = (3, 20) if smoke else (20, 120)
    figure = Figure(figsize=(6.5, 4.0), layout="constrained")
    ax = figure.subplots()
    ends = {}
    for name, projection in DIRECTIONS.items():
        runs = np.array([run(projection, seed, steps) for seed in range(seeds)])
        low, middle, high = np.quantile(runs, [0.25, 0.5, 0.75], axis=0)
        evaluations = 2 * D * np.arange(1, steps + 1)
        ax.semilogy(evaluations, middle, label=name)
        ax.fill_between(evaluations, low, high, alpha=0.25)
        ends[name] = middle[-1]
    ax.set(xlabel="evaluations", ylabel="value over that at the start", title=f"an ellipsoid in {D} dimensions")
    ax.legend()
    numbers = ", ".join(f"{name} {value:.2g}" for name, value in ends.items())
    return figure, f"Median value after {2 * D * steps:,} evaluations, relative to the start: {numbers}."


def run(projection, seed: int, steps: int) -> list[float]:
    """Values of a search, relative to its start."""
    start = np.random.default_rng(seed).standard_normal(D)
    strategy = EvolutionStrategy(start, sigma=0.05, learning_rate=0.15, projection=projection, n_directions=D, rng=seed)
    values = []
    for _ in range(steps):
        strategy.tell(ellipsoid(np.asarray(strategy.ask())))
        values.append(ellipsoid(strategy.x) / ellipsoid(start))
    return values


def ellipsoid(X: np.ndarray) -> np.ndarray:
    """A quadratic function with curvatures from 0.2 to 1."""
    return X**2 @ np.geomspace(0.2, 1, D)


if __name__ == "__main__":
    figure, caption = draw()
    figure.savefig("evolution_strategy.png", dpi=120)
    print(caption)
