"""QBF Propositions 2.1 and 2.2: bounds on the variance of a rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue
from bochner.extending import spherical_radial_variance

from ..._estimates import Estimate
from ..._experiment import Experiment, Results, by_profile, printed, statement
from ..._figures import legend, panels
from ..._verdicts import Finding, agreement

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class VarianceBounds(Experiment):
    """The exact variance for the Gaussian kernel at x = -y, |x| = l, and what the propositions allow."""

    name = "qbf-proposition2.1"
    paper = "qbf"
    item = "Propositions 2.1 and 2.2"
    claim = (
        "A randomly rotated rule is unbiased, its variance has the bounds of Propositions 2.1 and 2.2, and a radius for "
        "each vertex lowers it."
    )
    methods = ("qbf-h",)
    deviations = (
        "Rotations are Haar, and the weight at the origin keeps its sign; resampling it, as the paper does, is biased. "
        "The statement on radii, which Section 2 claims, was added after a run that did not have it."
    )
    profiles = by_profile(
        smoke={"d": (8, 64), "l": (0.05, 2.0, 30), "draws": 1500, "simulated": (0.5, 1.0)},
        full={"d": (4, 8, 16, 64, 256), "l": (0.02, 3.0, 200), "draws": 20_000, "simulated": (0.25, 0.5, 1.0)},
    )
    seconds = by_profile(smoke=1, full=13)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per dimension, and a simulation in eight."""
        return [*(f"d={d}" for d in p["d"]), "simulation"]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Exact variances and bounds; or means and variances of drawn rules."""
        if part == "simulation":
            return self._simulate(np.array(p["simulated"]), p["draws"], rng)
        d, l = int(part[2:]), np.geomspace(*p["l"])
        first, second, third = printed("qbf", "proposition2.1")["constants"]
        # f(w) = cos(w.(x - y)) = g(z1, z2) with all fourth and second derivatives bounded by one
        bound = first * l**8 * d / ((d + 1) * (d + 2)) + second * l**6 / (d * (d + 1) * (d + 2))
        bound = bound + third * l**4 / ((d + 1) * (d**2 - 4))
        exact = spherical_radial_variance((2 * l) ** 2, d)
        shared = spherical_radial_variance((2 * l) ** 2, d, radii="shared")
        return {"l": l, "exact": exact, "one radius": shared, "proposition 2.1": bound, "proposition 2.2": 4 / (d - 2)}

    @staticmethod
    def _simulate(l: np.ndarray, draws: int, rng: np.random.Generator, d: int = 8) -> dict[str, Any]:
        spec = catalogue.mechanism("qbf-h", n_projections=d + 1)
        X = np.zeros((len(l), d))
        X[:, 0], X[:, 1] = 0.6 * l, 0.8 * l
        exact = np.exp(-2 * l**2)
        values = np.array([np.diag(spec.draw(d, rng).gram(X, -X)) for _ in range(draws)])
        mean, variance = Estimate.of(values), Estimate.of((values - exact) ** 2)
        return {
            "mean": mean.as_numbers(),
            "variance": variance.as_numbers(),
            "kernel": exact,
            "exact": spherical_radial_variance((2 * l) ** 2, d),
        }

    @statement(
        "Rules are unbiased: simulated means agree with the kernel within four standard errors, and to a tenth at more than "
        "half of the points."
    )
    def unbiased(self, results: Results) -> Finding:
        """Compare them."""
        part = results.parts["simulation"]
        return agreement(Estimate.read(part["mean"]), part["kernel"])

    @statement(
        "Simulated variances agree with the exact formula within four standard errors, and to a tenth at more than half of "
        "the points."
    )
    def exact(self, results: Results) -> Finding:
        """Compare them."""
        part = results.parts["simulation"]
        return agreement(Estimate.read(part["variance"]), part["exact"])

    @statement("Proposition 2.1: the exact variance is at most the printed bound for every d and l.")
    def first(self, results: Results) -> Finding:
        """The largest ratio."""
        ratios = {}
        for name, part in results.parts.items():
            if name != "simulation":
                ratios[name] = float(np.max(np.divide(part["exact"], part["proposition 2.1"])))
        text = ", ".join(f"{name}: {ratio:.2f}" for name, ratio in ratios.items())
        return Finding(max(ratios.values()) <= 1, f"Largest variance over the bound, {text}.")

    @statement("Proposition 2.2: the exact variance is at most 4/(d - 2) for every d and l.")
    def second(self, results: Results) -> Finding:
        """The largest ratio."""
        parts = [part for name, part in results.parts.items() if name != "simulation"]
        worst = max(float(np.max(part["exact"])) / part["proposition 2.2"] for part in parts)
        return Finding(worst <= 1, f"The largest variance is {worst:.3f} of the bound.")

    @statement("A radius for each vertex gives a lower exact variance than one for a rule (Eq. 5), for every d and l.")
    def own_radii(self, results: Results) -> Finding:
        """The range of the ratios."""
        parts = [part for name, part in results.parts.items() if name != "simulation"]
        ratios = np.array([np.divide(part["exact"], part["one radius"]) for part in parts])
        return Finding(
            bool((ratios < 1).all()), f"Its variance is {ratios.min():.3f} to {ratios.max():.3f} of that with one."
        )

    def plot(self, results: Results, figure: Figure) -> None:
        """Variances and bounds."""
        names = [name for name in results.parts if name != "simulation"]
        axes = panels(figure, names, "l", "variance of one rule")
        for ax, name in zip(axes, names, strict=True):
            part = results.parts[name]
            ax.loglog(part["l"], part["exact"], color="C0", label="exact")
            ax.loglog(part["l"], part["proposition 2.1"], color="C1", linestyle="--", label="Proposition 2.1")
            ax.axhline(part["proposition 2.2"], color="C2", linestyle=":", label="Proposition 2.2")
        legend(figure, axes[0])
