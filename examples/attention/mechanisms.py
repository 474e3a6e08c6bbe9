"""The attention mechanisms that the examples compare, by name."""

from __future__ import annotations

import copy

import torch
from torch import nn

import bochner
from bochner.nn import RandomFeatureAttention, replace_attention

PAPERS = {"favor+": "favor+", "favor++": "favor++", "simplex": "simrf-performer"}
"""Names of the command line, and of `bochner.mechanism`."""

NAMES = ("softmax", *PAPERS)


def with_attention(model: nn.Module, name: str, n_projections: int, seed: int) -> nn.Module:
    """A copy of the model, with random features in place of softmax unless that is the name."""
    if name == "softmax":
        return copy.deepcopy(model)
    spec = bochner.mechanism(PAPERS[name], n_projections=n_projections)
    return replace_attention(model, spec, copy=True, generator=torch.Generator().manual_seed(seed))


def adapt(model: nn.Module) -> None:
    """Have maps with constants chosen from data choose them again from the next batch: norms grow in training."""
    for module in model.modules():
        if isinstance(module, RandomFeatureAttention) and module.features.adaptive:
            _fit_to_next_batch(module)


def _fit_to_next_batch(attention: RandomFeatureAttention) -> None:
    def hook(module: RandomFeatureAttention, inputs: tuple, options: dict) -> None:
        handle.remove()
        module.fit_statistics(*inputs[:2], key_padding_mask=options.get("key_padding_mask"))

    handle = attention.register_forward_pre_hook(hook, with_kwargs=True)
