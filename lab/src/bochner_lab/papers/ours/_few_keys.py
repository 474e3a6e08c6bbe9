"""Measurements on trained models whose attention meets few keys.

Import this file only where torch and transformers are known to be installed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bochner.nn import BoundedHead, BoundedPlan, calibrate, replace_attention

from ..._trained_models import SMOLLM2, load
from ._chosen_keys import METHODS, SAMPLED, Bases, attention_by, choosing
from .fixed_state import CALIBRATED, MEANS
from .trained_models import CODES, KEPT, STATE, WINDOW

_BLOCK = BoundedPlan.block


def measure(
    name: str,
    small: bool,
    length: int,
    sequences: tuple[int, int],
    draws: int,
    costs: Sequence[int],
    others: Sequence[str],
    rows: int,
    fit: int,
    seed: int,
) -> dict[str, Any]:
    """Losses of sequences, or cosines of embeddings, by method, cost and draw; codes first, others at the largest cost.

    There are as many sequences for codes as the first number says, for others as the second.
    """
    model, tokens = load(name, small)
    causal = name == SMOLLM2
    fitted, tested = tokens("valid", fit, length), tokens("test", sequences[0], length)
    fewer = tested[: sequences[1]]
    judge = _losses if causal else embeddings
    exact = judge(model, tested)
    score: Callable[[Tensor], list[float]] = (
        (lambda found: found.tolist())
        if causal
        else (lambda found: F.cosine_similarity(found, exact[: len(found)], dim=-1).tolist())
    )
    values: dict[str, dict[str, list[list[float]]]] = {}

    def add(method: str, run: Callable[[int, int], Tensor], times: int = 1) -> None:
        if method == CODES or method in others:
            own = costs if method == CODES else costs[-1:]
            values[method] = {str(cost): [score(run(cost, draw)) for draw in range(times)] for cost in own}

    def by_plan(plans: Any, draw: int, rows: Tensor = fewer) -> Tensor:
        generator = torch.Generator().manual_seed(seed + draw)
        return judge(replace_attention(model, plans, copy=True, generator=generator), rows)

    batches = [row[None] for row in fitted]
    config: Any = model.config
    heads: int = config.num_attention_heads
    add(WINDOW, lambda cost, _: by_plan(_bounded(cost, heads, causal, 0.0), 0))
    if causal:
        add(KEPT, lambda cost, _: by_plan(_bounded(cost, heads, causal, 0.5), 0))
        add(STATE, lambda cost, _: by_plan(calibrate(model, batches, state=cost), 0))
    generator = torch.Generator().manual_seed(seed)
    coded: dict[int, Any] = {cost: calibrate(model, batches, rows, cost=cost, generator=generator) for cost in costs}
    add(
        CODES,
        lambda cost, draw: by_plan({n: replace(plan, exact_below=0) for n, plan in coded[cost].items()}, draw, tested),
        draws,
    )
    bases = Bases()
    with attention_by(model, bases.learn(causal)):
        judge(model, fitted)
    for method in METHODS:

        def chosen(cost: int, draw: int, method: str = method) -> Tensor:
            source = torch.Generator().manual_seed(seed + draw)
            with attention_by(model, choosing(method, bases, cost, causal, 1, source)):
                return judge(model, fewer)

        add(method, chosen, draws if method == SAMPLED else 1)
    return {"costs": list(costs), "exact": exact.tolist() if causal else [], "values": values}


def measure_states(small: bool, length: int, sequences: Sequence[int], state: int, fit: int) -> dict[str, Any]:
    """Losses of sequences whose heads hold a number of keys, by method: so many if calibrated, and so many of others."""
    model, tokens = load(SMOLLM2, small)
    fitted, tested = tokens("valid", fit, length), tokens("test", sequences[0], length)
    config: Any = model.config
    heads, window = config.num_attention_heads, state // 4
    block = min(_BLOCK, window)

    def plan(means: int, kept: bool) -> BoundedPlan:
        near = window if kept else state - 1 - block
        head = BoundedHead(near, state - near - 1 - block - means)
        return BoundedPlan([head] * heads, block=block, means=means)

    plans = {
        WINDOW: plan(0, False),
        KEPT: plan(0, True),
        MEANS: plan(BoundedPlan.means, True),
        CALIBRATED: calibrate(model, [row[None] for row in fitted], state=state),
    }
    values = {
        method: _losses(
            replace_attention(model, own, copy=True), tested if method == CALIBRATED else tested[: sequences[1]]
        ).tolist()
        for method, own in plans.items()
    }
    return {"exact": _losses(model, tested).tolist(), "values": values}


def _bounded(cost: int, heads: int, causal: bool, kept: float) -> BoundedPlan:
    """A state of that many keys, a part of which is kept by its weight."""
    if not causal:
        return BoundedPlan([BoundedHead(cost // 2)] * heads)
    others = int(kept * cost)
    return BoundedPlan([BoundedHead(max(cost - others - 1 - _BLOCK // 2, 1), others)] * heads, means=0)


@torch.no_grad()
def _losses(model: nn.Module, rows: Tensor) -> Tensor:
    """Mean cross-entropy of the next token of each sequence."""
    found = []
    for row in rows:
        logits = model(row[None], use_cache=False).logits[0, :-1].float()
        found.append(F.cross_entropy(logits, row[1:]))
    return torch.stack(found).double()


@torch.no_grad()
def embeddings(model: nn.Module, rows: Tensor) -> Tensor:
    """Mean of the last hidden states, (sequences, width)."""
    return torch.cat([model(row[None]).last_hidden_state.mean(1) for row in rows])
