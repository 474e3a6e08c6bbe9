"""Distance from the uniform law: unbiased, with intervals that cover, and the values of the formulas."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import theory
from bochner.monte_carlo import haar_distance
from bochner.rotations import Butterfly, Haar, Hadamard, Kac, MultiHadamard, StructuredGivens
from support.checks import check_mean

EXPECTED = {  # d = 16, rate 1, along e1 (formulas of OMC Section 6.1, standard error 2e-4; HD by hand below)
    Haar(): 0.0,
    Kac(): 0.0,
    Hadamard(2): 0.0,
    Hadamard(3): 0.0,
    MultiHadamard(): 0.0094,
    Butterfly("uniform", mix=False): 0.0005,
    Butterfly(mix=False): 0.0017,
    StructuredGivens(mix=False): 0.0,
}


@pytest.mark.parametrize("rotation", EXPECTED, ids=repr)
def test_known_distances(rotation):
    found = haar_distance(rotation, 16, "e1", rng=0)
    assert abs(found.value - EXPECTED[rotation]) < 5 * np.hypot(found.standard_error, 2e-4)


def test_one_hadamard_block_along_an_axis():
    """H D e1 is one column of H with a random sign: the angle is 0 or pi, each with probability one half."""
    expected = (1 + np.exp(-np.pi)) / 2 - np.exp(theory.log_uniform_similarity(16, 1.0))
    found = haar_distance(Hadamard(1), 16, "e1", n=400, rng=0)
    assert found.low < expected < found.high and found.low > 0.25


def spread(n, d, rng):
    """Directions that are not uniform: of Gaussian vectors with one large coordinate."""
    X = rng.standard_normal((n, d))
    X[:, 0] *= 3
    return X


@pytest.mark.parametrize("law", ("uniform", "spread"))
def test_unbiased_and_covering(law):
    rng, d = np.random.default_rng(0), 5
    draw = spread if law == "spread" else lambda n, d, rng: rng.standard_normal((n, d))
    truth = 0.0 if law == "uniform" else theory.uniform_mmd(draw(6000, d, rng)).value
    found = [theory.uniform_mmd(draw(60, d, rng)) for _ in range(600)]
    check_mean(np.array([f.value for f in found]), truth, law)
    squares, variance = np.mean([f.standard_error**2 for f in found]), np.var([f.value for f in found])
    assert 0.8 * variance < squares < 1.8 * variance  # above it near the uniform law, where one term is kept positive
    covered = np.mean([f.low <= truth <= f.high for f in found])
    assert covered > 0.91, covered  # a normal interval for a skewed statistic; 0.95 +- 0.009 asked for


def test_tiles_change_nothing(monkeypatch):
    X = np.random.default_rng(1).standard_normal((50, 4))
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    K = np.exp(-2.0 * np.arccos(np.clip(U @ U.T, -1, 1)))
    expected = (K.sum() - np.trace(K)) / (50 * 49) - np.exp(theory.log_uniform_similarity(4, 2.0))
    assert theory.uniform_mmd(7 * X, 2.0).value == pytest.approx(expected, abs=1e-7)


def test_padded_and_own_vectors():
    found = haar_distance(Hadamard(3), 20, np.arange(20.0), n=200, rng=0)
    assert found.low < 0.01 and found == haar_distance(Hadamard(3), 20, np.arange(20.0), n=200, rng=0)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: haar_distance(3, 4), "haar_distance: rotation must be a rotation such as"),
        (lambda: haar_distance(Haar(), 4, "e2"), "v must be one of 'e1', 'ones', 'generic', got 'e2'"),
        (lambda: haar_distance(Haar(), 4, np.ones(3)), "last axis is 4, got shape"),
        (lambda: haar_distance(Haar(), 4, n=3), "n must be an integer of at least 4"),
        (lambda: theory.uniform_mmd(np.ones((3, 2))), r"at least 4 rows, got shape \(3, 2\)"),
        (lambda: theory.uniform_mmd(np.zeros((4, 2))), "rows of X must not be zero"),
        (lambda: theory.uniform_mmd(np.ones((4, 2)), 0.0), "rate must be a positive number"),
        (lambda: theory.uniform_mmd(np.ones((4, 2)), confidence=1), "confidence must be a number between 0 and 1"),
    ],
)
def test_arguments(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
