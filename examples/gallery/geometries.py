"""Geometries in three dimensions.

Independent directions may nearly coincide; the directions of a coupled block cannot. Each picture shows one block of
directions in three dimensions, and the titles have the smallest angle between two of them.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from bochner.projections import IID, Orthogonal, Quadrature, Simplex

BLOCKS = {
    "independent": (IID(), 3),
    "orthogonal": (Orthogonal(), 3),
    "simplex": (Simplex(), 3),
    "simplex quadrature": (Quadrature(vertices="simplex"), 4),
    "orthoplex quadrature": (Quadrature(vertices="orthoplex"), 3),
}


def draw(smoke: bool = False) -> tuple[Figure, str]:
    """Arrows of one block for each geometry; reflected nodes of quadratures are dashed."""
    figure = Figure(figsize=(13, 3.1))
    angles = {}
    for k, (name, (projection, rows)) in enumerate(BLOCKS.items()):
        W = projection.sample(3, rows, rng=1).to_dense()
        U = W / np.linalg.norm(W, axis=1, keepdims=True)
        angles[name] = float(np.degrees(np.arccos(np.clip(U @ U.T - 3 * np.eye(rows), -1, 1).max())))
        ax = figure.add_subplot(1, len(BLOCKS), k + 1, projection="3d")
        sphere(ax)
        for u in U:
            ax.quiver(0, 0, 0, *u, color="C0", linewidth=2.2, arrow_length_ratio=0.15)
            if projection.reflected:
                ax.quiver(0, 0, 0, *-u, color="C1", linewidth=1.2, linestyle="--", arrow_length_ratio=0.15)
        ax.set_title(f"{name}\n{angles[name]:.0f} degrees", fontsize=10)
    figure.subplots_adjust(left=0, right=1, bottom=0, top=0.85, wspace=0)
    return figure, "Smallest angles: " + ", ".join(
        f"{name} {angle:.0f}" for name, angle in angles.items()
    ) + " degrees."


def sphere(ax) -> None:
    """A transparent unit sphere without axes around it."""
    u, v = np.mgrid[0 : 2 * np.pi : 40j, 0 : np.pi : 20j]
    ax.plot_surface(np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v), alpha=0.12, color="grey", linewidth=0)
    ax.set_box_aspect((1, 1, 1), zoom=1.5)
    ax.set_axis_off()


if __name__ == "__main__":
    figure, caption = draw()
    figure.savefig("geometries.png", dpi=120)
    print(caption)
