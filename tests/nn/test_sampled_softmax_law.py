"""SampledSoftmax: the law of its negatives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn import functional as F

from support.checks import P_MIN
from support.sampled_losses import MAPS, N, batch, generator, module, proposal


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("sampler", ["kernel", "uniform", "softmax"])
def test_probabilities_are_positive_and_sum_to_one_without_the_true_class(kind, sampler):
    loss, (h, targets) = module(kind, sampler=sampler), batch()
    q = proposal(loss, h, targets)
    assert torch.allclose(q.sum(1), torch.ones(5, dtype=q.dtype))
    true = F.one_hot(targets, N).bool()
    assert bool((q[true] == 0).all()) and bool((q[~true] > 0).all())


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("sampler", ["kernel", "uniform", "softmax"])
def test_samples_follow_the_declared_law(kind, sampler, seed):
    loss, (h, targets), count = module(kind, sampler=sampler, uniform_share=0.1), batch(1), 20_000
    drawn = loss.sample(h, targets, n_samples=count, generator=generator(seed))
    q = proposal(loss, h, targets)[0]
    assert torch.allclose(drawn.log_prob[0].exp(), q[drawn.classes[0]])
    observed, kept = np.bincount(drawn.classes[0].numpy(), minlength=N), q.numpy() > 0
    assert observed[~kept].sum() == 0
    assert stats.chisquare(observed[kept], count * q.numpy()[kept]).pvalue > P_MIN


def test_the_law_is_the_estimated_kernel():
    loss, (h, _) = module(uniform_share=0.0, bias=True, scale=0.7), batch()
    loss.bias.data.normal_(generator=generator(3))
    loss.rebuild()
    mantissa, queries = loss.features.current.log(0.7**0.5 * h[None], key=False)
    _, keys = loss.features.current.log(0.7**0.5 * loss.weight.detach()[None], key=True)
    assert mantissa is None
    masses = queries[0].exp() @ keys[0].exp().T * loss.bias.detach().exp()
    assert torch.allclose(proposal(loss, h), masses / masses.sum(1, keepdim=True))


@pytest.mark.parametrize(
    "options", [{}, {"normalize": True}, {"sampling_scale": 0.5}, {"normalize_sampling": True}], ids=str
)
def test_the_softmax_sampler_is_the_softmax(options):
    loss, (h, _) = module(sampler="softmax", scale=3.0, bias=True, **options), batch()
    torch.nn.init.normal_(loss.bias, generator=generator(2))
    assert torch.allclose(proposal(loss, h), loss.log_prob(h).exp())


@pytest.mark.parametrize("sampler", ["kernel", "uniform", "softmax"])
def test_probabilities_of_half_precision_are_in_float32(sampler):
    loss, (h, targets) = (
        module(sampler=sampler, n=70_000, dtype=torch.bfloat16),
        batch(2, n=70_000, dtype=torch.bfloat16),
    )
    q = proposal(loss, h, targets)
    assert q.dtype == torch.float32 and torch.allclose(q.sum(1), torch.ones(2), atol=1e-3)
    assert loss(h, targets).isfinite()


def test_uniform_share_bounds_probabilities_below():
    loss, (h, targets) = module("trigonometric", uniform_share=0.2), batch(norm=4.0)
    q = proposal(loss, h, targets)
    assert bool((q[~F.one_hot(targets, N).bool()] >= 0.2 / (N - 1) * (1 - 1e-9)).all())


@pytest.mark.parametrize("kind", ["positive", "trigonometric", "angular"])
def test_more_features_bring_the_law_nearer_to_softmax(kind):
    h, _ = batch(40, norm=0.4)
    distance = []
    for m in (8, 512):
        loss = module(kind, m=m, uniform_share=0.0)
        distance.append(float((proposal(loss, h) - loss.log_prob(h).exp().detach()).abs().sum(1).mean()))
    assert distance[1] < distance[0] / 3  # errors fall as 1/sqrt(m), here by a factor of 8


def test_normalized_sampling_sees_directions_alone():
    loss, (h, _) = module(normalize_sampling=True), batch()
    q = proposal(loss, h)
    assert torch.allclose(q, proposal(loss, 3 * h))
    loss.weight.data *= 2
    loss.rebuild()
    assert torch.allclose(q, proposal(loss, h))
