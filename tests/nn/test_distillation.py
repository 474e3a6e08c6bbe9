"""Distillation: the layer that is trained computes what the model computes, and the model matches its teacher better."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from bochner import Approximation, kernels, maps, mechanism, projections
from bochner.maps import Frame
from bochner.nn import RandomFeatureAttention, calibrate, distill, linear_attention, replace_attention
from bochner.nn._distillation import _Layer
from bochner.nn._recording import record
from support.attention import check_close
from support.attention_models import batch_of, build, encoder, generator


def converted(name="encoder", m=8, window=0, anchors=0, seed=0):
    model, _ = build(name)
    plans = calibrate(model, [batch_of(name)], m, window, anchors)
    return model, replace_attention(model, plans, copy=True, generator=generator(seed))


def learned(features):
    """The features with other constants, as a step of training makes them, and a matrix of the keys."""
    rng, plans = np.random.default_rng(0), []
    for plan in features.plans:
        f, d = plan.map.frame, features.d
        key_matrix = f.coordinates(key=True)[1] + 0.1 * rng.standard_normal((d, d))
        frame = Frame(f.query_center + 0.1, f.key_center, f.matrix, key_matrix=key_matrix)
        plans.append(Approximation(kernels.Softmax(), maps.DenseExponential(A=plan.map.A, frame=frame), None, 8))
    features.replan(plans)


@pytest.mark.parametrize("name", ["encoder", "encoder, padded", "encoder, causal", "gpt2, padded", "bert"])
@pytest.mark.parametrize("near", [(0, 0), (3, 1)])
@pytest.mark.parametrize("changed", [False, True], ids=["calibrated", "learned"])
def test_the_error_is_that_of_the_converted_attention(name, near, changed):
    model, new = converted(name, 8, *near)
    call = record(model, batch_of(name))[0]
    module = new.get_submodule(call.name)
    computed_by = getattr(module, "random_features", module)
    if changed:
        learned(computed_by.features)
    found = _Layer(computed_by.features, near, True).error(call, 1000, generator())
    mask = None if call.key_mask is None else call.key_mask.expand(len(call.k), -1)[:, None]
    options = {"window": near[0], "anchors": near[1], "key_mask": mask, "causal": call.causal, "scale": call.scale}
    out = linear_attention(call.q, call.k, call.v, features=computed_by.features.current, **options)
    exact = call.weights() @ call.v
    there = torch.ones_like(exact[..., :1]) if mask is None else mask[..., None].double()
    squares = ((out - exact) * there).square().sum((0, 2, 3)) / (exact * there).square().sum((0, 2, 3))
    check_close(found, squares.mean(), 1e-3 * float(squares.mean()))


@pytest.mark.parametrize(("name", "window"), [("encoder", 0), ("gpt2, padded", 3)])
@pytest.mark.parametrize("linear_map", [False, True])
def test_distilled_models_are_nearer_to_their_teacher(name, window, linear_map):
    model, new = converted(name, window=window)
    run = build(name)[1]
    with torch.no_grad():
        exact = run(model)
        before = float((run(new) - exact).norm())
        weights = {key: values.clone() for key, values in new.state_dict().items() if "features" not in key}
        assert distill(new, model, [batch_of(name)], steps=30, linear_map=linear_map, verbose=False) is new
        assert float((run(new) - exact).norm()) < 0.75 * before
    assert all(torch.equal(values, new.state_dict()[key]) for key, values in weights.items())


def test_a_distilled_model_is_saved_and_loaded():
    model, new = converted()
    distill(new, model, [batch_of("encoder")], steps=3, verbose=False)
    other = converted(seed=1)[1]
    other.load_state_dict(new.state_dict())
    rows = batch_of("encoder")["src"]
    assert torch.equal(other(rows), new(rows))


def test_rows_are_trained_and_another_call_goes_on_with_them():
    model, new = converted()
    features = new.layers[0].self_attn.features
    drawn = np.stack([phi.features.nodes.to_dense() for phi in features.drawn()])
    distill(new, model, [batch_of("encoder")], steps=3, verbose=False)
    trained = np.stack([phi.features.nodes.to_dense() for phi in features.maps])
    assert 1e-3 < np.abs(trained - drawn).max() < 0.2
    check_close(_Layer(features, (0, 0), True).rows.double(), torch.from_numpy(trained), 1e-6)
    features.redraw(generator(5))
    assert not np.allclose(np.stack([phi.features.nodes.to_dense() for phi in features.maps]), trained, atol=0.1)


def test_one_seed_gives_one_result():
    found = []
    for _ in range(2):
        new = converted()[1]
        distill(new, new, [batch_of("encoder")], steps=3, max_queries=4, generator=generator(), verbose=False)
        found.append(new.layers[0].self_attn.features.plans[0].map.A)
    assert found[0] == found[1]


def test_a_learned_matrix_has_no_closed_form_of_the_error():
    frame = Frame([0.0], [0.0], [[1.0]], key_matrix=[[2.0]])
    spec = Approximation(kernels.Softmax(), maps.DenseExponential(A=(0.0,), frame=frame), projections.IID(), 4)
    assert "key_matrix=[[2.0]]" in repr(frame) and frame != Frame([0.0], [0.0], [[1.0]])
    with pytest.raises(ValueError, match="no closed form of the error is known for a frame with a key_matrix"):
        spec.mse(np.ones((1, 1)))


ROWS = torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(0))
ERRORS = [
    (lambda: distill(3, encoder(), [ROWS]), TypeError, r"^distill: model must be a torch.nn.Module, got 3\."),
    (lambda: distill(encoder(), encoder(), [ROWS]), ValueError, "^distill: model has no converted attention"),
    (lambda: distill(converted()[1], encoder(), ROWS), TypeError, "^distill: batches must be a list"),
    (lambda: distill(converted()[1], encoder(), []), ValueError, "^distill: batches must hold at least one batch"),
    (lambda: distill(converted()[1], encoder(), [ROWS], steps=0), ValueError, "^distill: steps must be an integer"),
    (
        lambda: distill(converted()[1], nn.MultiheadAttention(32, 4), [(ROWS, ROWS, ROWS)]),
        ValueError,
        "^distill: teacher has no attention at layers.0.self_attn, layers.1.self_attn",
    ),
    (
        lambda: distill(RandomFeatureAttention(8, 2, spec=mechanism("favor+", n_projections=8)), encoder(), [ROWS]),
        ValueError,
        "^distill: the model must have planned features of maps.DenseExponential",
    ),
]


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS, ids=[words for *_, words in ERRORS])
def test_errors_in_words(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
