"""Calibration: moments weighted by exact attention, and plans that a converted model keeps."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from bochner import Approximation, kernels, maps, mechanism
from bochner.maps import DenseExponential, Frame
from bochner.nn import RandomFeatureAttention, calibrate, replace_attention
from bochner.nn._calibration_moments import HeadMoments
from bochner.nn._recording import record
from bochner.nn._tensor_features import HeadFeatures, QuadraticFeatures
from support.attention_models import RUNS, batch_of, build, encoder, generator
from support.checks import check_mean

MODELS = ["encoder", "encoder, padded", "encoder, causal", "decoder", "bert, padded", "gpt2", "gpt2, padded"]


def pairs(call, h, window=0, anchors=0):
    """All visible pairs of a head that are not padding or near, one by one: queries, keys and attention weights."""
    root = float(call.scale) ** 0.5
    found = []
    for b in range(len(call.q)):
        there = None if call.key_mask is None else call.key_mask.expand(len(call.k), -1)[b]
        for i, q in enumerate(call.q[b, h].double() * root):
            if there is not None and call.q.shape == call.k.shape and not there[i]:
                continue
            keys = call.k[b, h].double() * root
            seen = torch.ones(len(keys), dtype=torch.bool) if there is None else there.clone()
            if call.causal:
                seen &= torch.arange(len(keys)) <= i
            if call.prefixes is not None:
                seen &= torch.arange(len(keys)) < call.prefixes[i]
            weights = (keys[seen] @ q).softmax(-1)
            first = set(torch.arange(len(keys))[seen if there is None else there][:anchors].tolist())
            for j, p in zip(torch.arange(len(keys))[seen].tolist(), weights, strict=True):
                if abs(j - i) >= window and j not in first:
                    found.append((q.numpy(), keys[j].numpy(), float(p)))
    X, Y, P = (np.array(part) for part in zip(*found, strict=True))
    return X, Y, P / P.sum()


def weighted_moments(X, Y, P):
    a, b = P @ X, P @ Y
    X, Y = X - a, Y - b
    return a, b, (P[:, None] * X).T @ X, (P[:, None] * Y).T @ Y, (P[:, None] * X).T @ Y


@pytest.mark.parametrize("name", MODELS)
def test_moments_are_those_of_all_visible_pairs(name):
    model, _ = build(name)
    for call in record(model, batch_of(name)):
        for h, found in enumerate(HeadMoments.of(call).heads()):
            for part, expected in zip(found, weighted_moments(*pairs(call, h)), strict=True):
                np.testing.assert_allclose(part, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["encoder", "encoder, causal", "bert, padded", "gpt2, padded"])
@pytest.mark.parametrize("near", [(3, 0), (0, 2), (2, 1)])
def test_moments_with_a_window_are_those_of_far_pairs(name, near):
    call = record(build(name)[0], batch_of(name))[1]
    for h, found in enumerate(HeadMoments.of(call, *near).heads()):
        for part, expected in zip(found, weighted_moments(*pairs(call, h, *near)), strict=True):
            np.testing.assert_allclose(part, expected, atol=1e-5)


def test_windows_belong_to_self_attention():
    model, _ = build("decoder")
    plans = calibrate(model, [batch_of("decoder")], 8, window=3, anchors=1)
    assert {name.rpartition(".")[2]: (plan.window, plan.anchors) for name, plan in plans.items()} == {
        "self_attn": (3, 1),
        "multihead_attn": (0, 1),
    }


def test_layers_stay_exact_by_name_or_by_loss():
    model, rows = uneven_encoder(), batch_of("encoder")["src"]
    assert list(calibrate(model, [rows], keep=["layers.0.self_attn"])) == ["layers.1.self_attn"]
    assert list(calibrate(model, [rows], keep=1, generator=generator())) == ["layers.0.self_attn"]


@pytest.mark.parametrize("given", [False, True], ids=["output", "loss"])
def test_rows_go_where_the_loss_asks_for_them(given):
    model, rows = uneven_encoder(), batch_of("encoder")["src"]
    target = model(rows).detach()

    def loss(model, batch):
        return 1 + (model(batch) - target).square().mean()

    plans = calibrate(model, [rows], 64, by_loss=True, loss=loss if given else None, generator=generator())
    few, many = (plans[f"layers.{i}.self_attn"].n_projections for i in range(2))
    assert abs(few + many - 128) <= 1 and many > 1.5 * few


def uneven_encoder():
    """The second layer has sharper attention, which needs more features."""
    torch.manual_seed(0)
    model = encoder()
    model.layers[1].self_attn.in_proj_weight.data *= 3
    model.layers[0].self_attn.out_proj.weight.data *= 0.5
    return model


def test_batches_count_by_their_weight():
    model, rows = encoder(), torch.randn(5, 7, 32, generator=generator())
    whole, parts = calibrate(model, [rows]), calibrate(model, iter([rows[:2], rows[2:]]))
    for name, heads in whole.items():
        for one, other in zip(heads, parts[name], strict=True):
            np.testing.assert_allclose(one.map.frame.query_center, other.map.frame.query_center, atol=1e-5)
            np.testing.assert_allclose(one.map.A, other.map.A, atol=1e-4)


def correlated(seed=0):
    """Pairs with a weight each, whose queries and keys differ in scale and go together."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 3)) @ rng.standard_normal((3, 3)) * 0.6 + (1.0, 0.0, -1.0)
    Y = 0.3 * X[:, ::-1] + 0.4 * rng.standard_normal((400, 3)) * (0.2, 1.0, 1.5) + (0.5, 0.5, 0.0)
    P = rng.exponential(size=400)
    return X, Y, P / P.sum()


def mean_log_moment(feature_map, X, Y, P):
    """Mean over pairs of the logarithm of the relative second moment of the features."""
    frame, rho = feature_map.frame, 1 / (1 - 8 * np.array(feature_map.A))
    v = frame.inside(X, key=False) + frame.inside(Y, key=True)
    return float(np.sum(np.log((1 + rho) / 2) - np.log(rho) / 2) + P @ (v**2 @ rho))


def test_plan_has_a_smaller_error_on_the_pairs_than_other_frames_and_constants():
    X, Y, P = correlated()
    a, b, S_x, S_y, C = moments = weighted_moments(X, Y, P)
    best = DenseExponential().plan_moments(*moments)
    least = mean_log_moment(best, X, Y, P)
    others = [
        DenseExponential().plan_moments(a, b, S_x, S_y, 0 * C),  # without the correlation of the pairs
        DenseExponential(center=False).plan_moments(*moments),
        DenseExponential(balance=False).plan_moments(*moments),
        DenseExponential(center=False, balance=False).plan_moments(*moments),
        *(DenseExponential(frame=best.frame, A=np.array(best.A) * factor) for factor in (0.7, 1.3)),
    ]
    assert all(least < mean_log_moment(other, X, Y, P) for other in others)


def test_of_independent_pairs_it_is_the_plan_of_the_data():
    X, Y, _ = correlated()
    spec = Approximation(kernels.Softmax(), DenseExponential(), n_projections=4)
    plan, zero = spec.plan(X, Y).map, np.zeros((3, 3))
    found = DenseExponential().plan_moments(X.mean(0), Y.mean(0), np.cov(X.T, ddof=0), np.cov(Y.T, ddof=0), zero)
    np.testing.assert_allclose(found.A, plan.A, rtol=1e-6)
    np.testing.assert_allclose(found.frame.matrix, plan.frame.matrix, rtol=1e-6)


def test_given_frames_and_constants_are_kept():
    moments, frame = weighted_moments(*correlated()), Frame(np.ones(3), np.zeros(3), 2 * np.eye(3))
    found = DenseExponential(frame=frame).plan_moments(*moments)
    assert found.frame == frame and found.planned
    assert DenseExponential(A=(0, -0.1, 0)).plan_moments(*moments).A == (0, -0.1, 0)


def test_calibrated_features_are_unbiased(seed):
    model, rows = encoder(), torch.randn(5, 7, 32, generator=generator())
    (plan, *_), *_ = calibrate(model, [rows], n_projections=40).values()
    x, y = 0.5 * np.ones((1, 8)), 0.3 * np.ones((1, 8))
    rng = np.random.default_rng(seed)
    values = np.array([plan.draw(8, rng).gram(x, y)[0, 0] for _ in range(200)])
    check_mean(values, float(np.exp(x @ y.T)[0, 0]), repr(plan.projection))


@pytest.mark.parametrize("name", ["encoder", "encoder, causal", "vit", "bert, padded", "gpt2"])
def test_many_rows_approach_exact_attention(name):
    model, run = build(name)
    before = copy.deepcopy(model.state_dict())
    with torch.no_grad():
        exact = run(model)
        errors = [
            (run(replace_attention(model, plans, copy=True, generator=generator())) - exact).norm() / exact.norm()
            for plans in (calibrate(model, [batch_of(name)], n_projections=m) for m in (8, 2048))
        ]
    assert errors[1] < 0.03 and errors[1] < errors[0] / 4
    assert all(torch.equal(values, model.state_dict()[key]) for key, values in before.items())


def sharp_encoder():
    """A trained model's attention: queries and keys far from zero that attend to few keys."""
    torch.manual_seed(0)
    model = encoder()
    for layer in model.layers:
        layer.self_attn.in_proj_weight.data *= 4
        layer.self_attn.in_proj_bias.data[:64] = 1.5 * torch.randn(64, generator=generator())
    return model


def test_calibration_is_more_accurate_than_constants_of_the_first_batch():
    model, rows = sharp_encoder(), torch.randn(40, 12, 32, generator=generator())

    def error(spec):
        with torch.no_grad():
            exact = model(rows[20:])
            found = [replace_attention(model, spec, copy=True, generator=generator(s))(rows[20:]) for s in range(3)]
        return float(np.mean([(out - exact).norm() for out in found]))

    calibrated = error(calibrate(model, [rows[:20]], n_projections=64))
    assert calibrated < error(mechanism("dense", n_projections=64)) < error(mechanism("favor++", n_projections=64))


@pytest.mark.parametrize("name", RUNS)
def test_checkpoint_round_trip(name):
    """Plans of other data of the same kind, or constants not chosen yet: a checkpoint brings its own."""
    model, run = build(name)
    plans = calibrate(model, [batch_of(name)], n_projections=16)
    saved = replace_attention(model, plans, copy=True, generator=generator(0))
    others = build(name, seed=1)[0]
    same_kind = calibrate(others, [batch_of(name)], n_projections=16)
    with torch.no_grad():
        expected = run(saved)
        for spec in (plans, same_kind, mechanism("dense", n_projections=16)):
            loaded = replace_attention(others, spec, copy=True, generator=generator(1))
            loaded.load_state_dict(saved.state_dict())
            assert torch.equal(run(loaded), expected)


@pytest.mark.parametrize(
    "spec",
    [mechanism("dense", n_projections=8), mechanism("favor++", n_projections=16), "favor+"],
    ids=["rows", "map", "name"],
)
def test_checkpoint_of_another_kind_is_refused(spec):
    model, rows = encoder(), batch_of("encoder")
    saved = replace_attention(model, calibrate(model, [rows], n_projections=16), copy=True)
    with pytest.raises(ValueError, match="the checkpoint was not loaded: it"):
        replace_attention(model, spec, copy=True).load_state_dict(saved.state_dict())


def test_checkpoint_of_a_specification_is_refused_by_plans():
    model, rows = encoder(), batch_of("encoder")
    plans = calibrate(model, [rows], n_projections=16)
    saved = replace_attention(model, mechanism("favor++", n_projections=16), copy=True)
    with pytest.raises(ValueError, match="and this module has a plan for each head with d=8"):
        replace_attention(model, plans, copy=True).load_state_dict(saved.state_dict())


def test_heads_may_draw_different_maps():
    softmax = kernels.Softmax()
    plans = [Approximation(softmax, maps.Positive(), n_projections=m) for m in (300, 400)]
    attention, x = RandomFeatureAttention(8, 2, spec=plans, batch_first=True), torch.randn(2, 9, 8)
    assert isinstance(attention.features.current, HeadFeatures)
    other = RandomFeatureAttention(8, 2, spec=plans, batch_first=True)
    other.load_state_dict(attention.state_dict())
    assert torch.equal(other(x, x, x)[0], attention(x, x, x)[0])
    assert "a plan for each head" in repr(attention)


@pytest.mark.parametrize("per_head", [False, True])
def test_redraws_keep_the_plans(per_head):
    model, rows = nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(3, 9, 8)
    plans = calibrate(model, [(rows, rows, rows)])
    attention = replace_attention(model, plans, per_head=per_head)
    assert isinstance(attention.features.current, QuadraticFeatures)
    attention.redraw()
    attention.fit_statistics(rows + 1)
    assert attention.features.plans == list(plans[""])


def test_calibrates_what_is_selected_and_converts_what_was_calibrated():
    model, rows = encoder(), batch_of("encoder")
    plans = calibrate(model, [rows], select=lambda name, module: name.startswith("layers.1"))
    assert list(plans) == ["layers.1.self_attn"]
    replace_attention(model, plans)
    assert type(model.layers[0].self_attn) is nn.MultiheadAttention
    assert type(model.layers[1].self_attn) is RandomFeatureAttention
    again = calibrate(model, [rows], n_projections=8)  # run with exact attention
    assert again["layers.1.self_attn"][0].map.A == plans["layers.1.self_attn"][0].map.A
