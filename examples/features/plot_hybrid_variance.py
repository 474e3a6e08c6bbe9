"""
Where do hybrid features have no error?
=======================================

Cosines have no error where two unit vectors are equal, exponentials where they are opposite.
Angular hybrid features have none at either end. The relative errors are closed forms, over the
angle between x and y and over their length.
"""

import matplotlib.pyplot as plt
import numpy as np

from bochner import Approximation, kernels, maps
from bochner.projections import IID

angles, lengths = np.linspace(0.02, np.pi - 0.02, 30), np.linspace(0.2, 1.6, 30)
directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
feature_maps = {
    "cosines": maps.Trigonometric(),
    "hyperbolic": maps.Hyperbolic(),
    "angular hybrid": maps.AngularHybrid(),
}

figure, axes = plt.subplots(1, 3, figsize=(8.6, 3.2), sharey=True, layout="constrained")
for ax, (name, feature_map) in zip(axes, feature_maps.items(), strict=True):
    spec = Approximation(kernels.Softmax(), feature_map, IID(), n_projections=64)
    pairs = [(np.array([[r, 0.0]]), r * directions) for r in lengths]
    errors = np.array([np.sqrt(spec.mse(x, Y)[0]) / spec.kernel(x, Y)[0] for x, Y in pairs])
    drawn = ax.contourf(
        np.degrees(angles),
        lengths,
        np.log10(errors),
        levels=np.linspace(-2.2, 1.2, 18),
        extend="both",
    )
    ax.set(title=name, xlabel="angle between x and y, degrees", xticks=(0, 90, 180))
    print(
        f"{name}: largest relative error at length {lengths[-1]:g} is {errors[-1].max():.2g}"
    )
axes[0].set_ylabel("length of x and y")
figure.colorbar(drawn, ax=axes, label="log10 of the relative error")
plt.show()
