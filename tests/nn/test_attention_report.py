"""The report: what it catches, what it predicts, what it recommends."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from bochner import Approximation, kernels, maps, projections
from bochner.nn import attention_report, replace_attention
from bochner.nn._recording import record
from bochner.nn._report_heads import estimated_weights, head_row, head_samples, measured_error, predicted_row_error
from support.attention_models import ROWS, TOKENS, build, encoder, generator
from support.checks import check_mean

FEW = {"max_sequences": 2, "max_queries": 6, "n_draws": 2, "n_projections": 32}


def sample_of(scale=0.5, seed=0):
    torch.manual_seed(seed)
    model = nn.MultiheadAttention(8, 2, batch_first=True)
    x = scale * torch.randn(2, 10, 8)
    return head_samples(record(model, (x, x, x))[0], 2, 10, 10)[0]


@pytest.mark.parametrize("map", [maps.Positive(), maps.GeneralizedExponential(-0.1), maps.OptimalPositive()], ids=str)
def test_predicted_error_is_that_of_independent_rows(map, seed):
    # 200 draws of 2000 rows: second-order terms are some thousandths, the standard error is some hundredths
    sample = sample_of()
    spec = Approximation(kernels.Softmax(), map, projections.IID(), 2000)
    rng = np.random.default_rng(seed)
    squares = [
        np.sum((estimated_weights(spec.fit(sample.X, sample.Y, rng=rng), sample) - sample.weights) ** 2)
        for _ in range(200)
    ]
    predicted = predicted_row_error(spec, sample) ** 2 / 2000 * np.sum(sample.weights**2)
    check_mean(np.array(squares), predicted, str(map))


@pytest.mark.parametrize("map", [maps.Trigonometric(), maps.Hyperbolic(), maps.AngularHybrid(2)], ids=str)
def test_no_prediction_for_other_maps(map):
    assert predicted_row_error(Approximation(kernels.Softmax(), map), sample_of()) is None


def test_measured_error_falls_as_one_over_the_root():
    sample = sample_of()
    few, many = (
        measured_error(Approximation(kernels.Softmax(), maps.Positive(), projections.IID(), m), sample, 50, 0)
        for m in (50, 2000)
    )
    assert 4.5 < few / many < 9  # 6.3, with errors of some percent


def test_prediction_of_hopeless_norms_is_infinite():
    spec = Approximation(kernels.Softmax(), maps.Positive(), projections.IID(), 16)
    assert predicted_row_error(spec, sample_of(scale=60.0)) == np.inf


def test_report_has_a_row_for_each_head():
    report = attention_report(build("gpt2")[0], {"input_ids": TOKENS}, **FEW)
    assert [(row.layer, row.head) for row in report.rows] == [
        (f"transformer.h.{layer}.attn", head) for layer in range(2) for head in range(4)
    ]
    for row in report.rows:
        assert set(row.mechanisms) == {"favor+", "simrf-performer", "favor++", "simplex favor++"}
        assert all(found.measured > 0 and found.predicted > 0 for found in row.mechanisms.values())


def test_recommended_features_reach_the_tolerance():
    model = build("encoder")[0]
    report = attention_report(model, ROWS, tolerance=0.1, max_projections=100_000, **FEW)
    assert set(report.recommended) == {"layers.0.self_attn", "layers.1.self_attn"}
    check = attention_report(
        model, ROWS, mechanisms={name: spec for name, spec in report.recommended.items()}, **FEW | {"n_draws": 20}
    )
    for row in check.rows:
        assert row.mechanisms[row.layer].measured < 0.1


def softmax(map, projection, m=64):
    return Approximation(kernels.Softmax(), map, projection, m)


def row_of(**mechanisms):
    """The rows of some mechanisms on a head with small logits, where simplex rows err some times less than others."""
    return head_row("layer", 0, sample_of(scale=0.2), mechanisms, 0.1, 40, np.random.default_rng(0))


def test_coupled_rows_are_judged_by_their_own_error():
    row = row_of(
        iid=softmax(maps.Positive(), projections.IID()), simplex=softmax(maps.Positive(), projections.Simplex())
    )
    iid, simplex = row.mechanisms["iid"], row.mechanisms["simplex"]
    assert iid.predicted == simplex.predicted and simplex.expected < 0.6 * iid.expected
    assert row.best == "simplex"


def test_no_fewer_rows_than_a_block_of_coupled_ones():
    row = head_row(
        "layer",
        0,
        sample_of(scale=0.05),
        {"simplex": softmax(maps.Positive(), projections.Simplex())},
        0.5,
        2,
        np.random.default_rng(0),
    )
    assert row.mechanisms["simplex"].needed == 4  # the width of the head


def test_mechanisms_are_compared_by_features_and_not_by_rows():
    row = row_of(one=softmax(maps.Positive(), projections.IID()), two=softmax(maps.Hyperbolic(), projections.IID()))
    assert row.mechanisms["one"].features == row.mechanisms["one"].needed
    assert row.mechanisms["two"].features == 2 * row.mechanisms["two"].needed
    assert row.best == min(row.mechanisms, key=lambda name: row.mechanisms[name].features)


def test_errors_that_draws_miss_are_expected():
    row = head_row(
        "layer",
        0,
        sample_of(scale=4.0),
        {"iid": softmax(maps.Positive(), projections.IID())},
        0.1,
        2,
        np.random.default_rng(0),
    )
    found = row.mechanisms["iid"]
    assert found.predicted > 2 * found.measured and found.expected > 2 * found.measured


def test_recommendation_converts_the_model():
    model = build("encoder")[0]
    report = attention_report(model, ROWS, max_projections=100_000, **FEW)
    new = replace_attention(model, report.recommended, copy=True)
    assert {name: new.get_submodule(name).features.spec for name in report.recommended} == report.recommended


def test_softmax_is_recommended_where_features_are_hopeless():
    model = encoder()
    for layer in model.layers:
        layer.self_attn.in_proj_weight.data *= 40
    report = attention_report(model, ROWS, **FEW)
    assert report.recommended == {}
    assert all(line.split()[-3:] == ["softmax", "-", "-"] for line in str(report).splitlines()[4:])


def test_report_prints_as_a_table():
    lines = str(attention_report(encoder(), ROWS, **FEW)).splitlines()
    assert lines[0] == "relative errors of attention matrices, predicted / measured"
    assert lines[2].split() == [
        "layer",
        "head",
        "|q||k|",
        "favor+",
        "simrf-performer",
        "favor++",
        "simplex",
        "favor++",
        "recommended",
        "rows",
        "features",
    ]
    assert len(lines) == 4 + 8


def test_one_seed_gives_one_report():
    a, b = (str(attention_report(encoder_at(0), ROWS, generator=generator(3), **FEW)) for _ in range(2))
    assert a == b


def encoder_at(seed):
    torch.manual_seed(seed)
    return encoder()


# errors


def test_no_attention():
    with pytest.raises(ValueError, match="attention_report: found no attention in Linear"):
        attention_report(nn.Linear(2, 2), torch.ones(1, 2))


def test_bad_mechanisms():
    with pytest.raises(ValueError, match=r"mechanisms\['rff'\]: spec must be of kernels\.Softmax\(\)"):
        attention_report(encoder(), ROWS, mechanisms={"rff": Approximation(kernels.Gaussian())})
    with pytest.raises(ValueError, match="mechanisms must be a mapping that names at least one"):
        attention_report(encoder(), ROWS, mechanisms={})


def test_bad_numbers():
    with pytest.raises(ValueError, match="attention_report: n_draws must be an integer of at least 1, got 0"):
        attention_report(encoder(), ROWS, n_draws=0)
    with pytest.raises(ValueError, match="attention_report: tolerance must be a positive number, got 0"):
        attention_report(encoder(), ROWS, tolerance=0)
