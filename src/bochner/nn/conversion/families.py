"""Which modules of which models are attention, and where they keep their sizes: one line for each class."""

from __future__ import annotations

from typing import NamedTuple

from torch import nn


class Family(NamedTuple):
    """A class of attention in Hugging Face's ``transformers``.

    Attributes
    ----------
    model : str
        Family of models.
    heads, width : str
        Attributes with the number of heads and the width of a head.
    """

    model: str
    heads: str
    width: str


FAMILIES = {
    "transformers.models.vit.modeling_vit.ViTAttention": Family("ViT", "num_attention_heads", "head_dim"),
    "transformers.models.bert.modeling_bert.BertSelfAttention": Family(
        "BERT", "num_attention_heads", "attention_head_size"
    ),
    "transformers.models.bert.modeling_bert.BertCrossAttention": Family(
        "BERT", "num_attention_heads", "attention_head_size"
    ),
    "transformers.models.gpt2.modeling_gpt2.GPT2Attention": Family("GPT-2", "num_heads", "head_dim"),
}


def family_of(module: nn.Module) -> Family | None:
    """The family of an attention module of ``transformers``; None for any other module."""
    kind = type(module)
    return FAMILIES.get(f"{kind.__module__}.{kind.__qualname__}")
