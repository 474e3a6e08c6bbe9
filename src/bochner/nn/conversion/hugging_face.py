"""Attention of ``transformers`` models, through the registry of attention functions that they dispatch to."""

from __future__ import annotations

import copy
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
    """Have the attention of this module's configuration go to the function of that name; return the one before."""
    before: str = module.config._attn_implementation
    module.config._attn_implementation = name
    return before


def attach(module: nn.Module, features: HeadAttention) -> None:
    """Give an attention module its features, where its parameters are, and a configuration of its own that uses them."""
    register()
    setattr(module, ATTRIBUTE, features.to(next(module.parameters()).device))
    module.config = copy.deepcopy(module.config)
    dispatch_to(module, NAME)


def make_masks_linear(model: nn.Module) -> None:
    """Have models all of whose attention is converted make masks of keys only, which take linear memory.

    Masks are made by the model, for the attention that its configuration names.  A configuration that unconverted
    attention shares stays as it is, and converted attention reads the masks that are made for the others.
    """
    waiting = {id(m.config) for m in model.modules() if _is_attention(m) and not hasattr(m, ATTRIBUTE)}
    for module in model.modules():
        config = getattr(module, "config", None)
        if hasattr(config, "_attn_implementation") and id(config) not in waiting and _holds_converted(module):
            dispatch_to(module, NAME)


def _is_attention(module: nn.Module) -> bool:
    """Whether a module calls the attention function that its configuration names, of whatever family."""
    return hasattr(module, "is_causal") and hasattr(getattr(module, "config", None), "_attn_implementation")


def _holds_converted(module: nn.Module) -> bool:
    return any(hasattr(part, ATTRIBUTE) for part in module.modules())


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
    """Attention of (batch, heads, length, d), called by the model.

    What else the model passes does not concern it; dropout of attention weights has none to drop.
    """
    n, prefixes = query.shape[-2], None
    causal = bool(getattr(module, "is_causal", False) if is_causal is None else is_causal)
    if attention_mask is not None and attention_mask.ndim == 4:
        prefixes, attention_mask = _prefixes(attention_mask)
        causal = n == key.shape[-2] and prefixes.tolist() == list(range(1, n + 1))
        prefixes = None if causal or bool((prefixes == key.shape[-2]).all()) else prefixes
    elif attention_mask is not None:  # a static cache is longer than what it holds
        key, value = key[..., : attention_mask.shape[1], :], value[..., : attention_mask.shape[1], :]
        attention_mask = attention_mask.bool()
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    p = key.shape[-2]
    if causal and n != p:  # a cache holds the keys of the past
        causal, prefixes = False, torch.arange(p - n + 1, p + 1, device=query.device)
    options: dict[str, Any] = {"causal": causal, "prefixes": prefixes, "key_mask": attention_mask, "scale": scale}
    recording = listeners()
    for listener in recording:
        listener(module, query, key, **options)
    features = exact_attention if recording else getattr(module, ATTRIBUTE, None)
    if features is None:
        raise ValueError(
            f"bochner: this {type(module).__name__} has no features; attn_implementation={NAME!r} is set by "
            f"bochner.nn.replace_attention, so build the model with its usual attention and convert it."
        )
    return features(query, key, value, **options).transpose(1, 2).contiguous(), None


def _prefixes(mask: Tensor) -> tuple[Tensor, Tensor]:
    """How many keys each query sees (Lq,), and which keys there are (batch, Lk), of a mask (batch, 1, Lq, Lk).

    The mask is one that a model makes for exact attention: True, or zero among large negative numbers, for what is seen.
    """
    seen = mask if mask.dtype == torch.bool else mask == 0
    there = seen.any(dim=-2)  # (batch, 1, Lk)
    places = torch.arange(1, seen.shape[-1] + 1, device=seen.device)
    lengths = (seen.any(dim=0)[0] * places).amax(dim=-1)
    linear = seen.shape[1] == 1 and torch.equal(seen, there[:, :, None] & (places <= lengths[:, None]))
    if not linear or not (mask.dtype == torch.bool or bool((seen | (mask < -1e4)).all())):
        raise ValueError(
            f"bochner: an attention mask of shape {tuple(mask.shape)} must be causal or empty, apart from padding; other "
            f"masks of queries by keys have no linear form."
        )
    return lengths, there[:, 0]


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
