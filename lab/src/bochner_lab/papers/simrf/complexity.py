"""SimRF Table 1: time of drawing a block and projecting one vector, as exponents of the dimension."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue

from ..._estimates import Estimate, power_law
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import legend
from ..._verdicts import Finding
from ._couplings import LABELS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REGULAR, FAST = ("orthogonal", "simplex", "simplex+"), ("hadamard", "fast-simplex")


class Complexity(Experiment):
    """The shortest of several runs at each dimension."""

    name = "simrf-table1"
    paper = "simrf"
    item = "Table 1"
    claim = "Regular blocks take O(d^3) and fast ones O(d log d), and SimRFs cost as much as ORFs."
    methods = (*REGULAR, *FAST)
    timed = True
    deviations = (
        "SimRFs+ take O(d^2) per sweep here, since the sum of all vectors is kept; the paper's update takes O(d^3)."
    )
    profiles = by_profile(
        smoke={"d": (32, 64, 128), "rows": 16, "repeats": 3},
        full={"d": (128, 256, 512, 1024, 2048), "rows": 64, "repeats": 5},
    )
    seconds = by_profile(smoke=0.3, full=24)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per mechanism."""
        return [*REGULAR, *FAST]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Seconds to draw a block and to project some rows, by dimension."""
        rows, draw, project = catalogue.projection(part), [], []
        for d in p["d"]:
            X = rng.standard_normal((p["rows"], d))
            P = rows.sample(d, d, rng)
            P(X)
            draw.append(_shortest(lambda d=d: rows.sample(d, d, rng), p["repeats"]))
            project.append(_shortest(lambda P=P, X=X: P(X), p["repeats"]))
        return {"draw": draw, "project": project}

    @statement("Fast blocks have exponents of drawing and projecting below 1.5.")
    def fast(self, results: Results) -> Finding:
        """Fit the exponents."""
        found = {
            f"{LABELS[name]} {kind}": self._exponent(results, name, kind)
            for name in FAST
            for kind in ("draw", "project")
        }
        text = ", ".join(f"{name} {value.mean:.2f} +- {value.error:.2f}" for name, value in found.items())
        return Finding(all(value.mean < 1.5 for value in found.values()), text + ".")

    @statement("Regular blocks have an exponent of drawing of at least two.")
    def regular(self, results: Results) -> Finding:
        """Fit the exponents."""
        found = {LABELS[name]: self._exponent(results, name, "draw") for name in REGULAR}
        text = ", ".join(f"{name} {value.mean:.2f} +- {value.error:.2f}" for name, value in found.items())
        return Finding(all(value.mean >= 2 for value in found.values()), text + ".")

    @statement(
        "At the largest dimension, drawing and projecting SimRFs takes at most 1.25 times as long as ORFs, regular "
        "and fast."
    )
    def no_extra_cost(self, results: Results) -> Finding:
        """Compare the times."""
        ratios = []
        for one, other in (("simplex", "orthogonal"), ("fast-simplex", "hadamard")):
            a, b = (results.parts[name]["draw"][-1] + results.parts[name]["project"][-1] for name in (one, other))
            ratios.append(a / b)
        return Finding(max(ratios) <= 1.25, f"Regular {ratios[0]:.2f}, fast {ratios[1]:.2f}.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Times over the dimension."""
        axes = figure.subplots(1, 2)
        for ax, kind in zip(axes, ("draw", "project"), strict=True):
            for k, name in enumerate((*REGULAR, *FAST)):
                ax.loglog(
                    results.parameters["d"], results.parts[name][kind], marker="o", color=f"C{k}", label=LABELS[name]
                )
            ax.set(title=kind, xlabel="d", ylabel="seconds")
        legend(figure, axes[0])

    def _exponent(self, results: Results, name: str, kind: str) -> Estimate:
        return power_law(results.parameters["d"], results.parts[name][kind])


def _shortest(work: Any, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
