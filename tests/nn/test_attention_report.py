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
from bochner.nn._report import ReportRow, _choice
from bochner.nn._report_candidates import ModelPlans
from bochner.nn._report_times import (
    Clock,
    MechanismRow,
    estimated_weights,
    head_samples,
    median_error,
    predicted_row_error,
)
from support.attention_models import ROWS, build, encoder, generator
from support.checks import check_mean

FEW = {"n_draws": 2, "costs": [9, 11], "verbose": False}


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


@pytest.fixture
def clock(monkeypatch):
    """Times by formula in place of a clock: exact attention takes n^2 units, converted attention a number per token."""

    def with_unit(unit):
        def seconds(self, computed_by, n=None):
            n = n or self.length
            return 1e-6 * n * (n if computed_by is self.exact else unit)

        monkeypatch.setattr(Clock, "whole", seconds)
        monkeypatch.setattr(Clock, "step", lambda self, by, n=None: seconds(self, by, n) / (n or self.length))

    return with_unit


def language_batches(count, length=40):
    return [{"input_ids": ids, "labels": ids} for ids in (tokens_of(length, seed) for seed in range(count))]


def tokens_of(length, seed):
    return torch.randint(2, 50, (2, length), generator=generator(seed))


def test_every_way_at_every_cost_for_a_decoder(clock):
    clock(10)
    torch.manual_seed(0)
    report = attention_report(build("gpt2")[0], language_batches(2), costs=[12, 24], verbose=False)
    assert report.length == 40
    assert [(row.kind, row.cost) for row in report.rows] == [
        (kind, cost) for kind in ("window", "kept keys", "codes", "features") for cost in (12, 24)
    ]
    for row in report.rows:
        assert set(row.layers) == {f"transformer.h.{i}.attn" for i in range(2)}
        assert abs(sum(row.layers.values()) - 1) < 1e-9
        assert row.faster_from == (None if row.kind == "codes" else 128)


def test_an_encoder_has_no_kept_keys_and_no_steps(clock):
    clock(10)
    report = attention_report(build("bert")[0], [tokens_of(40, s) for s in range(2)], costs=[16], verbose=False)
    assert [row.kind for row in report.rows] == ["window", "codes", "features"]
    assert np.isnan(report.step) and "per token" not in str(report)


@pytest.mark.parametrize("given", [False, True], ids=["output", "loss"])
def test_the_recommendation_keeps_the_tolerance_on_other_data(given, clock):
    clock(1)
    model, tolerance = encoder_at(0), 0.02 if given else 0.2
    asked = {"loss": loss} if given else {}
    report = attention_report(model, batches(4), tolerance=tolerance, generator=generator(), **FEW | asked)
    assert report.recommended and report.change <= tolerance
    assert sorted([*report.recommended, *report.kept]) == [f"layers.{i}.self_attn" for i in range(2)]
    change = ModelChange("test", model, batches(4, seed=100), loss if given else None)
    assert np.mean([change.of(report.recommended, generator(seed)) for seed in range(6)]) <= 1.2 * tolerance
    new = replace_attention(model, report.recommended, copy=True)
    for name, plan in report.recommended.items():
        assert (new.get_submodule(name).window, new.get_submodule(name).features.plans) == (plan.window, list(plan))


def test_nothing_slower_is_recommended(clock):
    clock(900)  # at 12 tokens exact attention takes less
    report = attention_report(encoder_at(0), batches(2), tolerance=10.0, generator=generator(), **FEW)
    assert report.recommended == {} and report.change == 0 and report.chosen is None
    assert "recommended: keep softmax at 12 tokens; nothing is faster" in str(report)
    assert "whole sequences: keep softmax below 1024 tokens; from there features" in str(report)


@pytest.mark.parametrize(("kind", "seconds", "step", "taken"), [
    ("features", 2.0, 0.1, False), ("window", 0.5, 2.0, False), ("features", 0.5, 0.1, True), ("codes", 1.1, 0.5, True),
    ("codes", 1.0, 2.0, False), ("window", 0.5, np.nan, True),
    ("codes", 1.0, 0.95, False), ("features", 0.95, 0.95, False), ("features", 0.95, 0.85, True),
    ("window", 0.95, np.nan, False),
])  # fmt: skip
def test_what_is_slower_as_a_whole_or_in_decoding_is_not_chosen(kind, seconds, step, taken):
    """Exact attention takes one second, and one per token; whole sequences of codes are exact, up to noise of the clock."""
    row = ReportRow(kind, 64, 0.0, seconds, step, None, None, {"layer": 1.0})
    found = _choice([row], [ModelPlans(kind, 64, {"layer": None})], (1.0, 1.0), None, 0.01, 1, None)
    assert (found[0] is row) == taken and set(found[1]) == ({"layer"} if taken else set())


def test_layers_that_lose_most_stay_exact(clock):
    clock(1)
    model = encoder_at(0)
    model.layers[1].self_attn.in_proj_weight.data *= 8
    whole = attention_report(model, batches(3), tolerance=10.0, generator=generator(), **FEW)
    assert whole.kept == [] and len(whole.recommended) == 2
    best = min(whole.rows, key=lambda row: row.change)
    assert best.layers["layers.1.self_attn"] > 0.9
    part = attention_report(model, batches(3), tolerance=0.6 * best.change, generator=generator(), **FEW)
    assert part.kept == ["layers.1.self_attn"] and "keep exact: layers.1.self_attn" in str(part)
    assert part.change <= 0.6 * best.change


def test_exact_attention_is_recommended_where_features_are_hopeless(clock):
    clock(1)
    model = encoder()
    for layer in model.layers:
        layer.self_attn.in_proj_weight.data *= 40
    report = attention_report(model, batches(2), tolerance=0.01, **FEW)
    assert report.recommended == {} and report.change == 0
    assert "nothing faster keeps the output within 1 %" in str(report)
    assert "whole sequences: keep softmax; nothing keeps the output within 1 % in all layers" in str(report)


def test_heads_are_compared_if_asked_for(clock):
    clock(10)
    named = {"favor+": "favor+", "favor++": "favor++"}
    report = attention_report(encoder(), batches(2), mechanisms=named, **FEW)
    lines = str(report).splitlines()
    assert lines[0].endswith("sequences of 12 tokens")
    assert lines[2].startswith("relative errors of attention matrices on held-out data: median")
    assert lines[4].split() == ["layer", "head", "|q||k|", "favor+", "favor++", "calibrated"]
    assert [(row.layer, row.head) for row in report.heads] == [
        (f"layers.{layer}.self_attn", head) for layer in range(2) for head in range(4)
    ]
    assert all(row.best in row.mechanisms for row in report.heads)


def test_one_seed_gives_one_report(clock):
    clock(10)
    a, b = (str(attention_report(encoder_at(0), batches(2), generator=generator(3), **FEW)) for _ in range(2))
    assert a == b


def test_times_are_measured(monkeypatch):
    """Real times, of which only the sign is known."""
    monkeypatch.setattr("bochner.nn._report_times.LENGTHS", (128, 256))
    report = attention_report(build("gpt2")[0], language_batches(2), costs=[12], verbose=False)
    assert report.seconds > 0 and report.step > 0
    assert all(row.seconds > 0 and row.step > 0 for row in report.rows)


ERRORS = [
    (lambda: attention_report(nn.Linear(2, 2), [ROWS, ROWS]), ValueError, "found no attention in Linear"),
    (lambda: attention_report(encoder(), ROWS), TypeError, r"batches must be a list .* such as \[one, another\]"),
    (lambda: attention_report(encoder(), [ROWS]), ValueError, "batches must hold two batches or more"),
    (lambda: attention_report(encoder(), [ROWS], {}), TypeError, "held_out must be a list"),
    (
        lambda: attention_report(encoder(), [ROWS] * 2, mechanisms={"rff": Approximation(kernels.Gaussian())}),
        ValueError,
        r"mechanisms\['rff'\]: spec must use kernels\.Softmax\(\)",
    ),
    (lambda: attention_report(encoder(), [ROWS] * 2, mechanisms=1), TypeError, "mechanisms must be a mapping"),
    (
        lambda: attention_report(encoder(), [ROWS] * 2, n_draws=0),
        ValueError,
        "n_draws must be an integer of at least 1",
    ),
    (lambda: attention_report(encoder(), [ROWS] * 2, tolerance=0), ValueError, "tolerance must be a positive number"),
    (lambda: attention_report(encoder(), [ROWS] * 2, costs=[]), TypeError, "costs must be a sequence of integers"),
    (
        lambda: attention_report(encoder(), [ROWS] * 2, costs=[4]),
        ValueError,
        r"costs\[0\] must be an integer of at least 9",
    ),
    (lambda: attention_report(encoder(), [ROWS] * 2, costs=[50]), ValueError, "costs must hold one below the length"),
]


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS, ids=[words for *_, words in ERRORS])
def test_errors_in_words(call, kind, words):
    with pytest.raises(kind, match=f"^attention_report: {words}"):
        call()


def test_a_few_percent_are_noise_and_not_faster(monkeypatch):
    """The converted attention takes .95 of the time up to 1024 tokens, and half from there on."""
    clock = Clock(record(build("gpt2")[0], {"input_ids": tokens_of(20, 0)}, "test")[0])
    other = object()
    part = {clock.exact: lambda n: 1.0, other: lambda n: 0.95 if n < 1024 else 0.5}
    assert clock.faster_from(lambda by, n: part[by](n), other) == 1024


def test_exact_attention_is_timed_beside_every_other():
    """A machine that is busy when exact attention is timed first makes nothing else look fast."""
    clock, times = (
        Clock(record(build("gpt2")[0], {"input_ids": tokens_of(20, 0)}, "test")[0]),
        iter([9.0, 2.0, 1.0, 3.0, 4.0]),
    )
    other, another = object(), object()
    found = [clock._timed(0, by, 20, lambda *_: next(times)) for by in (clock.exact, other, another, clock.exact)]
    assert found == [9.0, 2.0, 3.0, 1.0]
