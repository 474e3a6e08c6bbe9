"""Sufficient statistics: any chunks, any order, any weights, either precision."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from bochner import Approximation, kernels, threads
from bochner.learn import _row_source
from bochner.learn._linear.feature_moments import collect_moments
from bochner.learn._linear.moments import Moments
from bochner.learn._linear.spectrum import NormalEquations
from bochner.learn._row_source import ArrayRows

RNG = np.random.default_rng(0)
N, D, T = 700, 400, 3
PHI = RNG.standard_normal((N, D)) + 3.0
Y = RNG.standard_normal((N, T)) - 5.0
W = RNG.integers(0, 4, N).astype(float)


def direct(phi, y, w):
    """The definition, in float64."""
    mean, centre = w @ phi / w.sum(), w @ y / w.sum()
    P, Z = phi - mean, y - centre
    return mean, centre, (P.T * w) @ P, (P.T * w) @ Z, w @ Z**2


def check_equal(statistics, expected, rtol):
    mean, centre, S, C, squares = expected
    for value, right in (
        (statistics.feature_mean, mean),
        (statistics.target_mean, centre),
        (statistics.scatter, S),
        (statistics.cross, C),
        (statistics.target_scatter, squares),
    ):
        np.testing.assert_allclose(value, right, rtol=0, atol=rtol * np.abs(right).max())


@pytest.mark.parametrize("weights", (None, W), ids=["plain", "weighted"])
def test_equal_to_the_definition(weights):
    statistics = Moments.of(PHI, Y, weights)
    check_equal(statistics, direct(PHI, Y, np.ones(N) if weights is None else W), 1e-12)
    assert statistics.n_rows == N
    assert statistics.weight == (N if weights is None else W.sum())


@pytest.mark.parametrize("order", ([0, 1, 2, 3], [3, 1, 0, 2]), ids=str)
def test_parts_merge_in_any_order_and_tree(order):
    cuts = np.split(np.arange(N), [10, 300, 301])
    a, b, c, d = (Moments.of(PHI[i], Y[i], W[i]) for i in (cuts[k] for k in order))
    for total in (((a + b) + c) + d, (a + b) + (c + d), a + (b + (c + d))):
        check_equal(total, direct(PHI, Y, W), 1e-12)
        assert total.n_rows == N


def test_adding_leaves_the_parts_alone():
    a, b = Moments.of(PHI[:100], Y[:100]), Moments.of(PHI[100:], Y[100:])
    before = pickle.dumps((a, b))
    a + b
    assert pickle.dumps((a, b)) == before


def test_empty_parts_and_zero_weights_change_nothing():
    a = Moments.of(PHI, Y)
    for total in (a + Moments.of(PHI[:0], Y[:0]), Moments.of(PHI[:0], Y[:0]) + a):
        check_equal(total, direct(PHI, Y, np.ones(N)), 1e-12)
    ignored = a + Moments.of(1e6 * PHI, Y, np.zeros(N))
    np.testing.assert_array_equal(ignored.scatter, a.scatter)


def test_float32_features_far_from_zero_keep_their_spread():
    # spread 1e-3 about 1: second moments about zero in float32 would have an error of the size of the scatter itself
    phi = (1 + 1e-3 * RNG.standard_normal((4000, 20))).astype(np.float32)
    y = RNG.standard_normal((4000, 1))
    parts = ((phi[i : i + 500], y[i : i + 500], None) for i in range(0, 4000, 500))
    statistics = Moments.collect(parts, 20, 1, exact=False)
    check_equal(statistics, direct(phi.astype(np.float64), y, np.ones(4000)), 1e-5)


def test_exact_products_of_float32_features_are_those_of_float64():
    phi, y = (1 + RNG.standard_normal((2000, 30))).astype(np.float32), RNG.standard_normal((2000, 1))
    check_equal(Moments.of(phi, y), direct(phi.astype(np.float64), y, np.ones(2000)), 1e-12)


def test_they_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        Moments.of(PHI, Y).upper[0, 0] = 1.0


def test_about_zero():
    about_zero = NormalEquations.of(Moments.of(PHI, Y, W), about_mean=False)
    np.testing.assert_allclose(np.triu(about_zero.gram), np.triu((PHI.T * W) @ PHI))
    np.testing.assert_allclose(about_zero.cross, (PHI.T * W) @ Y)
    np.testing.assert_allclose(about_zero.total, W @ Y**2)


def test_features_stream_in_chunks(monkeypatch):
    phi, X = Approximation(kernels.Gaussian(2.0), n_projections=8).draw(4, rng=0), RNG.standard_normal((N, 4))
    whole = collect_moments(phi, ArrayRows("test", X, Y))
    monkeypatch.setattr(_row_source, "_CHUNK_NUMBERS", 1000)
    check_equal(collect_moments(phi, ArrayRows("test", X, Y)), direct(phi.queries(X), Y, np.ones(N)), 1e-12)
    parts = collect_moments(phi, ArrayRows("test", X[:5], Y[:5])) + collect_moments(
        phi, ArrayRows("test", X[5:], Y[5:])
    )
    np.testing.assert_allclose(parts.scatter, whole.scatter, atol=1e-10)


def test_threads_do_not_change_a_bit():
    results = []
    for n in (1, 2):
        with threads(n):
            results.append(Moments.of(PHI.astype(np.float32), Y, W))
    np.testing.assert_array_equal(results[0].scatter, results[1].scatter)
    np.testing.assert_array_equal(results[0].cross, results[1].cross)


def test_other_shapes_do_not_add():
    with pytest.raises(
        ValueError, match=r"only those of the same features and targets can be added, got 400 features, 3 targets and 2"
    ):
        Moments.of(PHI, Y) + Moments.of(PHI[:, :2], Y)
