"""Landmarks against random features in what is learned, and which landmarks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate, share
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import curve, legend, panels
from ..._verdicts import Finding, interval, mostly_superior, not_worse
from ._downstream import TABLES, against, differences, test_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAPS = ("landmarks", "landmarks-rpcholesky", "landmarks-kmeans", "trigonometric")


class LandmarksDownstream(Experiment):
    """Kernel ridge regression of equal width on nine tables, by common seeds."""

    name = "ours-landmarks-downstream"
    paper = "ours"
    item = "Landmarks downstream"
    claim = (
        "In kernel ridge regression on tables, landmarks have a lower test error than orthogonal cosines of the same "
        "width, and uniform landmarks are as good as chosen ones on most tables."
    )
    data = tuple(TABLES.values())
    methods = MAPS
    deviations = (
        'The kernel is Gaussian with the lengthscale of the rule "scale".  Classification is by one-hot targets.  '
        "Every seed is a split, and a draw for each map."
    )
    profiles = by_profile(
        smoke={"data": ("boston",), "rows": 100, "widths": (16,), "seeds": 2},
        full={"data": tuple(TABLES), "rows": 1500, "widths": (64, 256), "seeds": 20},
    )
    seconds = by_profile(smoke=0.5, full=310)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per table and width."""
        return [f"{name} {width}" for name in p["data"] for width in p["widths"]]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Test errors of all seeds."""
        name, width = part.split()
        machines = {one: {"map": one, "n_components": int(width)} for one in MAPS}
        return test_errors(name, machines, p["seeds"], p["rows"], rng)

    @statement(
        "Uniform landmarks have a lower error than cosines in more than half of all cases (95 % intervals of the "
        "differences by split)."
    )
    def against_cosines(self, results: Results) -> Finding:
        """Count tables and widths."""
        gain = differences(results.parts.values(), "trigonometric", "landmarks")
        low, high = interval(gain)
        shown = "; ".join(
            f"{name} {against(part, 'landmarks', 'trigonometric')}" for name, part in results.parts.items()
        )
        return mostly_superior(gain, f"Lower in {share(low > 0)}, higher in {share(high < 0)}: {shown}.")

    @statement(
        "The error of uniform landmarks is nowhere above those of randomly pivoted Cholesky and k-means by more than 0.02 "
        "standard deviations of the target, or 2 % of the rows (95 % intervals of the differences by split)."
    )
    def uniform_is_enough(self, results: Results) -> Finding:
        """Count tables and widths."""
        gains, shown = [], []
        for one in ("landmarks-rpcholesky", "landmarks-kmeans"):
            gains.append(gain := differences(results.parts.values(), one, "landmarks"))
            low, high = interval(gain)
            errors = [(np.mean(part[one]), np.mean(part["landmarks"])) for part in results.parts.values()]
            ratio = np.median([a / b for a, b in errors if b > 0])  # some classes are all found
            shown.append(f"{one} lower in {share(high < 0)}, higher in {share(low > 0)}, median ratio {ratio:.3f}")
        return not_worse(Estimate.stack(gains), 0.02, "; ".join(shown) + ".")

    def plot(self, results: Results, figure: Figure) -> None:
        """Differences to cosines, by width."""
        widths, tables = results.parameters["widths"], results.parameters["data"]
        axes = panels(
            figure,
            [f"width {w}" for w in widths],
            "",
            "test error minus that of cosines",
            scale="linear",
            columns=2,
        )
        for ax, width in zip(axes, widths, strict=True):
            parts = [results.parts[f"{name} {width}"] for name in tables]
            for k, one in enumerate(MAPS[:-1]):
                curve(ax, tables, differences(parts, one, "trigonometric"), one, k, joined=False)
            ax.axhline(0, color="black", linewidth=0.8)
            ax.tick_params(axis="x", rotation=60)
        legend(figure, axes[0])
