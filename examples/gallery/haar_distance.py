"""How far fast rotations are from uniform.

A fast rotation should send every vector to a uniform point, as a Haar rotation does. The squared maximum mean discrepancy
from the uniform law measures how far it is from that. On an axis, one Hadamard block is far from uniform, and structured
Givens rotations are exact, at a fraction of the operations of a dense matrix.
"""

from __future__ import annotations

from matplotlib.figure import Figure

from bochner.monte_carlo import haar_distance
from bochner.rotations import Butterfly, Haar, Hadamard, Kac, MultiHadamard, StructuredGivens

ROTATIONS = {
    "one Hadamard block": Hadamard(1),
    "two": Hadamard(2),
    "three": Hadamard(3),
    "multi-Hadamard": MultiHadamard(),
    "Kac's walk": Kac(),
    "butterfly": Butterfly(),
    "structured Givens": StructuredGivens(),
    "Haar": Haar(),
}


def draw(smoke: bool = False) -> tuple[Figure, str]:
    """Discrepancies on an axis and on a generic vector, against operations."""
    d, draws = 16, 300 if smoke else 4000
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    found = {}
    for ax, vector, title in zip(axes, ("e1", "generic"), ("an axis", "a generic vector"), strict=True):
        for k, (name, rotation) in enumerate(ROTATIONS.items()):
            distance = haar_distance(rotation, d, vector, n=draws, rng=0)
            found[name, vector] = distance
            spread = 2 * distance.standard_error
            ax.errorbar(rotation.flops(d), distance.value, spread, fmt="o", color=f"C{k}", capsize=3, label=name)
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set_yscale("symlog", linthresh=1e-3)
        ax.set(xscale="log", xlabel=f"operations of a product, d = {d}", title=title, yticks=(0, 1e-3, 1e-2, 1e-1))
        ax.set_xticks((100, 200, 400), ("100", "200", "400"))
        ax.minorticks_off()
    axes[0].set_ylabel("squared discrepancy from uniform")
    axes[1].legend(fontsize=8)
    one, givens = found["one Hadamard block", "e1"], found["structured Givens", "e1"]
    return figure, (
        f"On an axis, d = {d}: one Hadamard block {one.value:.3f}, structured Givens {givens.value:.1e}, with a "
        f"standard error of {givens.standard_error:.1e}."
    )


if __name__ == "__main__":
    figure, caption = draw()
    figure.savefig("haar_distance.png", dpi=120)
    print(caption)
