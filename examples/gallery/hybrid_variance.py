"""The variance surface of hybrid features.

Cosines have no error where two unit vectors are equal, exponentials where they are opposite, and angular hybrid features
have none at both ends. The relative errors are closed forms, over the angle between x and y and over their length.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from bochner import Approximation, kernels, maps
from bochner.projections import IID

MAPS = {"cosines": maps.Trigonometric(), "hyperbolic": maps.Hyperbolic(), "angular hybrid": maps.AngularHybrid()}


def draw(smoke: bool = False) -> tuple[Figure, str]:
    """Three surfaces of the base-ten logarithm of the relative root mean square error, at one number of rows."""
    n = 8 if smoke else 40
    angles, lengths = np.linspace(0.02, np.pi - 0.02, n), np.linspace(0.2, 1.6, n)
    surfaces = {name: surface(m, angles, lengths) for name, m in MAPS.items()}
    levels = np.linspace(-2.2, 1.2, 18)
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    for ax, (name, errors) in zip(axes, surfaces.items(), strict=True):
        drawn = ax.contourf(np.degrees(angles), lengths, errors, levels=levels, cmap="viridis", extend="both")
        ax.set(title=name, xlabel="angle between x and y, degrees", xticks=(0, 90, 180))
    axes[0].set_ylabel("length of x and y")
    figure.colorbar(drawn, ax=axes, label="log10 of the relative error")
    worst = {name: 10 ** errors[-1].max() for name, errors in surfaces.items()}
    numbers = ", ".join(f"{name} {value:.2g}" for name, value in worst.items())
    return figure, f"Largest relative error over the angle at length {lengths[-1]:g}, 64 rows: {numbers}."


def surface(feature_map: maps.Map, angles: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Closed-form errors of the softmax kernel at pairs of one length, one row per length."""
    spec = Approximation(kernels.Softmax(), feature_map, IID(), n_projections=64)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    errors = []
    for r in lengths:
        x, Y = np.array([[r, 0.0]]), r * directions
        errors.append(np.log10(np.sqrt(spec.mse(x, Y)[0]) / spec.kernel(x, Y)[0]))
    return np.array(errors)


if __name__ == "__main__":
    figure, caption = draw()
    figure.savefig("hybrid_variance.png", dpi=120)
    print(caption)
