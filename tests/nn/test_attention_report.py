"""The report: what it measures, what it predicts, and that its recommendation keeps what it promises."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from bochner import Approximation, kernels, maps, projections
from bochner.nn import attention_report, replace_attention
from bochner.nn._model_change import ModelChange
from bochner.nn._recording import record
from bochner.nn._report_heads import MechanismRow, estimated_weights, head_samples, median_error, predicted_row_error
from support.attention_models import ROWS, TOKENS, build, encoder, generator
from support.checks import check_mean

FEW = {"max_sequences": 2, "max_queries": 6, "n_draws": 2, "rows": [8, 32], "windows": [0, 3]}


def sample_of(scale=0.5, seed=0):
    torch.manual_seed(seed)
    model = nn.MultiheadAttention(8, 2, batch_first=True)
    x = scale * torch.randn(2, 10, 8)
    return head_samples(record(model, (x, x, x))[0], 2, 10, 10)[0]


@pytest.mark.parametrize("map", [maps.Positive(), maps.GeneralizedExponential(-0.1), maps.OptimalPositive()], ids=str)
def test_predicted_error_is_that_of_independent_rows(map, seed):
    # 100 draws of 2000 rows: second-order terms are some thousandths, the standard error is some hundredths
    sample = sample_of()
    spec = Approximation(kernels.Softmax(), map, projections.IID(), 2000)
    rng = np.random.default_rng(seed)
    squares = [
        np.sum((estimated_weights(spec.fit(sample.X, sample.Y, rng=rng), sample) - sample.weights) ** 2)
        for _ in range(100)
    ]
    predicted = predicted_row_error(spec, sample) ** 2 / 2000 * np.sum(sample.weights**2)
    check_mean(np.array(squares), predicted, str(map))


@pytest.mark.parametrize("map", [maps.Trigonometric(), maps.Hyperbolic(), maps.AngularHybrid(2)], ids=str)
def test_no_prediction_for_other_maps(map):
    assert predicted_row_error(Approximation(kernels.Softmax(), map), sample_of()) is None


def test_median_error_falls_as_one_over_the_root():
    few, many = (
        median_error(Approximation(kernels.Softmax(), maps.Positive(), projections.IID(), m), sample_of(), 50, 0)
        for m in (50, 2000)
    )
    assert 4.5 < few / many < 9  # 6.3, with errors of some percent


def test_predictions_that_rare_draws_dominate_are_marked():
    spec = Approximation(kernels.Softmax(), maps.Positive(), projections.IID(), 16)
    hopeless = sample_of(scale=60.0)
    assert predicted_row_error(spec, hopeless) == np.inf
    assert MechanismRow(0.5, 2.0).rare and str(MechanismRow(0.5, 2.0)) == "0.5 (*)"
    assert not MechanismRow(0.5, 0.6).rare and str(MechanismRow(0.5, 0.6)) == "0.5 (0.6)"
    assert str(MechanismRow(0.5, None)) == "0.5"


def batches(n, seed=0):
    return [torch.randn(4, 12, 32, generator=generator(seed + k)) for k in range(n)]


def loss(model, batch):
    """A loss with much noise, as of labels, which grows with the distance from the model with exact attention."""
    return 1 + (model(batch) - encoder_at(0)(batch)).square().mean()


def encoder_at(seed):
    torch.manual_seed(seed)
    model = encoder()
    model.layers[1].self_attn.in_proj_weight.data *= 2
    return model


def test_report_has_a_row_for_each_head_and_layer():
    torch.manual_seed(0)
    report = attention_report(build("gpt2")[0], [{"input_ids": TOKENS, "labels": TOKENS}] * 2, tolerance=0.1, **FEW)
    names = [f"transformer.h.{layer}.attn" for layer in range(2)]
    assert [(row.layer, row.head) for row in report.heads] == [(name, head) for name in names for head in range(4)]
    assert all(row.best in row.mechanisms for row in report.heads)
    assert [row.layer for row in report.layers] == names
    assert {(o.plan.window, o.plan.anchors, o.plan.n_projections) for o in report.layers[0].options} == {
        (0, 0, 8),
        (0, 0, 32),
        (3, 1, 8),
        (3, 1, 32),
    }


@pytest.mark.parametrize("given", [False, True], ids=["output", "loss"])
def test_the_recommendation_keeps_the_tolerance_on_other_data(given):
    model, tolerance = encoder_at(0), 0.02 if given else 0.2
    asked = {"loss": loss} if given else {}
    report = attention_report(model, batches(4), tolerance=tolerance, generator=generator(), **FEW | asked)
    assert report.recommended and report.change <= tolerance
    change = ModelChange("test", model, batches(4, seed=100), loss if given else None)
    assert np.mean([change.of(report.recommended, generator(seed)) for seed in range(6)]) <= tolerance
    new = replace_attention(model, report.recommended, copy=True)
    for name, plan in report.recommended.items():
        assert (new.get_submodule(name).window, new.get_submodule(name).features.plans) == (plan.window, list(plan))


def test_more_tolerance_is_cheaper():
    found = [
        attention_report(encoder_at(0), batches(2), tolerance=t, generator=generator(), **FEW) for t in (0.03, 0.3, 3.0)
    ]
    costs = [
        sum(12 if row.layer not in one.recommended else one.recommended[row.layer].n_projections for row in one.layers)
        for one in found
    ]
    assert costs == sorted(costs, reverse=True)
    assert len(found[2].recommended) == 2


def test_exact_attention_is_recommended_where_features_are_hopeless():
    model = encoder()
    for layer in model.layers:
        layer.self_attn.in_proj_weight.data *= 40
    report = attention_report(model, batches(2), tolerance=0.01, **FEW)
    assert report.recommended == {} and report.change == 0
    assert "recommended: convert 0 of 2 layers" in str(report)


def test_report_prints_as_tables():
    report = attention_report(encoder(), batches(2), **FEW)
    lines = str(report).splitlines()
    assert lines[0].startswith("relative errors of attention matrices on held-out data: median")
    assert lines[2].split() == ["layer", "head", "|q||k|", "favor+", "favor++", "calibrated"]
    header = next(line for line in lines if "window" in line)
    assert header.split() == ["layer", "window", "8", "rows", "32", "rows", "recommended"]


def test_one_seed_gives_one_report():
    a, b = (str(attention_report(encoder_at(0), batches(2), generator=generator(3), **FEW)) for _ in range(2))
    assert a == b


ERRORS = [
    (lambda: attention_report(nn.Linear(2, 2), [ROWS, ROWS]), ValueError, "found no attention in Linear"),
    (lambda: attention_report(encoder(), ROWS), TypeError, r"batches must be a list .* such as \[one, another\]"),
    (lambda: attention_report(encoder(), [ROWS]), ValueError, "batches must hold two batches or more"),
    (lambda: attention_report(encoder(), [ROWS], {}), TypeError, "held_out must be a list"),
    (
        lambda: attention_report(encoder(), [ROWS] * 2, mechanisms={"rff": Approximation(kernels.Gaussian())}),
        ValueError,
        r"mechanisms\['rff'\]: spec must be of kernels\.Softmax\(\)",
    ),
    (lambda: attention_report(encoder(), [ROWS] * 2, mechanisms=1), TypeError, "mechanisms must be a mapping"),
    (
        lambda: attention_report(encoder(), [ROWS] * 2, n_draws=0),
        ValueError,
        "n_draws must be an integer of at least 1",
    ),
    (lambda: attention_report(encoder(), [ROWS] * 2, tolerance=0), ValueError, "tolerance must be a positive number"),
    (lambda: attention_report(encoder(), [ROWS] * 2, rows=[]), TypeError, "rows must be a sequence of integers"),
    (
        lambda: attention_report(encoder(), [ROWS] * 2, windows=[50]),
        ValueError,
        "windows must hold one below the length",
    ),
]


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS, ids=[words for *_, words in ERRORS])
def test_errors_in_words(call, kind, words):
    with pytest.raises(kind, match=f"^attention_report: {words}"):
        call()
