"""An open question of SimRF (Appendix B.1): whether the lower variance of simplex rows is seen in what is learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import share
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import curve, legend
from ..._verdicts import Finding, interval, mostly_superior, not_worse
from ._downstream import TABLES, against, differences, test_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("nadaraya-watson", "ridge")
ROWS = ("simplex", "orthogonal")


class SimplexDownstream(Experiment):
    """Positive features of equal width on nine tables: kernel averages and ridge regression, by common seeds."""

    name = "ours-simplex-downstream"
    paper = "ours"
    item = "Downstream effect of simplex rows"
    claim = "At equal width, simplex rows lower the test error of kernel averages and of ridge regression."
    data = tuple(TABLES.values())
    methods = ROWS
    deviations = (
        'The kernel is Gaussian with the lengthscale of the rule "scale".  Classification is by one-hot targets.  '
        "Every seed is a split, and a draw for each kind of rows."
    )
    profiles = by_profile(
        smoke={"data": ("boston", "wifi"), "rows": 100, "width": 16, "seeds": 2},
        full={"data": tuple(TABLES), "rows": 1500, "width": 32, "seeds": 60},
    )
    seconds = by_profile(smoke=0.5, full=30)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per table and method."""
        return [f"{name} {method}" for name in p["data"] for method in METHODS]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Test errors of all seeds."""
        name, method = part.split()
        common = {"map": "positive", "method": method, "n_components": p["width"]}
        return test_errors(name, {rows: common | {"projection": rows} for rows in ROWS}, p["seeds"], p["rows"], rng)

    @statement(
        "In kernel averages, simplex rows have a lower error than orthogonal ones on more than half of the tables (95 % "
        "intervals of the differences by split)."
    )
    def averages(self, results: Results) -> Finding:
        """Count the tables."""
        return self._lower(results, "nadaraya-watson")

    @statement(
        "In ridge regression, simplex rows have a lower error than orthogonal ones on more than half of the tables (95 % "
        "intervals of the differences by split)."
    )
    def ridge(self, results: Results) -> Finding:
        """Count the tables."""
        return self._lower(results, "ridge")

    @statement(
        "Nowhere do simplex rows have an error that is higher by more than 0.01 (95 % intervals of the differences)."
    )
    def never_worse(self, results: Results) -> Finding:
        """Look for tables."""
        gain = differences(results.parts.values(), *reversed(ROWS))
        return not_worse(gain, 0.01, f"The largest increase is {-gain.mean.min():.4f}.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Differences of the errors."""
        ax, tables = figure.subplots(), results.parameters["data"]
        for k, method in enumerate(METHODS):
            found = differences((results.parts[f"{name} {method}"] for name in tables), *ROWS)
            curve(ax, tables, found, method, k, joined=False)
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set_ylabel("test error: simplex minus orthogonal")
        legend(figure, ax)

    def _lower(self, results: Results, method: str) -> Finding:
        parts = {name: results.parts[f"{name} {method}"] for name in results.parameters["data"]}
        gain = differences(parts.values(), *reversed(ROWS))
        low, high = interval(gain)
        shown = "; ".join(f"{name} {against(part, *ROWS)}" for name, part in parts.items())
        return mostly_superior(gain, f"Lower on {share(low > 0)}, higher on {share(high < 0)}: {shown}.")
