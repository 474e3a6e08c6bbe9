"""
Why positive features in attention?
===================================

Attention divides by a sum of estimated weights. Estimates by cosines may be negative, so that
the sum comes close to zero and the quotient is wild; positive features cannot do that. The
picture has the share of negative estimates of the softmax kernel, and the error of the
attention weights, as queries and keys get longer.
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner import Approximation, kernels, maps

rng = np.random.default_rng(0)
Q, K = rng.standard_normal((2, 60, 16)) / 4
feature_maps = {
    "cosines": maps.Trigonometric(),
    "positive": maps.Positive(),
    "optimal positive": maps.OptimalPositive(),
}
scales = np.linspace(0.5, 3, 6)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name, feature_map in feature_maps.items():
    negative, error = [], []
    for scale in scales:
        X, Y = scale * Q, scale * K
        spec = Approximation(kernels.Softmax(), feature_map).with_width(128).plan(X, Y, rng=0)
        estimates = np.array([spec.draw(16, rng=seed).gram(X, Y) for seed in range(40)])
        exact = spec.kernel(X, Y)
        weights, estimated = (g / g.sum(axis=-1, keepdims=True) for g in (exact, estimates))
        negative.append((estimates < 0).mean())
        distance = np.linalg.norm(estimated - weights, axis=(1, 2)) / np.linalg.norm(weights)
        error.append(np.median(distance))
    lengths = scales * np.linalg.norm(Q, axis=1).mean()
    left.plot(lengths, negative, "o-", label=name)
    right.semilogy(lengths, error, "o-", label=name)
    print(
        f"{name}, mean length {lengths[-1]:.1f}: {negative[-1]:.0%} negative, error of the weights {error[-1]:.2g}"
    )
left.set(xlabel="mean length of queries and keys", ylabel="share of negative estimates")
right.set(
    xlabel="mean length of queries and keys",
    ylabel="median relative error of the weights",
)
left.legend()
plt.show()
