"""CRT Figure 4, right: steps per second of attention against the length of the sequence."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate, power_law
from ..._experiment import Experiment, Results, by_profile, statement
from ..._figures import curve, legend
from ..._verdicts import Finding, superior

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
        "One module on a processor in place of a vision transformer on an accelerator; head dimension 64, M = 64. Methods "
        "take turns, and are compared turn by turn: previous results timed one after the other, and the shortest times at "
        "one length decided. Seconds are those of the processor, in one thread: seconds of the clock, with 20 turns beside "
        "other work, left the first statement undecided."
    )
    profiles = by_profile(
        smoke={"lengths": (64, 128), "heads": 2, "rows": 32, "batch": 1, "repeats": 3},
        full={"lengths": (256, 512, 1024, 2048, 4096), "heads": 4, "rows": 64, "batch": 1, "repeats": 40},
    )
    seconds = by_profile(smoke=2, full=71)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per length."""
        return [str(length) for length in p["lengths"]]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Logarithms of the processor's seconds per step, and those of FAVOR++ over the others, turn by turn."""
        import torch

        from bochner.catalogue import mechanism
        from bochner.nn import RandomFeatureAttention

        width = 64 * p["heads"]
        torch.manual_seed(int(rng.integers(2**31)))
        modules: dict[str, Any] = {"softmax": torch.nn.MultiheadAttention(width, p["heads"], batch_first=True)}
        for method in METHODS[1:]:
            spec = mechanism(method, n_projections=p["rows"])
            modules[method] = RandomFeatureAttention(width, p["heads"], batch_first=True, spec=spec)
        x = torch.randn(p["batch"], int(part), width, requires_grad=True)
        times: dict[str, list[float]] = {method: [] for method in METHODS}
        for _ in range(p["repeats"] + 1):
            for method, module in modules.items():
                start = time.process_time()
                module(x, x, x, need_weights=False)[0].square().mean().backward()
                times[method].append(np.log(time.process_time() - start))
        logs = {method: np.array(found[1:]) for method, found in times.items()}
        over = {name: Estimate.of(logs["favor++"] - logs[name]).as_numbers() for name in ("softmax", "favor+")}
        return {name: Estimate.of(found).as_numbers() for name, found in logs.items()} | {"over": over}

    @statement(
        "FAVOR++ takes less than 1.25 times as long as FAVOR+ at every length (95 % intervals of paired logarithms)."
    )
    def similar(self, results: Results) -> Finding:
        """The largest ratio."""
        over = Estimate.stack(self._over(results, part, "favor+") for part in results.parts.values())
        ratios = np.exp(over.mean)
        gain = Estimate(np.log(1.25) - over.mean, over.error, over.samples)
        return superior(gain, f"Ratios from {ratios.min():.2f} to {ratios.max():.2f}.")

    @statement("The exponent of the time of FAVOR++ in the length is below 1.3 (95 % interval).")
    def linear(self, results: Results) -> Finding:
        """Fit the exponents."""
        lengths = results.parameters["lengths"]
        found = {name: power_law(lengths, np.exp(self._logs(results, name).mean)) for name in METHODS}
        text = ", ".join(f"{name} {value.mean:.2f} +- {value.error:.2f}" for name, value in found.items())
        one = found["favor++"]
        return superior(Estimate(1.3 - one.mean, one.error, max(len(lengths) - 1, 2)), text + ".")

    @statement("At the greatest length FAVOR++ is faster than softmax attention (95 % interval of paired logarithms).")
    def faster(self, results: Results) -> Finding:
        """Compare them turn by turn."""
        part = results.parts[str(max(results.parameters["lengths"]))]
        over = self._over(results, part, "softmax")
        ours, exact = (1000 * np.exp(part[name]["mean"]) for name in ("favor++", "softmax"))
        return superior(Estimate(-over.mean, over.error, over.samples), f"{ours:.1f} ms against {exact:.1f} ms.")

    def plot(self, results: Results, figure: Figure) -> None:
        """Steps per second over the length."""
        ax = figure.subplots()
        for k, name in enumerate(METHODS):
            logs = self._logs(results, name)
            curve(
                ax,
                results.parameters["lengths"],
                Estimate(np.exp(-logs.mean), logs.error * np.exp(-logs.mean)),
                name,
                k,
            )
        ax.set(xlabel="length", ylabel="steps per second", xscale="log", yscale="log")
        legend(figure, ax)

    @staticmethod
    def _logs(results: Results, name: str) -> Estimate:
        return Estimate.stack(Estimate.read(part[name]) for part in results.parts.values())

    @staticmethod
    def _over(results: Results, part: Mapping[str, Any], name: str) -> Estimate:
        return Estimate.read(part["over"][name], results.parameters["repeats"])
