"""Small models of every family, with batches to run them on, and their conversion."""

from __future__ import annotations

import torch
import transformers
from torch import nn

from bochner import Approximation, kernels, maps
from bochner.nn import replace_attention
from bochner.nn._conversion import attention_modules

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def vit(**options):
    config = transformers.ViTConfig(image_size=8, patch_size=2, num_channels=1, **SMALL | NO_DROPOUT | options)
    return transformers.ViTForImageClassification(config).eval()


def bert(**options):
    return transformers.BertModel(transformers.BertConfig(vocab_size=50, **SMALL | NO_DROPOUT | options)).eval()


def gpt2(**options):
    no_dropout = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
    sizes = {"vocab_size": 50, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    tokens = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **tokens, **no_dropout | options)).eval()


def encoder(**options):
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    return small(nn.TransformerEncoder(layer, 2, **{"enable_nested_tensor": False} | options).eval())


def decoder():
    layer = nn.TransformerDecoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    return small(nn.TransformerDecoder(layer, 2).eval())


def small(model):
    """With queries and keys of norms at which a few features suffice."""
    for module in attention_modules(model).values():
        module.in_proj_weight.data *= 0.5
    return model


TOKENS = torch.randint(2, 50, (3, 12), generator=torch.Generator().manual_seed(0))
PADDED = (torch.arange(12) < torch.tensor([[12], [7], [9]])).long()
ROWS = torch.randn(3, 12, 32, generator=torch.Generator().manual_seed(0))
IMAGES = torch.randn(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))
CAUSAL = nn.Transformer.generate_square_subsequent_mask(12)

RUNS = {
    "encoder": (encoder, lambda model: model(ROWS)),
    "encoder, padded": (encoder, lambda model: model(ROWS, src_key_padding_mask=PADDED == 0)[PADDED.bool()]),
    "encoder, causal": (encoder, lambda model: model(ROWS, mask=CAUSAL, is_causal=True)),
    "decoder": (decoder, lambda model: model(ROWS, ROWS.flip(0), tgt_mask=CAUSAL, tgt_is_causal=True)),
    "vit": (vit, lambda model: model(IMAGES).logits),
    "bert": (bert, lambda model: model(TOKENS).last_hidden_state),
    "bert, padded": (bert, lambda model: model(TOKENS, attention_mask=PADDED).last_hidden_state[PADDED.bool()]),
    "gpt2": (gpt2, lambda model: model(TOKENS).logits),
    "gpt2, padded": (gpt2, lambda model: model(TOKENS, attention_mask=PADDED).logits[PADDED.bool()]),
}


def build(name, seed=0):
    make, run = RUNS[name]
    torch.manual_seed(seed)
    return make(), run


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def converted(model, m=16, seed=0, **options):
    """A copy with m rows of a map, plain positive features without one."""
    spec = Approximation(kernels.Softmax(), options.pop("map", maps.Positive()), n_projections=m)
    return replace_attention(model, spec, copy=True, generator=generator(seed), **options)


def batch_of(name):
    """What the model of that run is called with."""
    if "encoder" in name:
        padding = {"src_key_padding_mask": PADDED == 0} if "padded" in name else {}
        causal = {"mask": CAUSAL, "is_causal": True}
        return {"src": ROWS} | padding | (causal if "causal" in name else {})
    if name == "decoder":
        return {"tgt": ROWS, "memory": ROWS.flip(0), "tgt_mask": CAUSAL, "tgt_is_causal": True}
    if name == "vit":
        return {"pixel_values": IMAGES}
    return {"input_ids": TOKENS} | ({"attention_mask": PADDED} if "padded" in name else {})
