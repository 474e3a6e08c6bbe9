"""Conversion of models: what is kept, what is used, how near it is."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from torch import nn

from bochner import Approximation, kernels, maps, mechanism
from bochner.nn import RandomFeatureAttention, replace_attention
from bochner.nn import _drawn as drawn
from bochner.nn._conversion import attention_modules
from support.attention_models import (
    CAUSAL,
    PADDED,
    ROWS,
    RUNS,
    TOKENS,
    build,
    converted,
    decoder,
    encoder,
    gpt2,
)


def error(run, model, exact):
    with torch.no_grad():
        return float((run(model) - exact).square().mean().sqrt() / exact.square().mean().sqrt())


@pytest.mark.parametrize("name", RUNS)
def test_parameters_are_kept(name):
    model, _ = build(name)
    new = converted(model).state_dict()
    for key, value in model.state_dict().items():
        assert torch.equal(new[key], value)
    assert all("features" in key for key in new.keys() - model.state_dict().keys())


@pytest.mark.parametrize("name", RUNS)
def test_error_falls_with_the_number_of_features(name):
    model, run = build(name)
    with torch.no_grad():
        exact = run(model)
    few, many = (sum(error(run, converted(model, m, seed), exact) for seed in range(4)) / 4 for m in (4, 256))
    assert 0 < many < few / 3  # a factor of 8 where errors fall as 1/sqrt(m)
    assert many < 0.05


@pytest.mark.parametrize("name", RUNS)
def test_evaluation_uses_the_features(name):
    model, run = build(name)
    with torch.no_grad():
        assert not torch.allclose(run(converted(model, 4, seed=0)), run(converted(model, 4, seed=1)), atol=1e-6)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("map", [maps.OptimalPositive(), maps.Hyperbolic()], ids=["optimal", "hyperbolic"])
def test_gradients_reach_all_parameters(name, map):
    model, run = build(name)
    new = converted(model, 64, map=map).train()
    (run(new) * torch.linspace(-1, 1, run(new).shape[-1])).square().sum().backward()
    used = {key for key, value in new.named_parameters() if value.grad is not None and bool(value.grad.any())}
    unused = {key for key, _ in new.named_parameters()} - used
    keys = ("k_proj.bias", "key.bias")  # a bias of all keys changes no softmax, and by rounding alone a gradient
    assert not {key for key in unused if "pooler" not in key and "cross" not in key and not key.endswith(keys)}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("map", [maps.OptimalPositive(), maps.AngularHybrid(2)], ids=["optimal", "hybrid"])
def test_saved_and_loaded_model_gives_the_same(name, map, tmp_path):
    model, run = build(name)
    new = converted(model, 32, map=map)
    with torch.no_grad():
        expected = run(new)
        torch.save(new.state_dict(), tmp_path / "model.pt")
        other = converted(build(name, seed=1)[0], 32, seed=1, map=map)
        other.load_state_dict(torch.load(tmp_path / "model.pt", weights_only=True))
        assert torch.equal(run(other), expected)


@pytest.mark.parametrize("name", ["encoder, causal", "decoder", "gpt2"])
def test_causal_models_see_no_future(name):
    new = converted(build(name)[0])
    length = 5
    with torch.no_grad():
        if name == "gpt2":
            whole, part = new(TOKENS).logits, new(TOKENS[:, :length]).logits
        else:
            options = {"tgt_is_causal": True, "memory": ROWS} if name == "decoder" else {"is_causal": True}
            mask = "tgt_mask" if name == "decoder" else "mask"
            whole, part = (new(ROWS[:, :n], **{mask: CAUSAL[:n, :n]} | options) for n in (12, length))
    assert torch.allclose(whole[:, :length], part, atol=1e-5)


def test_padded_batches_of_an_encoder_are_not_packed():
    torch.manual_seed(0)
    model = encoder(enable_nested_tensor=True)  # packs padded batches in evaluation, for a path of its own
    new, plain = converted(model), build("encoder")[0]
    plain.load_state_dict(model.state_dict())
    with torch.no_grad():
        found = new(ROWS, src_key_padding_mask=PADDED == 0)
        assert torch.equal(found, converted(plain)(ROWS, src_key_padding_mask=PADDED == 0))


def test_padding_changes_nothing():
    new = converted(build("bert")[0])
    changed = torch.where(PADDED == 0, 3, TOKENS)
    with torch.no_grad():
        a, b = (new(tokens, attention_mask=PADDED).last_hidden_state[PADDED.bool()] for tokens in (TOKENS, changed))
    assert torch.allclose(a, b, atol=1e-6)


# what is converted


def test_same_parameter_objects():
    model = encoder()
    weights = [layer.self_attn.in_proj_weight for layer in model.layers]
    assert replace_attention(model, "favor+") is model
    assert all(a is layer.self_attn.in_proj_weight for a, layer in zip(weights, model.layers, strict=True))


def test_separate_widths_of_keys_and_values():
    torch.manual_seed(0)
    attention = nn.MultiheadAttention(16, 4, kdim=6, vdim=5, bias=False, batch_first=True).eval()
    new = converted(attention, 2048)
    assert isinstance(new, RandomFeatureAttention)
    q, k, v = torch.randn(2, 5, 16) / 2, torch.randn(2, 7, 6) / 2, torch.randn(2, 7, 5)
    exact, found = attention(q, k, v)[0], new(q, k, v)[0]
    assert torch.allclose(found, exact, atol=0.05)


def test_a_shared_module_stays_shared():
    attention = nn.MultiheadAttention(16, 4)
    model = nn.ModuleDict({"a": attention, "b": attention})
    replace_attention(model, "favor+")
    assert model["a"] is model["b"]


def test_select_leaves_the_rest_exact():
    model, run = build("gpt2")
    with torch.no_grad():
        exact = run(model)
        one = converted(model, 4, select=lambda name, module: ".1." in name)
        assert 0 < error(run, one, exact) < error(run, converted(model, 4), exact)
    names = {name for name, _ in one.named_modules() if name.endswith("random_features")}
    assert names == {"transformer.h.1.attn.random_features"}


def test_mapping_of_specifications():
    model = encoder()
    spec = Approximation(kernels.Softmax(), maps.Positive(), n_projections=8)
    replace_attention(model, {"layers.1.self_attn": spec})
    assert isinstance(model.layers[0].self_attn, nn.MultiheadAttention)
    assert model.layers[1].self_attn.features.spec == spec


@pytest.mark.parametrize("name", ["encoder", "gpt2"])
def test_conversion_again_takes_the_new_features(name):
    model, run = build(name)
    with torch.no_grad():
        exact = run(model)
        once = converted(model, 4)
        assert error(run, converted(once, 512), exact) < error(run, once, exact) / 3


def test_copy_leaves_the_model_alone():
    model, run = build("vit")
    with torch.no_grad():
        before = run(model)
        converted(model)
        assert torch.equal(run(model), before)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_type_of_the_model_is_kept(dtype):
    new = converted(gpt2().to(dtype))
    assert new(TOKENS).logits.dtype == dtype


def test_uptraining_lowers_the_loss():
    model = build("gpt2")[0]
    new = converted(model, 32, map=maps.OptimalPositive()).train()
    optimizer = torch.optim.Adam(new.parameters(), lr=1e-2)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = new(TOKENS, labels=TOKENS).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


# errors


def test_nothing_to_convert():
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    with pytest.raises(
        ValueError,
        match=r"found no attention in Sequential; looked for torch\.nn\.MultiheadAttention .*"
        r"GPT-2, .*ViT, CLIP of transformers; there are .*1 Linear.*linear_attention",
    ):
        replace_attention(model, "dense")


def test_nothing_selected():
    with pytest.raises(
        ValueError, match=r"nothing is left to convert by spec and select; attention is at layers\.0\.self_attn"
    ):
        replace_attention(encoder(), "dense", select=lambda name, module: False)


def test_the_model_itself_has_a_name_too():
    with pytest.raises(ValueError, match=r"attention is at '' \(the model itself\)"):
        replace_attention(nn.MultiheadAttention(8, 2), {})


def test_unknown_name_of_a_module():
    spec = Approximation(kernels.Softmax(), maps.Positive())
    with pytest.raises(ValueError, match=r"spec names 'layers\.7', but attention is at layers\.0\.self_attn"):
        replace_attention(encoder(), {"layers.7": spec})


def test_names_of_mechanisms():
    model = replace_attention(encoder(), {"layers.1.self_attn": "favor++"})
    assert model.layers[1].self_attn.features.spec == mechanism("favor++")
    with pytest.raises(ValueError, match="favor"):
        replace_attention(model, "favour++")


def test_specification_of_another_kernel():
    with pytest.raises(ValueError, match=r"replace_attention: spec must use kernels\.Softmax\(\), which the model was"):
        replace_attention(encoder(), Approximation(kernels.Gaussian()))


def test_specification_of_another_kind():
    with pytest.raises(
        TypeError, match=r"replace_attention: spec must be an Approximation .* or the name of a mechanism"
    ):
        replace_attention(encoder(), Approximation(kernels.Softmax(), maps.Positive()).draw(8, rng=0))


@pytest.mark.parametrize("name", ["copy", "per_head"])
def test_flags(name):
    with pytest.raises(TypeError, match=f"replace_attention: {name} must be True or False, got 1"):
        replace_attention(encoder(), **{name: 1})


def test_select_must_be_a_function():
    with pytest.raises(
        TypeError, match=r"replace_attention: select must be a function of a name and a module, got 'all'"
    ):
        replace_attention(encoder(), select="all")


def test_model_must_be_a_module():
    with pytest.raises(TypeError, match=r"model must be a torch\.nn\.Module, got 3"):
        replace_attention(3)


def test_all_attention_is_found():
    assert list(attention_modules(decoder())) == [
        f"layers.{k}.{kind}_attn" for k in (0, 1) for kind in ("self", "multihead")
    ]


def test_deepcopy_of_a_converted_model():
    model, run = build("bert")
    new = converted(model)
    with torch.no_grad():
        assert torch.equal(run(copy.deepcopy(new)), run(new))


def test_without_a_plan_data_are_asked_for():
    with pytest.raises(ValueError, match=r"replace_attention: pass batches=\[\.\.\.\] of typical data, .*, or spec="):
        replace_attention(encoder())
    with pytest.raises(
        ValueError, match=r"batches choose the plans if there is no spec; pass one of the two, not both"
    ):
        replace_attention(encoder(), "dense", batches=[ROWS])


@pytest.mark.parametrize("name", ["encoder", "gpt2", "bert"])
def test_batches_choose_the_plan(name):
    model, run = build(name)
    batch = torch.randn(2, 40, 32) if name == "encoder" else {"input_ids": TOKENS}  # longer than the window of 16
    new = replace_attention(model, batches=[batch], copy=True, n_projections=16)
    kinds = {type(m).__name__ for m in new.modules()} & {"CodedAttention", "RandomFeatureAttention"}
    assert kinds == {"RandomFeatureAttention" if name == "encoder" else "CodedAttention"}
    with torch.no_grad():
        assert run(new).shape == run(model).shape


def test_features_that_estimate_nothing_warn_whatever_their_constants(monkeypatch):
    monkeypatch.setattr(drawn, "_warned", set())
    model = build("gpt2")[0]
    for part in model.transformer.h:
        part.attn.c_attn.weight.data *= 30
    new = replace_attention(model, "favor+", n_projections=8)
    with pytest.warns(UserWarning, match=r"predicted relative error of attention is .*window=64, anchors=1"):
        new(TOKENS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new(TOKENS)  # once
