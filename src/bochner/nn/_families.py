"""The families of ``transformers`` models that convert: the facts of each class of attention, in one table.

Every one of these classes projects its input, turns queries and keys where positions are rotary, updates the cache, and
then calls the attention function that its configuration names.  `_hugging_face` provides that function; what it has to
know of a class is written here, and the documentation and the tests read it from here.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

from torch import nn


class Family(NamedTuple):
    """A class of attention.

    Attributes
    ----------
    model : str
        The family of models.
    heads, width : str
        Paths of attributes with the number of query heads, and with the width of a head.
    window : str
        Path of the attribute with a sliding window, which is None for attention to all positions; empty where there is none.
    refuses : callable, optional
        What keeps a module from being converted, in words; None where nothing does.
    notes : str
        What else there is to know, for the table of the documentation.
    """

    model: str
    heads: str
    width: str
    window: str = ""
    refuses: Callable[[nn.Module], str | None] = lambda module: None
    notes: str = ""


def _softcapped(module: nn.Module) -> str | None:
    """Softcapping: a function of the dot product that is not linear in its exponent."""
    cap: Any = module.attn_logit_softcapping
    if cap is None:
        return None
    return (
        f"caps its dot products by {cap:g} tanh(x / {cap:g}), which random features of the softmax kernel do not estimate; "
        f"where dot products stay far below the cap, set attn_logit_softcapping = None on these modules, and convert then"
    )


def _biased(module: nn.Module) -> str | None:
    """The position bias of T5: a free number for each distance between query and key, and zero for cross-attention."""
    if module.is_decoder and not module.is_causal:
        return None
    return (
        "adds a learned bias for each distance between query and key, which has no linear form; convert cross-attention "
        'alone, with select=lambda name, module: name.endswith("EncDecAttention")'
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
_CROSS = {"crossattention", "encoder_attn", "EncDecAttention"}
"""Names of cross-attention in the layers of decoders."""


def family_of(module: nn.Module) -> Family | None:
    """The family of an attention module of ``transformers``; None for any other module."""
    kind = type(module)
    if not kind.__module__.startswith(_WHERE):
        return None
    return FAMILIES.get(f"{kind.__module__.removeprefix(_WHERE)}.{kind.__qualname__}")


def sizes(module: nn.Module) -> tuple[int, int]:
    """Number of query heads, and width of a head, of an attention of a known family."""
    family = family_of(module)
    assert family is not None
    return int(attrgetter(family.heads)(module)), int(attrgetter(family.width)(module))


def is_cross(name: str) -> bool:
    """Whether the attention of that name in a decoder meets the keys of an encoder."""
    return not _CROSS.isdisjoint(name.split("."))


def slides(module: nn.Module) -> bool:
    """Whether an attention of a known family sees a sliding window only; it stays exact, and is linear already."""
    family = family_of(module)
    return family is not None and bool(family.window) and attrgetter(family.window)(module) is not None


def refusal(module: nn.Module) -> str | None:
    """What keeps an attention of a known family from being converted, in words."""
    family = family_of(module)
    return None if family is None else family.refuses(module)
