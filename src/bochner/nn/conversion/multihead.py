"""Attention of torch's own modules."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ...approximation import Approximation
from ..module import RandomFeatureAttention


def check_multihead(name: str, module: nn.MultiheadAttention) -> None:
    """Refuse a module with keys of its own, which linear attention does not have."""
    if module.bias_k is not None or module.add_zero_attn:
        raise ValueError(
            f"replace_attention: {name or 'the model'} was built with add_bias_kv or add_zero_attn, which have no "
            f"counterpart; build it without them, or leave it out with select."
        )


def converted(
    module: nn.MultiheadAttention | RandomFeatureAttention,
    spec: Approximation,
    *,
    per_head: bool,
    generator: torch.Generator | None,
) -> RandomFeatureAttention:
    """An attention of random features with the same parameters: the same objects, so that optimizers go on."""
    weight = module.out_proj.weight
    new = RandomFeatureAttention(
        module.embed_dim,
        module.num_heads,
        bias=module.in_proj_bias is not None,
        kdim=module.kdim,
        vdim=module.vdim,
        batch_first=module.batch_first,
        device=weight.device,
        dtype=weight.dtype,
        features=spec,
        per_head=per_head,
        generator=generator,
        **_own_options(module),
    )
    for name, _ in list(new.named_parameters(recurse=False)):
        setattr(new, name, getattr(module, name))
    new.out_proj.weight, new.out_proj.bias = module.out_proj.weight, module.out_proj.bias
    new.train(module.training)
    return new


def _own_options(module: nn.Module) -> dict[str, Any]:
    """What an attention of random features has beyond torch's."""
    if not isinstance(module, RandomFeatureAttention):
        return {}
    return {"scale": module.scale, "learned_scale": module.log_scale is not None, "rotary": module.rotary}


def leave_fast_path(model: nn.Module, replaced: set[int]) -> None:
    """Have encoders with replaced attention not pack padded batches, for which their layers have a path of their own."""
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoder) and any(id(part) in replaced for part in module.modules()):
            module.use_nested_tensor = False
