"""
Simplex or orthogonal rows?
===========================

For positive features, simplex rows have a smaller error than orthogonal ones, and orthogonal
rows a smaller one than independent rows. For cosines, orthogonal rows are best. All errors are
closed forms.
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner import Approximation, kernels, maps
from bochner.projections import IID, Orthogonal, Simplex

d = 16
lengths = np.linspace(0.1, 4, 30)


def mse(feature_map, projection, z):
    """Error of one block, for a pair whose sum (positive features) or difference (cosines) has length z."""
    x = np.eye(1, d) * z / 2
    y = x if isinstance(feature_map, maps.Positive) else -x
    return (
        Approximation(kernels.Gaussian(), feature_map, projection, n_projections=d)
        .mse(x, y)
        .item()
    )


figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, feature_map in zip(axes, (maps.Positive(), maps.Trigonometric()), strict=True):
    for name, projection in {"orthogonal": Orthogonal(), "simplex": Simplex()}.items():
        ratios = [
            mse(feature_map, projection, z) / mse(feature_map, IID(), z) for z in lengths
        ]
        ax.plot(lengths, ratios, label=name)
        print(
            f"{feature_map}, {name} rows, length 1: {np.interp(1, lengths, ratios):.2f} of the error of independent rows"
        )
    ax.axhline(1, color="black", linestyle="--", label="independent")
axes[0].set(
    title="positive features",
    xlabel="|x + y|",
    ylabel="squared error over that of independent rows",
)
axes[1].set(title="cosines", xlabel="|x - y|")
axes[0].legend()
plt.show()
