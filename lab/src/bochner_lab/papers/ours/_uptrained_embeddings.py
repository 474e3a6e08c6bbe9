"""Embeddings of a converted encoder after each stage of training.

Import this file only where torch and transformers are known to be installed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from bochner.nn import calibrate, distill, replace_attention, uptrain

from ..._trained_models import MINILM, load
from ._few_keys import embeddings
from .uptrained import CALIBRATED, DISTILLED, UPTRAINED


def measure(p: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Cosines to the exact embeddings and whether neighbours are the same, by stage and passage; time of training."""
    model, tokens = load(MINILM, p["small"])
    first, count, judged = p["passages"]
    drawn = torch.Generator().manual_seed(seed)
    passages = tokens("train", count, p["length"])
    batches = list(passages[torch.randperm(len(passages), generator=drawn)].split(p["batch"]))
    tested = tokens("test", judged, p["length"])
    exact = F.normalize(embeddings(model, tested), dim=-1)
    cosines: dict[str, list[float]] = {}
    neighbours: dict[str, list[float]] = {}

    def judge(stage: str) -> None:
        found = F.normalize(embeddings(converted, tested), dim=-1)
        cosines[stage] = (found * exact).sum(-1).tolist()
        neighbours[stage] = (_nearest(found) == _nearest(exact)).double().tolist()

    few = batches[: first // p["batch"]]
    plans = calibrate(model, few[:2], p["rows"], generator=drawn)
    converted = replace_attention(model, plans, copy=True, generator=drawn)
    judge(CALIBRATED)
    start = time.process_time()
    distill(converted, model, few, steps=p["distill"], generator=drawn, verbose=False)
    spent = time.process_time() - start
    judge(DISTILLED)
    start = time.process_time()
    with torch.autocast("cpu", torch.bfloat16):
        uptrain(converted, model, batches, steps=p["uptrain"], generator=drawn, verbose=False)
    spent += time.process_time() - start
    judge(UPTRAINED)
    return {"cosines": cosines, "neighbours": neighbours, "seconds": spent}


def _nearest(x: Tensor) -> Tensor:
    """The nearest other row of each."""
    return (x @ x.mT).fill_diagonal_(-2.0).argmax(-1)
