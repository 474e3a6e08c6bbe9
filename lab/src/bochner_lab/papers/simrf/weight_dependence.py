"""SimRF Table 2: accuracy of SimRFs and SimRFs+."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate, share
from ..._experiment import Experiment, Results, Row, by_profile, printed, statement
from ..._figures import curve, legend
from ..._verdicts import Finding, interval, not_worse, superior
from .._kernel_regression import DATA
from ._accuracies import OWN_SPLIT, TABLES, compared, gain, stacked, tuned
from ._couplings import LABELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COMPARED = ("orthogonal", "simplex", "simplex+")


class WeightDependence(Experiment):
    """Kernel regression with m = d features."""

    name = "simrf-table2"
    paper = "simrf"
    item = "Table 2"
    claim = "SimRFs+ gain at most marginally over SimRFs, and both substantially outperform ORFs on every data set."
    data = tuple(DATA.values())
    methods = COMPARED
    deviations = OWN_SPLIT
    profiles = TABLES
    seconds = by_profile(smoke=1, full=230)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per data set."""
        return list(p["data"])

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Accuracies by coupling."""
        split, sigma, found = tuned(part, p)
        d = split.train.shape[1]
        return found | compared(split, sigma, COMPARED, d, p["draws"], rng)

    @statement("SimRFs+ are nowhere more accurate than SimRFs by more than 0.02 (95 % intervals of paired draws).")
    def marginal(self, results: Results) -> Finding:
        """The largest gain."""
        loss = gain(results, results.parameters["data"], "simplex", "simplex+")
        return not_worse(loss, 0.02, f"The largest gain is {-loss.mean.min():.4f}.")

    @statement("SimRFs are more accurate than ORFs on every data set (95 % intervals of paired draws).")
    def simplex_wins(self, results: Results) -> Finding:
        """Count the data sets."""
        return self._wins(results, "simplex")

    @statement("SimRFs+ are more accurate than ORFs on every data set (95 % intervals of paired draws).")
    def plus_wins(self, results: Results) -> Finding:
        """Count the data sets."""
        return self._wins(results, "simplex+")

    def comparison(self, results: Results) -> list[Row]:
        """Every entry of the table."""
        entry, rows = printed("simrf", "table2"), []
        for name in results.parameters["data"]:
            v, *cells = entry["rows"][name]
            rows.append(Row(f"{name}, mean v ({entry['where']})", v, results.parts[name]["mean v"]))
            for key, cell in zip(COMPARED[1:], cells, strict=True):
                found = Estimate.read(results.parts[name][key])
                rows.append(Row(f"{name}, {LABELS[key]}", cell, float(found.mean), float(found.error)))
        return rows

    def plot(self, results: Results, figure: Figure) -> None:
        """Accuracies by data set."""
        ax, data = figure.subplots(), results.parameters["data"]
        for k, (name, value) in enumerate(zip(COMPARED, self._all(results), strict=True)):
            curve(ax, data, value, LABELS[name], k, joined=False)
        ax.set_ylabel("accuracy")
        legend(figure, ax)

    def _wins(self, results: Results, name: str) -> Finding:
        data = results.parameters["data"]
        gains = gain(results, data, name, "orthogonal")
        low, high = interval(gains)
        shown = ", ".join(f"{one} {mean:+.4f}" for one, mean in zip(data, gains.mean, strict=True))
        return superior(gains, f"More accurate on {share(low > 0)} data sets, less on {share(high < 0)}: {shown}.")

    def _all(self, results: Results) -> list[Estimate]:
        return [stacked(results, results.parameters["data"], name) for name in COMPARED]
