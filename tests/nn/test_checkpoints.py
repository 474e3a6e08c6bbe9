"""A checkpoint holds numbers only: it runs nothing, and belongs to modules of its own specification."""

from __future__ import annotations

import io
import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from bochner import Approximation, kernels, maps
from bochner.nn import RandomFeatureAttention, RandomFeatures, SampledSoftmax

SPEC = Approximation(kernels.Gaussian(2.0), n_projections=16)


def hostile(tmp_path):
    """The buffer by which checkpoints of an earlier format ran a command at the first forward pass."""
    command = f"touch {tmp_path / 'executed'}"
    nodes = {
        "object": ["bochner.maps.nodes", "Nodes", 1],
        "state": [["project", {"method": "format", "of": command}]],
    }
    structure = {
        "list": [
            {
                "object": ["bochner.maps.pointwise", "PointwiseFeatures", 0],
                "state": [
                    ["nodes", nodes],
                    ["f", {"method": "system", "of": {"function": ["torch", "os"]}}],
                    ["width", 32],
                    ["symmetric", True],
                    ["positive", False],
                ],
            }
        ]
    }
    return torch.frombuffer(bytearray(json.dumps(structure).encode()), dtype=torch.uint8)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("make", [
    lambda: RandomFeatures(3, SPEC),
    lambda: RandomFeatureAttention(6, 2, spec=Approximation(kernels.Softmax(), maps.AngularHybrid(2))),
], ids=["layer", "attention"])  # fmt: skip
def test_no_command_of_a_checkpoint_runs(make, strict, tmp_path):
    module, file = make(), io.BytesIO()
    torch.save(module.state_dict() | {"features.structure": hostile(tmp_path)}, file)
    file.seek(0)
    try:
        module.load_state_dict(torch.load(file, weights_only=True), strict=strict)
        rows = torch.ones(2, module.in_features) if isinstance(module, RandomFeatures) else torch.ones(4, 6)
        module(*[rows] * (1 if isinstance(module, RandomFeatures) else 3))
    except RuntimeError as error:
        assert "Unexpected key" in str(error) and strict
    assert not (tmp_path / "executed").exists()


def softmax(map, m=16):
    return Approximation(kernels.Softmax(), map, n_projections=m)


MODULES = {
    "layer": lambda: RandomFeatures(3, SPEC),
    "quadratic layer": lambda: RandomFeatures(3, softmax(maps.OptimalPositive())),
    "attention": lambda: RandomFeatureAttention(6, 2),
    "clusters": lambda: RandomFeatureAttention(6, 2, spec=softmax(maps.ClusterHybrid(2, 2))),
    "function": lambda: RandomFeatures(3, Approximation(None, maps.Pointwise(lambda x: x.cos()), n_projections=16)),
    "sampled softmax": lambda: SampledSoftmax(3, 7, spec=softmax(maps.Trigonometric())),
}


def answer(module):
    if isinstance(module, RandomFeatures):
        return module(torch.linspace(-1, 1, 12).view(4, 3))
    if isinstance(module, SampledSoftmax):
        return module.log_proposal(torch.linspace(-1, 1, 12).view(4, 3), torch.arange(7).expand(4, 7))
    rows = torch.linspace(-1, 1, 24).view(4, 6)
    return module(rows, rows, rows, need_weights=False)[0]


@pytest.mark.filterwarnings("ignore::bochner.nn.DenominatorWarning")
@pytest.mark.parametrize("name", MODULES)
def test_safetensors_round_trip(name, tmp_path):
    one, two = MODULES[name](), MODULES[name]()
    expected = answer(one)
    assert not torch.equal(answer(two), expected)
    save_file(one.state_dict(), tmp_path / "state.safetensors")
    two.load_state_dict(load_file(tmp_path / "state.safetensors"))
    assert torch.equal(answer(two), expected)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("other", [
    RandomFeatures(3, Approximation(kernels.Gaussian(0.5), n_projections=16)),
    RandomFeatures(3, Approximation(kernels.Matern(1.5, 2.0), n_projections=16)),
    RandomFeatures(3, Approximation(kernels.Gaussian(2.0), n_projections=32)),
    RandomFeatures(4, SPEC),
    RandomFeatures(3, Approximation(kernels.Gaussian(2.0), maps.Positive(), n_projections=16)),
], ids=["lengthscale", "kernel", "number of rows", "dimension", "map"])  # fmt: skip
def test_another_specification_is_refused(other, strict):
    layer = RandomFeatures(3, SPEC)
    before = answer(layer)
    with pytest.raises(RuntimeError, match=r"features: the checkpoint holds features of .*, this module has .*"):
        layer.load_state_dict(other.state_dict(), strict=strict)
    assert torch.equal(answer(layer), before)


@pytest.mark.parametrize("change, message", [
    (lambda state: state.pop("features.format_version"), "no format version or description"),
    (lambda state: state["features.format_version"].fill_(7), r"has format 7, this version of bochner reads format 1"),
    (lambda state: state.update({"features.description": torch.zeros(9)}), "the checkpoint holds features of"),
    (lambda state: state["features.matrix"].fill_(torch.nan), "matrix holds numbers that are not finite"),
    (lambda state: state.update({"features.matrix": torch.zeros(1, 5, 9)}), r"matrix must be .* of shape \(1, 5, 16\), got"),
    (lambda state: state.update({"features.seeds": torch.zeros(1)}), r"seeds must be torch.int64 of shape \(1,\), got"),
], ids=["no version", "version", "description", "not finite", "shape", "type"])  # fmt: skip
def test_a_changed_checkpoint_is_refused(change, message):
    layer = RandomFeatures(3, softmax(maps.Positive()))
    state, before = layer.state_dict(), answer(layer)
    state = {name: values.clone() for name, values in state.items()}
    change(state)
    with pytest.raises(RuntimeError, match=message):
        layer.load_state_dict(state)
    assert torch.equal(answer(layer), before)


def test_attention_of_another_number_of_heads_is_refused():
    spec = softmax(maps.Positive())
    with pytest.raises(RuntimeError, match=r'"heads": 2.*, this module has .*"heads": 3'):
        RandomFeatureAttention(6, 3, spec=spec).load_state_dict(RandomFeatureAttention(6, 2, spec=spec).state_dict())


def test_parameters_of_exact_attention_leave_the_draw_alone():
    attention, exact = RandomFeatureAttention(6, 2), torch.nn.MultiheadAttention(6, 2)
    before = attention.features.matrix.clone()
    found = attention.load_state_dict(exact.state_dict(), strict=False)
    assert not found.unexpected_keys and torch.equal(attention.features.matrix, before)
