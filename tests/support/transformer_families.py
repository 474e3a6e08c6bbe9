"""A small model of each family of ``transformers`` models that converts, with a batch, from random configurations."""

from __future__ import annotations

import torch
import transformers

from bochner.nn._families import family_of
from support.attention_models import PADDED, TOKENS, bert, gpt2, vit

SIZES = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 16}
SPECIAL = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
GROUPED = SIZES | SPECIAL | {"num_key_value_heads": 2, "max_position_embeddings": 64}
SEQUENCES = {"vocab_size": 50, "d_model": 16, "encoder_layers": 1, "decoder_layers": 2, "decoder_start_token_id": 2}
SEQUENCES |= {f"{side}_attention_heads": 4 for side in ("encoder", "decoder")}
SEQUENCES |= {f"{side}_ffn_dim": 16 for side in ("encoder", "decoder")}
BATCH = {"input_ids": TOKENS, "attention_mask": PADDED}
PAIRS = BATCH | {"decoder_input_ids": TOKENS.flip(0)}


def _of(name, config, **options):
    return lambda **more: getattr(transformers, name)(getattr(transformers, config)(**options | more))


def _clip(**options):
    sizes = {name: size for name, size in SIZES.items() if name != "vocab_size"}
    text = sizes | SPECIAL | {"vocab_size": 50, "max_position_embeddings": 16}
    images = sizes | {"image_size": 8, "patch_size": 2}
    return transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=images, **options))


def _decoder(make):
    return lambda **options: make(is_decoder=True, add_cross_attention=True, **options)


FAMILIES = {
    "GPT-2": (gpt2, BATCH),
    "GPT-NeoX": (_of("GPTNeoXForCausalLM", "GPTNeoXConfig", **SIZES, **SPECIAL), BATCH),
    "Llama": (_of("LlamaForCausalLM", "LlamaConfig", **GROUPED), BATCH),
    "Mistral": (_of("MistralForCausalLM", "MistralConfig", **GROUPED, sliding_window=None), BATCH),
    "Qwen2": (
        _of(
            "Qwen2ForCausalLM", "Qwen2Config", **GROUPED, use_sliding_window=True, max_window_layers=1, sliding_window=4
        ),
        BATCH,
    ),
    "Qwen3": (_of("Qwen3ForCausalLM", "Qwen3Config", **GROUPED, head_dim=4), BATCH),
    "Gemma2": (
        _of(
            "Gemma2ForCausalLM",
            "Gemma2Config",
            **GROUPED,
            head_dim=4,
            query_pre_attn_scalar=4,
            sliding_window=8,
            attn_logit_softcapping=None,
        ),
        BATCH,
    ),
    "BERT": (bert, BATCH),
    "RoBERTa": (_of("RobertaModel", "RobertaConfig", **SIZES, **SPECIAL), BATCH),
    "DistilBERT": (
        _of("DistilBertModel", "DistilBertConfig", vocab_size=50, dim=16, n_layers=2, n_heads=4, hidden_dim=16),
        BATCH,
    ),
    "ModernBERT": (
        _of(
            "ModernBertModel",
            "ModernBertConfig",
            **SIZES,
            **SPECIAL,
            cls_token_id=0,
            sep_token_id=1,
            global_attn_every_n_layers=2,
            local_attention=4,
        ),
        BATCH,
    ),
    "T5": (
        _of(
            "T5ForConditionalGeneration",
            "T5Config",
            **{"vocab_size": 50, "d_model": 16, "d_kv": 4, "d_ff": 16, "num_layers": 2, "num_heads": 4},
            decoder_start_token_id=0,
        ),
        PAIRS,
    ),
    "BART": (
        _of("BartForConditionalGeneration", "BartConfig", **SEQUENCES, **SPECIAL, forced_eos_token_id=None),
        PAIRS,
    ),
    "Whisper": (
        _of(
            "WhisperForConditionalGeneration",
            "WhisperConfig",
            **SEQUENCES,
            **SPECIAL,
            num_mel_bins=8,
            max_source_positions=12,
            max_target_positions=64,
        ),
        {
            "input_features": torch.randn(3, 8, 24, generator=torch.Generator().manual_seed(0)),
            "decoder_input_ids": TOKENS,
        },
    ),
    "ViT": (vit, {"pixel_values": torch.randn(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))}),
    "CLIP": (_clip, BATCH | {"pixel_values": torch.randn(3, 3, 8, 8, generator=torch.Generator().manual_seed(0))}),
}
"""How to make a model, and what to call it with."""

VARIANTS = {
    "GPT-2, a decoder": (
        _decoder(gpt2),
        BATCH | {"encoder_hidden_states": torch.randn(3, 9, 32, generator=torch.Generator().manual_seed(1))},
    ),
    "RoBERTa, a decoder": (
        _decoder(_of("RobertaForCausalLM", "RobertaConfig", **SIZES, **SPECIAL)),
        BATCH | {"encoder_hidden_states": torch.randn(3, 9, 16, generator=torch.Generator().manual_seed(1))},
    ),
}
"""The same for decoders with cross-attention."""


def convertible(name, _):
    """What can be converted of all families: of T5, cross-attention."""
    return not name.endswith("SelfAttention") or "attention.self" in name


def build(name, **options):
    """A model in evaluation, in double precision, with queries and keys of moderate norms, and its batch."""
    make, batch = (FAMILIES | VARIANTS)[name]
    torch.manual_seed(0)
    model = make(**options).double().eval()
    for module in filter(family_of, model.modules()):
        for weight in module.parameters():
            if weight.ndim == 2:
                weight.data *= 0.12 / weight.data.std()
    return model, {key: x.double() if x.is_floating_point() else x for key, x in batch.items()}


def outputs(model, batch):
    """What a model gives on a batch, all of it that is not padding, in one row."""
    with torch.no_grad():
        out = model(**batch, use_cache=False) if "use_cache" in model.forward.__code__.co_varnames else model(**batch)
    for name in ("logits", "logits_per_text", "last_hidden_state"):
        if name in out:
            out = out[name]
            break
    mask = batch.get("attention_mask")
    padded = mask is not None and "decoder_input_ids" not in batch and out.shape[:2] == mask.shape
    return out[mask.bool()] if padded else out
