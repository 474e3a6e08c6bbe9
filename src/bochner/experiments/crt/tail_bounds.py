"""CRT Theorem 4.2: exponentially small tails of bounded positive features, independent rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._experiment import Experiment, Finding, Results, by_profile, statement
from .._figures import legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TailBounds(Experiment):
    """Exact tails at x = y = 0 with one projection, where the estimate is (1 - 4A)^(d/2) exp(2A |w|^2)."""

    name = "crt-theorem4.2"
    paper = "crt"
    item = "Theorem 4.2, independent rows"
    claim = "With A < 0 the tails of the estimate are bounded by 2 exp(-2 M eps^2 e^(N/2A) (1 - 4A)^(-d/2))."
    methods = ("gerf",)
    deviations = (
        "Exact probabilities in place of a simulation; M = 1, x = y = 0 and eps >= 1, where only the upper tail "
        "remains."
    )
    profiles = by_profile(
        smoke={"cases": ((1, -1023.75), (20, -0.5)), "grid": 200},
        full={"cases": ((1, -0.5), (1, -1023.75), (2, -10.0), (8, -0.5), (20, -0.5), (64, -0.1)), "grid": 4000},
    )
    seconds = by_profile(smoke=0.1, full=1)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per dimension and constant."""
        return [f"d={d} A={A}" for d, A in p["cases"]]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Logarithms of the exact tail and of both bounds, over eps."""
        from scipy.stats import chi2

        d, A = (float(piece.partition("=")[2]) for piece in part.split())
        top = d / 2 * np.log(1 - 4 * A)  # the log of the largest value of the estimate
        eps = np.expm1(np.linspace(np.log(2), max(top, np.log(2) + 1e-9) * (1 - 1e-9), p["grid"]))
        exact = chi2(d).logcdf((top - np.log1p(eps)) / (-2 * A))
        printed, corrected = (np.log(2) - 2 * eps**2 * (1 - 4 * A) ** -power for power in (d / 2, d))
        return {"eps": eps, "exact": exact, "printed": printed, "corrected": corrected}

    @statement("The exact tail is at most the printed bound for every d, A and eps.")
    def as_printed(self, results: Results) -> Finding:
        """Find violations."""
        return self._bounded(results, "printed")

    @statement("The exact tail is at most the bound with (1 - 4A)^(-d) for every d, A and eps.")
    def as_corrected(self, results: Results) -> Finding:
        """Find violations."""
        return self._bounded(results, "corrected")

    def plot(self, results: Results, figure: Figure) -> None:
        """Tails and bounds."""
        axes = panels(figure, list(results.parts), "eps", "log10 of the probability", scale="linear", columns=3)
        for ax, part in zip(axes, results.parts.values(), strict=True):
            for k, name in enumerate(("exact", "printed", "corrected")):
                values = np.array(part[name], dtype=float) / np.log(10)
                ax.semilogx(
                    part["eps"], np.maximum(values, -20), color=f"C{k}", linestyle=("-", ":", "--")[k], label=name
                )
        legend(figure, axes[0])

    def _bounded(self, results: Results, name: str) -> Finding:
        worst = {}
        for case, part in results.parts.items():
            excess = np.array(part["exact"], dtype=float) - np.array(part[name], dtype=float)
            worst[case] = float(np.nanmax(excess))
        text = "; ".join(f"{case}: {np.exp(min(value, 50)):.3g}" for case, value in worst.items())
        return Finding(max(worst.values()) <= 0, f"Largest probability over the bound, {text}.")
