"""The masks of ``nn.MultiheadAttention``, as far as they have a linear form."""

from __future__ import annotations

import torch
from torch import Tensor

_OWNER = "RandomFeatureAttention"


def hidden(name: str, mask: Tensor) -> Tensor:
    """What a mask hides, as bool: True, or minus infinity among zeros."""
    if mask.dtype == torch.bool:
        return mask
    if not mask.is_floating_point():
        raise TypeError(f"{_OWNER}: {name} must be of bool, or floating with 0 and -inf, got {mask.dtype}.")
    infinite = mask == -torch.inf
    if not bool((infinite | (mask == 0)).all()):
        raise ValueError(
            f"{_OWNER}: {name} adds numbers to the logits, which linear attention does not have; use 0 and -inf."
        )
    return infinite


def key_mask(key_padding_mask: Tensor | None) -> Tensor | None:
    """Which keys there are, (batch, length), of a mask that says which are padding, with or without a batch."""
    return None if key_padding_mask is None else ~hidden("key_padding_mask", torch.atleast_2d(key_padding_mask))


def is_causal_mask(attn_mask: Tensor | None, is_causal: bool) -> bool:
    """Whether attention is causal; any mask but the causal one and the empty one is refused."""
    if attn_mask is None:
        return is_causal
    mask = hidden("attn_mask", attn_mask)
    if not bool(mask.any()):
        return is_causal
    n, p = mask.shape[-2:]
    causal = torch.ones(n, p, dtype=torch.bool, device=mask.device).triu(1)
    if n != p or not bool((mask == causal).all()):
        raise ValueError(
            f"{_OWNER}: attn_mask of shape {tuple(attn_mask.shape)} is neither causal nor empty, and a mask of queries by "
            f"keys has no linear form; what there is: is_causal=True, key_padding_mask, and in linear_attention "
            f"prefix_lengths and cu_seqlens."
        )
    return True
