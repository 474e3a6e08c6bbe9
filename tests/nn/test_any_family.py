"""Any module that calls the attention interface of transformers converts, agrees with exact attention, saves and loads."""

from __future__ import annotations

import pytest
import torch
from torch import nn

transformers = pytest.importorskip("transformers")

from bochner import Approximation, kernels, maps  # noqa: E402
from bochner.nn import LayerPlan, replace_attention  # noqa: E402
from bochner.nn._families import family_of, sizes  # noqa: E402
from bochner.nn._hugging_face import ATTRIBUTE  # noqa: E402

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 50}
IMAGES = {"image_size": 32, "patch_size": 8}
TOKENS = torch.randint(3, 50, (2, 12), generator=torch.Generator().manual_seed(0))
PIXELS = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
SOUND = torch.randn(2, 800, generator=torch.Generator().manual_seed(0))
CONVOLUTIONS = {"conv_dim": (16, 16), "conv_stride": (4, 4), "conv_kernel": (8, 8), "num_conv_pos_embeddings": 16}


def text(name, **options):
    return name, "Model", SIZES | options, {"input_ids": TOKENS}


def decoder(name, **options):
    return name, "ForCausalLM", SIZES | options, {"input_ids": TOKENS}


def vision(name, model="Model", **options):
    return (
        name,
        model,
        {k: v for k, v in SIZES.items() if k != "vocab_size"} | IMAGES | options,
        {"pixel_values": PIXELS},
    )


MODELS = [
    text("Albert", embedding_size=16),
    text("Esm", pad_token_id=1),
    text("XLMRoberta"),
    text("Electra", embedding_size=32),
    text("Camembert"),
    text("MobileBert", intra_bottleneck_size=32, embedding_size=32, true_hidden_size=32),
    decoder("Gemma", head_dim=8, num_key_value_heads=2),
    decoder("Phi"),
    decoder("Phi3", pad_token_id=0),
    decoder("Mixtral", num_local_experts=2, num_key_value_heads=2),
    decoder("Olmo2", num_key_value_heads=2),
    decoder("Granite", num_key_value_heads=2),
    decoder("StableLm", num_key_value_heads=2),
    decoder("Starcoder2", num_key_value_heads=2, sliding_window=None),
    decoder("SmolLM3", num_key_value_heads=2, pad_token_id=0),
    decoder("Cohere", num_key_value_heads=2, pad_token_id=0, bos_token_id=1, eos_token_id=2),
    (
        "OPT",
        "ForCausalLM",
        {"vocab_size": 50, "hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
        | {"word_embed_proj_dim": 32},
        {"input_ids": TOKENS},
    ),
    vision("Dinov2", mlp_ratio=2),
    vision("DeiT"),
    vision("SiglipVision", "Model"),
    (
        "Wav2Vec2",
        "Model",
        SIZES | CONVOLUTIONS | {"num_conv_pos_embedding_groups": 4},
        {"input_values": SOUND},
    ),
]


def built(model):
    name, kind, options, batch = model
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**options)
    return getattr(transformers, name + kind)(config).eval(), batch


def attention_of(model):
    return {name: m for name, m in model.named_modules() if family_of(m) is not None}


def first(out):
    return out.logits if hasattr(out, "logits") else out.last_hidden_state


@torch.no_grad()
@pytest.mark.filterwarnings("ignore:.*modules that look like attention")
@pytest.mark.parametrize("model", MODELS, ids=[name for name, *_ in MODELS])
def test_a_window_over_everything_is_exact_attention(model, tmp_path):
    model, batch = built(model)
    expected, found = first(model(**batch)), attention_of(model)
    spec = Approximation(kernels.Softmax(), maps.Positive(), n_projections=4)
    plans = {name: LayerPlan([spec] * sizes(module)[0], window=1024) for name, module in found.items()}
    replace_attention(model, plans)
    assert found and all(hasattr(module, ATTRIBUTE) for module in found.values())
    assert torch.allclose(first(model(**batch)), expected, atol=1e-4)
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path).eval()
    assert torch.allclose(first(loaded(**batch)), first(model(**batch)), atol=1e-6)


class Unknown(nn.Module):
    """A model with one attention that is known, and one that is not."""

    class OwnAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q_proj = nn.Linear(8, 8)

    def __init__(self):
        super().__init__()
        self.known, self.unknown = nn.MultiheadAttention(8, 2), self.OwnAttention()


def test_attention_that_stays_exact_is_named():
    with pytest.warns(UserWarning, match=r"1 modules that look like attention stay exact: unknown \(OwnAttention\)"):
        replace_attention(Unknown(), "favor+", 8)


@pytest.mark.parametrize(
    "name, options, match",
    [
        ("GptOss", {"num_local_experts": 2, "num_experts_per_tok": 1, "head_dim": 8}, "attention sinks"),
        ("Gemma2", {"head_dim": 8, "num_key_value_heads": 2}, "caps its dot products"),
    ],
)
def test_what_has_no_linear_form_is_refused(name, options, match):
    model, _ = built(decoder(name, **options))
    with pytest.raises(ValueError, match=match):
        replace_attention(model, "favor+", 8)


@pytest.mark.parametrize("name", ["output_attentions", "softcap", "s_aux", "head_mask", "anything"])
def test_keywords_that_change_attention_are_refused(name):
    model, batch = built(decoder("Llama"))
    replace_attention(model, "favor+", 8)
    value = True if name == "output_attentions" else torch.ones(2)
    with pytest.raises(ValueError, match=f"LlamaAttention passes {name} to its attention"):
        model(**batch, **{name: value})
