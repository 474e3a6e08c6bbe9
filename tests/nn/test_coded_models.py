"""Coded attention in models: exact where everything is kept, saved and loaded, calibrated for a cost."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers")

from bochner import _progress, mechanism  # noqa: E402
from bochner.maps import Frame  # noqa: E402
from bochner.nn import CodedHead, CodedPlan, calibrate, replace_attention  # noqa: E402
from bochner.nn import _coded_calibration as calibration  # noqa: E402
from bochner.nn._recording import record  # noqa: E402

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def llama(seed=0, **more):
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(vocab_size=60, num_key_value_heads=2, eos_token_id=None, **SIZES | more)
    model = transformers.LlamaForCausalLM(config).eval()
    with torch.no_grad():  # sharper than at the start of training
        for name, weight in model.named_parameters():
            if "q_proj" in name or "k_proj" in name:
                weight *= 6
    return model


def bert():
    torch.manual_seed(0)
    return transformers.BertModel(transformers.BertConfig(vocab_size=60, **SIZES)).eval()


def tokens(*shape, seed=0):
    return torch.randint(0, 60, shape, generator=torch.Generator().manual_seed(seed))


def plan(kept, d=8, heads=4, **options):
    frame = Frame(np.zeros(d), np.zeros(d), np.eye(d))
    return CodedPlan([CodedHead(frame, kept=kept)] * heads, **{"window": 4, "exact_below": 0} | options)


@pytest.mark.parametrize("block", [1, 8])
@pytest.mark.parametrize("make", [llama, bert])
@pytest.mark.parametrize("side", ["left", "right", None])
@torch.no_grad()
def test_everything_kept_is_the_model(make, block, side):
    model, ids = make(), tokens(2, 40)
    mask = torch.ones_like(ids)
    if side is not None:
        mask[0, slice(0, 7) if side == "left" else slice(33, 40)] = 0
    coded = replace_attention(model, plan(40, block=block), copy=True)
    one, other = (m(ids, attention_mask=mask)[0][mask.bool()] for m in (model, coded))
    torch.testing.assert_close(other, one, rtol=0, atol=2e-5)


@torch.no_grad()
def test_short_sequences_are_exact_and_long_ones_are_not():
    model, ids = llama(), tokens(1, 40)
    coded = replace_attention(model, plan(2, exact_below=30), copy=True)
    exact = model(ids[:, :29]).logits
    torch.testing.assert_close(coded(ids[:, :29]).logits, exact, rtol=0, atol=2e-5)
    assert (coded(ids).logits - model(ids).logits).abs().max() > 1e-3


@torch.no_grad()
def test_a_saved_model_comes_back(tmp_path):
    model, ids = llama(), tokens(1, 40)
    plans = calibrate(model, [ids], n_projections=16, cost=16, generator=torch.Generator().manual_seed(0))
    head = CodedHead(next(iter(plans.values())).heads[0].frame, kept=2)
    feature = replace(calibrate(model, [ids], 16, window=4)["model.layers.0.self_attn"].heads[0])
    gated = replace(head, features=feature, gate=0.5)
    coded = replace_attention(model, CodedPlan([head, gated, head, gated], window=4, exact_below=0))
    coded.save_pretrained(tmp_path)
    loaded = transformers.LlamaForCausalLM.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(loaded(ids).logits, coded(ids).logits, rtol=0, atol=0)


@pytest.mark.parametrize("make", [llama, bert])
def test_plans_have_the_cost_that_was_asked_for(make):
    model = make()
    plans = calibrate(model, [tokens(2, 96)], n_projections=8, cost=24, generator=torch.Generator().manual_seed(0))
    causal = make is llama
    costs = [p.cost(causal=causal) for p in plans.values()]
    assert len(plans) == 2 and 16 < sum(costs) / 2 <= 24


@torch.no_grad()
def test_more_keys_make_less_error_and_a_tolerance_is_kept():
    model, held = llama(), tokens(2, 96, seed=1)
    exact, errors = model(held).logits, []
    for cost in (16, 32, 64):
        plans = calibrate(model, [tokens(2, 96)], 8, cost=cost, generator=torch.Generator().manual_seed(0))
        coded = replace_attention(model, {n: replace(p, exact_below=0) for n, p in plans.items()}, copy=True)
        errors.append(float((coded(held).logits - exact).norm() / exact.norm()))
    assert errors[0] > errors[1] > errors[2]
    plans = calibrate(model, [held], 8, tolerance=0.05, generator=torch.Generator().manual_seed(0))
    coded = replace_attention(model, {n: replace(p, exact_below=0) for n, p in plans.items()}, copy=True)
    assert (coded(held).logits - exact).norm() / exact.norm() < 0.1  # another draw than the one that was measured


def test_a_tolerance_that_no_cost_keeps_is_refused(monkeypatch):
    """Every loss is twice the exact one; costs that leave out no key of the batch are not measured."""
    monkeypatch.setattr(calibration, "COSTS", (8, 16))
    losses = iter([1.0, *[2.0] * 9])
    with pytest.raises(
        ValueError, match=r"^calibrate: no cost up to 16 keeps the loss within tolerance=0.01 .* larger"
    ):
        calibrate(llama(), [tokens(1, 20)], 8, tolerance=0.01, loss=lambda *_: next(losses))


def test_predicted_errors_are_those_of_the_model():
    """E (g.delta)^2 over draws of the objective is the squared change of a linear model's output; one layer, no draws."""
    model = bert()
    model.encoder.layer = model.encoder.layer[:1]
    calls = record(model, tokens(1, 20), "test", pulls=True)
    assert len(calls) == 1 and calls[0].pull is not None and calls[0].pull.shape == (1, 4, 20, 8)
    assert not calls[0].q.requires_grad
    assert all(weight.grad is None for weight in model.parameters())


def test_calibration_shows_its_progress(monkeypatch, capsys):
    monkeypatch.setattr(_progress, "SECONDS_BEFORE_SHOWN", 0.0)
    for options in ({"cost": 8}, {"state": 8}, {}):
        calibrate(llama(), [tokens(1, 20)], 8, **options)
        assert "batches" in capsys.readouterr().err
        calibrate(llama(), [tokens(1, 20)], 8, verbose=False, **options)
        assert capsys.readouterr().err == ""


def test_an_empty_array_of_names_keeps_nothing():
    ids = [tokens(1, 20)]
    assert calibrate(llama(), ids, 8, keep=np.zeros(0)).keys() == calibrate(llama(), ids, 8).keys()


def test_calibration_leaves_the_model_alone():
    model, ids = llama(), tokens(1, 48)
    before = {name: x.clone() for name, x in model.state_dict().items()}
    calibrate(model, [ids], 8, cost=16)
    assert all(torch.equal(before[name], x) for name, x in model.state_dict().items())
    assert model.config._attn_implementation != "bochner"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"cost": 16, "tolerance": 0.1},
            "and only one of them, got cost=16 and tolerance=0.1",
        ),
        ({"cost": torch.ones(3, 2), "state": 8}, r"got cost=Tensor of shape \(3, 2\) and state=8"),
        ({"cost": 0}, "cost must be"),
        ({"cost": 16, "by_loss": True}, "leave out window, by_loss"),
        ({"cost": 16, "select": lambda name, module: False}, "there is nothing to calibrate"),
        (
            {"cost": 4.5},
            "^calibrate: cost must be at least 5, the keys of the shortest window and its anchors, got 4.5",
        ),
        ({"state": 2}, "^calibrate: state must be at least 3, the keys of the shortest window and its anchors, got 2"),
        ({"cost": 16, "loss": lambda *_: 1.0}, "^calibrate: a tolerance, by_loss and a number for keep go by the loss"),
        ({"bits": 32}, "^calibrate: bits are those of codes, which plans with a cost or a tolerance have"),
        (
            {"state": 8, "spec": mechanism("dense", n_projections=8)},
            "features of other keys are dense ones; leave out spec",
        ),
    ],
)
def test_wrong_requests_are_refused_in_words(options, words):
    with pytest.raises(ValueError, match=words):
        calibrate(llama(), [tokens(1, 20)], **options)


def test_a_plan_of_other_heads_and_a_module_of_torch_are_refused():
    with pytest.raises(ValueError, match="the plan has 2 heads of width 8, and the attention has 4 of width 8"):
        replace_attention(llama(), plan(4, heads=2))
    with pytest.raises(ValueError, match="converts attention of transformers, got MultiheadAttention"):
        replace_attention(torch.nn.MultiheadAttention(32, 4), plan(4))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda f: CodedHead(f, kept=4, candidates=2), "candidates must not be fewer than kept=4, got 2"),
        (lambda f: CodedHead(f, gate=2.0), "gate must lie between 0 and 1"),
        (lambda f: CodedHead(f, gate=0.5), "a gate of 0.5 needs features"),
        (lambda f: CodedPlan([]), "at least one"),
        (lambda f: CodedPlan([CodedHead(f)], window=0), "window must be"),
    ],
)
def test_plans_that_cannot_be_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make(Frame(np.zeros(4), np.zeros(4), np.eye(4)))


def test_a_plan_may_be_a_window_alone():
    model, ids = llama(), tokens(1, 40)
    coded = replace_attention(model, plan(0, window=6), copy=True)
    with torch.no_grad():
        assert math.isfinite(float(coded(ids).logits.square().mean()))
    assert plan(0, window=6).cost(causal=True) == 7
