"""Converted models in save_pretrained and from_pretrained: the same numbers, or a refusal in words."""

from __future__ import annotations

import copy
import importlib
import json
import pickle
import sys

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.quantizers import auto

from bochner import maps
from bochner.nn import LayerPlan, calibrate, replace_attention
from bochner.nn import _hugging_face as hugging_face
from support.transformer_families import FAMILIES, build, convertible, outputs

ALL_FAMILIES = [
    name for name in FAMILIES if name not in ("Mistral", "Qwen3", "RoBERTa")
]  # classes like their neighbours


COMPARED = "ignore_mismatched_sizes"
"""The sentence of releases of transformers that compare shapes before our own check can."""


def saved(name, tmp_path, spec="dense", **options):
    """A converted model that has met a batch, in single precision, saved; and the batch."""
    model, batch = build(name)
    batch = {key: x.float() if x.is_floating_point() else x for key, x in batch.items()}
    options = {"select": convertible, "generator": torch.Generator().manual_seed(0)} | options
    new = replace_attention(model.float(), spec, 8, **options)
    outputs(new, batch)
    new.save_pretrained(tmp_path)
    return new, batch


def configuration(tmp_path):
    return json.loads((tmp_path / "config.json").read_text())


def change(tmp_path, **entries):
    (tmp_path / "config.json").write_text(json.dumps(configuration(tmp_path) | entries))


@pytest.mark.parametrize("name", ALL_FAMILIES)
def test_round_trip(name, tmp_path):
    new, batch = saved(name, tmp_path)
    expected = outputs(new, batch)
    back = type(new).from_pretrained(tmp_path)
    assert torch.equal(outputs(back, batch), expected)
    where = [name for name, module in new.named_modules() if hasattr(module, "random_features")]
    assert where == [name for name, module in back.named_modules() if hasattr(module, "random_features")]
    assert sorted(where) == sorted(configuration(tmp_path)["quantization_config"]["layers"])
    for name, module in new.named_modules():
        if hasattr(getattr(module, "config", None), "_attn_implementation"):
            found = back.get_submodule(name).config
            assert found._attn_implementation == module.config._attn_implementation


@pytest.mark.parametrize("map", [maps.OptimalPositive(), maps.AngularHybrid(2)], ids=["matrix", "arrays"])
def test_twice_around_and_on_with_training(map, tmp_path):
    from bochner import Approximation, kernels

    new, batch = saved("Llama", tmp_path, Approximation(kernels.Softmax(), map, n_projections=8), per_head=True)
    back = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    back.save_pretrained(tmp_path / "again")
    again = type(new).from_pretrained(tmp_path / "again")
    assert torch.equal(outputs(again, batch), outputs(new, batch))
    assert not again.is_quantized
    again.train()(batch["input_ids"], labels=batch["input_ids"]).loss.backward()
    assert again.half().dtype == torch.float16


def test_plans_of_each_head(tmp_path):
    model, batch = build("Llama")
    plans = {name: LayerPlan(heads, 3, 1) for name, heads in calibrate(model, [batch], n_projections=8).items()}
    new, batch = saved("Llama", tmp_path, plans, select=None)
    back = type(new).from_pretrained(tmp_path)
    assert torch.equal(outputs(back, batch), outputs(new, batch))
    features = back.model.layers[0].self_attn.random_features.features
    assert list(features.spec) == list(plans["model.layers.0.self_attn"])
    record = configuration(tmp_path)["quantization_config"]["layers"]["model.layers.0.self_attn"]
    assert (record["window"], record["anchors"]) == (3, 1)
    assert record["mechanism"] == "DenseExponential and Orthogonal, 8 rows per head"


def test_constants_that_are_still_to_be_chosen(tmp_path):
    model, batch = build("GPT-2")
    new = replace_attention(model.float(), "favor++", 8)
    new.save_pretrained(tmp_path)
    back = type(new).from_pretrained(tmp_path)
    assert back.transformer.h[0].attn.random_features.features.waits
    assert torch.equal(outputs(back, batch), outputs(new, batch))


def test_a_base_model_of_a_saved_language_model(tmp_path):
    new, batch = saved("Llama", tmp_path)
    base = transformers.AutoModel.from_pretrained(tmp_path)
    assert torch.equal(outputs(base, batch), outputs(new.model, batch))


def test_a_converted_part_of_a_model(tmp_path):
    model, batch = build("Llama")
    replace_attention(model.float().model, "favor++", 8)
    outputs(model, batch)
    model.save_pretrained(tmp_path)
    assert torch.equal(outputs(type(model).from_pretrained(tmp_path), batch), outputs(model, batch))


def test_half_precision_keeps_the_draw(tmp_path):
    new, _ = saved("Llama", tmp_path)
    new.to(torch.bfloat16).save_pretrained(tmp_path)
    back = type(new).from_pretrained(tmp_path)
    assert back.dtype == torch.bfloat16
    found = dict(back.named_buffers())
    drawn = {name: buffer for name, buffer in new.named_buffers() if "random_features" in name}
    for name, buffer in drawn.items():
        assert found[name].dtype == buffer.dtype and torch.equal(found[name], buffer), name


def test_copies_and_pickles_save_themselves(tmp_path):
    """The entry is that of the copy: constants chosen later change other shapes than those of the original."""
    model, batch = build("GPT-2")
    new = replace_attention(model.float(), "favor++", 8)
    for other in (copy.deepcopy(new), pickle.loads(pickle.dumps(new))):
        replace_attention(other, "favor++", 24)
        expected = outputs(other, batch)
        other.save_pretrained(tmp_path)
        assert torch.equal(outputs(type(model).from_pretrained(tmp_path), batch), expected)


# refusals


def test_without_the_library_transformers_refuses(tmp_path, monkeypatch):
    new, _ = saved("Llama", tmp_path)
    for registry in (
        transformers.AttentionInterface._global_mapping,
        auto.AUTO_QUANTIZATION_CONFIG_MAPPING,
        auto.AUTO_QUANTIZER_MAPPING,
    ):
        monkeypatch.delitem(registry, "bochner")
    with pytest.raises(ValueError, match='attn_implementation="bochner"` is not supported'):
        type(new).from_pretrained(tmp_path)


def test_another_width(tmp_path):
    new, _ = saved("GPT-2", tmp_path)
    entry = configuration(tmp_path)["quantization_config"]
    layer = entry["layers"]["transformer.h.0.attn"]
    layer["d"] = 4
    change(tmp_path, quantization_config=entry)
    with pytest.raises(ValueError, match=r"h\.0\.attn has 4 heads of width 8, but .* saved for 4 heads of width 4"):
        type(new).from_pretrained(tmp_path)
    layer |= {"d": 8, "buffers": layer["buffers"] | {"seeds": "int64 7"}}
    change(tmp_path, quantization_config=entry)
    ours = r"not loaded: seeds must be int64 7 \(type and shape\), got int64 1"
    with pytest.raises((ValueError, RuntimeError), match=f"{ours}|{COMPARED}"):
        type(new).from_pretrained(tmp_path)


def test_weights_of_another_shape(tmp_path):
    new, _ = saved("GPT-2", tmp_path)
    change(tmp_path, n_inner=7)
    ours = r"mlp\.c_fc\.weight has shape .* in the file of weights, and \(32, 7\) by config"
    with pytest.raises((ValueError, RuntimeError), match=f"{ours}|{COMPARED}"):
        type(new).from_pretrained(tmp_path)


def test_an_attention_that_is_not_there(tmp_path):
    new, _ = saved("GPT-2", tmp_path)
    entry = configuration(tmp_path)["quantization_config"]
    entry["layers"]["transformer.h.7.attn"] = entry["layers"]["transformer.h.1.attn"]
    change(tmp_path, quantization_config=entry)
    with pytest.raises(
        ValueError, match=r"transformer\.h\.7\.attn of class GPT2Attention is converted by config.json, but"
    ):
        type(new).from_pretrained(tmp_path)


def test_weights_without_features(tmp_path):
    new, _ = saved("GPT-2", tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    save_file({k: x for k, x in weights.items() if "random_features" not in k}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="the features were not loaded"):
        type(new).from_pretrained(tmp_path)


def test_damaged_features(tmp_path):
    new, _ = saved("GPT-2", tmp_path, "favor++")
    weights = load_file(tmp_path / "model.safetensors")
    for name in weights:
        if name.endswith("features.matrix"):
            weights[name][0, 0, 0] = torch.nan
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="the features were not loaded: matrix holds numbers that are not finite"):
        type(new).from_pretrained(tmp_path)


def test_another_version(tmp_path):
    new, _ = saved("GPT-2", tmp_path)
    change(tmp_path, quantization_config=configuration(tmp_path)["quantization_config"] | {"version": 2})
    with pytest.raises(
        ValueError, match="describes converted attention in version 2, and this version of bochner reads 1"
    ):
        type(new).from_pretrained(tmp_path)


def test_a_quantised_model_is_refused():
    model, _ = build("GPT-2")
    model.config.quantization_config = {"quant_method": "gptq", "bits": 4}
    with pytest.raises(
        ValueError, match=r"replace_attention: the model is quantised by gptq, .* convert the model before"
    ):
        replace_attention(model, "dense")


def test_registered_after_an_import_of_transformers(tmp_path, monkeypatch):
    """The usual order of imports has ours first; a module stands for the one of transformers that loads models."""
    (tmp_path / "reads_models.py").write_text("value = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(hugging_face, "_READS_MODELS", "reads_models")
    registered = []
    monkeypatch.setattr(hugging_face, "register", lambda: registered.append(sys.modules["reads_models"].value))
    for _ in range(2):
        hugging_face.register_with_transformers()
    assert registered == []
    importlib.import_module("reads_models")
    assert registered == [3]
    hugging_face.register_with_transformers()
    assert registered == [3, 3]
    assert not any(type(finder).__name__ == "_AfterImport" for finder in sys.meta_path)
    sys.modules.pop("reads_models")
