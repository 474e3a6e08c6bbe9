"""A small model of words and vision transformers, converted without training."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from bochner.nn import attention_report, calibrate, replace_attention

from .._transformers import Images, LanguageModel, Shape, VisionTransformer, Words, converted, train
from ._converted_characters import next_tokens


def words(p: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Increases of the perplexity of words, and of the loss with what the report recommends."""
    task = Words.wikitext(p["words"][0], p["words"][1], 2000, p["length"], 8, seed)
    model = LanguageModel(task.n_words, p["length"], Shape(*p["shape"]), seed)
    for _ in train(model, task, p["training"]):
        pass
    exact, m, window = task.evaluate(model), p["word rows"], p["word window"]
    data = [task.training_rows(step)[:, :-1] for step in range(10_000, 10_004)]
    generator = torch.Generator().manual_seed(seed)

    def increases(plans: Any, draws: int) -> list[float]:
        models = (replace_attention(model, plans, copy=True, generator=generator) for _ in range(draws))
        return [task.evaluate(new) for new in models]

    found: dict[str, Any] = {
        "softmax": exact,
        "favor++": task.evaluate(converted(model, task, "favor++", m, seed)) / exact - 1,
    }
    for name, near in (("features", (0, 0)), ("window", (window, 1))):
        found[name] = [x / exact - 1 for x in increases(calibrate(model, data, m, *near), p["draws"])]
    options: dict[str, Any] = {
        "costs": [window + rows for rows in p["rows"]],
        "tolerance": p["tolerance"],
        "verbose": False,
    }
    report = attention_report(model, data[:-1], data[-1:], loss=next_tokens, generator=generator, **options)
    found["recommended"] = [0.0, 0.0]
    if report.recommended:
        found["recommended"] = [math.log(x) / math.log(exact) - 1 for x in increases(report.recommended, p["draws"])]
    found["chosen"] = [f"window {x.window}, {x.n_projections} rows" for x in report.recommended.values()]
    return found


def images(p: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Accuracies of some vision transformers, each the mean over draws."""
    full, draws = p["images"] == "mnist", p["draws"]
    m = 64 if full else p["word rows"]
    found: dict[str, list[float]] = {"softmax": [], "calibrated": [], "favor++": []}
    for k in range(p["models"]):
        task = Images(p["images"], p["test"], 64, seed + k)
        model = VisionTransformer(task.side, Shape(64, 3, 4) if full else Shape(16, 1, 2), seed + k)
        for _ in train(model, task, 400 if full else p["training"]):
            pass
        plans = calibrate(model, [task.training_batch(10_000 + i)[0] for i in range(8)], m)
        generator = torch.Generator().manual_seed(seed + k)
        models = (replace_attention(model, plans, copy=True, generator=generator) for _ in range(draws))
        found["softmax"].append(task.evaluate(model))
        found["calibrated"].append(float(np.mean([task.evaluate(new) for new in models])))
        found["favor++"].append(task.evaluate(converted(model, task, "favor++", m, seed + k)))
    return found
