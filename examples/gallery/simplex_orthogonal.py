"""Simplex against orthogonal rows.

For positive features, simplex rows have a smaller error than orthogonal ones, and orthogonal rows a smaller one than
independent rows; for cosines, orthogonal rows are best. All errors are closed forms.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from bochner import Approximation, kernels, maps
from bochner.projections import IID, Orthogonal, Simplex

D = 16
COUPLINGS = {"orthogonal": Orthogonal(), "simplex": Simplex()}
MAPS = {"positive features": maps.Positive(), "cosines": maps.Trigonometric()}


def draw(smoke: bool = False) -> tuple[Figure, str]:
    """Mean squared errors over those of independent rows, against the length that the map depends on."""
    lengths = np.linspace(0.1, 4, 6 if smoke else 40)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    found = {}
    for ax, (title, feature_map) in zip(axes, MAPS.items(), strict=True):
        for name, projection in COUPLINGS.items():
            ratios = [error(feature_map, projection, z) / error(feature_map, IID(), z) for z in lengths]
            found[title, name] = float(np.interp(1.0, lengths, ratios))
            ax.plot(lengths, ratios, label=name, color={"orthogonal": "C1", "simplex": "C2"}[name])
        ax.axhline(1, color="C0", linestyle="--", label="independent")
        ax.set(title=title, xlabel="|x + y|" if title[0] == "p" else "|x - y|")
    axes[0].set_ylabel("squared error over that of independent rows")
    axes[0].legend()
    numbers = ", ".join(f"{name} {ratio:.2f} ({title})" for (title, name), ratio in found.items())
    return figure, f"Squared errors over those of independent rows at length 1, d = {D}: {numbers}."


def error(feature_map: maps.Map, projection, z: float) -> float:
    """Mean squared error of one block, for a pair whose sum (positive features) or difference (cosines) has length z."""
    x = np.eye(1, D) * z / 2
    y = x if isinstance(feature_map, maps.Positive) else -x
    return Approximation(kernels.Gaussian(), feature_map, projection, n_projections=D).mse(x, y).item()


if __name__ == "__main__":
    figure, caption = draw()
    figure.savefig("simplex_orthogonal.png", dpi=120)
    print(caption)
