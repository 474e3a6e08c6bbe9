"""Masks of ``transformers`` models as linear attention takes them: prefixes of keys, padding, and numbers for keys."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._attention_checks import readable

_HIDDEN = -1e4
"""What models add to the logits of keys that are not seen is below this."""


def of_last_keys(mask: Tensor | None, count: int) -> Tensor | None:
    """The part of a mask that belongs to the last keys; None where there are none.

    That of a single key has only to say whether it is there, (batch, 1), unless it adds another number to its logits.
    """
    if mask is None or not count:
        return None
    last = mask[..., -count:]
    if count == 1 and last.ndim == 4:
        there = last if last.dtype == torch.bool else last > _HIDDEN
        if last.dtype == torch.bool or not bool(last.masked_fill(~there, 0).any()):
            return there[:, 0, -1]
    return last


def prefixes_of(mask: Tensor) -> tuple[Tensor, Tensor]:
    """How many keys each query sees (Lq,), and which keys there are, of a mask (batch, heads or 1, Lq, Lk).

    The mask is one that a model makes for exact attention: True for what is seen, or numbers that are added to the logits,
    large negative ones for what is not seen.  Other numbers must be the same for all queries that see a key.

    Returns
    -------
    prefixes : Tensor (Lq,)
    keys : Tensor (batch, Lk) of bool, or (batch, heads or 1, Lk) of numbers
        As `linear_attention` takes them.
    """
    of_bool = mask.dtype == torch.bool
    seen = mask if of_bool else mask > _HIDDEN
    there = seen.any(dim=-2)  # (batch, 1, Lk)
    places = torch.arange(1, seen.shape[-1] + 1, device=seen.device)
    lengths = (seen.any(dim=0)[0] * places).amax(dim=-1)
    linear = torch.equal(seen, (there[:, :1, None] & (places <= lengths[:, None])).expand_as(seen))
    bias = None if of_bool else mask.amax(dim=-2, keepdim=True)
    if not linear or not (bias is None or bool((~seen | (mask == bias)).all())):
        raise ValueError(
            f"bochner: an attention mask of shape {tuple(mask.shape)} must be causal or empty, apart from padding and from "
            f"numbers that are the same for all queries; other masks of queries by keys have no linear form."
        )
    if bias is None or not bool(bias[:, :, 0].masked_fill(~there, 0.0).any()):
        return lengths, there[:, 0]
    return lengths, bias[:, :, 0].masked_fill(~there, -torch.inf)


def are_causal(prefixes: Tensor, n_keys: int) -> bool:
    """Whether query i sees the keys up to i."""
    return len(prefixes) == n_keys and prefixes.tolist() == list(range(1, n_keys + 1))


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
    causal = mask_function is _causal()
    held = min(kv_length, int(q_offset) + q_length) if causal else kv_length
    plain = held == kv_length and (not causal or q_length in (1, kv_length))
    if attention_mask is None:
        return None if plain else torch.ones(batch_size, held, dtype=torch.bool, device=device)
    attention_mask = attention_mask[:, :held].bool()
    if torch.compiler.is_compiling() or not readable(attention_mask):
        return attention_mask
    return None if plain and bool(attention_mask.all()) else attention_mask


def _causal() -> Any:
    from transformers.masking_utils import causal_mask_function

    return causal_mask_function


def _check_pattern(mask_function: Any) -> None:
    from transformers.masking_utils import bidirectional_mask_function

    if mask_function not in (None, _causal(), bidirectional_mask_function):
        raise ValueError(
            "bochner: the model asks for a mask that is neither causal nor empty (a window, or packed sequences), and a "
            "mask of queries by keys has no linear form; use one sequence per row, with padding.  Within torch.compile and "
            "torch.export, pass an attention_mask: without one, models look for packed sequences."
        )
