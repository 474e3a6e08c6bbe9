"""SimRF Figures 8 and 10: accuracy of kernel regression against the number of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate, share
from ..._experiment import Experiment, Finding, Results, by_profile, statement
from ..._figures import curve, legend, panels
from .._kernel_regression import DATA
from ._accuracies import OWN_SPLIT, accuracy, stacked, tuned
from ._couplings import COUPLINGS, LABELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class AccuracyByWidth(Experiment):
    """Eight data sets, sigma tuned for independent features."""

    name = "simrf-fig8"
    paper = "simrf"
    item = "Figures 8 and 10"
    claim = "In kernel regression on eight UCI data sets SimRFs consistently perform best at every number of features."
    data = tuple(DATA.values())
    methods = COUPLINGS
    deviations = OWN_SPLIT
    profiles = by_profile(
        smoke={
            "data": ("banknote", "wifi"),
            "rows": 600,
            "sigmas": (0.03, 3.0, 4),
            "tuning_draws": 2,
            "factors": (1, 4),
            "draws": 20,
        },
        full={
            "data": tuple(DATA),
            "rows": None,
            "sigmas": (0.01, 5.0, 14),
            "tuning_draws": 10,
            "factors": (1, 2, 3, 5, 7, 10),
            "draws": 100,
        },
    )
    seconds = by_profile(smoke=1, full=200)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per data set."""
        return list(p["data"])

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Accuracies by coupling and number of features m = f d."""
        split, sigma, found = tuned(part, p)
        d = split.train.shape[1]
        for name in COUPLINGS:
            points = [accuracy(split, sigma, name, f * d, p["draws"], rng) for f in p["factors"]]
            found[name] = {key: [point[key] for point in points] for key in ("mean", "error")}
        return found

    @statement("SimRFs are nowhere less accurate than ORFs or IIDRFs by more than two standard errors.")
    def never_worse(self, results: Results) -> Finding:
        """Count where they are."""
        iid, orthogonal, simplex = self._all(results)
        worse = simplex.below(orthogonal) | simplex.below(iid)
        return Finding(not worse.any(), f"They are at {share(worse)} points.")

    @statement("SimRFs are more accurate than both at more than half of the points, beyond two standard errors.")
    def mostly_better(self, results: Results) -> Finding:
        """Count where they are."""
        iid, orthogonal, simplex = self._all(results)
        better = orthogonal.below(simplex) & iid.below(simplex)
        return Finding(bool(better.mean() > 0.5), f"They are at {share(better)} points.")

    def plot(self, results: Results, figure: Figure) -> None:
        """One panel per data set; dotted lines are the exact kernel."""
        data, factors = results.parameters["data"], results.parameters["factors"]
        axes = panels(figure, data, "m / d", "accuracy", scale="linear")
        for ax, name in zip(axes, data, strict=True):
            part = results.parts[name]
            for k, coupling in enumerate(COUPLINGS):
                curve(ax, factors, Estimate.read(part[coupling]), LABELS[coupling], k)
            ax.axhline(part["exact"], color="black", linewidth=0.8, linestyle=":")
        legend(figure, axes[0])

    def _all(self, results: Results) -> list[Estimate]:
        return [stacked(results, results.parameters["data"], name) for name in COUPLINGS]
