"""The report: what it catches, what it predicts, what it recommends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

from bochner import Approximation, kernels, maps, projections
from bochner.nn import attention_report, replace_attention
from bochner.nn._recording import record
from bochner.nn._report_heads import estimated_weights, head_row, head_samples, measured_error, predicted_row_error
from support.attention_models import CAUSAL, IMAGES, PADDED, ROWS, RUNS, TOKENS, build, converted, encoder, generator
from support.checks import check_mean

FEW = {"max_sequences": 2, "max_queries": 6, "n_draws": 2, "n_projections": 32}


def batch_of(name):
    if "encoder" in name:
        padding = {"src_key_padding_mask": PADDED == 0} if "padded" in name else {}
        causal = {"mask": CAUSAL, "is_causal": True}
        return {"src": ROWS} | padding | (causal if "causal" in name else {})
    if name == "decoder":
        return {"tgt": ROWS, "memory": ROWS.flip(0), "tgt_mask": CAUSAL, "tgt_is_causal": True}
    if name == "vit":
        return {"pixel_values": IMAGES}
    return {"input_ids": TOKENS} | ({"attention_mask": PADDED} if "padded" in name else {})


def exact_weights_of(model, batch):
    """Attention weights of the model itself, layer by layer, by its own code."""
    if isinstance(model, nn.TransformerEncoder):
        found = []
        for layer in model.layers:
            layer.self_attn.register_forward_hook(lambda module, inputs, output: found.append(output[1]))
            forward = layer.self_attn.forward
            layer.self_attn.forward = lambda *a, forward=forward, **o: forward(
                *a, **o | {"need_weights": True, "average_attn_weights": False}
            )
        model(**batch)
        return found
    model.set_attn_implementation("eager")
    return model(**batch, output_attentions=True).attentions


NAMES = ["encoder", "encoder, padded", "encoder, causal", "vit", "bert", "bert, padded", "gpt2", "gpt2, padded"]


@pytest.mark.parametrize("name", NAMES)
def test_caught_heads_have_the_weights_of_the_model(name):
    model, _ = build(name)
    calls = record(model, batch_of(name))
    with torch.no_grad():
        expected = exact_weights_of(model, batch_of(name))
    assert len(calls) == len(expected) == 2
    for call, weights in zip(calls, expected, strict=True):
        for h, sample in enumerate(head_samples(call, 3, 17, 17)):
            assert np.allclose(sample.weights, weights[:, h].numpy(), atol=1e-5)


@pytest.mark.parametrize("name", RUNS)
def test_converted_models_are_run_exactly_and_left_as_they_are(name):
    model, run = build(name)
    new = converted(model)
    with torch.no_grad():
        before = run(new)
    a, b = (record(m, batch_of(name)) for m in (model, new))
    for one, other in zip(a, b, strict=True):
        assert one.name == other.name
        assert torch.allclose(one.q, other.q, atol=1e-5) and torch.allclose(one.k, other.k, atol=1e-5)
    with torch.no_grad():
        assert torch.equal(run(new), before)


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
    row = head_row("layer", 0, sample_of(scale=0.05), {"simplex": softmax(maps.Positive(), projections.Simplex())}, 0.5, 2,
                   np.random.default_rng(0))  # fmt: skip
    assert row.mechanisms["simplex"].needed == 4  # the width of the head


def test_mechanisms_are_compared_by_features_and_not_by_rows():
    row = row_of(one=softmax(maps.Positive(), projections.IID()), two=softmax(maps.Hyperbolic(), projections.IID()))
    assert row.mechanisms["one"].features == row.mechanisms["one"].needed
    assert row.mechanisms["two"].features == 2 * row.mechanisms["two"].needed
    assert row.best == min(row.mechanisms, key=lambda name: row.mechanisms[name].features)


def test_errors_that_draws_miss_are_expected():
    row = head_row("layer", 0, sample_of(scale=4.0), {"iid": softmax(maps.Positive(), projections.IID())}, 0.1, 2,
                   np.random.default_rng(0))  # fmt: skip
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


@pytest.mark.parametrize("batch", [ROWS, (ROWS,), {"src": ROWS}], ids=["tensor", "tuple", "mapping"])
def test_forms_of_a_batch(batch):
    assert len(record(encoder(), batch)) == 2


def test_training_mode_is_given_back():
    model = encoder().train()
    record(model, ROWS)
    assert model.training and torch.backends.mha.get_fastpath_enabled()


def test_cross_attention_and_batch_second():
    model = nn.MultiheadAttention(8, 2)
    q, k = torch.randn(5, 3, 8), torch.randn(7, 3, 8)
    (call,) = record(model, (q, k, k))
    assert call.q.shape == (3, 2, 5, 4) and call.k.shape == (3, 2, 7, 4)


@pytest.mark.parametrize("options", [{}, {"average_attn_weights": False}, {"need_weights": False}], ids=str)
@pytest.mark.parametrize("batched", [True, False])
def test_models_that_use_their_weights_get_the_exact_ones(options, batched):
    found = []

    class Shown(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

        def forward(self, x):
            found.append(self.attention(x, x, x, **options))

    model, x = Shown().eval(), ROWS if batched else ROWS[0]
    with torch.no_grad():
        model(x)
    record(model, x)
    for a, b in zip(*found, strict=True):
        assert a is b is None or torch.allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("name", ["encoder", "gpt2"])
def test_reports_and_training_at_once(name):
    """Two threads report on a model while a third evaluates it and a fourth takes gradients: none sees the others."""
    model, run = build(name)
    new = converted(model)
    with torch.no_grad():
        expected = run(new)
    new.zero_grad()
    run(new).square().mean().backward()
    gradients = {key: value.grad.clone() for key, value in new.named_parameters() if value.grad is not None}

    def report(seed):
        return str(attention_report(new, batch_of(name), generator=generator(seed), **FEW))

    def evaluate(_):
        with torch.no_grad():
            return all(torch.equal(run(new), expected) for _ in range(20))

    def differentiate(_):
        parameters = [new.get_parameter(key) for key in gradients]
        found = [torch.autograd.grad(run(new).square().mean(), parameters) for _ in range(10)]
        return all(torch.equal(a, gradients[key]) for grads in found for key, a in zip(gradients, grads, strict=True))

    alone = [report(seed) for seed in (0, 1)]
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(job, seed) for job, seed in ((report, 0), (evaluate, 0), (report, 1), (differentiate, 0))]
        first, evaluated, second, differentiated = (job.result() for job in jobs)
    assert [first, second] == alone
    assert evaluated and differentiated


def test_a_report_leaves_no_trace():
    model = build("gpt2")[0].train()
    before = {name: dict(vars(module)) for name, module in model.named_modules()}
    configuration = model.config.to_dict() | {"implementation": model.config._attn_implementation}
    record(model, {"input_ids": TOKENS})
    assert configuration == model.config.to_dict() | {"implementation": model.config._attn_implementation}
    for name, module in model.named_modules():
        assert vars(module).keys() == before[name].keys()
        assert all(vars(module)[key] is value for key, value in before[name].items())


# errors


def test_no_attention():
    with pytest.raises(ValueError, match="attention_report: found no attention in Linear"):
        attention_report(nn.Linear(2, 2), torch.ones(1, 2))


def test_attention_that_is_not_called():
    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2)

        def forward(self, x):
            return x

    with pytest.raises(ValueError, match="the model ran without calling any of its attention"):
        attention_report(Idle(), ROWS)


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
