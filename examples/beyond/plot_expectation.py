"""
Which expectations gain from coupled points?
============================================

Orthogonal or simplex directions cover the sphere more evenly than independent ones. That
helps where a function depends on the direction smoothly: orthogonal points for cosines,
simplex points for exponentials, and neither for the largest coordinate.
``bochner.expectation`` has a standard error from independent blocks, so that the gain can be
read off.
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner import expectation
from bochner.projections import IID, Orthogonal, Simplex

d = 16
functions = {
    "largest coordinate": lambda X: X.max(axis=-1),
    "cos(x.u)": lambda X: np.cos(X @ np.full(d, 0.25)),
    "exp(x.u)": lambda X: np.exp(X @ np.full(d, 0.25)),
}
projections = {"independent": IID(), "orthogonal": Orthogonal(), "simplex": Simplex()}

figure, ax = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
variances = {}
for k, (name, projection) in enumerate(projections.items()):
    found = [
        expectation(f, d, projection=projection, n=d, n_blocks=1500, batched=True, rng=0)
        for f in functions.values()
    ]
    errors = np.array([float(e.standard_error) for e in found])
    variances[name] = errors**2
    ax.bar(
        np.arange(3) + 0.27 * (k - 1), errors**2 / variances["independent"], 0.27, label=name
    )
    print(
        f"{name}: "
        + ", ".join(
            f"{f} {float(e.value):.4f} +- {float(e.standard_error):.4f}"
            for f, e in zip(functions, found, strict=True)
        )
    )
ax.set_xticks(range(3), list(functions))
ax.set_ylabel("variance over that of independent points")
ax.legend()
plt.show()
