"""An open question of OMC (Section 6.2): whether HMD, at the FLOPs of one HD block, is better in what is learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner.extending import Rotation
from bochner.projections import Orthogonal
from bochner.rotations import Haar, Hadamard, MultiHadamard

from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import curve, legend
from ..._verdicts import Finding
from ._downstream import TABLES, against, difference, differences, test_errors

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
    deviations = "Classification is by one-hot targets.  Every seed is a split, and a draw for each rotation."
    profiles = by_profile(
        smoke={"data": ("boston", "wifi"), "rows": 300, "width": 32, "seeds": 4},
        full={"data": tuple(TABLES), "rows": 1500, "width": 128, "seeds": 40},
    )
    seconds = by_profile(smoke=2, full=120)

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
        "HMD has a lower error than one HD block by more than two standard errors of the difference on at least half "
        "of the tables."
    )
    def better(self, results: Results) -> Finding:
        """Count the tables."""
        lower = [name for name, part in results.parts.items() if _below(part, "HMD", "HD1")]
        shown = "; ".join(f"{name} {against(part, 'HMD', 'HD1')}" for name, part in results.parts.items())
        return Finding(2 * len(lower) >= len(results.parts), f"Lower on {len(lower)} of {len(results.parts)}: {shown}.")

    @statement("Nowhere does HMD have a higher error than one HD block by more than two standard errors.")
    def never_worse(self, results: Results) -> Finding:
        """Look for tables."""
        return self._nowhere_above(results, "HD1")

    @statement("Nowhere does HMD have a higher error than exact rotations by more than two standard errors.")
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
        worse = [
            f"{name} ({against(part, 'HMD', other)})"
            for name, part in results.parts.items()
            if _below(part, other, "HMD")
        ]
        return Finding(not worse, f"Worse: {'; '.join(worse) or 'nowhere'}.")


def _below(part: Mapping[str, Any], one: str, other: str) -> bool:
    found = difference(part, one, other)
    return bool(found.mean < -2 * found.error)
