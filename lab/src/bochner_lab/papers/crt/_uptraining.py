"""FAVOR+ and FAVOR++ trained from scratch, and in place of the attention of a model trained with softmax."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._estimates import Estimate
from ..._experiment import Results

METHODS = ("favor+", "favor++")


COUNTS = "counts of words"
RIVALS = "rivals"
"""Parts that hold trivial rivals, and no seed."""


def seeds(p: Mapping[str, Any]) -> list[str]:
    """One part for each seed: of initial weights, batches and draws."""
    return [f"seed {k}" for k in range(p["seeds"])]


def curves(start: Any, task: Any, p: Mapping[str, Any], seed: int) -> dict[str, list[float]]:
    """Measures along training from one start: with each attention, and of the softmax model after its conversion.

    The models from scratch with random features take as many steps as the softmax model before and after its conversion
    together.  The first value of a converted model is that before any training.
    """
    from .. import _transformers as T

    total = p["steps"] + p["uptraining"]
    softmax = T.with_attention(start, "softmax", p["rows"], seed)
    found = {"softmax": T.learning_curve(softmax, task, p["steps"], p["evaluations"])}
    for name in METHODS:
        scratch = T.with_attention(start, name, p["rows"], seed)
        found[name] = T.learning_curve(scratch, task, total, p["evaluations"])
        model = T.converted(softmax, task, name, p["rows"], seed)
        before = task.evaluate(model)
        after = T.learning_curve(model, task, p["uptraining"], p["evaluations"], T.RATE_OF_UPTRAINING)
        found[f"{name}, converted"] = [before, *after]
    return found


def last(results: Results, name: str) -> np.ndarray:
    """The measure at the end of training, of each seed."""
    return np.array([part[name][-1] for part in runs(results)])


def runs(results: Results) -> list[Mapping[str, Any]]:
    """The parts of the seeds."""
    return [part for name, part in results.parts.items() if name not in (COUNTS, RIVALS)]


def gain(a: np.ndarray, b: np.ndarray) -> Estimate:
    """How much larger the first is, paired by seed."""
    return Estimate.of(a - b)


def draw_curves(results: Results, axes: Any) -> None:
    """Training from scratch on the left, after conversion on the right; bars of two standard errors over seeds."""
    from ..._figures import curve

    p = results.parameters
    share = np.arange(p["evaluations"] + 1) / p["evaluations"]
    total = {"softmax": p["steps"]} | dict.fromkeys(METHODS, p["steps"] + p["uptraining"])
    for k, (name, steps) in enumerate(total.items()):
        values = Estimate.of([part[name] for part in runs(results)])
        curve(axes[0], share[1:] * steps, values, name, k)
        if name in METHODS:
            values = Estimate.of([part[f"{name}, converted"] for part in runs(results)])
            curve(axes[1], share * p["uptraining"], values, name, k)
    exact = Estimate.of(last(results, "softmax"))
    axes[1].axhline(float(exact.mean), color="C0", linewidth=1, linestyle="--", label="softmax, not converted")
