"""HRF Section L: the cost of hybrid features, counted and measured."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue
from bochner.maps import AngularHybrid

from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import legend, panels
from ..._verdicts import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CASES = ((8, 8), (16, 8), (32, 8), (64, 8))
"""The (m, n) of the paper's experiments, each compared with M = m n projections."""


class FeatureFLOPs(Experiment):
    """Multiplications per input, and the time of the mapping, for hybrids and for m n plain projections."""

    name = "hrf-flops"
    paper = "hrf"
    item = "Section L and Section D.4"
    claim = (
        "Hybrid features of dimension proportional to m n take time O(nd + md + mn), where plain features take O(mnd)."
    )
    methods = ("hrf-angular", "favor")
    timed = True
    profiles = by_profile(
        smoke={"d": (16, 64), "rows": 50, "repeats": 3},
        full={"d": (16, 64, 256, 1024), "rows": 1000, "repeats": 7},
    )
    seconds = by_profile(smoke=0.5, full=18)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per dimension and configuration."""
        return [f"d={d} m={m} n={n}" for d in p["d"] for m, n in CASES]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Multiplications, widths and seconds per row of the hybrid and of the plain features."""
        d, m, n = (int(piece.partition("=")[2]) for piece in part.split())
        hybrid = replace(catalogue.mechanism("hrf-angular", n_projections=m), map=AngularHybrid(n))
        plain = catalogue.mechanism("favor", n_projections=m * n)
        X = rng.standard_normal((p["rows"], d)) / np.sqrt(d)
        seconds = []
        for spec in (hybrid, plain):
            phi = spec.draw(d, rng)
            phi.queries(X)
            times = []
            for _ in range(p["repeats"]):
                start = time.perf_counter()
                phi.queries(X)
                times.append(time.perf_counter() - start)
            seconds.append(min(times) / p["rows"])
        counted = [(m + n) * d + 4 * m * n, m * n * d]  # shared projections, and outer products; or projections
        return {"multiplications": counted, "widths": [hybrid.n_features_out, plain.n_features_out], "seconds": seconds}

    @statement("The width of the hybrid is proportional to m n: at most five times m n.")
    def width(self, results: Results) -> Finding:
        """4 m (n + 1)."""
        ratios = [part["widths"][0] / (part["widths"][1] / 2) for part in results.parts.values()]
        return Finding(max(ratios) <= 5, f"From {min(ratios):.2f} to {max(ratios):.2f} times.")

    @statement("The hybrid takes fewer multiplications than m n plain projections in every configuration with d >= 16.")
    def counted(self, results: Results) -> Finding:
        """Compare the counts."""
        ratios = [part["multiplications"][0] / part["multiplications"][1] for part in results.parts.values()]
        return Finding(max(ratios) < 1, f"Ratios from {min(ratios):.3f} to {max(ratios):.3f}.")

    @statement(
        "At the greatest dimension the hybrid's mapping takes less measured time than that of m n plain projections, "
        "in every configuration."
    )
    def measured(self, results: Results) -> Finding:
        """Compare the times."""
        d = results.parameters["d"][-1]
        parts = {name: part for name, part in results.parts.items() if name.startswith(f"d={d} ")}
        ratios = {name: part["seconds"][0] / part["seconds"][1] for name, part in parts.items()}
        text = ", ".join(f"{name}: {ratio:.2f}" for name, ratio in ratios.items())
        return Finding(max(ratios.values()) < 1, f"Time over that of plain features, {text}.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Ratios of hybrid to plain over the dimension."""
        axes = panels(figure, ("multiplications", "seconds"), "d", "hybrid / plain")
        for ax, key in zip(axes, ("multiplications", "seconds"), strict=True):
            for k, (m, n) in enumerate(CASES):
                pairs = [results.parts[f"d={d} m={m} n={n}"][key] for d in results.parameters["d"]]
                ratios = [a / b for a, b in pairs]
                ax.loglog(results.parameters["d"], ratios, marker="o", color=f"C{k}", label=f"m = {m}, n = {n}")
            ax.axhline(1, color="black", linewidth=0.8, linestyle=":")
        legend(figure, axes[0])
