"""A small decoder trained to look up: pairs of a key and a value, and then keys again, whose values it has to say.

Import this file only where torch and transformers are known to be installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from torch.nn import functional as F

from bochner.nn import BoundedHead, BoundedPlan, calibrate, replace_attention

from .look_up import CODES, SOFTMAX, WINDOW

_BLOCK = BoundedPlan.block
_BASE = 1e6
"""Base of the periods of the rotations: most planes turn little within a sequence, so contents can be compared over it."""
_SHARP = 7.0
"""Size of the biases by which a head finds the token before."""


def measure(p: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Train a model, and measure the accuracy of all ways at all costs: one number per draw."""
    model, steps = _trained(p, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    pairs, length = p["stages"][-1][:2]
    fitted, tested = (_batch(p, pairs, length, count, generator) for count in (p["fit"], p["sequences"]))
    found: dict[str, Any] = {SOFTMAX: _accuracy(model, tested, pairs), WINDOW: [], CODES: []}
    heads = model.config.num_attention_heads
    for cost in p["costs"]:
        alone = BoundedPlan([BoundedHead(max(cost - 1 - _BLOCK // 2, 1))] * heads)
        found[WINDOW].append(_accuracy(replace_attention(model, alone, copy=True), tested, pairs))
        source = torch.Generator().manual_seed(seed + 2)
        plans: dict[str, Any] = calibrate(model, [fitted], 16, cost=cost, generator=source)
        coded = {name: replace(plan, exact_below=0) for name, plan in plans.items()}
        draws = [replace_attention(model, coded, copy=True, generator=source) for _ in range(p["draws"])]
        found[CODES].append([_accuracy(one, tested, pairs) for one in draws])
    return found | {"steps": steps}


def _trained(p: Mapping[str, Any], seed: int) -> tuple[Any, list[int]]:
    """A model that has passed all stages, and the steps of each: until it is right, or as many as there are."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    width, layers, heads = p["shape"]
    config = transformers.LlamaConfig(
        vocab_size=2 * p["vocabulary"], hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=2 * width, max_position_embeddings=2 * p["stages"][-1][1], attention_bias=True,
        rope_parameters={"rope_type": "default", "rope_theta": _BASE},
    )  # fmt: skip
    model: Any = transformers.LlamaForCausalLM(config)
    _start(model)
    taken = []
    for pairs, length, batch, most in p["stages"]:
        optimizer = torch.optim.AdamW(model.parameters(), lr=p["rate"], betas=(0.9, 0.98), weight_decay=0.0)
        right, step = 0.0, 0
        while step < most and right < p["enough"]:
            for group in optimizer.param_groups:
                group["lr"] = p["rate"] * min((step + 1) / 20, 1.0)
            loss, hit = _loss(model, _batch(p, pairs, length, batch, generator), pairs)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            right, step = 0.9 * right + 0.1 * hit, step + 1
        taken.append(step)
    return model.eval(), taken


@torch.no_grad()
def _start(model: Any) -> None:
    """Give two heads the weights from which looking up is learnt in minutes; all weights are trained.

    The first head of the first layer attends to the token before by its rotation alone, and copies it beside the own one;
    the first head of the second layer compares the own token with those copies, and copies what stands there.
    """
    width, heads = model.config.hidden_size, model.config.num_attention_heads
    d, half = width // heads, width // 2
    first, second = (layer.self_attn for layer in model.model.layers[:2])
    words, same = model.model.embed_tokens.weight, torch.eye(min(d, half))
    words[:, half:] = 0.0
    words[:, :half].normal_()
    model.lm_head.weight.zero_()[:, :half] = words[:, :half]
    angles = _BASE ** -(torch.arange(0, d, 2) / d)
    planes = (torch.arange(d // 2) < 4) * _SHARP
    for projection in (first.q_proj, first.k_proj):
        projection.weight[:d] = 0.0
    first.k_proj.bias[:d] = torch.cat([planes, torch.zeros(d // 2)])
    first.q_proj.bias[:d] = torch.cat([planes * angles.cos(), -planes * angles.sin()])
    for layer, target in ((first, half), (second, 0)):
        layer.v_proj.weight[:d] = 0.0
        layer.o_proj.weight[:, :d] = 0.0
        layer.v_proj.weight[: len(same), : len(same)] = same
        layer.o_proj.weight[target : target + len(same), : len(same)] = same
    for projection, source in ((second.q_proj, 0), (second.k_proj, half)):
        projection.weight[:d] = 0.0
        projection.weight[: len(same), source : source + len(same)] = same


def _batch(p: Mapping[str, Any], pairs: int, length: int, count: int, generator: torch.Generator) -> Tensor:
    """Sequences of pairs, each key once, and then of the same pairs in any order, again and again."""
    half: int = p["vocabulary"]
    rows = []
    for _ in range(count):
        keys = torch.randperm(half, generator=generator)[:pairs]
        values = half + torch.randint(half, (pairs,), generator=generator)
        later = torch.randint(pairs, (length // 2 - pairs,), generator=generator)
        order = torch.cat([torch.arange(pairs), later])
        rows.append(torch.stack([keys[order], values[order]], dim=-1).flatten())
    return torch.stack(rows)


def _loss(model: Any, rows: Tensor, pairs: int) -> tuple[Tensor, float]:
    """Cross-entropy of the values of keys that came before, and the part that is right."""
    places = torch.arange(2 * pairs, rows.shape[1], 2)
    logits = model(rows, use_cache=False).logits[:, places].flatten(0, 1).float()
    wanted = rows[:, places + 1].flatten()
    return F.cross_entropy(logits, wanted), float((logits.argmax(-1) == wanted).double().mean())


@torch.no_grad()
def _accuracy(model: Any, rows: Tensor, pairs: int) -> float:
    return sum(_loss(model, row[None], pairs)[1] for row in rows) / len(rows)
