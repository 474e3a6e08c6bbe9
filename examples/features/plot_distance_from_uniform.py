"""
How uniform are fast rotations?
===============================

A rotation should send every vector to a uniform point of the sphere, as a Haar rotation does.
The squared maximum mean discrepancy measures how far it is from that. On an axis, one Hadamard
block is far from uniform; structured Givens rotations are exact, at a fraction of the
operations of a dense matrix.
"""

import matplotlib.pyplot as plt

from bochner.monte_carlo import haar_distance
from bochner.rotations import Butterfly, Haar, Hadamard, Kac, MultiHadamard, StructuredGivens

d = 16
rotations = {
    "one Hadamard block": Hadamard(1),
    "two": Hadamard(2),
    "three": Hadamard(3),
    "multi-Hadamard": MultiHadamard(),
    "Kac's walk": Kac(),
    "butterfly": Butterfly(),
    "structured Givens": StructuredGivens(),
    "Haar": Haar(),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), sharey=True, layout="constrained")
for ax, vector, title in zip(
    axes, ("e1", "generic"), ("an axis", "a generic vector"), strict=True
):
    for name, rotation in rotations.items():
        distance = haar_distance(rotation, d, vector, n=1500, rng=0)
        ax.errorbar(
            rotation.flops(d),
            distance.value,
            2 * distance.standard_error,
            fmt="o",
            capsize=3,
            label=name,
        )
        print(f"{title}, {name}: {distance.value:.4f} +- {distance.standard_error:.4f}")
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_yscale("symlog", linthresh=1e-3)
    ax.set(
        xscale="log",
        xlabel=f"operations of a product, d = {d}",
        title=title,
        yticks=(0, 1e-3, 1e-2, 1e-1),
    )
    ax.set_xticks((100, 200, 400), ("100", "200", "400"))
    ax.minorticks_off()
axes[0].set_ylabel("squared discrepancy from uniform")
axes[1].legend(fontsize=8)
plt.show()
