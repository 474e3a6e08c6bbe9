"""SampledSoftmax: its loss, the bias of its gradient, and the exact loss."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from bochner.nn import _class_sampling
from support.checks import Z_MAX, check_mean
from support.sampled_losses import D, batch, generator, module, proposal


@pytest.mark.parametrize("normalize", [False, True])
def test_loss_is_the_softmax_loss_of_corrected_logits(normalize):
    loss, (h, targets) = module(bias=True, scale=1.5, normalize=normalize, reduction="none"), batch()
    loss.bias.data.normal_(generator=generator(3))
    found = loss(h, targets, generator=generator(7))
    drawn = loss.sample(h, targets, generator=generator(7))
    o = loss.logits(h)
    estimate = torch.exp(o.gather(1, drawn.classes) - drawn.log_prob).mean(1)
    o_true = o.gather(1, targets[:, None])[:, 0]
    assert torch.allclose(found, torch.log(o_true.exp() + estimate) - o_true)


def gradients(loss, h, targets, repeats, seed=0):
    """The gradient in h of one query over independent negatives, (repeats, d)."""
    rows = h.expand(repeats, -1).clone().requires_grad_()
    loss.reduction = "sum"
    (gradient,) = torch.autograd.grad(loss(rows, targets.expand(repeats), generator=generator(seed)), rows)
    return gradient


def full_gradient(loss, h, targets):
    h = h.clone().requires_grad_()
    return torch.autograd.grad(loss.full_loss(h, targets), h)[0][0]


@pytest.mark.parametrize("n_samples", [1, 5])
def test_gradient_is_unbiased_with_the_softmax_itself(n_samples, seed):
    loss, (h, targets) = module(sampler="softmax", n_samples=n_samples), batch(1, norm=2.0)
    found, expected = gradients(loss, h, targets, 20_000, seed), full_gradient(loss, h, targets)
    for k in range(D):
        check_mean(found[:, k].numpy(), float(expected[k]), f"coordinate {k}")


def bias_and_error(loss, h, targets, repeats, seed):
    """Squared bias of the gradient, without that of noise, and its standard error (by the jackknife over blocks)."""
    error = gradients(loss, h, targets, repeats, seed) - full_gradient(loss, h, targets)
    blocks = error.view(40, -1, D).mean(1)
    total = blocks.sum(0)
    # mean over pairs of different blocks: an unbiased estimate of |E error|^2
    value = float(((total @ total) - (blocks * blocks).sum()) / (40 * 39))
    left = [((total - b) @ (total - b) - (blocks * blocks).sum() + b @ b) / (39 * 38) for b in blocks]
    left = torch.stack(left)
    return value, float(((left - left.mean()).square().sum() * 39 / 40).sqrt())


@pytest.mark.parametrize(("kind", "n_projections"), [("trigonometric", 64), ("positive", 64), ("angular", 16)])
def test_bias_is_smaller_than_with_uniform_negatives(kind, n_projections, seed):
    options = {"n_samples": 4, "n": 200, "m": n_projections}
    kernel, uniform = module(kind, **options), module(kind, sampler="uniform", **options)
    h, targets = batch(1, n=200, norm=1.5)
    (a, a_error), (b, b_error) = (bias_and_error(loss, h, targets, 20_000, seed) for loss in (kernel, uniform))
    assert (b - a) / math.hypot(a_error, b_error) > Z_MAX, (a, a_error, b, b_error)


def test_bias_vanishes_as_samples_grow(seed):
    h, targets = batch(1, n=200, norm=1.5)
    few, many = (
        bias_and_error(module(n=200, n_samples=m, m=8), h, targets, repeats, seed)
        for m, repeats in ((1, 20_000), (100, 2_000))
    )
    assert few[0] / few[1] > Z_MAX  # there is a bias to lose
    assert abs(many[0]) < few[0] / 50 + Z_MAX * many[1]  # it falls as 1/m, its square as 1/m^2
    assert many[1] < few[0] / 50  # and the error bar can tell


def test_full_loss_is_cross_entropy():
    loss, (h, targets) = module(scale=1.5, bias=True), batch()
    expected = F.cross_entropy(1.5 * h @ loss.weight.T + loss.bias, targets)
    assert torch.allclose(loss.full_loss(h, targets), expected)
    assert torch.allclose(-loss.log_prob(h, targets[:, None]).mean(), expected)
    assert torch.equal(loss.predict(h), loss.log_prob(h).argmax(-1))


@pytest.mark.parametrize("method", ["forward", "full_loss"])
def test_ignored_rows_and_reductions(method):
    loss, (h, targets) = module(reduction="none"), batch(6)
    targets[[1, 4]] = -100
    options = {"generator": generator(2)} if method == "forward" else {}
    each = getattr(loss, method)(h.view(2, 3, D), targets.view(2, 3), **options)
    assert each.shape == (2, 3) and bool((each.flatten()[[1, 4]] == 0).all())
    for reduction, expected in (("sum", each.sum()), ("mean", each.sum() / 4)):
        loss.reduction = reduction
        options = {"generator": generator(2)} if method == "forward" else {}
        assert torch.allclose(getattr(loss, method)(h, targets, **options), expected)


def test_features_are_built_in_chunks(monkeypatch):
    h, _ = batch()
    q = proposal(module(), h)
    monkeypatch.setattr(_class_sampling, "_CHUNK_NUMBERS", 40)
    assert torch.allclose(proposal(module(), h), q)
