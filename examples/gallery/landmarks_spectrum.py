"""Landmarks against random features, by spectrum.

Landmarks win where the eigenvalues of the kernel matrix decay fast, random features where they do not. The error of random
features falls as one over the root of the width, whatever the spectrum.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from bochner import Approximation, kernels, maps

DECAYS = {"steep spectrum": 0.02, "medium": 0.3, "flat spectrum": 1.0}


def draw(smoke: bool = False) -> tuple[Figure, str]:
    """Eigenvalues, and errors of the Gram matrix of new rows against the width, for three clouds."""
    widths = (16, 64, 256) if smoke else (16, 32, 64, 128, 256, 512)
    figure = Figure(figsize=(12, 3.4), layout="constrained")
    spectrum, *axes = figure.subplots(1, 4)
    ratios = {}
    for k, (ax, (name, last)) in enumerate(zip(axes, DECAYS.items(), strict=True)):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((700 if smoke else 2000, 16)) * np.geomspace(1, last, 16)
        kernel, held = kernels.Gaussian(2.0), X[-150:]
        values = np.linalg.eigvalsh(kernel(X[:500]))[::-1]
        spectrum.loglog(np.arange(1, 301), values[:300] / values[0], color=f"C{k + 2}", label=name)
        errors = {}
        for title, feature_map in (("landmarks", maps.Landmarks()), ("random features", maps.Trigonometric())):
            errors[title] = [error(kernel, feature_map, width, X[:-150], held) for width in widths]
            ax.loglog(widths, errors[title], "o-", label=title)
        ratios[name] = errors["landmarks"][-1] / errors["random features"][-1]
        ax.set(title=name, xlabel="width", ylim=(1e-4, 4))
        ax.set_xticks((16, 64, 256), (16, 64, 256))
        ax.minorticks_off()
    axes[0].set_ylabel("relative error of the Gram matrix")
    axes[-1].legend()
    spectrum.set(title="eigenvalues", xlabel="index", ylim=(1e-6, 2))
    spectrum.legend(fontsize=8)
    numbers = ", ".join(f"{name} {ratio:.2g}" for name, ratio in ratios.items())
    return figure, f"Error of landmarks over that of random features at width {widths[-1]}: {numbers}."


def error(kernel, feature_map: maps.Map, width: int, X: np.ndarray, held: np.ndarray) -> float:
    """Relative root mean square error of the Gram matrix of rows that the features have not seen."""
    spec = Approximation(kernel, feature_map).with_width(width).plan(X, rng=0)
    return float((spec.mse(held).mean() / (kernel(held) ** 2).mean()) ** 0.5)


if __name__ == "__main__":
    figure, caption = draw()
    figure.savefig("landmarks_spectrum.png", dpi=120)
    print(caption)
