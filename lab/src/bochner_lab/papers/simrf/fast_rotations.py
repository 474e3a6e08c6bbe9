"""SimRF Table 3: accuracy of regular and fast ORFs and SimRFs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate, share
from ..._experiment import Experiment, Results, Row, by_profile, printed, statement
from ..._figures import curve, legend
from ..._verdicts import Finding, equal, interval, mostly_superior, not_worse, together
from .._kernel_regression import DATA
from ._accuracies import OWN_SPLIT, TABLES, compared, gain, stacked, tuned
from ._couplings import LABELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COMPARED = ("iid", "orthogonal", "hadamard", "simplex", "fast-simplex")


class FastRotations(Experiment):
    """Kernel regression with m = d features, in dimensions padded to a power of two."""

    name = "simrf-table3"
    paper = "simrf"
    item = "Table 3"
    claim = (
        "Products of three HD blocks in place of Haar rotations do not change the accuracy, and SimRFs are the most "
        "accurate."
    )
    data = tuple(DATA.values())
    methods = COMPARED
    deviations = (
        OWN_SPLIT
        + " With the spread of these draws, a difference of less than 0.01 would need about four times as many draws "
        "for ORFs, and 20 times for SimRFs, on the data set with the widest interval."
    )
    profiles = TABLES
    seconds = by_profile(smoke=1, full=360)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per data set."""
        return list(p["data"])

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Accuracies by mechanism."""
        split, sigma, found = tuned(part, p)
        split = split.padded()
        d = split.train.shape[1]
        return found | compared(split, sigma, COMPARED, d, p["draws"], rng)

    @statement("Fast ORFs differ from ORFs by at most 0.01 on every data set (95 % intervals of paired draws).")
    def fast_orthogonal(self, results: Results) -> Finding:
        """The largest difference."""
        return self._equal(results, "orthogonal", "hadamard")

    @statement("Fast SimRFs differ from SimRFs by at most 0.01 on every data set (95 % intervals of paired draws).")
    def fast_simplex(self, results: Results) -> Finding:
        """The largest difference."""
        return self._equal(results, "simplex", "fast-simplex")

    @statement(
        "SimRFs are more accurate than ORFs on more than half of the data sets, and on none less accurate by more than 0.01 "
        "(95 % intervals of paired draws)."
    )
    def simplex_wins(self, results: Results) -> Finding:
        """Count the data sets."""
        gains = gain(results, results.parameters["data"], "simplex", "orthogonal")
        low, high = interval(gains)
        text = f"More accurate on {share(low > 0)}, less on {share(high < 0)}."
        return together([mostly_superior(gains, ""), not_worse(gains, 0.01, "")], text)

    def comparison(self, results: Results) -> list[Row]:
        """Every entry of the table."""
        entry = printed("simrf", "table3")
        return [
            Row(f"{name}, {LABELS[key]} ({entry['where']})", cell, float(found.mean), float(found.error))
            for name in results.parameters["data"]
            for key, cell in zip(COMPARED, entry["rows"][name], strict=True)
            for found in [Estimate.read(results.parts[name][key])]
        ]

    def plot(self, results: Results, figure: Figure) -> None:
        """Accuracies by data set."""
        ax = figure.subplots()
        for k, name in enumerate(COMPARED):
            curve(ax, results.parameters["data"], self._of(results, name), LABELS[name], k, joined=False)
        ax.set_ylabel("accuracy")
        legend(figure, ax)

    def _of(self, results: Results, name: str) -> Estimate:
        return stacked(results, results.parameters["data"], name)

    def _equal(self, results: Results, one: str, other: str) -> Finding:
        difference = gain(results, results.parameters["data"], one, other)
        return equal(difference, 0.01, f"The largest difference is {np.abs(difference.mean).max():.4f}.")
