"""SimRF Figures 8 and 10: accuracy of kernel regression against the number of features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate, share
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import curve, legend, panels
from ..._verdicts import Finding, interval, mostly_superior, not_worse, superior
from .._kernel_regression import DATA
from ._accuracies import OWN_SPLIT, compared, gain, tuned
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
    deviations = f"{OWN_SPLIT} Chess, with 22726 training rows, has a tenth of the draws."
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
            "draws": 3000,
        },
    )
    seconds = by_profile(smoke=1, full=2100)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per data set."""
        return list(p["data"])

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Accuracies by coupling and number of features m = f d, and differences of couplings."""
        split, sigma, found = tuned(part, p)
        d = split.train.shape[1]
        draws = p["draws"] // 10 if part == "chess" else p["draws"]
        points = [compared(split, sigma, COUPLINGS, f * d, draws, rng) for f in p["factors"]]
        return found | {
            name: {key: [point[name][key] for point in points] for key in ("mean", "error")} for name in points[0]
        }

    @statement(
        "SimRFs are nowhere less accurate than ORFs or IIDRFs by more than 0.01 (95 % intervals of paired draws)."
    )
    def never_worse(self, results: Results) -> Finding:
        """Count where they are."""
        gains = Estimate.stack(self._gains(results))
        shown = f"Within 0.01 in {share(interval(gains)[0] > -0.01)} comparisons"
        return not_worse(gains, 0.01, f"{shown}, the largest loss is {-gains.mean.min():.4f}.")

    @statement("SimRFs are more accurate than both at more than half of the points (95 % intervals of paired draws).")
    def mostly_better(self, results: Results) -> Finding:
        """Count where they are."""
        over_orthogonal, over_iid = self._gains(results)
        first = interval(over_orthogonal)[0] < interval(over_iid)[0]
        gains = Estimate(
            np.where(first, over_orthogonal.mean, over_iid.mean), np.where(first, over_orthogonal.error, over_iid.error)
        )
        low, high = interval(gains)
        return mostly_superior(gains, f"They are at {share(low > 0)} points, and less accurate at {share(high < 0)}.")

    @statement(
        "The mean accuracy of SimRFs over the data sets is above those of ORFs and of IIDRFs at every number of features "
        "(95 % intervals of paired draws)."
    )
    def best_on_average(self, results: Results) -> Finding:
        """Average over data sets at each factor."""
        means = [
            Estimate(one.mean.mean(axis=0), np.sqrt((one.error**2).sum(axis=0)) / len(one.mean))
            for one in self._gains(results)
        ]
        shown = (", ".join(f"{v:+.4f}" for v in one.mean) for one in means)
        return superior(Estimate.stack(means), "Over ORFs {}; over IIDRFs {}.".format(*shown))

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

    def _gains(self, results: Results) -> list[Estimate]:
        """Accuracies of SimRFs over those of ORFs and of IIDRFs, data sets by factors."""
        return [gain(results, results.parameters["data"], "simplex", other) for other in ("orthogonal", "iid")]
