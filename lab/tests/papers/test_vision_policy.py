"""The attention policy and the cloning task of HRF Figure 4: what they compute, and what a seed fixes."""

from __future__ import annotations

import numpy as np
import pytest

from bochner_lab.papers.hrf import _cloning, _costs, _vision_policy


def unit(rng, *shape):
    z = rng.standard_normal(shape)
    return z / np.linalg.norm(z, axis=-1, keepdims=True)


def test_implicit_attention_approximates_exact_attention(seed):
    rng = np.random.default_rng(seed)
    Q, K = unit(rng, 3, 10, _vision_policy.D), unit(rng, 3, 10, _vision_policy.D)
    exact = _vision_policy.exact_scores(Q, K)
    spec = _costs.features_of("FAVOR+ 20000")
    np.testing.assert_allclose(_vision_policy.implicit_scores(spec, rng)(Q, K), exact, rtol=0.1)


def test_a_policy_sees_only_the_pixels_that_are_kept():
    def scores(queries, keys):
        return np.tile(np.arange(_vision_policy.PIXELS, dtype=float), (len(queries), 1))

    theta = np.zeros((2, _vision_policy.N_PARAMETERS))
    theta[0, -_vision_policy.PIXELS] = theta[1, -1] = 1.0  # controllers of the first and of the last pixel
    image = np.ones((2, _vision_policy.PIXELS))
    assert _vision_policy.push_right(theta, image, image, scores).tolist() == [False, True]


def test_a_seed_fixes_an_episode():
    pytest.importorskip("gymnasium")
    rng = np.random.default_rng(0)
    thetas = np.tile(_vision_policy.initial(rng) + 0.3 * rng.standard_normal(_vision_policy.N_PARAMETERS), (2, 1))

    def steps(seed, one_start=True):
        return _vision_policy.steps_balanced(thetas, _vision_policy.exact_scores, 60, seed, one_start=one_start)

    first = steps(1)
    assert first[0] == first[1]
    np.testing.assert_array_equal(first, steps(1))
    assert len({tuple(steps(seed, one_start=False)) for seed in range(4)}) > 1


def test_costs_of_hybrid_and_plain_features():
    assert _costs.flops_of("FAVOR+ 256", 8) == 256 * _costs.flops_of("FAVOR+ 1", 8) == 256 * (16 + 4 + 4)
    assert _costs.flops_of(_costs.HYBRID, 8) == 2 * 16 * 8 + 2 * 4 * 8 + 3 * 288
    assert _costs.flops_of(_costs.cheap(8), 8) <= _costs.flops_of(_costs.HYBRID, 8)


def test_demonstrations_pass_on_both_sides_and_reach_the_goal():
    positions, directions = _cloning.demonstrations(20, np.random.default_rng(0))
    assert len(positions) == len(directions)
    beside = positions[np.abs(positions[:, 1]) < 0.1, 0]
    assert (beside > _cloning.RADIUS).any() and (beside < -_cloning.RADIUS).any()
    assert np.linalg.norm(positions - _cloning.GOAL, axis=1).min() < 2 * _cloning.REACH
    assert (
        _cloning.success(lambda s: np.full(len(s), np.pi / 2), 10, np.random.default_rng(0)) == 0.0
    )  # into the obstacle
