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
from ..._verdicts import Finding, equal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAPS = ("positive", "optimal-positive")
FAST = "fast-simplex"
ROWS = ("iid", "orthogonal", "simplex", FAST)


class OptimalSimplex(Experiment):
    """Softmax kernel on normal queries and keys in 64 dimensions, as in one attention head."""

    name = "ours-optimal-simplex"
    paper = "ours"
    item = "Optimal positive x simplex x fast rotation"
    claim = "The gains of optimal positive features and of simplex rows add up, and a fast rotation costs no accuracy."
    methods = (*MAPS, *ROWS)
    deviations = (
        "Errors are roots of the mean squared error over draws and pairs: closed forms, except those of fast rows, which "
        "are simulated. Beyond an error of one rare draws carry it, so fast rows are judged below; previous results "
        "were means over draws at every sigma, which left two statements undecided."
    )
    profiles = by_profile(
        smoke={"d": 64, "points": 40, "m": 64, "sigmas": (0.05, 0.15), "draws": 30},
        full={"d": 64, "points": 100, "m": 64, "sigmas": (0.02, 0.05, 0.1, 0.15, 0.2, 0.3), "draws": 2000},
    )
    seconds = by_profile(smoke=1, full=100)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per map and rows."""
        return [f"{name} | {rows}" for name in MAPS for rows in ROWS]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Squared relative Frobenius errors by sigma."""
        name, rows = part.split(" | ")
        X, Y = np.random.default_rng(0).standard_normal((2, p["points"], p["d"]))
        spec = Approximation(catalogue.kernel("softmax"), catalogue.map(name), catalogue.projection(rows), p["m"])
        found = []
        for sigma in p["sigmas"]:
            plan, exact = spec.plan(sigma * X, sigma * Y, 0), np.exp(sigma**2 * X @ Y.T)
            if rows == FAST:
                draws = (plan.draw(p["d"], rng).gram(sigma * X, sigma * Y) for _ in range(p["draws"]))
                errors = [((gram - exact) ** 2).sum() for gram in draws]
            else:
                errors = [plan.mse(sigma * X, sigma * Y).sum()] * 2  # known: no spread
            found.append(np.array(errors) / (exact**2).sum())
        return Estimate.of(np.array(found).T).as_numbers()

    @statement(
        "With optimal positive features, simplex rows have a lower error than orthogonal ones at every sigma (closed forms)."
    )
    def simplex_helps(self, results: Results) -> Finding:
        """Compare the two."""
        return self._below(results, "optimal-positive | simplex", "optimal-positive | orthogonal")

    @statement(
        "With simplex rows, optimal positive features have a lower error than positive ones at every sigma (closed forms)."
    )
    def optimum_helps(self, results: Results) -> Finding:
        """Compare the two."""
        return self._below(results, "optimal-positive | simplex", "positive | simplex")

    @statement(
        "The errors of fast simplex rows are within 5 % of those of simplex rows, both with optimal positive features, at "
        "every sigma where these are below one (95 % intervals)."
    )
    def fast_is_free(self, results: Results) -> Finding:
        """Compare the two."""
        fast, regular = (self._errors(results, f"optimal-positive | {rows}") for rows in (FAST, "simplex"))
        below_one = regular.mean < 1
        ratio = fast[below_one].log().over(regular[below_one].log())
        shown = f"Ratios from {np.exp(ratio.mean.min()):.3f} to {np.exp(ratio.mean.max()):.3f}."
        return equal(ratio, float(np.log(1.05)), shown)

    def plot(self, results: Results, figure: Figure) -> None:
        """Errors over sigma."""
        axes = panels(figure, MAPS, "sigma", "relative error")
        for ax, name in zip(axes, MAPS, strict=True):
            for k, rows in enumerate(ROWS):
                curve(ax, results.parameters["sigmas"], self._errors(results, f"{name} | {rows}"), rows, k)
        legend(figure, axes[0])

    def _below(self, results: Results, one: str, other: str) -> Finding:
        a, b = (self._errors(results, name).mean for name in (one, other))
        shown = "; ".join(f"{x:.4g} against {y:.4g}" for x, y in zip(a, b, strict=True))
        return Finding(bool((a < b).all()), f"{shown}.")

    @staticmethod
    def _errors(results: Results, part: str) -> Estimate:
        return Estimate.read(results.parts[part]).root()
