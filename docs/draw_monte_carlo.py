"""Draws the pictures of the guides to optimisation and expectations: ``python docs/draw_monte_carlo.py``.

Lines are closed forms, or guides to the eye where there are none; points are simulations with fixed seeds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

import bochner
from bochner import extending
from bochner.optimize import smoothed_gradient
from bochner.projections import IID, Orthogonal, Projection, Quadrature
from bochner.rotations import Haar

DOCS = Path(__file__).parent
plt.rcParams |= {"svg.hashsalt": "bochner", "svg.fonttype": "none", "font.size": 9}


def gradient_error(projection: Projection, slope: np.ndarray, n: int, repeats: int = 200) -> float:
    """Mean squared error of antithetic gradients of a linear function, over the squared norm of the gradient."""
    options: dict[str, Any] = {"sigma": 0.1, "n_directions": n, "projection": projection, "batched": True}
    errors = [
        smoothed_gradient(lambda X: X @ slope, np.zeros(len(slope)), rng=seed, **options).gradient - slope
        for seed in range(repeats)
    ]
    return float((np.square(errors)).sum(axis=1).mean() / (slope @ slope))


def draw_gradients(d: int = 32) -> None:
    """Errors of gradients against the number of directions."""
    slope = np.random.default_rng(0).standard_normal(d)
    counts, few = np.arange(1, 2 * d + 1), np.array([2, 4, 8, 16, 24, 32, 40, 48, 64])
    laws = {
        "independent": (IID(), [extending.smoothing_gradient_mse(slope, n) for n in counts]),
        "orthogonal": (
            Orthogonal(),
            [extending.smoothing_gradient_mse(slope, n, coupling="orthogonal") for n in counts],
        ),
        "orthoplex nodes": (
            Quadrature(Haar(), "orthoplex"),
            [extending.fixed_length_gradient_mse(slope, n) for n in counts],
        ),
    }
    figure, ax = plt.subplots(figsize=(6, 3.2))
    for k, (name, (projection, closed)) in enumerate(laws.items()):
        ax.plot(counts, np.array(closed) / (slope @ slope), color=f"C{k}", label=f"{name}, closed form")
        ax.plot(few, [gradient_error(projection, slope, n) for n in few], "o", color=f"C{k}", markersize=4)
    ax.set(yscale="log", ylim=(0.02, 40), xlabel=f"directions (d = {d})", ylabel="relative squared error")
    ax.legend()
    save(figure, "gradient_error.svg")


def draw_slices(d: int = 16) -> None:
    """Errors of the sliced Wasserstein distance against the number of slices."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((200, d)), rng.standard_normal((200, d)) * np.linspace(0.5, 2, d) + 0.5

    def slices(U: np.ndarray) -> Any:
        return ((np.sort(X @ U.T, axis=0) - np.sort(Y @ U.T, axis=0)) ** 2).mean(axis=0)

    counts = np.array([2, 4, 8, 16, 32, 64])
    figure, ax = plt.subplots(figsize=(6, 3.2))
    for k, (name, projection) in enumerate({"independent": IID(), "orthogonal": Orthogonal()}.items()):
        deviations = []
        for n in counts:
            found = bochner.expectation(
                slices, d, law="sphere", projection=projection, n=int(n), n_blocks=300, batched=True, rng=0
            )
            deviations.append(found.standard_error * np.sqrt(found.n_blocks) / found.value)
        ax.plot(counts, deviations, "o-", color=f"C{k}", markersize=4, label=f"{name} slices")
    ax.set(xscale="log", yscale="log", xlabel=f"slices (d = {d})", ylabel="relative deviation")
    ax.set_xticks(counts, counts.astype(str))
    ax.minorticks_off()
    ax.legend()
    save(figure, "sliced_wasserstein.svg")


def save(figure: Any, name: str) -> None:
    """Write a picture without the time at which it was made."""
    figure.tight_layout()
    figure.savefig(DOCS / name, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    draw_gradients()
    draw_slices()
