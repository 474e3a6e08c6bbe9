"""What a frame does to attention heads.

Queries and keys of trained heads lie away from the origin and have unequal scales; the heads here are made up in the same
way. A frame centres and balances them exactly, and positive features in the frame have a smaller error of the attention
weights than in the coordinates of the model.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from bochner import Approximation, kernels, maps
from bochner.projections import Orthogonal

MAPS = {
    "FAVOR+": maps.Positive(),
    "FAVOR++": maps.OptimalPositive(),
    "in a frame": maps.Framed(maps.OptimalPositive()),
    "dense": maps.DenseExponential(),
}


def draw(smoke: bool = False) -> tuple[Figure, str]:
    """One head before and after the frame, and errors of attention weights for several heads."""
    heads = [head(seed, 60 if smoke else 200) for seed in range(2 if smoke else 8)]
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    before, after, errors = figure.subplots(1, 3, width_ratios=(1, 1, 1.6))
    X, Y = heads[0]
    frame = Approximation(kernels.Softmax(), maps.Framed(maps.OptimalPositive())).plan(X, Y, rng=0).map.frame
    clouds(before, X, Y, "queries and keys of a head")
    inside = (X - frame.query_center) @ frame.matrix, (Y - frame.key_center) @ np.linalg.inv(frame.matrix).T
    clouds(after, *inside, "the same in the frame")
    found = {name: np.array([weight_error(m, *pair) for pair in heads]) for name, m in MAPS.items()}
    for k, (_, values) in enumerate(found.items()):
        errors.plot(np.full(len(values), k), values, "o", alpha=0.6)
        errors.plot([k - 0.25, k + 0.25], [np.median(values)] * 2, color="black")
    errors.set(title="error of the attention weights", ylabel="relative error, one point per head", yscale="log")
    errors.set_xticks(range(len(found)), list(found), fontsize=9)
    medians = ", ".join(f"{name} {np.median(values):.2f}" for name, values in found.items())
    return figure, f"Median relative error of the weights over heads, 64 rows: {medians}."


def head(seed: int, n: int, d: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys of a made-up head: means away from zero, a few long directions, and unequal scales."""
    rng = np.random.default_rng(seed)
    stretch = rng.permutation(np.geomspace(2.5, 0.4, d))
    mean_q, mean_k = 0.4 * rng.standard_normal((2, d))
    scales = np.geomspace(0.5, 0.1, d)
    return rng.standard_normal((n, d)) * scales * stretch + mean_q, rng.standard_normal(
        (n, d)
    ) * scales / stretch + mean_k


def clouds(ax, X: np.ndarray, Y: np.ndarray, title: str) -> None:
    """Two coordinates of queries and keys: those with the longest queries and the longest keys."""
    i, j = np.argmax((X**2).mean(axis=0)), np.argmax((Y**2).mean(axis=0))
    j = j if j != i else (i + 1) % X.shape[1]
    for points, name in ((X, "queries"), (Y, "keys")):
        ax.plot(points[:, i], points[:, j], ".", alpha=0.5, label=name)
    ax.plot(0, 0, "k+", markersize=12)
    ax.set(title=title, aspect="equal", adjustable="datalim")
    ax.legend(fontsize=8)


def weight_error(feature_map: maps.Map, X: np.ndarray, Y: np.ndarray) -> float:
    """Relative error of the matrix of attention weights, the median over five draws."""
    exact = kernels.Softmax()(X, Y)
    exact /= exact.sum(axis=1, keepdims=True)
    spec = Approximation(kernels.Softmax(), feature_map, Orthogonal(), n_projections=64).plan(X, Y, rng=0)
    draws = [spec.draw(X.shape[1], rng=seed).gram(X, Y, normalize=True) for seed in range(5)]
    return float(np.median([np.linalg.norm(found - exact) / np.linalg.norm(exact) for found in draws]))


if __name__ == "__main__":
    figure, caption = draw()
    figure.savefig("frame_heads.png", dpi=120)
    print(caption)
