"""
How do the directions of a block differ?
========================================

Independent directions may nearly coincide; the directions of a coupled block cannot. Each
picture shows one block in three dimensions, with the smallest angle between two of its
directions. Quadrature rules also use the reflected nodes (dashed).
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner.projections import IID, Orthogonal, Quadrature, Simplex

blocks = {
    "independent": (IID(), 3),
    "orthogonal": (Orthogonal(), 3),
    "simplex": (Simplex(), 3),
    "simplex rule": (Quadrature(vertices="simplex"), 4),
    "orthoplex rule": (Quadrature(vertices="orthoplex"), 3),
}
longitude, latitude = np.mgrid[0 : 2 * np.pi : 40j, 0 : np.pi : 20j]
sphere = (
    np.cos(longitude) * np.sin(latitude),
    np.sin(longitude) * np.sin(latitude),
    np.cos(latitude),
)

figure, axes = plt.subplots(1, 5, figsize=(9, 2.5), subplot_kw={"projection": "3d"})
for ax, (name, (projection, rows)) in zip(axes, blocks.items(), strict=True):
    W = projection.sample(3, rows, rng=1).to_dense()
    U = W / np.linalg.norm(W, axis=1, keepdims=True)
    ax.plot_surface(*sphere, alpha=0.12, color="grey", linewidth=0)
    for u in U:
        ax.quiver(0, 0, 0, *u, color="C0", linewidth=2.2, arrow_length_ratio=0.15)
        if projection.reflected:
            ax.quiver(
                0,
                0,
                0,
                *-u,
                color="C1",
                linewidth=1.2,
                linestyle="--",
                arrow_length_ratio=0.15,
            )
    angle = np.degrees(np.arccos(np.clip(U @ U.T - 3 * np.eye(rows), -1, 1).max()))
    ax.set_title(f"{name}\n{angle:.0f} degrees", fontsize=10)
    ax.set_box_aspect((1, 1, 1), zoom=1.5)
    ax.set_axis_off()
figure.subplots_adjust(left=0, right=1, bottom=0, top=0.82, wspace=0)
plt.show()
