"""
Which sketch for a polynomial kernel?
=====================================

The polynomial kernel of degree 3 has 6545 monomials for 32 columns. TensorSketch and products
of random signs (Maclaurin) replace them by a few hundred features. The errors are closed forms
where the sketch has one, and averages of draws otherwise.
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner import Approximation, NoClosedForm, kernels, maps

rng = np.random.default_rng(0)
X = rng.standard_normal((80, 32))
X /= np.linalg.norm(X, axis=1, keepdims=True)
kernel = kernels.Polynomial(degree=3, offset=1.0)
widths = (64, 128, 256, 512, 1024)
sketches = {"TensorSketch": maps.TensorSketch(), "random Maclaurin": maps.Maclaurin()}


def relative_error(feature_map, width):
    """Relative root mean square error of the Gram matrix."""
    spec = Approximation(kernel, feature_map).with_width(width)
    try:
        errors = spec.mse(X)
    except NoClosedForm:
        errors = np.mean(
            [(spec.draw(32, rng=seed).gram(X) - kernel(X)) ** 2 for seed in range(10)], axis=0
        )
    return float((errors.mean() / (kernel(X) ** 2).mean()) ** 0.5)


figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
for name, feature_map in sketches.items():
    errors = [relative_error(feature_map, width) for width in widths]
    ax.loglog(widths, errors, "o-", label=name)
    print(f"{name}, width {widths[-1]}: relative error {errors[-1]:.3f}")
ax.set(xlabel="width of the features", ylabel="relative error of the Gram matrix")
ax.set_xticks(widths, widths)
ax.minorticks_off()
ax.legend()
plt.show()
