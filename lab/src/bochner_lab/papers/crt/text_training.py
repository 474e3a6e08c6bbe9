"""CRT Table 2 in the small: a language model with FAVOR+ and FAVOR++, from scratch and after conversion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate
from ..._experiment import Experiment, PowerCheck, Results, by_profile, statement
from ..._figures import legend, panels
from ..._verdicts import Finding, superior
from .._word_counts import losses_of_counts
from ._uptraining import COUNTS, METHODS, curves, draw_curves, gain, last, seeds

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TextTraining(Experiment):
    """Perplexities of words of WikiText-2, paired by seed."""

    name = "crt-table2-text"
    paper = "crt"
    item = "Table 2, in the small"
    claim = "FAVOR++ is better than FAVOR+ on text, and better still if it starts from a model trained with softmax."
    data = ("wikitext-2",)
    methods = ("softmax", *METHODS)
    extras = ("torch",)
    deviations = (
        "The perplexity of a causal language model of two layers on WikiText-2, in place of BERT on GLUE. Constants of "
        "FAVOR++ are chosen anew every ten steps, and rows of W are drawn once. Models from scratch take as many steps "
        "as the converted ones in total. Training is short and heads are narrow, so that the approximation matters less "
        "than in the paper; the curve of softmax shows how much there is to lose. To decide it, models would have to beat a "
        "bigram table first, and the softmax model to converge before it is converted; crt-table2-recall does both in "
        "another task."
    )
    profiles = by_profile(
        smoke={
            "seeds": 2, "width": 16, "layers": 1, "heads": 1, "rows": 16, "length": 16, "vocabulary": 100, "batch": 4,
            "words": 2000, "test": 400, "steps": 8, "uptraining": 4, "evaluations": 2,
        },
        full={
            "seeds": 5, "width": 32, "layers": 2, "heads": 2, "rows": 32, "length": 64, "vocabulary": 1000, "batch": 16,
            "words": 300_000, "test": 10_000, "steps": 150, "uptraining": 50, "evaluations": 4,
        },
    )  # fmt: skip
    seconds = by_profile(smoke=2, full=220)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per seed, and the counts of words."""
        return [*seeds(p), COUNTS]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Perplexities along training."""
        if part == COUNTS:
            return counts_of(p)
        return curves(*language_task(p, seed := int(rng.integers(2**31))), p, seed)

    @statement(
        "From scratch, FAVOR++ ends with a lower perplexity than FAVOR+ (95 % interval of logarithms, paired by seed)."
    )
    def scratch(self, results: Results) -> Finding:
        """Compare the ends."""
        return lower_perplexity(last(results, "favor++"), last(results, "favor+"))

    @statement(
        "After conversion from softmax and further training, FAVOR++ ends with a lower perplexity than FAVOR++ from "
        "scratch (95 % interval of logarithms, paired by seed)."
    )
    def uptraining(self, results: Results) -> Finding:
        """Compare the ends."""
        return lower_perplexity(last(results, "favor++, converted"), last(results, "favor++"))

    def power(self, results: Results) -> PowerCheck:
        """Tables of counts next to the models."""
        names = ("softmax", *METHODS, *(f"{name}, converted" for name in METHODS))
        return power_of_text(results, {name: float(last(results, name).mean()) for name in names})

    def plot(self, results: Results, figure: Figure) -> None:
        """Perplexity over steps."""
        axes = panels(figure, ["from scratch", "after conversion"], "steps", "perplexity", scale="linear")
        draw_curves(results, axes)
        legend(figure, axes[1])


def language_task(p: Mapping[str, Any], seed: int) -> tuple[Any, Any]:
    """A language model with initial weights, and its text."""
    from .._transformers import LanguageModel, Shape, Words

    words = Words.wikitext(p["words"], p["test"], p["vocabulary"], p["length"], p["batch"], seed)
    shape = Shape(p["width"], p["layers"], p["heads"])
    return LanguageModel(words.n_words, p["length"], shape, seed), words


def counts_of(p: Mapping[str, Any]) -> dict[str, float]:
    """Perplexities of tables of counts on the text of the models."""
    words = language_task(p, 0)[1]
    found = losses_of_counts(words.train.numpy(), words.test.numpy(), words.n_words)
    return {name: float(np.exp(loss)) for name, loss in found.items()}


def power_of_text(results: Results, models: Mapping[str, float]) -> PowerCheck:
    """Judge whether every model that is compared is better than a bigram table."""
    counts, worst = results.parts[COUNTS], max(models.values())
    return PowerCheck(
        worst < counts["bigram"],
        f"A unigram table has a perplexity of {counts['unigram']:.1f} and a bigram table {counts['bigram']:.1f}; the models "
        f"that are compared have up to {worst:.1f}: attention hardly matters here.",
        (*counts.items(), *models.items()),
    )


def lower_perplexity(new: np.ndarray, old: np.ndarray) -> Finding:
    """Whether the first perplexities are lower, paired by seed."""
    change = gain(np.log(old), np.log(new))
    text = f"{new.mean():.2f} against {old.mean():.2f}; {100 * change.mean:.2f} +- {100 * change.error:.2f} % lower."
    return superior(Estimate(100 * change.mean, 100 * change.error, change.samples), text)
