"""An open question of OMC (Section 6.2): whether HMD, at the FLOPs of one HD block, is better in what is learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner.extending import Rotation
from bochner.projections import Orthogonal
from bochner.rotations import Haar, Hadamard, MultiHadamard

from ..._estimates import share
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import curve, legend
from ..._verdicts import Finding, interval, mostly_superior, not_worse
from ._downstream import TABLES, against, differences, test_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROTATIONS: dict[str, Rotation] = {
    "HMD": MultiHadamard(),
    "HD1": Hadamard(1),
    "HD3": Hadamard(3),
    "Haar": Haar(),
}


class MultiHadamardDownstream(Experiment):
    """Kernel ridge regression with cosines of equal width on nine tables, by common seeds."""

    name = "ours-hmd-downstream"
    paper = "ours"
    item = "HMD against HD downstream"
    claim = (
        "HMD has a lower test error in kernel ridge regression than one HD block, and one as low as exact rotations."
    )
    data = tuple(TABLES.values())
    methods = tuple(ROTATIONS)
    deviations = (
        'The kernel is Gaussian with the lengthscale of the rule "scale".  Classification is by one-hot targets.  '
        "Every seed is a split, and a draw for each rotation."
    )
    profiles = by_profile(
        smoke={"data": ("boston", "wifi"), "rows": 100, "width": 16, "seeds": 2},
        full={"data": tuple(TABLES), "rows": 1500, "width": 128, "seeds": 40},
    )
    seconds = by_profile(smoke=0.5, full=39)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per table."""
        return list(p["data"])

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Test errors of all seeds."""
        machines = {
            name: {"map": "trigonometric", "projection": Orthogonal(rotation), "n_components": p["width"]}
            for name, rotation in ROTATIONS.items()
        }
        return test_errors(part, machines, p["seeds"], p["rows"], rng)

    @statement(
        "HMD has a lower error than one HD block on more than half of the tables (95 % intervals of differences by split)."
    )
    def better(self, results: Results) -> Finding:
        """Count the tables."""
        gain = differences(results.parts.values(), "HD1", "HMD")
        low, high = interval(gain)
        shown = "; ".join(f"{name} {against(part, 'HMD', 'HD1')}" for name, part in results.parts.items())
        return mostly_superior(gain, f"Lower on {share(low > 0)}, higher on {share(high < 0)}: {shown}.")

    @statement("Nowhere does HMD have an error above that of one HD block by more than 0.01 (95 % intervals).")
    def never_worse(self, results: Results) -> Finding:
        """Look for tables."""
        return self._nowhere_above(results, "HD1")

    @statement("Nowhere does HMD have an error above that of exact rotations by more than 0.01 (95 % intervals).")
    def as_good_as_exact(self, results: Results) -> Finding:
        """Look for tables."""
        return self._nowhere_above(results, "Haar")

    def plot(self, results: Results, figure: Figure) -> None:
        """Differences to exact rotations."""
        ax, tables = figure.subplots(), list(results.parts)
        for k, name in enumerate(("HMD", "HD1", "HD3")):
            curve(ax, tables, differences(results.parts.values(), name, "Haar"), name, k, joined=False)
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set_ylabel("test error minus that of exact rotations")
        legend(figure, ax)

    def _nowhere_above(self, results: Results, other: str) -> Finding:
        shown = "; ".join(f"{name} {against(part, 'HMD', other)}" for name, part in results.parts.items())
        return not_worse(differences(results.parts.values(), other, "HMD"), 0.01, f"{shown}.")
