"""The families of ``transformers`` models that convert: the facts of each class of attention, in one table.

Every one of these classes projects its input, turns queries and keys where positions are rotary, updates the cache, and
then calls the attention function that its configuration names.  `_hugging_face` provides that function; what it has to
know of a class is written here, and the documentation and the tests read it from here.  Classes that are not in the table
convert too if they call that function, and have their sizes under one of the usual names.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple

import torch
from torch import nn


class Family(NamedTuple):
    """A class of attention."""

    model: str  # the family of models
    heads: str  # paths of attributes with the number of query heads, and with the width of a head
    width: str
    # path of the attribute with a sliding window, which is None for attention to all positions; empty where there is
    # none
    window: str = ""
    # what keeps a module from being converted, in words; None where nothing does
    refuses: Callable[[nn.Module], str | None] = lambda module: None
    notes: str = ""  # what else there is to know, for the table of the documentation


def _softcapped(module: nn.Module) -> str | None:
    """Softcapping: a function of the dot product that is not linear in its exponent."""
    cap: Any = module.attn_logit_softcapping
    if cap is None:
        return None
    return (
        f"caps its dot products by {cap:g} tanh(x / {cap:g}), which random features of the softmax kernel do not estimate; "
        f"use codes (CodedPlan), which compute it, or where dot products stay far below the cap, set "
        f"attn_logit_softcapping = None on these modules"
    )


def is_unbiased_cross(module: nn.Module) -> bool:
    """Whether an attention with the position bias of T5 is cross-attention, where that bias is zero."""
    return bool(getattr(module, "is_decoder", False)) and not getattr(module, "is_causal", True)


def _biased(module: nn.Module) -> str | None:
    """The position bias of T5: a free number for each distance between query and key, and zero for cross-attention."""
    if is_unbiased_cross(module):
        return None
    return (
        "adds a learned bias for each distance between query and key, which has no linear form; use codes (CodedPlan), "
        "which compute it, or convert cross-attention alone, with "
        'select=lambda name, module: name.endswith("EncDecAttention")'
    )


_LLAMA = Family("Llama", "config.num_attention_heads", "head_dim", notes="rotary positions, grouped heads")
_SLIDING = _LLAMA._replace(window="sliding_window")
_BERT = Family("BERT", "num_attention_heads", "attention_head_size", notes="also as a decoder with cross-attention")
_BART = Family("BART", "num_heads", "head_dim", notes="encoder, decoder and cross-attention")

FAMILIES = {
    "gpt2.modeling_gpt2.GPT2Attention": Family("GPT-2", "num_heads", "head_dim", notes=_BERT.notes),
    "gpt_neox.modeling_gpt_neox.GPTNeoXAttention": Family(
        "GPT-NeoX", "config.num_attention_heads", "head_size", notes="rotary positions"
    ),
    "llama.modeling_llama.LlamaAttention": _LLAMA,
    "mistral.modeling_mistral.MistralAttention": _LLAMA._replace(model="Mistral", window="config.sliding_window"),
    "qwen2.modeling_qwen2.Qwen2Attention": _SLIDING._replace(model="Qwen2"),
    "qwen3.modeling_qwen3.Qwen3Attention": _SLIDING._replace(model="Qwen3"),
    "gemma2.modeling_gemma2.Gemma2Attention": _SLIDING._replace(
        model="Gemma2", refuses=_softcapped, notes="rotary positions, grouped heads; without softcapping only"
    ),
    "bert.modeling_bert.BertSelfAttention": _BERT,
    "bert.modeling_bert.BertCrossAttention": _BERT,
    "roberta.modeling_roberta.RobertaSelfAttention": _BERT._replace(model="RoBERTa"),
    "roberta.modeling_roberta.RobertaCrossAttention": _BERT._replace(model="RoBERTa"),
    "distilbert.modeling_distilbert.DistilBertSelfAttention": Family("DistilBERT", "n_heads", "attention_head_size"),
    "modernbert.modeling_modernbert.ModernBertAttention": _SLIDING._replace(
        model="ModernBERT", notes="rotary positions"
    ),
    "t5.modeling_t5.T5Attention": Family(
        "T5",
        "n_heads",
        "key_value_proj_dim",
        refuses=_biased,
        notes="cross-attention only: the others add a position bias",
    ),
    "bart.modeling_bart.BartAttention": _BART,
    "whisper.modeling_whisper.WhisperAttention": _BART._replace(model="Whisper"),
    "vit.modeling_vit.ViTAttention": Family("ViT", "num_attention_heads", "head_dim"),
    "clip.modeling_clip.CLIPAttention": Family("CLIP", "num_heads", "head_dim", notes="text and images"),
}
"""Facts by class, relative to ``transformers.models``."""

_WHERE = "transformers.models."
_CROSS = {"crossattention", "encoder_attn", "EncDecAttention"}  # names of cross-attention in the layers of decoders


_HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "attention_heads", "config.num_attention_heads")
_WIDTHS = (
    "qk_head_dim",
    "head_dim",
    "attention_head_size",
    "head_size",
    "key_value_proj_dim",
    "d_kv",
    "config.head_dim",
)
_QUERIES = ("q_proj", "query", "q_lin", "to_q", "wq", "q", "query_proj")
"""Attributes where classes of attention have their number of heads, the width of a head, or the projection of queries."""


def family_of(module: nn.Module) -> Family | None:
    """The family of an attention module of ``transformers``; None for any other module.

    Classes that are not in the table, also those of other packages and of remote code, belong to a family of their own if
    they call the attention function that their configuration names, and say how many heads of which width they have.
    """
    if not hasattr(getattr(module, "config", None), "_attn_implementation"):
        return None
    own: Any = type(module)
    for kind in own.__mro__:
        known = FAMILIES.get(f"{kind.__module__.removeprefix(_WHERE)}.{kind.__qualname__}")
        if known is not None and (kind is own or calls_interface(own)):
            return known
    return _any_family(module) if calls_interface(own) else None


@cache
def calls_interface(kind: Any) -> bool:
    """Whether modules of a class call the attention function that their configuration names."""
    try:
        return "ALL_ATTENTION_FUNCTIONS" in inspect.getsource(kind.forward)
    except (OSError, TypeError, AttributeError):
        return False


@cache
def changes_cached(kind: Any) -> bool:
    """Whether modules of a class compute the keys or values of their attention from what their cache returns.

    Latent attention expands what it holds, and others halve it: a cache that holds codes or sums must not serve these.
    """
    try:
        _, update, after = inspect.getsource(kind.forward).rpartition(".update(")
    except (OSError, TypeError, AttributeError):
        return False
    return bool(update and re.search(r"^ *(?:(?:key|value)(?:_states?\d*)?|k|v)(?:, *\w+)* *= ", after, re.MULTILINE))


def _any_family(module: nn.Module) -> Family | None:
    """The family of a class that is not in the table; None where its sizes cannot be found."""
    heads, width = (next((path for path in paths if _number(module, path)), "") for paths in (_HEADS, _WIDTHS))
    if not heads or not (width or _width_of_queries(module, heads)):
        return None
    window = "sliding_window" if hasattr(module, "sliding_window") else ""
    return Family(type(module).__name__, heads, width, window, _refused)


def _number(module: nn.Module, path: str) -> int | None:
    """A positive integer at the path of an attribute; None where there is none."""
    try:
        found = attrgetter(path)(module)
    except AttributeError:
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None


def _width_of_queries(module: nn.Module, heads: str) -> int | None:
    """Width of a head by the projection of queries."""
    projection = next((getattr(module, name) for name in _QUERIES if hasattr(module, name)), None)
    out, n = getattr(projection, "out_features", None), _number(module, heads)
    return out // n if out and n and not out % n else None


def _refused(module: nn.Module) -> str | None:
    """What a class that is not in the table says of itself that has no linear form."""
    if getattr(module, "attn_logit_softcapping", None) is not None:
        return _softcapped(module)
    if isinstance(getattr(module, "sinks", None), torch.Tensor):
        return "has attention sinks, learned logits without a key; use codes (CodedPlan) for it, or keep it exact"
    if hasattr(module, "has_relative_attention_bias") or hasattr(module, "relative_attention_bias"):
        if is_unbiased_cross(module):
            return None
        return (
            "adds a learned bias for each distance between query and key, which has no linear form; use codes (CodedPlan), "
            "which compute it, or keep it exact, and convert the rest with select="
        )
    return None


def sizes(module: nn.Module) -> tuple[int, int]:
    """Number of query heads, and width of a head, of an attention of a known family."""
    family = family_of(module)
    assert family is not None
    heads = int(attrgetter(family.heads)(module))
    if not family.width:
        return heads, _width_of_queries(module, family.heads) or 1
    return heads, int(attrgetter(family.width)(module))


def looks_like_attention(module: nn.Module) -> bool:
    """Whether a module seems to be softmax attention, by its name and what it is made of; containers are not."""
    name = type(module).__name__
    if not name.endswith(("Attention", "SelfAttention", "CrossAttention")):
        return False
    return any(isinstance(child, nn.Linear) or "Conv1D" in type(child).__name__ for child in module.children())


def is_cross(name: str) -> bool:
    """Whether the attention of that name in a decoder is cross-attention."""
    return not _CROSS.isdisjoint(name.split("."))


def slides(module: nn.Module) -> bool:
    """Whether an attention of a known family sees a sliding window only; it stays exact, and is linear already."""
    family = family_of(module)
    return family is not None and bool(family.window) and attrgetter(family.window)(module) is not None


def refusal(module: nn.Module, *, coded: bool = False) -> str | None:
    """What keeps an attention of a known family from being converted, to features or to codes, in words."""
    family = family_of(module)
    if family is not None and hasattr(module, "prepare_dynamic_mask"):
        return "makes a mask of its own from the one that is made for its attention function; keep it exact"
    if family is not None and isinstance(getattr(module, "indexer", None), nn.Module):
        return "chooses its keys by an indexer of its own, and is sparse already; keep it exact"
    return None if family is None or coded else family.refuses(module)  # codes compute what features cannot
