"""Attention of ``transformers`` models, through the registry of attention functions that they dispatch to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from ..listeners import listeners
from .exact import exact_attention

if TYPE_CHECKING:
    from .heads import HeadAttention

NAME = "bochner"
"""Name of our function in the registries of ``transformers``."""

ATTRIBUTE = "random_features"
"""Submodule of a converted attention that holds its features."""


def register() -> None:
    """Make our functions known to ``transformers``; a second time changes nothing."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, key_mask)


def dispatch_to(module: nn.Module, name: str) -> str:
    """Have the attention of this module's model go to the function of that name; return the one before."""
    before: str = module.config._attn_implementation
    module.config._attn_implementation = name
    return before


def attach(module: nn.Module, features: HeadAttention) -> None:
    """Give an attention module its features, in the place where its parameters are."""
    register()
    setattr(module, ATTRIBUTE, features.to(next(module.parameters()).device))
    dispatch_to(module, NAME)


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attention of (batch, heads, length, d), called by the model; exact for a module that has no features.

    What else the model passes does not concern it; dropout of attention weights has none to drop.
    """
    if attention_mask is not None and attention_mask.ndim != 2:
        raise ValueError(
            f"bochner: attention_mask must have shape (batch, length), got {tuple(attention_mask.shape)}; a mask of queries "
            f"by keys has no linear form."
        )
    causal = bool(getattr(module, "is_causal", False) if is_causal is None else is_causal)
    if attention_mask is not None:  # a static cache is longer than what it holds
        key, value = key[..., : attention_mask.shape[1], :], value[..., : attention_mask.shape[1], :]
        attention_mask = attention_mask.bool()
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    options: dict[str, Any] = {"causal": causal, "key_mask": attention_mask, "scale": scale}
    recording = listeners()
    for listener in recording:
        listener(module, query, key, **options)
    features = None if recording else getattr(module, ATTRIBUTE, None)
    out = (exact_attention if features is None else features)(query, key, value, **options)
    return out.transpose(1, 2).contiguous(), None


def key_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int = 0,
    mask_function: Any = None,
    attention_mask: Tensor | None = None,
    device: Any = None,
    **_: Any,
) -> Tensor | None:
    """Which keys there are, (batch, length), as `attention` takes it; None where all are."""
    _check_pattern(mask_function)
    held = min(kv_length, int(q_offset) + q_length) if mask_function is _causal() else kv_length
    if attention_mask is None:
        if held == kv_length:
            return None
        attention_mask = torch.ones(batch_size, held, dtype=torch.bool, device=device)
    attention_mask = attention_mask[:, :held].bool()
    return None if held == kv_length and bool(attention_mask.all()) else attention_mask


def _causal() -> Any:
    from transformers.masking_utils import causal_mask_function

    return causal_mask_function


def _check_pattern(mask_function: Any) -> None:
    from transformers.masking_utils import bidirectional_mask_function

    if mask_function not in (None, _causal(), bidirectional_mask_function):
        raise ValueError(
            "bochner: the model asks for a mask that is neither causal nor empty (a window, or packed sequences), and a "
            "mask of queries by keys has no linear form; use one sequence a row, with padding."
        )
