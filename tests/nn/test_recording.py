"""Recording: queries and keys of exact attention, from a model that is not touched."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

from bochner.nn import attention_report
from bochner.nn._recording import record
from bochner.nn._report_times import head_samples
from support.attention_models import ROWS, RUNS, TOKENS, batch_of, build, converted, encoder, generator

FEW = {"n_draws": 1, "costs": [9], "verbose": False}


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
def test_reports_and_training_at_once(name, monkeypatch):
    """Two threads report on a model while a third evaluates it and a fourth takes gradients: none sees the others."""
    monkeypatch.setattr("bochner.nn._report_times.LENGTHS", (64,))  # longer ones take long, and are timed elsewhere
    model, run = build(name)
    new = converted(model)
    with torch.no_grad():
        expected = run(new)
    new.zero_grad()
    run(new).square().mean().backward()
    gradients = {key: value.grad.clone() for key, value in new.named_parameters() if value.grad is not None}

    def report(seed):
        found = attention_report(new, [batch_of(name)] * 2, generator=generator(seed), **FEW)
        return [(row.kind, row.change, row.layers) for row in found.rows]

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


def test_attention_that_is_not_called():
    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2)

        def forward(self, x):
            return x

    with pytest.raises(ValueError, match="the model ran without calling any of its attention"):
        attention_report(Idle(), [ROWS, ROWS])
