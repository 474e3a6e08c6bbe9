"""The tree of sums: its sums, its probabilities, its samples."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from bochner.nn import _class_sampling
from bochner.nn._class_sampling import FeatureTree
from support.checks import P_MIN


def gaussian(*shape, seed=0, positive=False):
    values = torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return values.exp() if positive else values


def probabilities(tree, queries, left_out=None):
    every = torch.arange(tree.n_leaves).expand(len(queries), -1)
    return tree.descend(queries, every, left_out).log_prob.exp()


@pytest.mark.parametrize("n", [1, 2, 3, 8, 13])
def test_every_node_is_the_sum_of_its_leaves(n):
    leaves = gaussian(n, 4)
    tree = FeatureTree(leaves)
    for node in range(1, 2 * tree.size):
        level = node.bit_length() - 1
        first = (node << (tree.depth - level)) - tree.size
        below = leaves[first : first + (tree.size >> level)]
        assert torch.allclose(tree.sums[node], below.sum(0), atol=1e-12)
        assert tree.counts[node] == len(below)


@pytest.mark.parametrize("n", [2, 13, 64])
def test_refreshed_tree_is_bitwise_the_tree_built_anew(n):
    leaves, changed = gaussian(n, 4), torch.tensor([0, n // 2, n - 1]).unique()
    tree = FeatureTree(leaves)
    leaves[changed] = gaussian(len(changed), 4, seed=1)
    tree.refresh(changed, leaves[changed])
    assert torch.equal(tree.sums, FeatureTree(leaves).sums)


@pytest.mark.parametrize("n", [2, 3, 8, 13])
def test_positive_features_give_their_share(n):
    queries, leaves = gaussian(5, 4, positive=True), gaussian(n, 4, seed=1, positive=True)
    masses = queries @ leaves.T
    assert torch.allclose(probabilities(FeatureTree(leaves), queries), masses / masses.sum(1, keepdim=True))


@pytest.mark.parametrize("positive", [True, False], ids=["positive", "signed"])
@pytest.mark.parametrize("n", [2, 3, 8, 13])
@pytest.mark.parametrize("without", [True, False], ids=["one left out", "all"])
def test_probabilities_sum_to_one(n, positive, without):
    queries, leaves = gaussian(6, 4, positive=positive), gaussian(n, 4, seed=1, positive=positive)
    left_out = torch.arange(6) % n if without else None
    total = probabilities(FeatureTree(leaves), queries, left_out).sum(1)
    assert torch.allclose(total, torch.ones_like(total))


@pytest.mark.parametrize("n", [2, 3, 8, 13])
def test_leaving_out_a_leaf_renormalises_the_others(n):
    queries, leaves = gaussian(6, 4, positive=True), gaussian(n, 4, seed=1, positive=True)
    left_out = torch.arange(6) % n
    masses = (queries @ leaves.T).scatter(1, left_out[:, None], 0.0)
    assert torch.allclose(probabilities(FeatureTree(leaves), queries, left_out), masses / masses.sum(1, keepdim=True))


def test_a_dominant_leaf_that_is_left_out_costs_no_digits():
    leaves = gaussian(13, 4, positive=True).float()
    leaves[5] *= 1e12  # differences of sums would leave nothing of the others in float32
    queries = gaussian(3, 4, seed=1, positive=True).float()
    masses = queries.double() @ leaves.double().T
    masses[:, 5] = 0
    found = probabilities(FeatureTree(leaves), queries, torch.tensor([5, 5, 5])).double()
    assert torch.allclose(found, masses / masses.sum(1, keepdim=True), rtol=1e-5)


def test_nodes_without_mass_divide_by_numbers_of_leaves():
    leaves = -torch.ones(5, 1)
    found = probabilities(FeatureTree(leaves), torch.ones(1, 1))
    assert torch.allclose(found, torch.full((1, 5), 0.2))


@pytest.mark.parametrize("positive", [True, False], ids=["positive", "signed"])
def test_samples_follow_the_declared_probabilities(positive, seed):
    queries, leaves = gaussian(1, 4, positive=positive), gaussian(13, 4, seed=2, positive=positive)
    tree, left_out, count = FeatureTree(leaves), torch.tensor([4]), 20_000
    drawn, log_prob = tree.sample(queries, count, left_out, torch.Generator().manual_seed(seed))
    expected = probabilities(tree, queries, left_out)[0]
    assert torch.allclose(log_prob[0].exp(), expected[drawn[0]])
    observed = np.bincount(drawn[0].numpy(), minlength=13)
    possible = expected.numpy() > 0
    assert observed[~possible].sum() == 0
    assert stats.chisquare(observed[possible], count * expected.numpy()[possible]).pvalue > P_MIN


def test_gathered_levels_equal_multiplied_ones(monkeypatch):
    queries, leaves, goals = gaussian(5, 4), gaussian(37, 4, seed=1), torch.arange(5)[:, None].expand(-1, 3)
    multiplied = FeatureTree(leaves).descend(queries, goals, goals[:, 0] + 9).log_prob
    monkeypatch.setattr(_class_sampling, "_NODES_A_SAMPLE", 0)
    gathered = FeatureTree(leaves).descend(queries, goals, goals[:, 0] + 9).log_prob
    assert torch.allclose(gathered, multiplied)


def test_chunks_change_nothing(monkeypatch):
    queries, leaves, left_out = gaussian(7, 4), gaussian(37, 4, seed=1), torch.arange(7)
    whole = probabilities(FeatureTree(leaves), queries, left_out)
    monkeypatch.setattr(_class_sampling, "_CHUNK_NUMBERS", 1000)  # three rows a chunk
    assert torch.allclose(probabilities(FeatureTree(leaves), queries, left_out), whole)


def test_no_queries():
    drawn = FeatureTree(gaussian(3, 4)).sample(torch.empty(0, 4, dtype=torch.float64), 5)
    assert drawn.leaves.shape == drawn.log_prob.shape == (0, 5)
