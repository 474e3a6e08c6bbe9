"""Character models at a long context, converted in all ways: what windows, first tokens and features are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from bochner.nn import LayerPlan, calibrate, distill, replace_attention

from ..._experiment import dataset
from .._transformers import Shape, Words, converted, seeded
from ._character_training import ShortFirst, start, train_characters
from ._characters import CharacterModel, attended, bits
from ._look_up_model import LookUpModel

CALIBRATION, DISTILLATION = 10_000, 20_000
"""First steps of the rows for calibration and distillation, beyond those of the training."""
_PIECES = 8
"""How many pieces the context has; the plain model is trained on one of them first."""
_LONGEST = 10_000.0
"""Longest period of the sinusoids that positions of the plain model start from, over two pi."""
_SEQUENCES = 6
"""Training sequences for calibration."""


def plain_model(p: Mapping[str, Any], seed: int) -> tuple[CharacterModel, Words]:
    """A model that starts with sinusoids as positions and nothing else that it knows, trained on short rows first."""
    task, short = _task(p, seed), _task(p, seed, p["context"] // _PIECES)
    model = CharacterModel(task.n_words, p["context"], Shape(*p["plain"]), seed)
    d = p["plain"][0]
    angles = torch.arange(p["context"])[:, None] * _LONGEST ** -(torch.arange(0, d, 2) / d)
    with seeded(seed + 1), torch.no_grad():
        start(model)
        model.positions.copy_((2 / d) ** 0.5 * torch.cat([angles.sin(), angles.cos()], dim=1))
    train_characters(model, ShortFirst(task, short, p["plain steps"] // 2), p["plain steps"])
    return model, task


def look_up_model(p: Mapping[str, Any], seed: int) -> tuple[CharacterModel, Words]:
    """A model whose heads start as those that look up their context."""
    task = _task(p, seed)
    model = LookUpModel(task.n_words, p["context"], Shape(*p["look-up"]), seed)
    train_characters(model, task, p["look-up steps"])
    return model, task


def _task(p: Mapping[str, Any], seed: int, length: int | None = None) -> Words:
    """Rows of the context or of a length, with as many characters in a step."""
    text, n = dataset("wikitext-2"), length or p["context"]
    test = text.test[: (p["context"] + 1) * p["sequences"]]
    return Words(text.train[: p["letters"]], test, 200, n, p["context"] // n, seed)


def measure(model: CharacterModel, task: Words, p: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Relative increases of the bits per character.

    Keys of the table are window, anchors and rows.  Without rows, only the window and the anchors are seen.
    """
    exact = bits(model, task)
    generator = torch.Generator().manual_seed(seed)

    def increase(new: nn.Module, **limits: Any) -> float:
        return float(bits(new, task, **limits) / exact - 1)

    def draws(plans: Mapping[str, Any]) -> list[nn.Module]:
        return [replace_attention(model, plans, copy=True, generator=generator) for _ in range(p["draws"])]

    table = {_key(w, k, 0): [increase(model, near=(w, k))] for w in p["alone"] for k in (0, 1)}
    data = _rows(task, CALIBRATION, _SEQUENCES)
    distilled = []
    for window, anchors in _near(p):
        found = calibrate(model, data, max(p["rows"]), window, anchors)
        for m in p["rows"]:
            models = draws({name: _with_rows(plan, m) for name, plan in found.items()})
            table[_key(window, anchors, m)] = [increase(new) for new in models]
            if anchors and (window, m) == tuple(p["goals"][1]):
                more = _rows(task, DISTILLATION, p["distill"])
                for new in models[: p["distilled"]]:
                    distill(new, model, more, steps=p["distill"], generator=generator, verbose=False)
                    distilled.append(increase(new))
    window, m = p["goals"][0]
    favor = increase(converted(model, task, "favor++", m, seed))
    plans = calibrate(model, data, m, window, 1, keep=1, loss=next_tokens, generator=generator)
    kept = [k for k in range(len(model.encoder.layers)) if not any(f"layers.{k}." in name for name in plans)]
    one_exact = {
        "layers": kept,
        "alone": increase(model, near=(window, 1), kept=kept),
        "features": [increase(new) for new in draws(plans)],
    }
    return {
        "softmax": exact,
        "attended": attended(model, task, window),
        "table": table,
        "distilled": distilled,
        "favor++": favor,
        "kept": one_exact,
    }


def _near(p: Mapping[str, Any]) -> Sequence[tuple[int, int]]:
    """Windows and anchors to convert with: the first token beside each window, and for the first goal without it too."""
    return [(0, 0), *((window, 1) for window in p["windows"]), (p["goals"][0][0], 0)]


def _with_rows(plan: Any, m: int) -> LayerPlan:
    """A copy of the plan with another number of rows."""
    return LayerPlan((replace(head, n_projections=m) for head in plan), plan.window, plan.anchors)


def _key(window: int, anchors: int, m: int) -> str:
    return f"{window} {anchors} {m}"


def _rows(task: Words, first: int, count: int) -> list[Tensor]:
    return [task.training_rows(step, 1)[:, :-1] for step in range(first, first + count)]


def next_tokens(model: nn.Module, rows: Tensor) -> Tensor:
    """Cross-entropy of the tokens that follow."""
    return nn.functional.cross_entropy(model(rows)[:, :-1].flatten(0, 1), rows[:, 1:].flatten())
