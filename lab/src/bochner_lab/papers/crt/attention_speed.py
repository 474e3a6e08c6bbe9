"""CRT Figure 4, right: steps per second of attention against the length of the sequence."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate, power_law
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import curve, legend
from ..._verdicts import Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("softmax", "favor+", "favor++")


class AttentionSpeed(Experiment):
    """Forward and backward passes of one attention module."""

    name = "crt-fig4-right"
    paper = "crt"
    item = "Figure 4, right"
    claim = (
        "FAVOR+ and FAVOR++ take very similar time, linear in the length, and are faster than softmax attention on "
        "long sequences."
    )
    methods = METHODS
    extras = ("torch",)
    timed = True
    deviations = (
        "One module on a processor in place of a vision transformer on an accelerator; head dimension 64, M = 64."
    )
    profiles = by_profile(
        smoke={"lengths": (64, 128), "heads": 2, "rows": 32, "batch": 1, "repeats": 3},
        full={"lengths": (256, 512, 1024, 2048, 4096), "heads": 4, "rows": 64, "batch": 1, "repeats": 8},
    )
    seconds = by_profile(smoke=2, full=60)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per method and length."""
        return [f"{method} {length}" for method in METHODS for length in p["lengths"]]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Seconds per step: mean, standard error, and the shortest."""
        import torch

        from bochner.catalogue import mechanism
        from bochner.nn import RandomFeatureAttention

        method, length = part.split()
        width = 64 * p["heads"]
        torch.manual_seed(int(rng.integers(2**31)))
        module: Any
        if method == "softmax":
            module = torch.nn.MultiheadAttention(width, p["heads"], batch_first=True)
        else:
            spec = mechanism(method, n_projections=p["rows"])
            module = RandomFeatureAttention(width, p["heads"], batch_first=True, spec=spec)
        x = torch.randn(p["batch"], int(length), width, requires_grad=True)
        times = []
        for _ in range(p["repeats"] + 1):
            start = time.perf_counter()
            module(x, x, x, need_weights=False)[0].square().mean().backward()
            times.append(time.perf_counter() - start)
        return Estimate.of(times[1:]).as_numbers() | {"least": min(times[1:])}

    @statement("FAVOR++ takes at most 1.25 times as long as FAVOR+ at every length, by the shortest times.")
    def similar(self, results: Results) -> Finding:
        """The largest ratio."""
        ratios = np.divide(self._least(results, "favor++"), self._least(results, "favor+"))
        return Finding(bool(ratios.max() <= 1.25), f"Ratios from {ratios.min():.2f} to {ratios.max():.2f}.")

    @statement("The exponent of the time of FAVOR++ in the length is below 1.3.")
    def linear(self, results: Results) -> Finding:
        """Fit the exponents."""
        found = {name: power_law(results.parameters["lengths"], self._least(results, name)) for name in METHODS}
        text = ", ".join(f"{name} {value.mean:.2f} +- {value.error:.2f}" for name, value in found.items())
        return Finding(bool(found["favor++"].mean < 1.3), text + ".")

    @statement("At the greatest length FAVOR++ is faster than softmax attention.")
    def faster(self, results: Results) -> Finding:
        """Compare the shortest times."""
        ours, exact = (self._least(results, name)[-1] for name in ("favor++", "softmax"))
        return Finding(ours < exact, f"{1000 * ours:.1f} ms against {1000 * exact:.1f} ms.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Steps per second over the length."""
        ax = figure.subplots()
        for k, name in enumerate(METHODS):
            parts = [results.parts[f"{name} {length}"] for length in results.parameters["lengths"]]
            mean, error = (np.array([part[key] for part in parts]) for key in ("mean", "error"))
            curve(ax, results.parameters["lengths"], Estimate(1 / mean, error / mean**2), name, k)
        ax.set(xlabel="length", ylabel="steps per second", xscale="log", yscale="log")
        legend(figure, ax)

    def _least(self, results: Results, name: str) -> list[float]:
        return [results.parts[f"{name} {length}"]["least"] for length in results.parameters["lengths"]]
