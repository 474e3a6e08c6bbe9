"""One picture of what the couplings do."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...projections import IID, Orthogonal, Projection, Quadrature, Simplex, SimplexPlus
from ...rotations import Haar, Hadamard, StructuredGivens

PANELS: tuple[tuple[str, Projection], ...] = (
    ("independent", IID()),
    ("orthogonal, Haar", Orthogonal(Haar())),
    ("orthogonal, structured Givens", Orthogonal(StructuredGivens())),
    ("simplex, Haar", Simplex(Haar())),
    ("simplex, Hadamard", Simplex(Hadamard(3))),
    ("simplex+, Haar", SimplexPlus(Haar())),
    ("quadrature, simplex vertices", Quadrature(Haar())),
    ("quadrature, orthoplex", Quadrature(Haar(), "orthoplex")),
)


def draw_couplings(path: Path, d: int = 8) -> None:
    """Cosines between the rows of three blocks of each projection, as one figure."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 4, figsize=(12, 6.4), layout="constrained")
    for ax, (title, projection) in zip(axes.flat, PANELS, strict=True):
        W = projection.sample(d, 3 * d, 0).to_dense()
        U = W / np.linalg.norm(W, axis=1, keepdims=True)
        image = ax.imshow(U @ U.T, cmap="RdBu_r", vmin=-1, vmax=1)
        ax.set(title=title, xticks=[], yticks=[])
    figure.colorbar(image, ax=axes, shrink=0.6, label="cosine between two rows")
    figure.suptitle(f"How the rows of W stand to each other: {3 * d} rows in {d} dimensions")
    figure.savefig(path, dpi=120)
    plt.close(figure)
