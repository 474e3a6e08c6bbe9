"""SampledSoftmax: types, copies and checkpoints, and what it refuses."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from bochner import Approximation, kernels
from bochner.nn import SampledSoftmax
from support.sampled_losses import MAPS, D, N, batch, generator, module, proposal


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
        ({"spec": Approximation(kernels.Gaussian())}, r"SampledSoftmax: spec must use kernels\.Softmax\(\)"),
        ({"spec": "favour++"}, "favor"),
    ],
)
def test_bad_options(options, message):
    options = dict(options)
    sizes = (D, options.pop("n", N))
    with pytest.raises(ValueError, match=message):
        SampledSoftmax(*sizes, **options)


@pytest.mark.parametrize("name", ["normalize", "bias", "sparse", "normalize_sampling"])
def test_flags(name):
    with pytest.raises(TypeError, match=f"SampledSoftmax: {name} must be True or False, got 1"):
        SampledSoftmax(D, N, **{name: 1})


def test_bad_batches():
    loss, (h, targets) = module(), batch()
    with pytest.raises(
        ValueError, match=r"SampledSoftmax\.forward: expected queries with last axis 6, got shape \(5, 3\)"
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


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda h: h.numpy(), TypeError, r"SampledSoftmax\.forward: h must be a floating-point tensor, got ndarray"),
        (
            lambda h: h.float(),
            TypeError,
            r"h must have the type of the class vectors, torch\.float64, got torch\.float32",
        ),
        (lambda h: h.long(), TypeError, r"h must be a floating-point tensor, got torch\.int64"),
        (lambda h: h * torch.nan, ValueError, r"SampledSoftmax\.forward: h holds numbers that are not finite"),
    ],
    ids=["array", "precision", "integers", "NaN"],
)
def test_bad_queries(change, error, message):
    loss, (h, targets) = module(), batch()
    with pytest.raises(error, match=message):
        loss(change(h), targets)


def test_bad_classes():
    loss, (h, targets) = module(), batch()
    with pytest.raises(TypeError, match="targets must be a dense tensor of int64, got"):
        loss(h, targets.tolist())
    with pytest.raises(
        ValueError, match=r"SampledSoftmax\.sample: targets must lie between 0 and 22, got values from 99"
    ):
        loss.sample(h, torch.full_like(targets, 99))
    with pytest.raises(
        ValueError, match=r"log_proposal: classes must be int64 of shape \(5, any\), got torch.int64 of"
    ):
        loss.log_proposal(h, targets)
    with pytest.raises(ValueError, match=r"update: indices must lie between 0 and 22, got values from -1 to -1"):
        loss.update(torch.tensor([-1]))
