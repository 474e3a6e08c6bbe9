"""A model that looks up keys, which random codes have to find."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate
from ..._experiment import Experiment, Results, Row, by_profile, statement
from ..._figures import curve, legend
from ..._verdicts import Finding, superior

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOFTMAX, CODES, WINDOW = "softmax", "codes, calibrated", "window"


class LookUp(Experiment):
    """Multi-query associative recall: 64 pairs of a key and a value, and then keys again, in 512 tokens."""

    name = "ours-look-up"
    paper = "ours"
    item = "Looking up with few keys"
    claim = (
        "A model that was trained with softmax to look up 64 pairs in 512 tokens keeps 99 % of its accuracy when codes find "
        "its keys, at a cost where a window alone knows nothing."
    )
    data = ()
    methods = (SOFTMAX, CODES, WINDOW)
    extras = ("torch",)
    deviations = (
        "The task is that of Arora et al. (2023), multi-query associative recall, with the queries one after the other. The "
        "model is a Llama of two layers, trained on 8 pairs in 64 tokens first, and on 64 once it has learnt those. Two of "
        "its heads start as those that longer training is known to form, and all weights are trained: from random weights "
        "a trial was at the level of guessing among the values seen after 1100 steps. A cost is a mean number of keys per "
        "query. Each part is another model; codes are drawn several times for each."
    )
    profiles = by_profile(
        smoke={
            "vocabulary": 16, "shape": (16, 2, 2), "rate": 3e-3, "enough": 0.5, "models": 2, "draws": 2, "fit": 1,
            "sequences": 2, "costs": (12, 16), "stages": ((4, 24, 4, 3), (6, 40, 4, 2)),
        },
        full={
            "vocabulary": 128, "shape": (64, 2, 2), "rate": 3e-3, "enough": 0.99, "models": 3, "draws": 3, "fit": 2,
            "sequences": 8, "costs": (24, 48, 96),
            "stages": ((8, 64, 32, 400), (64, 512, 8, 400)),
        },
    )  # fmt: skip
    seconds = by_profile(smoke=3, full=140)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per model."""
        return [f"model {k + 1}" for k in range(p["models"])]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Train the model, convert it, and count what it says right."""
        from ._recall import measure

        return measure(p, int(rng.integers(2**31)))

    @statement("With softmax all models are right in 95 % of the cases (95 % over models).")
    def learnt(self, results: Results) -> Finding:
        """Compare with the goal: a model that has not learnt shows nothing."""
        found = Estimate.of(np.array([part[SOFTMAX] for part in results.parts.values()]) - 0.95)
        return superior(found, f"{float(found.mean) + 0.95:.4f}.")

    @statement("At the largest cost the accuracy with codes is at least 99 % of that with softmax (95 % over models).")
    def kept(self, results: Results) -> Finding:
        """Compare the ratio with the goal."""
        found = Estimate.of(_ratios(results, CODES)[:, -1])
        return superior(Estimate(found.mean - 0.99, found.error, found.samples), f"{float(found.mean):.4f} of it.")

    @statement("A window of the same cost keeps less than half of the accuracy (95 % over models).")
    def window(self, results: Results) -> Finding:
        """Compare the ratio with the bound."""
        found = Estimate.of(_ratios(results, WINDOW)[:, -1])
        return superior(Estimate(0.5 - found.mean, found.error, found.samples), f"{float(found.mean):.4f} of it.")

    def comparison(self, results: Results) -> list[Row]:
        """Accuracies relative to softmax, by method and cost."""
        exact = Estimate.of(np.array([part[SOFTMAX] for part in results.parts.values()]))
        rows = [Row("softmax: accuracy", "", float(exact.mean), float(exact.error))]
        for method in (CODES, WINDOW):
            for cost, ratios in zip(results.parameters["costs"], _ratios(results, method).T, strict=True):
                found = Estimate.of(ratios)
                rows.append(Row(f"{method}, {cost} keys: of softmax", "", float(found.mean), float(found.error)))
        return rows

    def plot(self, results: Results, figure: Figure) -> None:
        """Accuracies relative to softmax by cost."""
        ax = figure.subplots()
        for k, method in enumerate((CODES, WINDOW)):
            curve(ax, results.parameters["costs"], Estimate.of(_ratios(results, method)), method, k)
        ax.set(xlabel="keys per query", ylabel="accuracy relative to softmax")
        legend(figure, ax)


def _ratios(results: Results, method: str) -> np.ndarray:
    """Accuracies relative to softmax by model and cost, the mean over draws."""
    least = 1 / results.parameters["vocabulary"]  # by chance, which a model is not below but by bad luck
    parts = results.parts.values()
    return np.array([[np.mean(at) / max(part[SOFTMAX], least) for at in part[method]] for part in parts])
