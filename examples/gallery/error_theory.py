"""Error against features, with theory on top.

The error of an estimate is known before anything is drawn. Lines are closed forms, points are simulations with their
standard errors, and they agree for independent, orthogonal and simplex rows.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from bochner import kernels, mechanism

WIDTHS = (8, 16, 32, 64, 128, 256)
MECHANISMS = {"rff": "cosines, independent", "orf": "cosines, orthogonal", "simrf": "exponentials, simplex"}


def draw(smoke: bool = False) -> tuple[Figure, str]:
    """Root mean square errors of the Gaussian kernel on digits, predicted and simulated."""
    from sklearn.datasets import load_digits

    X = load_digits().data[: 12 if smoke else 40] / 16
    X -= X.mean(axis=0)
    kernel, draws = kernels.Gaussian(3.0), 20 if smoke else 300
    figure = Figure(figsize=(6.5, 4.2), layout="constrained")
    ax = figure.subplots()
    worst = 0.0
    for k, (name, title) in enumerate(MECHANISMS.items()):
        predicted, simulated, spread = [], [], []
        for width in WIDTHS[:: 2 if smoke else 1]:
            rows = width if name == "simrf" else width // 2
            spec = mechanism(name, kernel, rows)
            predicted.append(spec.mse(X).mean() ** 0.5)
            errors = [((spec.draw(64, rng=seed).gram(X) - kernel(X)) ** 2).mean() for seed in range(draws)]
            simulated.append(np.mean(errors) ** 0.5)
            spread.append(np.std(errors) / draws**0.5 / (2 * simulated[-1]))
        worst = max(worst, *(abs(s - p) / e for s, p, e in zip(simulated, predicted, spread, strict=True)))
        ax.plot(WIDTHS[:: 2 if smoke else 1], predicted, color=f"C{k}", label=title)
        ax.errorbar(WIDTHS[:: 2 if smoke else 1], simulated, 2 * np.array(spread), color=f"C{k}", fmt="o", capsize=3)
    ax.set(xscale="log", yscale="log", xlabel="width of the features", ylabel="root mean square error of an entry")
    ax.set_xticks(WIDTHS, WIDTHS)
    ax.set_yticks((0.02, 0.05, 0.1, 0.2), ("0.02", "0.05", "0.1", "0.2"))
    ax.minorticks_off()
    ax.legend()
    return figure, f"Largest deviation of simulation from theory: {worst:.1f} standard errors."


if __name__ == "__main__":
    figure, caption = draw()
    figure.savefig("error_theory.png", dpi=120)
    print(caption)
