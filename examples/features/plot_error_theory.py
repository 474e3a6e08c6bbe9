"""
Is the predicted error the measured one?
========================================

``spec.mse`` has the error of an estimate before anything is drawn. Lines are closed forms,
points are simulations with two standard errors; they agree for independent, orthogonal and
simplex rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from bochner import kernels, mechanism

X = load_digits().data[:30] / 16
X -= X.mean(axis=0)
kernel = kernels.Gaussian(lengthscale=3.0)
widths = (8, 16, 32, 64, 128, 256)
mechanisms = {
    "rff": "cosines, independent",
    "orf": "cosines, orthogonal",
    "simrf": "exponentials, simplex",
}

# %%
# Cosines have two features per row of W, exponentials one.
figure, ax = plt.subplots(figsize=(6.5, 4.2), layout="constrained")
worst = 0.0
for color, (name, title) in enumerate(mechanisms.items()):
    specs = [
        mechanism(name, kernel, width if name == "simrf" else width // 2) for width in widths
    ]
    predicted = np.array([spec.mse(X).mean() for spec in specs])
    errors = np.array(
        [
            [((spec.draw(64, rng=seed).gram(X) - kernel(X)) ** 2).mean() for seed in range(60)]
            for spec in specs
        ]
    )
    mean, spread = errors.mean(axis=1), errors.std(axis=1) / 60**0.5
    worst = max(worst, np.abs((mean - predicted) / spread).max())
    ax.plot(widths, predicted**0.5, color=f"C{color}", label=title)
    ax.errorbar(widths, mean**0.5, spread / mean**0.5, color=f"C{color}", fmt="o", capsize=3)
ax.set(
    xscale="log",
    yscale="log",
    xlabel="width of the features",
    ylabel="root mean square error of an entry",
)
ax.set_xticks(widths, widths)
ax.set_yticks((0.02, 0.05, 0.1, 0.2), ("0.02", "0.05", "0.1", "0.2"))
ax.minorticks_off()
ax.legend()
print(
    f"Largest deviation of a simulation from theory: {worst:.1f} standard errors, in {len(mechanisms) * len(widths)} cases."
)
plt.show()
