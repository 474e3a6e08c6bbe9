"""Every family of transformers' models against an oracle: quadratic attention with the same features and eager masks."""

from __future__ import annotations

import copy

import pytest
import torch
import transformers
from transformers.masking_utils import eager_mask

from bochner import Approximation, kernels, maps
from bochner.nn import CodedPlan, calibrate, replace_attention
from bochner.nn import _families as families
from bochner.nn._conversion import attention_modules
from support.attention_models import PADDED, TOKENS
from support.transformer_families import FAMILIES, VARIANTS, build, convertible, outputs

SPEC = Approximation(kernels.Softmax(), maps.Positive(), n_projections=12)


def convert(model, spec=SPEC, **options):
    options = {"select": convertible, "copy": True, "generator": torch.Generator().manual_seed(0)} | options
    return replace_attention(model, spec, **options)


@pytest.fixture(scope="module", params=FAMILIES | VARIANTS)
def family(request):
    """A model, its conversion, and a batch."""
    model, batch = build(request.param)
    return model, convert(model, per_head=True), batch


def oracle(converted, names):
    """An attention function: what the features of that model say by their own definition, query by query."""

    def attention(module, query, key, value, attention_mask, scaling=None, position_bias=None, is_causal=None, **_):
        groups = query.shape[1] // key.shape[1]
        key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
        logits = scaling * query @ key.mT
        features = getattr(converted.get_submodule(names[id(module)]), "random_features", None)
        if features is not None:
            maps_ = features.features.drawn()
            rows = [maps_[h % len(maps_)] for h in range(query.shape[1])]
            root = scaling**0.5
            kernel = [
                torch.tensor(
                    phi.queries((root * query[:, h]).numpy()) @ phi.keys((root * key[:, h]).numpy()).swapaxes(1, 2)
                )
                for h, phi in enumerate(rows)
            ]
            logits = torch.stack(kernel, dim=1).log()
        if position_bias is not None:
            logits = logits + position_bias
        if attention_mask is not None:
            logits = logits + attention_mask
        causal = getattr(module, "is_causal", False) if is_causal is None else is_causal
        if attention_mask is None and causal:
            logits = logits.masked_fill(torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
        return (logits.softmax(-1) @ value).transpose(1, 2), None

    return attention


def test_equal_to_quadratic_attention_with_the_same_features(family, monkeypatch):
    model, converted, batch = family
    twin = copy.deepcopy(model)
    names = {id(module): name for name, module in twin.named_modules()}
    monkeypatch.setitem(transformers.AttentionInterface._global_mapping, "oracle", oracle(converted, names))
    monkeypatch.setitem(transformers.AttentionMaskInterface._global_mapping, "oracle", eager_mask)
    for module in twin.modules():
        if hasattr(getattr(module, "config", None), "_attn_implementation"):
            module.config._attn_implementation = "oracle"
    expected, found = outputs(twin, batch), outputs(converted, batch)
    assert not torch.allclose(outputs(model, batch), expected, atol=1e-4)  # a dozen rows are seen
    tolerance = 1e-6 if model.config._attn_implementation == "eager" else 1e-9  # eager softmax is one of float32
    assert torch.allclose(found, expected, atol=tolerance, rtol=tolerance)


@pytest.mark.swept(3)
def test_near_exact_attention_with_many_rows(family):
    model, few, batch = family
    exact = outputs(model, batch)
    many = convert(model, Approximation(kernels.Softmax(), maps.OptimalPositive(), n_projections=4096))
    errors = [float((outputs(m, batch) - exact).norm() / exact.norm()) for m in (few, many)]
    assert errors[1] < 0.06
    assert errors[1] < errors[0] / 4  # of a factor of 18 in the root of the rows


def test_the_table_is_that_of_transformers():
    for where, family in families.FAMILIES.items():
        module, _, name = where.rpartition(".")
        assert hasattr(__import__(f"transformers.models.{module}", fromlist=[name]), name), family.model
    assert {family.model for family in families.FAMILIES.values()} == set(FAMILIES)


@pytest.mark.parametrize("name", ["Qwen2", "Gemma2", "ModernBERT"])
def test_layers_with_a_sliding_window_stay_exact(name):
    model, _ = build(name)
    with pytest.warns(UserWarning, match=r"1 modules with a sliding window stay exact, .*: .*layers\.\S* \(\w+\)\.$"):
        new = convert(model, select=None)
    sliding = [name for name, module in new.named_modules() if families.slides(module)]
    assert len(sliding) == 1
    assert not hasattr(new.get_submodule(sliding[0]), "random_features")
    with pytest.raises(ValueError, match=f"spec names {sliding[0]}, which sees a sliding window only; .* stays exact"):
        replace_attention(model, {sliding[0]: "dense"})
    assert sliding[0] not in attention_modules(model)


def test_a_model_with_sliding_windows_alone():
    model, _ = build("Mistral", sliding_window=4)
    for spec in ("dense", CodedPlan.uncalibrated(model)):
        with pytest.raises(
            ValueError,
            match=r"nothing is left to convert; .* stay exact, .* from a configuration without sliding windows",
        ):
            replace_attention(model, spec)
    with pytest.raises(ValueError, match=r"calibrate: no attention can be converted; .* sees a sliding window only"):
        calibrate(model, [TOKENS])


def test_softcapping_is_refused():
    model, _ = build("Gemma2", attn_logit_softcapping=50.0)
    with pytest.raises(
        ValueError, match=r"self_attn \(Gemma2Attention\) caps its dot products by 50 tanh\(x / 50\), which"
    ):
        replace_attention(model, "dense")
    assert not any(hasattr(module, "random_features") for module in model.modules())


def test_the_position_bias_of_t5_is_refused():
    model, _ = build("T5")
    with pytest.raises(
        ValueError, match=r"SelfAttention \(T5Attention\) adds a learned bias for each distance .*EncDec"
    ):
        replace_attention(model, "dense")
    new = convert(model, select=lambda name, module: name.endswith("EncDecAttention"))
    assert sum(hasattr(module, "random_features") for module in new.modules()) == 2
    assert new.decoder.config._attn_implementation == model.decoder.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("name", ["Llama", "T5"])
def test_calibration_of_grouped_heads_and_cross_attention(name):
    model, batch = build(name)
    plans = calibrate(model, [batch], n_projections=256)
    assert all(len(heads) == 4 for heads in plans.values())
    exact = outputs(model, batch)
    calibrated = float((outputs(convert(model, plans, select=None), batch) - exact).norm() / exact.norm())
    assert calibrated < 0.1


def test_arguments_are_positional_and_256_rows_the_default():
    model, _ = build("Llama")
    new = replace_attention(model, "favor++", 24, lambda name, _: "layers.0" in name, True, torch.Generator())
    (features,) = (module for name, module in new.named_modules() if name.endswith("random_features"))
    assert features.features.spec.n_projections == 24
    features = replace_attention(model, "dense").model.layers[0].self_attn.random_features.features
    assert isinstance(features.spec.map, maps.DenseExponential) and features.spec.n_projections == 256


@pytest.mark.parametrize("name", ["Llama", "Qwen2"])
def test_a_static_cache(name):
    """Its keys are longer than what they hold, with masks of our own (Llama) and with those of others (Qwen2)."""
    model, _ = build(name)
    new = convert(model)
    options = {"max_new_tokens": 5, "do_sample": False, "attention_mask": PADDED.flip(1), "disable_compile": True}
    a, b = (new.generate(TOKENS, cache_implementation=kind, **options) for kind in ("static", "dynamic"))
    assert torch.equal(a, b)


def test_nothing_process_wide_changes_an_unconverted_model():
    """Names are added to the registries of transformers, and what is there is neither replaced nor wrapped."""
    registries = (transformers.AttentionInterface._global_mapping, transformers.AttentionMaskInterface._global_mapping)
    model, batch = build("BERT", attention_probs_dropout_prob=0.5)
    model.train()

    def seen():
        torch.manual_seed(0)
        return outputs(model, batch)

    before, out = [dict(registry) for registry in registries], seen()
    convert(build("BERT")[0])
    for registry, known in zip(registries, before, strict=True):
        assert {**registry, **known} == registry
        assert registry.keys() - known.keys() <= {"bochner"}
    assert torch.equal(seen(), out)
    assert model.config._attn_implementation == "sdpa"
