"""
What does a frame do to an attention head?
==========================================

Queries and keys of trained heads lie away from the origin and have unequal scales; the heads
here are made up in the same way. A frame centres and balances them without changing any score,
and positive features in the frame have a smaller error.
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner import Approximation, kernels, maps
from bochner.projections import Orthogonal

d, kernel = 16, kernels.Softmax()
feature_maps = {
    "FAVOR+": maps.Positive(),
    "FAVOR++": maps.OptimalPositive(),
    "in a frame": maps.Framed(maps.OptimalPositive()),
    "dense": maps.DenseExponential(),
}


def head(seed, n=120):
    """Queries and keys with means away from zero, a few long directions, and unequal scales."""
    rng = np.random.default_rng(seed)
    stretch, scales = rng.permutation(np.geomspace(2.5, 0.4, d)), np.geomspace(0.5, 0.1, d)
    query_mean, key_mean = 0.4 * rng.standard_normal((2, d))
    Q, K = rng.standard_normal((2, n, d)) * scales
    return Q * stretch + query_mean, K / stretch + key_mean


def weight_error(feature_map, Q, K):
    """Relative error of the matrix of attention weights, the median over five draws."""
    exact = kernel(Q, K)
    exact /= exact.sum(axis=1, keepdims=True)
    spec = Approximation(kernel, feature_map, Orthogonal(), n_projections=64).plan(Q, K, rng=0)
    draws = [spec.draw(d, rng=seed).gram(Q, K, normalize=True) for seed in range(5)]
    return float(
        np.median([np.linalg.norm(found - exact) / np.linalg.norm(exact) for found in draws])
    )


heads = [head(seed) for seed in range(6)]
found = {name: [weight_error(m, *pair) for pair in heads] for name, m in feature_maps.items()}
print(
    "Median relative error, 64 rows: "
    + ", ".join(f"{name} {np.median(values):.2f}" for name, values in found.items())
)

# %%
# The first head before and after the frame: the two coordinates with the longest queries and
# the longest keys.
Q, K = heads[0]
frame = Approximation(kernel, feature_maps["in a frame"]).plan(Q, K, rng=0).map.frame
inside = (
    (Q - frame.query_center) @ frame.matrix,
    (K - frame.key_center) @ np.linalg.inv(frame.matrix).T,
)
figure, axes = plt.subplots(
    1, 3, figsize=(8.6, 3.2), layout="constrained", width_ratios=(1, 1, 1.6)
)
for ax, (queries, keys), title in zip(
    axes, ((Q, K), inside), ("a head", "the same in the frame"), strict=False
):
    i, j = np.argsort((queries**2).mean(axis=0))[-1], np.argsort((keys**2).mean(axis=0))[-1]
    j = j if j != i else (i + 1) % d
    ax.plot(queries[:, i], queries[:, j], ".", alpha=0.5, label="queries")
    ax.plot(keys[:, i], keys[:, j], ".", alpha=0.5, label="keys")
    ax.plot(0, 0, "k+", markersize=12)
    ax.set(title=title, aspect="equal", adjustable="datalim")
axes[0].legend(fontsize=8)
for k, values in enumerate(found.values()):
    axes[2].plot(np.full(len(values), k), values, "o", alpha=0.6)
    axes[2].plot([k - 0.25, k + 0.25], [np.median(values)] * 2, color="black")
axes[2].set(
    title="error of the attention weights",
    ylabel="relative error, one point per head",
    yscale="log",
)
axes[2].set_xticks(range(len(found)), list(found), fontsize=9)
plt.show()
