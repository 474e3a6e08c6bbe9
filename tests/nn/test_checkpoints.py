"""A checkpoint holds numbers only: it runs nothing, and belongs to modules of its own specification."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from bochner import Approximation, kernels, maps, projections, rotations
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
@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomFeatures(3, SPEC),
        lambda: RandomFeatureAttention(6, 2, spec=Approximation(kernels.Softmax(), maps.AngularHybrid(2))),
    ],
    ids=["layer", "attention"],
)
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
    "attention": lambda: RandomFeatureAttention(6, 2, spec=softmax(maps.OptimalPositive())),
    "fast rotation": lambda: RandomFeatures(
        3,
        Approximation(kernels.Gaussian(2.0), projection=projections.Orthogonal(rotations.Hadamard()), n_projections=16),
    ),
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
@pytest.mark.parametrize(
    "other",
    [
        RandomFeatures(3, Approximation(kernels.Gaussian(0.5), n_projections=16)),
        RandomFeatures(3, Approximation(kernels.Matern(1.5, 2.0), n_projections=16)),
        RandomFeatures(3, Approximation(kernels.Gaussian(2.0), n_projections=32)),
        RandomFeatures(4, SPEC),
        RandomFeatures(3, Approximation(kernels.Gaussian(2.0), maps.Positive(), n_projections=16)),
    ],
    ids=["lengthscale", "kernel", "number of rows", "dimension", "map"],
)
def test_another_specification_is_refused(other, strict):
    layer = RandomFeatures(3, SPEC)
    before, state = answer(layer), clones(layer)
    words = r"features: the checkpoint was not loaded: it holds features of Approximation\(.*\) with d=., .* this module has"
    with pytest.raises(ValueError, match=words):
        layer.load_state_dict(other.state_dict(), strict=strict)
    assert torch.equal(answer(layer), before)
    assert all(torch.equal(values, state[name]) for name, values in layer.state_dict().items())


def clones(module):
    return {name: values.clone() for name, values in module.state_dict().items()}


def as_bytes(text):
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


def edited(state, change):
    """The plan of a checkpoint with something changed in its JSON."""
    header = json.loads(bytes(state["features.plan"].numpy()))
    change(header)
    state["features.plan"] = as_bytes(json.dumps(header))


def set_plan(state, name, value):
    def change(header):
        plan = json.loads(header["plans"][0])
        plan[name] = value
        header["plans"] = [json.dumps(plan)]

    edited(state, change)


CHANGES = {
    "no version": (lambda state: state.pop("features.format_version"), "it has no format_version"),
    "no plan": (lambda state: state.pop("features.plan"), "it has no plan"),
    "later version": (lambda state: state["features.format_version"].fill_(7), "it has format version 7, and this"),
    "type of the version": (
        lambda state: state.update({"features.format_version": torch.tensor(1.5)}),
        "format version 1.5",
    ),
    "type of the plan": (lambda state: state.update({"features.plan": torch.zeros(9)}), "plan must be of torch.uint8"),
    "not JSON": (lambda state: state.update({"features.plan": as_bytes("[1, 2")}), "its plan is not the JSON of one"),
    "nested JSON": (lambda state: state.update({"features.plan": as_bytes("[" * 100_000)}), "its plan is not the JSON"),
    "type of seeds": (lambda state: state.update({"features.seeds": torch.zeros(1)}), "seeds must be of torch.int64"),
    "number of plans": (lambda state: edited(state, lambda header: header["plans"].append(1)), "plan"),
    "no plans": (lambda state: edited(state, lambda header: header.update(plans=[])), "it has 0 plans for 1 draws"),
    "other rows": (lambda state: set_plan(state, "n_projections", 8), "is not one of Approximation"),
    "other class": (
        lambda state: set_plan(state, "map", {"type": "os.system"}),
        "names 'os.system', which is not a class",
    ),
    "private class": (lambda state: set_plan(state, "map", {"type": "maps._map.Map"}), "which is not a class"),
}
"""What may be wrong with any checkpoint, and what is said."""

OF_A_MATRIX = {
    "not finite": (lambda state: state["features.matrix"].fill_(torch.nan), "matrix holds numbers that are not finite"),
    "shape": (
        lambda state: state.update({"features.matrix": torch.zeros(1, 5, 9)}),
        r"matrix must be floating of shape \(1, 5, 16\), got torch.float32 of shape \(1, 5, 9\)",
    ),
    "signs": (lambda state: state.update({"features.signs": torch.ones(1, 1, 16)}), "signs must be there for signed"),
    "nothing": (lambda state: state.pop("features.matrix"), "these arrays do not belong to"),
}

OF_ARRAYS = {
    "not finite": (lambda state: state["features.arrays.0.base/W"].fill_(torch.inf), "these arrays do not belong to"),
    "shape": (
        lambda state: state.update({"features.arrays.0.base/W": torch.zeros(4, 3)}),
        "these arrays do not belong to",
    ),
    "nothing": (lambda state: state.pop("features.arrays.0.base/W"), "these arrays do not belong to"),
}


def check_refused(layer, change, message):
    state, before = clones(layer), clones(layer)
    expected = answer(layer)
    change(state)
    with pytest.raises(ValueError, match=message):
        layer.load_state_dict(state)
    assert torch.equal(answer(layer), expected)
    assert all(torch.equal(values, before[name]) for name, values in layer.state_dict().items())


@pytest.mark.parametrize("change, message", (CHANGES | OF_A_MATRIX).values(), ids=(CHANGES | OF_A_MATRIX).keys())
def test_a_changed_checkpoint_of_a_matrix_is_refused(change, message):
    check_refused(RandomFeatures(3, softmax(maps.Positive())), change, message)


@pytest.mark.parametrize("change, message", (CHANGES | OF_ARRAYS).values(), ids=(CHANGES | OF_ARRAYS).keys())
def test_a_changed_checkpoint_of_arrays_is_refused(change, message):
    check_refused(
        RandomFeatures(3, Approximation(kernels.Gaussian(2.0), projection=projections.IID(), n_projections=16)),
        change,
        message,
    )


def test_attention_of_another_number_of_heads_is_refused():
    spec = softmax(maps.Positive())
    with pytest.raises(ValueError, match=r"heads=2, per_head=False, and this module has .* heads=3, per_head=False"):
        RandomFeatureAttention(6, 3, spec=spec).load_state_dict(RandomFeatureAttention(6, 2, spec=spec).state_dict())


@pytest.mark.parametrize("name", MODULES)
def test_a_checkpoint_names_public_classes_only(name):
    module = MODULES[name]()
    answer(module)
    text = bytes(module.state_dict()["features.plan"].numpy()).decode()
    header = json.loads(text)
    assert set(header) == {"spec", "d", "heads", "per_head", "plans"}
    assert not re.search(r"bochner|\._|__", text) or name == "function"


def test_constants_chosen_from_data_are_in_the_plan():
    one, two = (RandomFeatureAttention(6, 2, spec="favor++") for _ in range(2))
    rows = torch.randn(50, 6)
    one(rows, rows, rows)
    chosen = [plan.map.A for plan in one.features.plans]
    assert len(set(chosen)) == 2 and all(plan.planned for plan in one.features.plans)
    two.load_state_dict(one.state_dict())
    assert [plan.map.A for plan in two.features.plans] == chosen and not two.features.waits
    two.redraw()
    assert [plan.map.A for plan in two.features.plans] == chosen
    assert not torch.equal(two.features.matrix, one.features.matrix)


@pytest.mark.parametrize("name", MODULES)
def test_loading_draws_nothing(name, monkeypatch):
    one, two = MODULES[name](), MODULES[name]()
    expected = answer(one)
    monkeypatch.setattr(Approximation, "draw", None)
    monkeypatch.setattr(Approximation, "plan", None)
    monkeypatch.setattr(projections.Projection, "sample", None)
    two.load_state_dict(one.state_dict())
    assert torch.equal(answer(two), expected)


def test_arrays_that_change_in_place_change_the_features():
    """Data-parallel training writes the buffers of the first process into those of the others."""
    one, two = (MODULES["layer"]() for _ in range(2))
    for theirs, own in zip(one.buffers(), two.buffers(), strict=True):
        own.copy_(theirs)
    assert torch.equal(answer(two), answer(one))


FOLDER = Path(__file__).parent / "checkpoints"


@pytest.mark.filterwarnings("ignore::bochner.nn.DenominatorWarning")
@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.safetensors")), ids=lambda file: file.stem)
def test_checkpoints_of_every_past_version_are_read(file):
    """Files of `write_past_version`; the name says which module of MODULES made them."""
    module, state = MODULES[file.stem.partition("_")[0].replace("-", " ")](), load_file(file)
    expected = state.pop("expected")
    module.load_state_dict(state)
    assert torch.allclose(answer(module), expected, atol=1e-6)


def write_past_version(version=1):
    """Write the files of this version, once: python -c "from nn.test_checkpoints import *; write_past_version()"."""
    for name in ("layer", "quadratic layer", "attention", "clusters", "sampled softmax"):
        torch.manual_seed(0)
        module = MODULES[name]()
        expected = answer(module)
        save_file(
            module.state_dict() | {"expected": expected}, FOLDER / f"{name.replace(' ', '-')}_{version}.safetensors"
        )


@pytest.mark.parametrize(
    "name, change, match",
    [
        ("features.matrix", lambda x: torch.full_like(x, 1e38), "a number beyond 1e\\+18"),
        ("features.plan", lambda x: x.flip(0), "the checkpoint was not loaded"),
        ("out_proj.weight", lambda x: x[:1], "size mismatch"),
        ("in_proj_bias", None, "Missing key"),
    ],
)
def test_a_refused_checkpoint_changes_nothing(name, change, match):
    own, other = (
        RandomFeatureAttention(8, 2, spec="favor+", generator=torch.Generator().manual_seed(i)) for i in (0, 1)
    )
    before, damaged = {key: x.clone() for key, x in own.state_dict().items()}, dict(other.state_dict())
    value = damaged.pop(name)
    if change is not None:
        damaged[name] = change(value)
    with pytest.raises((ValueError, RuntimeError), match=match):
        own.load_state_dict(damaged)
    assert all(torch.equal(x, before[key]) for key, x in own.state_dict().items())
    own.load_state_dict(other.state_dict())
    assert torch.equal(own.in_proj_weight, other.in_proj_weight)


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda g: SampledSoftmax(8, 20, generator=g), "weight"),
        (lambda g: SampledSoftmax(8, 20, generator=g), "features.fitted"),
        (lambda g: RandomFeatures(3, SPEC, generator=g), "features.fitted"),
        (lambda g: RandomFeatures(3, SPEC, generator=g), "features.seeds"),
    ],
)
@pytest.mark.parametrize("damage", [lambda x: torch.cat([x.reshape(-1), x.reshape(-1)]), lambda x: "text"])
def test_a_refused_checkpoint_leaves_every_module_as_it_was(make, name, damage):
    own, other = (make(torch.Generator().manual_seed(i)) for i in (0, 1))
    before = {key: x.clone() for key, x in own.state_dict().items()}
    with pytest.raises((ValueError, RuntimeError), match="load"):
        own.load_state_dict(other.state_dict() | {name: damage(other.state_dict()[name])})
    assert all(torch.equal(x, before[key]) for key, x in own.state_dict().items())
    own.load_state_dict(other.state_dict())
    assert all(torch.equal(x, other.state_dict()[key]) for key, x in own.state_dict().items())
