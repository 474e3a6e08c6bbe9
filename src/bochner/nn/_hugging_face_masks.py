"""Masks of ``transformers`` models as linear attention takes them: prefixes of keys, padding, and numbers for keys."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from ._attention_checks import readable

_HIDDEN = -1e4  # what models add to the logits of keys that are not seen is below this


class MaskFacts(NamedTuple):
    """What a mask (batch, heads or 1, Lq, Lk) says."""

    prefixes: Tensor | None  # as `prefixes_of` returns them; None where the mask is of another kind
    keys: Tensor | None
    causal: bool  # whether query i sees the keys up to i, apart from padding
    full: bool  # whether all queries see all keys, apart from padding
    borders: Tensor | None  # cumulative lengths of packed sequences, where it keeps them apart


_READ = "_bochner_has_read"
"""Attribute of a mask with its version and what it says: all layers of a model get the same mask, and the first reads it."""


def read(mask: Tensor) -> MaskFacts:
    """What a mask says, kept with the mask."""
    version, seen = getattr(mask, _READ, (None, None))
    if seen is not None and version == mask._version:
        return cast(MaskFacts, seen)
    found = prefixes_of(mask)
    if found is None:
        seen = MaskFacts(None, None, False, False, borders_in(mask))
    else:
        lengths, n_keys = found[0], mask.shape[-1]
        seen = MaskFacts(*found, are_causal(lengths, n_keys), bool((lengths == n_keys).all()), None)
    if not torch.is_inference(mask) and not mask.requires_grad:  # versions are counted, and no graph is kept alive
        setattr(mask, _READ, (mask._version, seen))
    return seen


def refused(mask: Tensor) -> ValueError:
    """The error for a mask that features cannot follow."""
    return ValueError(
        f"bochner: an attention mask of shape {tuple(mask.shape)} must be causal or empty, apart from padding, packed "
        f"sequences, and numbers that are the same for all queries; other masks of queries by keys have no linear form, and "
        f"need codes (bochner.nn.CodedPlan) in place of features."
    )


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


def prefixes_of(mask: Tensor) -> tuple[Tensor, Tensor] | None:
    """How many keys each query sees (Lq,), and which keys there are, of a mask (batch, heads or 1, Lq, Lk).

    The mask is one that a model makes for exact attention: True for what is seen, or numbers that are added to the logits,
    large negative ones for what is not seen.  Other numbers must be the same for all queries that see a key.

    Returns
    -------
    prefixes : Tensor (Lq,)
        Both are None for another mask.
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
        return None
    if bias is None or not bool(bias[:, :, 0].masked_fill(~there, 0.0).any()):
        return lengths, there[:, 0]
    return lengths, bias[:, :, 0].masked_fill(~there, -torch.inf)


def borders_in(mask: Tensor) -> Tensor | None:
    """Cumulative lengths (n + 1,) of packed sequences, of the mask (batch, 1, L, L) that keeps them apart; None for another.

    Each sequence is causal, and all rows of the batch are packed alike.
    """
    seen = mask if mask.dtype == torch.bool else mask > _HIDDEN
    length = seen.shape[-1]
    if seen.shape[-2] != length or not length:
        return None
    places = torch.arange(length, device=seen.device)
    first = seen[0, 0].int().argmax(dim=-1)  # of the sequence that a query is in
    packed = (places >= first[:, None]) & (places <= places[:, None])
    if not torch.equal(first[first], first) or not torch.equal(seen, packed.expand_as(seen)):  # as of a window
        return None
    return torch.cat([places[first == places], places.new_full((1,), length)])


def apart(borders: Tensor, length: int) -> Tensor:
    """Which keys a query of packed causal sequences sees, (1, 1, L, L) of bool."""
    places = torch.arange(length, device=borders.device)
    own = torch.searchsorted(borders, places, right=True)
    return ((own[:, None] == own) & (places <= places[:, None]))[None, None]


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
    **others: Any,
) -> Tensor | None:
    """Which keys there are, (batch, length), as `attention` takes it; None where all are; or the mask of another pattern."""
    both_sides = mask_function is not None and mask_function is not _causal()
    if not _is_linear(mask_function) or (both_sides and others.get("allow_is_bidirectional_skip") is False):
        # models ask for the whole mask where their attention calls itself causal and is not
        sizes = (batch_size, q_length, kv_length, q_offset)
        return _mask_of_pairs(
            *sizes, mask_function=mask_function, attention_mask=attention_mask, device=device, **others
        )
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


def _is_linear(mask_function: Any) -> bool:
    from transformers.masking_utils import bidirectional_mask_function

    return mask_function in (None, _causal(), bidirectional_mask_function)


def _mask_of_pairs(*sizes: int, **options: Any) -> Tensor:
    """The mask of queries by keys that models make for exact attention: a window, or packed sequences."""
    from transformers.masking_utils import sdpa_mask

    if torch.compiler.is_compiling():
        raise ValueError(
            "bochner: the model asks for a mask that is neither causal nor empty (a window, or packed sequences), which a "
            "graph cannot look into.  Within torch.compile and torch.export, pass an attention_mask: without one, models "
            "look for packed sequences."
        )
    return cast(
        Tensor, sdpa_mask(*sizes, **options | {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False})
    )
