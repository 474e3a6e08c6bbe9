"""CRT Figure 3 in the small: a language model with 8 and with 16 features per head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate
from ..._experiment import Experiment, PowerCheck, Results, Row, by_profile, printed
from ..._figures import curve, legend
from ..._verdicts import Finding
from ._uptraining import COUNTS, METHODS, gain, runs, seeds
from .text_training import counts_of, language_task, lower_perplexity, power_of_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROWS = (8, 16)


class FewFeaturesText(Experiment):
    """Perplexities after training from scratch, paired by seed."""

    name = "crt-fig3-text"
    paper = "crt"
    item = "Figure 3, in the small"
    claim = "With only 8 or 16 random features, a sequence model with FAVOR++ is better than with FAVOR+."
    data = ("wikitext-2",)
    methods = METHODS
    extras = ("torch",)
    deviations = (
        "The perplexity of a causal language model of two layers on WikiText-2, in place of the word error rate of a "
        "Conformer-Transducer on LibriSpeech. Constants of FAVOR++ are chosen anew every ten steps, and rows of W are "
        "drawn once. Training is short and heads are narrow, so that the approximation matters less than in the paper."
    )
    profiles = by_profile(
        smoke={
            "seeds": 2, "width": 16, "layers": 1, "heads": 1, "length": 16, "vocabulary": 100, "batch": 4,
            "words": 2000, "test": 400, "steps": 6,
        },
        full={
            "seeds": 5, "width": 32, "layers": 2, "heads": 2, "length": 64, "vocabulary": 1000, "batch": 16,
            "words": 300_000, "test": 10_000, "steps": 150,
        },
    )  # fmt: skip
    seconds = by_profile(smoke=2, full=80)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per seed, and the counts of words."""
        return [*seeds(p), COUNTS]

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Perplexities by method and number of features."""
        if part == COUNTS:
            return counts_of(p)
        from .. import _transformers as T

        seed = int(rng.integers(2**31))
        start, words = language_task(p, seed)
        found = {}
        for m in ROWS:
            for name in METHODS:
                model = T.with_attention(start, name, m, seed)
                found[f"{name} {m}"] = T.learning_curve(model, words, p["steps"], 1)[-1]
        return found

    def statements(self) -> dict[str, Callable[[Results], Finding]]:
        """One for each number of features."""
        rule = "(95 % interval of logarithms, paired by seed)"
        return {
            f"With M = {m}, FAVOR++ ends with a lower perplexity than FAVOR+ {rule}.": partial(self._lower, m)
            for m in ROWS
        }

    def _lower(self, m: int, results: Results) -> Finding:
        return lower_perplexity(self._values(results, "favor++", m), self._values(results, "favor+", m))

    def power(self, results: Results) -> PowerCheck:
        """Tables of counts next to the models."""
        models = {f"{name} {m}": float(self._values(results, name, m).mean()) for name in METHODS for m in ROWS}
        return power_of_text(results, models)

    def comparison(self, results: Results) -> list[Row]:
        """Improvements in percent."""
        entry, rows = printed("crt", "figure3"), []
        for m, percent in entry["rows"].items():
            plus, plusplus = (np.log(self._values(results, name, int(m))) for name in METHODS)
            change = gain(plus, plusplus)
            label = f"M = {m}: improvement in %, of the perplexity; printed: of the word error rate ({entry['where']})"
            rows.append(Row(label, percent, 100 * float(change.mean), 100 * float(change.error)))
        return rows

    def plot(self, results: Results, figure: Figure) -> None:
        """Perplexity over the number of features."""
        ax = figure.subplots()
        for k, name in enumerate(METHODS):
            values = np.array([self._values(results, name, m) for m in ROWS]).T
            curve(ax, ROWS, Estimate.of(values), name, k)
        ax.set(xlabel="random features M", ylabel="perplexity", xticks=ROWS)
        legend(figure, ax)

    def _values(self, results: Results, name: str, m: int) -> np.ndarray:
        return np.array([part[f"{name} {m}"] for part in runs(results)])
