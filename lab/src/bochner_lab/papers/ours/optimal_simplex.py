"""Optimal positive features with simplex rows and fast rotations: what each ingredient brings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue
from bochner.approximation import Approximation

from ..._estimates import Estimate
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import curve, legend, panels
from ..._verdicts import Finding, equal, superior

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAPS = ("positive", "optimal-positive")
ROWS = ("iid", "orthogonal", "simplex", "fast-simplex")


class OptimalSimplex(Experiment):
    """Softmax kernel on normal queries and keys in 64 dimensions, as in one attention head."""

    name = "ours-optimal-simplex"
    paper = "ours"
    item = "Optimal positive x simplex x fast rotation"
    claim = "The gains of optimal positive features and of simplex rows add up, and a fast rotation costs no accuracy."
    methods = (*MAPS, *ROWS)
    profiles = by_profile(
        smoke={"d": 64, "points": 40, "m": 64, "sigmas": (0.05, 0.15), "draws": 30},
        full={"d": 64, "points": 100, "m": 64, "sigmas": (0.02, 0.05, 0.1, 0.15, 0.2, 0.3), "draws": 2000},
    )
    seconds = by_profile(smoke=1, full=250)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per map and rows."""
        return [f"{name} | {rows}" for name in MAPS for rows in ROWS]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Relative Frobenius errors by sigma."""
        name, rows = part.split(" | ")
        X, Y = np.random.default_rng(0).standard_normal((2, p["points"], p["d"]))
        spec = Approximation(catalogue.kernel("softmax"), catalogue.map(name), catalogue.projection(rows), p["m"])
        found = []
        for sigma in p["sigmas"]:
            plan, exact = spec.plan(sigma * X, sigma * Y, 0), np.exp(sigma**2 * X @ Y.T)
            draws = (plan.draw(p["d"], rng).gram(sigma * X, sigma * Y) for _ in range(p["draws"]))
            found.append([np.linalg.norm(gram - exact) / np.linalg.norm(exact) for gram in draws])
        return Estimate.of(np.array(found).T).as_numbers()

    @statement(
        "With optimal positive features, simplex rows are better than orthogonal ones at the smallest sigma (95 % interval)."
    )
    def simplex_helps(self, results: Results) -> Finding:
        """Compare the two."""
        return self._below(results, "optimal-positive | simplex", "optimal-positive | orthogonal", 0)

    @statement(
        "With simplex rows, optimal positive features are better than positive ones at the largest sigma (95 % interval)."
    )
    def optimum_helps(self, results: Results) -> Finding:
        """Compare the two."""
        return self._below(results, "optimal-positive | simplex", "positive | simplex", -1)

    @statement(
        "The errors of fast simplex rows are within 5 % of those of simplex rows at every sigma (95 % intervals)."
    )
    def fast_is_free(self, results: Results) -> Finding:
        """Compare the two."""
        fast, regular = (Estimate.read(results.parts[f"optimal-positive | {r}"]) for r in ("fast-simplex", "simplex"))
        ratio = fast.log().over(regular.log())
        shown = f"Ratios from {np.exp(ratio.mean.min()):.3f} to {np.exp(ratio.mean.max()):.3f}."
        return equal(ratio, float(np.log(1.05)), shown)

    def plot(self, results: Results, figure: Figure) -> None:
        """Errors over sigma."""
        axes = panels(figure, MAPS, "sigma", "relative error")
        for ax, name in zip(axes, MAPS, strict=True):
            for k, rows in enumerate(ROWS):
                curve(ax, results.parameters["sigmas"], Estimate.read(results.parts[f"{name} | {rows}"]), rows, k)
        legend(figure, axes[0])

    def _below(self, results: Results, one: str, other: str, at: int) -> Finding:
        a, b = (Estimate.read(results.parts[name])[at] for name in (one, other))
        return superior(b.over(a), f"{a.mean:.4f} +- {a.error:.4f} against {b.mean:.4f} +- {b.error:.4f}.")
