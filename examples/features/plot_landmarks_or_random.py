"""
Landmarks or random features?
=============================

Landmarks (Nystrom features) win where the eigenvalues of the kernel matrix decay fast, random
features where they do not: the error of random features falls as one over the root of the
width, whatever the spectrum. Three tables of scikit-learn: one whose columns have very different
scales, and two standardised ones. Errors are those of rows that neither has seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from bochner import Approximation, kernels, maps

kernel, widths = kernels.Gaussian(lengthscale=0.5), (16, 32, 64, 128, 256)


def relative_error(feature_map, width, X, held_out):
    """Relative root mean square error of the Gram matrix of rows that the features have not seen."""
    spec = Approximation(kernel, feature_map).with_width(width).plan(X, rng=0)
    return float((spec.mse(held_out).mean() / (kernel(held_out) ** 2).mean()) ** 0.5)


figure, ((spectrum, *first), rest) = plt.subplots(
    2, 2, figsize=(7.4, 5.4), layout="constrained"
)
axes = [*first, *rest]
tables = {
    "breast cancer": load_breast_cancer,
    "diabetes": load_diabetes,
    "digits": load_digits,
}
for color, (ax, (name, table)) in enumerate(zip(axes, tables.items(), strict=True)):
    X = np.random.default_rng(0).permutation(table().data)[:440]
    X = X - X.mean(axis=0)
    if name == "digits":  # with all pixels alike, no direction carries much: a flat spectrum
        X /= np.maximum(X.std(axis=0), 1e-9)
    X /= np.sqrt((X**2).sum(axis=1).mean())
    X, held_out = X[:-100], X[-100:]
    values = np.linalg.eigvalsh(kernel(X))[::-1]
    spectrum.loglog(
        np.arange(1, 301), values[:300] / values[0], color=f"C{color + 2}", label=name
    )
    for title, feature_map in {
        "landmarks": maps.Landmarks(),
        "random features": maps.Trigonometric(),
    }.items():
        errors = [relative_error(feature_map, width, X, held_out) for width in widths]
        ax.loglog(widths, errors, "o-", label=title)
        print(f"{name}, {widths[-1]} {title}: relative error {errors[-1]:.2g}")
    ax.set(title=name, xlabel="width", ylim=(2e-3, 4))
    ax.set_xticks((16, 64, 256), (16, 64, 256))
    ax.minorticks_off()
for ax in (axes[0], axes[1]):
    ax.set_ylabel("error of the Gram matrix")
axes[-1].legend()
spectrum.set(title="eigenvalues", xlabel="index", ylim=(1e-6, 2))
spectrum.legend()
plt.show()
