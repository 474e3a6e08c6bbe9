"""SampledSoftmax: the tree follows the classes as they are trained."""

from __future__ import annotations

import pytest
import torch

from support.sampled_losses import MAPS, batch, generator, module, proposal


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
