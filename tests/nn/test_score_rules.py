"""Position biases, caps, sinks, masks of pairs and packed sequences: exact in coded attention, or refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bochner.maps import Frame
from bochner.nn import CodedHead, CodedPlan, coded_attention, linear_attention, replace_attention
from support.attention import check_close, lower, positive, tokens

LENGTH = 40


def numbers(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def by_definition(q, k, v, *, bias=None, softcap=None, sinks=None):
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores if bias is None else scores + bias
    weights = scores.masked_fill(~lower(LENGTH).bool(), -torch.inf).exp()
    total = weights.sum(dim=-1, keepdim=True)
    return weights @ v / (total if sinks is None else total + sinks.exp()[:, None, None])


RULES = {
    "bias": {"position_bias": numbers(1, 2, LENGTH, LENGTH)},
    "cap": {"softcap": 0.7},
    "sinks": {"sinks": numbers(2)},
    "all of them": {"position_bias": numbers(2, 1, LENGTH, LENGTH), "softcap": 2.0, "sinks": numbers(2)},
}


@pytest.mark.parametrize("options", RULES.values(), ids=RULES)
def test_scores_are_changed_as_defined(options):
    q, k, v = tokens(2, 2, length=LENGTH, d=8)
    expected = by_definition(q, k, v, **{name.removeprefix("position_"): value for name, value in options.items()})
    check_close(coded_attention(q, k, v, 16, causal=True, window=4, kept=LENGTH, **options), expected, 1e-12)


def test_a_bias_ranks_keys():
    """The one far key that a bias raises is found among the codes of all."""
    q, k, v = tokens(1, 1, length=LENGTH, d=8, size=0.1)
    bias = torch.zeros(1, 1, LENGTH, LENGTH, dtype=torch.float64)
    bias[..., 7] = 12.0
    found = coded_attention(q, k, v, 16, causal=True, window=2, anchors=0, kept=1, position_bias=bias)
    check_close(found[..., 20:, :], v[..., 7:8, :].expand(-1, -1, 20, -1), 1e-3)


@pytest.mark.parametrize("coded", [False, True])
def test_alibi_is_a_bias_of_keys(coded):
    """A bias -s (i - j) of pairs is one s j of keys, up to a number for each query."""
    q, k, v = tokens(1, 2, length=LENGTH, d=8)
    slopes, places = torch.tensor([0.5, 0.25], dtype=torch.float64), torch.arange(LENGTH, dtype=torch.float64)
    pairs = slopes[:, None, None] * (places - places[:, None])
    of_keys = (slopes[:, None] * places)[None]
    if coded:
        found = coded_attention(q, k, v, 16, causal=True, window=4, kept=LENGTH, key_mask=of_keys)
        check_close(found, by_definition(q, k, v, bias=pairs), 1e-12)
        return
    phi, root = positive(8), 8**-0.25
    weights = phi.queries(q * root) @ phi.keys(k * root).mT * pairs.exp() * lower(LENGTH)
    found = linear_attention(q, k, v, features=phi, causal=True, key_mask=of_keys)
    check_close(found, weights @ v / weights.sum(dim=-1, keepdim=True), 1e-12)


@pytest.mark.parametrize(
    "options, match",
    [
        ({"position_bias": numbers(3, 3)}, r"position_bias must be a tensor that broadcasts to \(2, 2, 40, 40\)"),
        ({"softcap": -1.0}, "softcap must be"),
        ({"sinks": numbers(3)}, "sinks must be a tensor of 2 numbers"),
        ({"softcap": 2.0, "block": 4}, "computed with block=1"),
    ],
)
def test_errors(options, match):
    q, k, v = tokens(2, 2, length=LENGTH, d=8)
    with pytest.raises(ValueError, match=match):
        coded_attention(q, k, v, 16, causal=True, **options)


transformers = pytest.importorskip("transformers")
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 50}
INPUT = torch.randint(3, 50, (2, 12), generator=torch.Generator().manual_seed(0))
HEAD = CodedHead(Frame(np.zeros(8), np.zeros(8), np.eye(8)), kept=64)
PLAN = CodedPlan([HEAD] * 4, window=2, exact_below=0)
MODELS = {
    "T5": {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 50}
    | {"decoder_start_token_id": 0},
    "Gemma2": SIZES | {"head_dim": 8, "num_key_value_heads": 2, "attn_logit_softcapping": 0.5, "sliding_window": 8},
    "GptOss": SIZES | {"num_local_experts": 2, "num_experts_per_tok": 1, "head_dim": 8, "num_key_value_heads": 2},
}


def built(name, **options):
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**MODELS.get(name, SIZES) | {"pad_token_id": 0} | options)
    model = getattr(transformers, name + ("ForConditionalGeneration" if name == "T5" else "ForCausalLM"))(config)
    for parameter in model.parameters():
        parameter.data.normal_(std=0.3)
    return model.eval()


@torch.no_grad()
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exact_below", [0, 1 << 30])
@pytest.mark.parametrize("name", MODELS)
def test_families_with_other_scores(name, exact_below, tmp_path):
    model = built(name)
    batch = {"input_ids": INPUT} | ({"decoder_input_ids": INPUT.flip(1)} if name == "T5" else {})
    mask = torch.ones_like(INPUT)
    mask[1, -4:] = 0
    options = {"max_new_tokens": 6, "do_sample": False}
    expected, text = model(**batch, attention_mask=mask).logits, model.generate(INPUT[:1], **options)
    plan = CodedPlan([HEAD] * 4, window=2, exact_below=exact_below)
    replace_attention(model, plan)
    check_close(model(**batch, attention_mask=mask).logits, expected, 1e-4)
    assert torch.equal(model.generate(INPUT[:1], **options), text)
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path).eval()
    check_close(again(**batch, attention_mask=mask).logits, expected, 1e-4)


@torch.no_grad()
@pytest.mark.parametrize("spec", ["favor+", PLAN], ids=["features", "codes"])
@pytest.mark.parametrize("given", ["position_ids", "cu_seq_lens"])
def test_packed_sequences_in_models(spec, given):
    model = replace_attention(built("Llama", num_key_value_heads=2), spec, 8)
    parts = INPUT[0].split([5, 7])
    expected = torch.cat([model(part[None]).logits for part in parts], dim=1)
    places = torch.cat([torch.arange(5), torch.arange(7)])[None]
    options = {"position_ids": places, "use_cache": False}
    if given == "cu_seq_lens":
        borders = torch.tensor([0, 5, 12])
        options |= {"cu_seq_lens_q": borders, "cu_seq_lens_k": borders, "attention_mask": torch.ones(1, 12)}
    check_close(model(INPUT[:1], **options).logits, expected, 1e-5)


def test_borders_of_keys_are_those_of_queries():
    model = replace_attention(built("Llama", num_key_value_heads=2), "favor+", 8)
    with pytest.raises(ValueError, match="cu_seq_lens_q and cu_seq_lens_k must be the same"):
        model(INPUT, cu_seq_lens_q=torch.tensor([0, 12]), cu_seq_lens_k=torch.tensor([0, 5, 12]))


@torch.no_grad()
def test_masks_are_read_once(monkeypatch):
    """A model that is converted in part makes masks of pairs; the first converted layer reads one, and all others know."""
    from bochner.nn import _hugging_face_masks

    calls, read = [], _hugging_face_masks.prefixes_of
    monkeypatch.setattr(_hugging_face_masks, "prefixes_of", lambda mask: calls.append(1) or read(mask))
    model = built("Llama", num_key_value_heads=2, num_hidden_layers=4)
    replace_attention(model, "favor+", 8, select=lambda name, module: "0" not in name)
    mask = torch.ones_like(INPUT)
    mask[1, :4] = 0
    model(INPUT, attention_mask=mask)
    assert len(calls) == 1


def test_plans_for_all_attention_of_a_model():
    plans = CodedPlan.uncalibrated(built("Gemma2"), kept=7, window=3)
    assert list(plans) == ["model.layers.1.self_attn"]  # the other layer slides
    plan = plans["model.layers.1.self_attn"]
    assert len(plan) == 4 and plan.window == 3 and {head.kept for head in plan.heads} == {7}


def test_attention_that_changes_what_its_cache_returns():
    """Latent attention expands what it holds; a cache of codes or sums would serve it wrongly."""
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention
    from transformers.models.diffllama.modeling_diffllama import DiffLlamaAttention
    from transformers.models.llama.modeling_llama import LlamaAttention

    from bochner.nn._families import changes_cached

    assert (
        changes_cached(DiffLlamaAttention)
        and changes_cached(DeepseekV3Attention)
        and not changes_cached(LlamaAttention)
    )


@pytest.mark.parametrize(
    "name, match", [("BigBirdPegasus", "is causal by its mask alone"), ("Doge", "makes a mask of its own")]
)
def test_masks_that_a_module_needs_are_not_taken_away(name, match):
    options = {
        "d_model": 32,
        "decoder_attention_heads": 4,
        "decoder_layers": 1,
        "decoder_ffn_dim": 32,
        "num_hidden_layers": 1,
    }
    model = built(name, **options)
    with pytest.raises(ValueError, match=match):
        replace_attention(model, PLAN)


def test_attention_that_calls_itself_causal_and_asks_for_a_mask_of_both_sides():
    """LightGlue: its attention has ``is_causal = True``, and its mask, of one row for all queries, hides nothing."""
    from transformers.masking_utils import create_bidirectional_mask

    model = built("Llama")
    hidden = torch.randn(2, 12, 32, generator=torch.Generator().manual_seed(0))
    there = torch.ones(2, 12, dtype=torch.long)

    def both_sides(config):
        mask = create_bidirectional_mask(
            config=config, inputs_embeds=hidden[:, :1], attention_mask=there, allow_is_bidirectional_skip=False
        )
        attention = model.model.layers[0].self_attn
        turns = model.model.rotary_emb(hidden, torch.arange(12)[None])
        return attention(hidden, position_embeddings=turns, attention_mask=mask)[0]

    expected = both_sides(model.config)
    replace_attention(model, PLAN)
    assert torch.allclose(both_sides(model.config), expected, atol=1e-5)


def test_an_indexer_of_its_own_is_kept_exact():
    with pytest.raises(ValueError, match="chooses its keys by an indexer of its own"):
        replace_attention(built("DeepseekV32", q_lora_rank=16), PLAN)
