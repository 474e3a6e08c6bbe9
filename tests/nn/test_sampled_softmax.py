"""SampledSoftmax: the law of its negatives, its gradient, its updates."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn import functional as F

from bochner import maps, projections
from bochner.nn import SampledSoftmax, kernel_sampler
from support.checks import P_MIN, Z_MAX, check_mean

MAPS = {
    "trigonometric": maps.Trigonometric(),
    "positive": maps.Positive(),
    "optimal": maps.OptimalPositive(),
    "angular": maps.AngularHybrid(4),
    "gaussian hybrid": maps.GaussianHybrid(4),
}
N, D = 23, 6


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def module(kind="positive", *, n=N, seed=0, **options):
    options = {"n_samples": 8, "n_projections": 16, "dtype": torch.float64, "generator": generator(seed)} | options
    return SampledSoftmax(D, n, map=MAPS[kind], **options)


def batch(rows=5, n=N, seed=1, dtype=torch.float64, norm=1.0):
    h = norm * torch.randn(rows, D, dtype=dtype, generator=generator(seed))
    return h, torch.randint(n, (rows,), generator=generator(seed))


def proposal(loss, h, targets=None):
    return loss.log_proposal(h, torch.arange(loss.n_classes).expand(len(h), -1), targets).exp()


# the law of the negatives


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
    mantissa, queries = loss.features.features.parts(0.7**0.5 * h[None], key=False)
    _, keys = loss.features.features.parts(0.7**0.5 * loss.weight.detach()[None], key=True)
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
        loss = module(kind, n_projections=m, uniform_share=0.0)
        distance.append(float((proposal(loss, h) - loss.log_prob(h).exp().detach()).abs().sum(1).mean()))
    assert distance[1] < distance[0] / 3  # errors fall as 1/sqrt(m), here by a factor of 8


def test_normalized_sampling_sees_directions_alone():
    loss, (h, _) = module(normalize_sampling=True), batch()
    q = proposal(loss, h)
    assert torch.allclose(q, proposal(loss, 3 * h))
    loss.weight.data *= 2
    loss.rebuild()
    assert torch.allclose(q, proposal(loss, h))


# the loss and its gradient


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
    options = {"n_samples": 4, "n": 200, "n_projections": n_projections}
    kernel, uniform = module(kind, **options), module(kind, sampler="uniform", **options)
    h, targets = batch(1, n=200, norm=1.5)
    (a, a_error), (b, b_error) = (bias_and_error(loss, h, targets, 20_000, seed) for loss in (kernel, uniform))
    assert (b - a) / math.hypot(a_error, b_error) > Z_MAX, (a, a_error, b, b_error)


def test_bias_vanishes_as_samples_grow(seed):
    h, targets = batch(1, n=200, norm=1.5)
    few, many = (
        bias_and_error(module(n=200, n_samples=m, n_projections=8), h, targets, repeats, seed)
        for m, repeats in ((1, 20_000), (100, 2_000))
    )
    assert few[0] / few[1] > Z_MAX  # there is a bias to lose
    assert abs(many[0]) < few[0] / 50 + Z_MAX * many[1]  # it falls as 1/m, its square as 1/m^2
    assert many[1] < few[0] / 50  # and the error bar can tell


# updates


def stepped(loss, h, targets, **options):
    optimizer = torch.optim.SGD(loss.parameters(), lr=0.5)
    loss(h, targets, **options).backward()
    optimizer.step()


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_update_brings_the_tree_to_the_new_classes(kind, sparse):
    loss, (h, targets) = module(kind, sparse=sparse, bias=True, n=200), batch(n=200)
    before = proposal(loss, h)
    stepped(loss, h, targets)
    assert torch.equal(proposal(loss, h), before)  # the law changes when it is told to
    loss.update()
    after = proposal(loss, h)
    assert not torch.allclose(after, before)
    shift = loss.proposal.shift
    loss.rebuild()
    assert torch.allclose(proposal(loss, h), after)
    assert loss.proposal.shift.shape == shift.shape


def test_update_of_given_classes():
    loss, (h, _) = module(), batch()
    proposal(loss, h)
    loss.weight.data[3] += 1
    loss.update(torch.tensor([3, 3]))
    found = proposal(loss, h)
    loss.rebuild()
    assert torch.allclose(proposal(loss, h), found)


def test_update_costs_the_leaves_that_changed(monkeypatch):
    loss, (h, targets) = module(n=200), batch(n=200)
    rows = []
    loss(h, targets).backward()
    monkeypatch.setattr(loss.proposal.tree, "refresh", lambda indices, leaves: rows.append(len(indices)))
    loss.update()
    loss.update()
    assert len(rows) == 1 and rows[0] <= 5 * 9


def test_classes_that_grow_past_the_stabiliser_build_the_tree_anew():
    loss, (h, _) = module("trigonometric", dtype=torch.float32), batch(dtype=torch.float32)
    proposal(loss, h)
    loss.weight.data[3] *= 40 / loss.weight.data[3].norm()  # e^{800}: out of float32
    loss.update(torch.tensor([3]))
    assert bool(torch.isfinite(loss.proposal.tree.sums).all())
    q = proposal(loss, h)
    assert torch.allclose(q.sum(1), torch.ones(5))


def test_evaluation_leaves_no_trace():
    loss, (h, targets) = module(), batch()
    with torch.no_grad():
        loss(h, targets)
    assert not loss._touched.any()


@pytest.mark.parametrize("kind", ["trigonometric", "positive", "angular"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_training_lowers_the_full_loss(kind, sparse):
    loss, (h, targets) = module(kind, n=500, sparse=sparse, dtype=torch.float32), batch(64, n=500, dtype=torch.float32)
    optimizer = torch.optim.SGD(loss.parameters(), lr=20.0)
    before = float(loss.full_loss(h, targets).detach())
    for step in range(30):
        optimizer.zero_grad()
        loss(h, targets, generator=generator(step)).backward()
        optimizer.step()
        loss.update()
    assert float(loss.full_loss(h, targets).detach()) < before - 2
    assert loss.weight.grad.is_sparse == sparse


# numbers, devices, checkpoints


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", MAPS)
def test_type_of_the_loss(dtype, kind):
    loss, (h, targets) = module(kind, dtype=dtype), batch(dtype=dtype)
    value = loss(h.requires_grad_(), targets)
    value.backward()
    assert value.dtype == loss.weight.grad.dtype == h.grad.dtype == dtype
    assert loss.proposal.tree.sums.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


@pytest.mark.parametrize("kind", MAPS)
def test_large_norms_stay_finite(kind):
    loss, (h, targets) = module(kind, dtype=torch.float32), batch(dtype=torch.float32, norm=20.0)
    loss.weight.data *= 20
    loss.redraw(h, generator=generator())
    q = proposal(loss, h, targets)
    assert torch.allclose(q.sum(1), torch.ones(5))
    assert bool(torch.isfinite(loss(h, targets)))


@pytest.mark.parametrize("kind", MAPS)
def test_checkpoint_keeps_the_law(kind, tmp_path):
    loss, (h, _) = module(kind), batch()
    loss.redraw(h, generator=generator(5))
    torch.save(loss.state_dict(), tmp_path / "state.pt")
    other = module(kind, seed=9)
    assert not torch.allclose(proposal(other, h), proposal(loss, h))
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert torch.equal(proposal(other, h), proposal(loss, h))


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda loss: pickle.loads(pickle.dumps(loss))], ids=["copy", "pickle"]
)
def test_copies_are_apart(copied):
    loss, (h, _) = module(), batch()
    q = proposal(loss, h)
    other = copied(loss)
    other.weight.data += 1
    other.rebuild()
    assert not torch.allclose(proposal(other, h), q)
    assert torch.equal(proposal(loss, h), q)


def test_one_seed_gives_one_draw():
    h, _ = batch()
    assert torch.equal(proposal(module(seed=3), h), proposal(module(seed=3), h))
    source = generator(3)
    first, second = (module(generator=source) for _ in range(2))
    assert first.features.seeds != second.features.seeds


def test_change_of_type_keeps_the_law():
    loss, (h, _) = module(), batch()
    q = proposal(loss, h)
    assert torch.allclose(proposal(loss.float(), h.float()).double(), q, atol=1e-5)


def test_weights_can_be_tied():
    loss, embedding = module(dtype=torch.float32), torch.nn.Embedding(N, D)
    loss.weight = embedding.weight
    h, targets = batch(dtype=torch.float32)
    loss(h, targets).backward()
    assert embedding.weight.grad is not None


# evaluation and options


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
    monkeypatch.setattr(kernel_sampler, "_CHUNK_NUMBERS", 40)
    assert torch.allclose(proposal(module(), h), q)


# errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 1}, "SampledSoftmax: n_classes must be an integer of at least 2, got 1"),
        ({"n_samples": 0}, "SampledSoftmax: n_samples must be an integer of at least 1, got 0"),
        ({"sampler": "tree"}, "SampledSoftmax: sampler must be one of 'kernel', 'uniform', 'softmax', got 'tree'"),
        ({"reduction": "max"}, "SampledSoftmax: reduction must be one of 'mean', 'sum', 'none', got 'max'"),
        ({"uniform_share": 1.5}, "SampledSoftmax: uniform_share must be a number from 0 to 1, got 1.5"),
        ({"scale": -1.0}, "SampledSoftmax: scale must be a positive number, got -1.0"),
        ({"projection": projections.Quadrature(), "map": maps.Poisson()}, "Poisson"),
    ],
)
def test_bad_options(options, message):
    options = dict(options)
    sizes = (D, options.pop("n", N))
    with pytest.raises(ValueError, match=message):
        SampledSoftmax(*sizes, **{"map": maps.Positive()} | options)


@pytest.mark.parametrize("name", ["normalize", "bias", "sparse", "normalize_sampling"])
def test_flags(name):
    with pytest.raises(TypeError, match=f"SampledSoftmax: {name} must be True or False, got 1"):
        SampledSoftmax(D, N, map=maps.Positive(), **{name: 1})


def test_bad_batches():
    loss, (h, targets) = module(), batch()
    with pytest.raises(
        ValueError, match=r"SampledSoftmax.forward: expected an array whose last axis is 6, got shape \(5, 3\)"
    ):
        loss(h[:, :3], targets)
    with pytest.raises(
        ValueError, match=r"targets must be int64 of shape \(5,\), one for each query, got torch.int64 of shape \(4,\)"
    ):
        loss(h, targets[:4])
    with pytest.raises(ValueError, match=r"got torch\.float32"):
        loss(h, targets.float())
    with pytest.raises(ValueError, match=r"targets must lie between 0 and 22 .* got values from 23 to 23"):
        loss(h, torch.full_like(targets, 23))
