"""Attention of transformers' models: masks, caches, and layers that are not converted."""

from __future__ import annotations

import pickle

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from bochner import Approximation, kernels, maps
from bochner.nn import LayerPlan, LinearCache, replace_attention
from bochner.nn._recording import exact_copy
from support.attention import check_close
from support.attention_models import IMAGES, PADDED, ROWS, TOKENS, bert, build, converted, gpt2, vit


@pytest.mark.parametrize("side", ["left", "right"])
def test_generation_with_a_cache_equals_generation_without(side):
    new = converted(build("gpt2")[0], 64)
    mask = PADDED if side == "right" else PADDED.flip(1)
    options = {"max_new_tokens": 8, "do_sample": False, "attention_mask": mask, "output_logits": True}
    with torch.no_grad():
        cached, plain = (
            new.generate(TOKENS, use_cache=cache, return_dict_in_generate=True, **options) for cache in (True, False)
        )
    assert torch.equal(cached.sequences, plain.sequences)
    assert torch.allclose(torch.stack(cached.logits), torch.stack(plain.logits), atol=1e-4)


def test_generation_with_a_static_cache():
    new = converted(build("gpt2")[0], 64)
    with torch.no_grad():
        a, b = (
            new.generate(TOKENS, max_new_tokens=5, do_sample=False, cache_implementation=kind, disable_compile=True)
            for kind in ("static", "dynamic")
        )
    assert torch.equal(a, b)


def test_bert_as_a_decoder_with_cross_attention():
    torch.manual_seed(0)
    model = bert(is_decoder=True, add_cross_attention=True)
    new = converted(model, 512)
    options = {"encoder_hidden_states": ROWS, "encoder_attention_mask": PADDED, "use_cache": False}
    with torch.no_grad():
        exact, found = (m(TOKENS, **options).last_hidden_state for m in (model, new))
    assert float((found - exact).square().mean() / exact.square().mean()) < 0.05**2


HALF = {
    "vit": (vit, {"attention_probs_dropout_prob": 0.5}, {"pixel_values": IMAGES}, "layers.{}.attention"),
    "bert": (
        bert,
        {"attention_probs_dropout_prob": 0.5},
        {"input_ids": TOKENS, "attention_mask": PADDED},
        "layer.{}.attention.self",
    ),
    "gpt2": (gpt2, {"attn_pdrop": 0.5}, {"input_ids": TOKENS, "attention_mask": PADDED}, "h.{}.attn"),
}


def half_converted(name, implementation):
    """A model with dropout of attention weights, a copy whose second layer is converted, and a batch."""
    make, dropout, batch, where = HALF[name]
    torch.manual_seed(0)
    model = make(attn_implementation=implementation, **dropout).train()
    return model, converted(model, 64, select=lambda name, _: name.endswith(where.format(1))), batch, where.format(0)


def output_of(model, layer, batch):
    """What one attention gives in training, under one seed."""
    (attention,) = (module for name, module in model.named_modules() if name.endswith(layer))
    found = []
    handle = attention.register_forward_hook(lambda module, inputs, output: found.append(output[0]))
    torch.manual_seed(7)
    model(**batch)
    handle.remove()
    return found[0]


@pytest.mark.filterwarnings("ignore:bochner. dropout of attention weights is not applied")  # in the other layer
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", HALF)
def test_attention_that_is_not_selected_keeps_its_dropout(name, implementation):
    model, new, batch, layer = half_converted(name, implementation)
    found = output_of(new, layer, batch)
    assert torch.equal(found, output_of(model, layer, batch))
    assert not torch.allclose(found, output_of(model.eval(), layer, batch))  # there is dropout to lose


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", HALF)
def test_attention_that_is_not_selected_keeps_its_implementation(name, implementation):
    _, new, _, layer = half_converted(name, implementation)
    (attention,) = (module for path, module in new.named_modules() if path.endswith(layer))
    assert attention.config._attn_implementation == implementation == new.config._attn_implementation


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", HALF)
def test_converted_attention_reads_the_masks_of_the_others(name, implementation):
    """Masks of queries by keys give what masks of keys alone give to a model that is converted as a whole."""
    _, new, batch, layer = half_converted(name, implementation)
    whole = converted(new, 64, select=lambda name, _: name.endswith(layer))
    assert whole.config._attn_implementation == "bochner"
    there = batch["attention_mask"].bool() if "attention_mask" in batch else slice(None)
    with torch.no_grad():
        linear = whole.eval()(**batch)[0][there]
        whole.set_attn_implementation(implementation)
        assert torch.allclose(whole(**batch)[0][there], linear, atol=1e-5)


@torch.no_grad()
def test_a_window_reads_the_masks_of_other_layers():
    """With padding they are of queries by keys, and all queries see the same keys."""
    model, layer = bert(), "encoder.layer.1.attention.self"
    spec = Approximation(kernels.Softmax(), maps.Positive(), n_projections=4)
    new = replace_attention(model, {layer: LayerPlan([spec] * 4, window=1024)}, copy=True)
    for mask in (PADDED, PADDED.flip(1)):
        exact, found = (m(TOKENS, attention_mask=mask).last_hidden_state[mask.bool()] for m in (model, new))
        check_close(found, exact, 1e-4)


def test_converted_attention_stays_converted():
    model, run = build("gpt2")
    new = converted(model)
    with torch.no_grad():
        before = run(new)
        new.set_attn_implementation("sdpa")
        assert torch.allclose(run(new), before, atol=1e-5)


def test_a_configuration_cannot_ask_for_features():
    replace_attention(build("gpt2")[0], "dense")  # makes the name known
    with pytest.raises(ValueError, match=r"this GPT2Attention has no features; .*replace_attention"):
        gpt2(attn_implementation="bochner")(TOKENS)


def test_numbers_that_a_mask_adds_to_the_logits_of_keys():
    """Those of each head, with padding; all keys are in the window, so that attention is exact."""
    old = build("gpt2")[0]
    plan = LayerPlan([Approximation(kernels.Softmax(), maps.Positive(), n_projections=16)] * 4, window=12)
    new = replace_attention(old, {f"transformer.h.{i}.attn": plan for i in range(2)}, copy=True)
    numbers = torch.randn(3, 4, 1, 12, generator=torch.Generator().manual_seed(0)).expand(-1, -1, 12, -1)
    hidden = ~torch.ones(12, 12, dtype=torch.bool).tril()
    mask = numbers.masked_fill(hidden, torch.finfo(torch.float32).min)
    mask = mask.masked_fill(PADDED[:, None, None] == 0, -torch.inf)
    with torch.no_grad():
        exact, found = (model(TOKENS, attention_mask=mask, use_cache=False).logits for model in (old, new))
        check_close(found, exact, 1e-5)
        check_close(exact_copy(new)(TOKENS, attention_mask=mask, use_cache=False).logits, exact, 1e-5)


def test_numbers_of_a_mask_while_decoding():
    """A cache of sums gives what the whole sequence gives, where each new key has a number of its own."""
    new = converted(build("gpt2")[0], 64)
    numbers = torch.randn(3, 1, 1, 12, generator=torch.Generator().manual_seed(0))
    hidden = ~torch.ones(12, 12, dtype=torch.bool).tril()
    mask = numbers.expand(-1, -1, 12, -1).masked_fill(hidden | (PADDED[:, None, None] == 0), -torch.inf)
    with torch.no_grad():
        whole, cache = new(TOKENS, attention_mask=mask, use_cache=False).logits, LinearCache(new)
        for a, b in ((0, 5), (5, 6), (6, 7)):
            part = mask[:, :, a:b, :b]
            found = new(TOKENS[:, a:b], attention_mask=part, past_key_values=cache).logits
            check_close(found, whole[:, a:b], 1e-5)


def test_masks_without_a_linear_form():
    new = converted(build("gpt2")[0])
    window = torch.ones(12, 12, dtype=torch.bool).tril().triu(-3).expand(3, 1, 12, 12)
    with pytest.raises(ValueError, match=r"mask of shape \(3, 1, 12, 12\) must be causal or empty, apart from padding"):
        new(TOKENS, attention_mask=window)
    with pytest.raises(ValueError, match="must be causal or empty, apart from padding"):
        new(TOKENS, attention_mask=torch.rand(3, 1, 12, 12))
    packed = torch.cat([torch.arange(6), torch.arange(6)]).repeat(3, 1)
    packed[1] = torch.cat([torch.arange(5), torch.arange(7)])  # rows that are packed in different ways
    with pytest.raises(ValueError, match="must be causal or empty, apart from padding, packed sequences"):
        new(TOKENS, position_ids=packed, use_cache=False)


def test_pickled_model_runs_in_a_process_that_converted_nothing(monkeypatch):
    model, run = build("gpt2")
    new = converted(model)
    pickled = pickle.dumps(new)
    with torch.no_grad():
        expected = run(new)
        monkeypatch.delitem(transformers.AttentionInterface._global_mapping, "bochner")
        assert torch.equal(run(pickle.loads(pickled)), expected)


def test_a_state_dict_is_loaded_and_renamed_files_are_refused(tmp_path):
    """`save_pretrained` of ViT gives parameters other names, which `from_pretrained` alone knows."""
    model, run = build("vit")
    new, other = converted(model), converted(build("vit", seed=1)[0], seed=1)
    new.save_pretrained(tmp_path)
    with pytest.raises(RuntimeError, match="Missing key"):
        other.load_state_dict(load_file(tmp_path / "model.safetensors"))
    save_file(new.state_dict(), tmp_path / "state.safetensors")
    other.load_state_dict(load_file(tmp_path / "state.safetensors"))
    with torch.no_grad():
        assert torch.equal(run(other), run(new))


@pytest.mark.filterwarnings("ignore")  # torch's exporter warns of itself
@torch.no_grad()
def test_export_for_any_length():
    """With a mask: without one, models in a graph look for packed sequences."""
    new, any_length = converted(build("gpt2")[0], 16), {1: torch.export.Dim.AUTO}
    shapes = {"input_ids": any_length, "attention_mask": any_length, "use_cache": None}
    options = {"attention_mask": torch.ones_like(TOKENS), "use_cache": False}
    program = torch.export.export(new, (TOKENS,), options, dynamic_shapes=shapes, strict=False).module()
    longer = TOKENS.repeat(1, 2)
    found = program(longer, attention_mask=torch.ones_like(longer), use_cache=False).logits
    check_close(found, new(longer).logits, 1e-5)
    with pytest.raises(ValueError, match=r"Within torch\.compile and torch\.export, pass an attention_mask"):
        torch.export.export(new, (TOKENS,), {"use_cache": False}, strict=False)
