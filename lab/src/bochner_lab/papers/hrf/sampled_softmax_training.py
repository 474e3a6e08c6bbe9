"""HRF Figure 10: an LSTM trained with sampled softmax, with negatives drawn by several laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bochner import catalogue
from bochner.maps import AngularHybrid

from ..._estimates import Estimate
from ..._experiment import Experiment, PowerCheck, Results, by_profile, statement
from ..._figures import legend
from ..._verdicts import Finding, equal
from .._word_counts import losses_of_counts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HYBRID, FEATURES = "hrf-angular", ("favor", "favor+")
METHODS = (HYBRID, *FEATURES, "uniform", "softmax")
COUNTS = "counts of words"
EQUAL = 0.05
"""Difference of losses in nats, 5% of perplexity, that is called not significant in practice."""


def _part(method: str, seed: int) -> str:
    return f"{method}, seed {seed}"


class SampledSoftmaxTraining(Experiment):
    """Validation losses of one small model, trained with 40 negatives per word."""

    name = "hrf-fig10"
    paper = "hrf"
    item = "Figure 10"
    claim = (
        "In training with sampled softmax, the difference between hybrids and other random features is not very "
        "significant."
    )
    data = ("wikitext-2",)
    methods = METHODS
    extras = ("torch",)
    deviations = (
        "WikiText-2 stands in for the Penn Treebank, with its 2000 most frequent words in place of 10000, since the model "
        "sees about 75 000 words once, where the paper trains for 80 epochs: 10000 classes learn nothing from so few. "
        "128 rows, and (16, 8) for the hybrid, in place of 1024 and (128, 8), and 3 seeds in place of 25; Adam with a "
        "rate that falls to zero, without dropout. Features are those of unit vectors, as in the paper; FAVOR+ is the "
        "one-sided map, with up to twice the variance of the paper's Eq. 3. Perplexity is e to the loss in "
        "nats, not 2 to it. The paper gives no measure of its difference; 5% is ours. To decide it, models "
        "with exact sampling would have to beat a bigram table first."
    )
    profiles = by_profile(
        smoke={
            "n_classes": 2000,
            "characters": 400_000,
            "width": 16,
            "rows": 32,
            "n": 4,
            "negatives": 10,
            "batch": 8,
            "length": 5,
            "steps": 6,
            "checks": 2,
            "rebuild": 3,
            "rate": 2e-3,
            "validation": 2000,
            "seeds": 2,
        },
        full={
            "n_classes": 2000,
            "characters": None,
            "width": 200,
            "rows": 128,
            "n": 8,
            "negatives": 40,
            "batch": 8,
            "length": 16,
            "steps": 600,
            "checks": 8,
            "rebuild": 20,
            "rate": 2e-3,
            "validation": 3000,
            "seeds": 3,
        },
    )
    seconds = by_profile(smoke=3, full=1500)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per sampler and seed, and the counts of words."""
        return [*(_part(method, seed) for seed in range(p["seeds"]) for method in METHODS), COUNTS]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Steps and validation losses."""
        if part == COUNTS:
            return _counts(p)
        import torch

        from bochner.nn import SampledSoftmax

        from .._corpora import frequent_words
        from ._language_model import sampled_training_losses

        method, _, seed = part.partition(", seed ")
        words = frequent_words(p["n_classes"], p["characters"])
        features, negatives = (torch.Generator().manual_seed(int(s)) for s in rng.integers(2**31, size=2))
        law: dict[str, Any] = (
            {"sampler": method} if method in ("uniform", "softmax") else {"spec": self._spec(method, p)}
        )
        loss = SampledSoftmax(
            p["width"], words.n_classes, p["negatives"], normalize_sampling=True, generator=features, **law
        )
        losses = sampled_training_losses(words, loss, int(seed), negatives, p)
        return {"steps": np.linspace(0, p["steps"], p["checks"] + 1), "losses": losses}

    @staticmethod
    def _spec(method: str, p: Mapping[str, Any]) -> Any:
        if method == HYBRID:
            spec = catalogue.mechanism(method, n_projections=p["rows"] // p["n"])
            return replace(spec, map=AngularHybrid(p["n"]))
        return catalogue.mechanism(method, n_projections=p["rows"])

    @statement(
        "The final validation loss with the hybrid is within 0.05 nats, 5 % of perplexity, of those with trigonometric "
        "features and FAVOR+ (95 % intervals over seeds that share the initial model and the order of the text)."
    )
    def equal_in_practice(self, results: Results) -> Finding:
        """Compare means."""
        found = self._differences(results)
        return equal(Estimate.stack(found.values()), EQUAL, self._shown(results, found))

    def power(self, results: Results) -> PowerCheck:
        """Tables of counts next to the models."""
        counts = results.parts[COUNTS]
        finals = {method: float(self._curves(results, method)[1][:, -1].mean()) for method in METHODS}
        worst = max(finals[method] for method in (HYBRID, *FEATURES))
        return PowerCheck(
            worst < counts["bigram"],
            f"A unigram table has a loss of {counts['unigram']:.2f} and a bigram table {counts['bigram']:.2f}; the models "
            f"that are compared have up to {worst:.2f}.",
            (*counts.items(), *finals.items()),
        )

    def plot(self, results: Results, figure: Figure) -> None:
        """Validation perplexity over steps, with bands of one standard deviation as in the paper; the last steps anew."""
        axes = figure.subplots(1, 2)
        for k, method in enumerate(METHODS):
            steps, losses = self._curves(results, method)
            mean, spread = losses.mean(0), losses.std(0, ddof=1)
            for ax, shown in zip(axes, (slice(None), slice(len(steps) // 2, None)), strict=True):
                ax.plot(steps[shown], np.exp(mean[shown]), color=f"C{k}", label=method)
                band = (np.exp(mean[shown] + sign * spread[shown]) for sign in (-1, 1))
                ax.fill_between(steps[shown], *band, color=f"C{k}", alpha=0.2, linewidth=0)
                ax.set(xlabel="step", ylabel="validation perplexity", yscale="log")
        legend(figure, axes[0])

    @staticmethod
    def _curves(results: Results, method: str) -> tuple[np.ndarray, np.ndarray]:
        """Steps, and losses (seeds, steps)."""
        parts = [results.parts[_part(method, seed)] for seed in range(results.parameters["seeds"])]
        return np.array(parts[0]["steps"]), np.array([part["losses"] for part in parts])

    def _differences(self, results: Results) -> dict[str, Estimate]:
        """Final losses with the hybrid minus those with each of the others, seed by seed."""
        ours = self._curves(results, HYBRID)[1][:, -1]
        return {other: Estimate.of(ours - self._curves(results, other)[1][:, -1]) for other in FEATURES}

    def _shown(self, results: Results, found: dict[str, Estimate]) -> str:
        finals = ", ".join(f"{method} {self._curves(results, method)[1][:, -1].mean():.3f}" for method in METHODS)
        differences = ", ".join(f"{one.mean:+.3f} ({one.error:.3f}) to {other}" for other, one in found.items())
        return f"Final losses: {finals}; the hybrid's differences: {differences}."


def _counts(p: Mapping[str, Any]) -> dict[str, float]:
    """Losses of tables of counts on the words that the models are validated on."""
    from .._corpora import frequent_words

    text = frequent_words(p["n_classes"], p["characters"])
    return losses_of_counts(text.train, text.valid[: p["validation"]], text.n_classes)
