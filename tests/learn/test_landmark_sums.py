"""Sums over rows of the kernel with landmarks, whitened once, against whitened features of every row."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import Approximation, kernels, maps
from bochner.learn import KernelClassifier, KernelRidge
from bochner.learn._linear import feature_moments
from bochner.learn._linear.moments import Moments
from bochner.learn._row_source import rows_in_memory


def drawn(X, m=40, lengthscale=1.0, rng=0):
    return Approximation(kernels.Gaussian(lengthscale), maps.Landmarks(), n_projections=m).fit(X, rng=rng)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((700, 5))
    return X, np.stack([np.sin(X[:, 0]) + X[:, 1], X[:, 2] ** 2], axis=1), rng.integers(0, 4, 700).astype(float)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_columns_are_those_of_whitened_features(data, dtype, weighted):
    X, Y, weights = data[0].astype(dtype), data[1], data[2] if weighted else None
    phi = drawn(X)
    found = feature_moments.collect_moments(phi, rows_in_memory("test", X, Y, weights), least_alpha=1e-3)
    expected = Moments.of(phi.queries(X.astype(np.float64)), Y, weights)
    assert 0 < found.blur < 1e-5 and found.units == expected.units
    tolerance = {"rtol": 1e-5, "atol": 1e-4} if dtype == np.float32 else {"rtol": 1e-10, "atol": 1e-10}
    for name in ("scatter", "cross", "feature_mean", "target_mean", "target_scatter"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), err_msg=name, **tolerance)


@pytest.mark.parametrize("lengthscale, alpha", [(30.0, 1e-3), (1.0, 1e-14), (1.0, "gcv")])
def test_features_are_whitened_row_by_row_where_rounding_would_count(data, lengthscale, alpha):
    X, Y, _ = data
    gamma = 1 / (2 * lengthscale**2)
    fit = KernelRidge(gamma=gamma, map="landmarks", n_components=40, alpha=alpha, random_state=0).fit(X, Y)
    assert fit.statistics_.blur == 0


def test_fits_do_not_depend_on_where_features_are_whitened(data, monkeypatch):
    X, Y, weights = data
    options = {"gamma": 0.5, "map": "landmarks", "n_components": 60, "alpha": 1e-4, "random_state": 0}
    once = KernelRidge(**options).fit(X, Y, weights)
    monkeypatch.setattr(feature_moments, "_BLUR", 0.0)
    always = KernelRidge(**options).fit(X, Y, weights)
    assert once.statistics_.blur > 0 == always.statistics_.blur
    np.testing.assert_allclose(once.predict(X), always.predict(X), atol=1e-8)


def test_rows_may_come_in_parts(data):
    X, Y, _ = data
    options = {"gamma": 0.5, "map": "landmarks", "n_components": 60, "alpha": 1e-2}
    parts = KernelRidge(**options, random_state=0).partial_fit(X[:500], Y[:500])
    first = parts.statistics_.blur
    parts.partial_fit(X[500:600], Y[500:600])  # too few for a product of its own
    assert parts.statistics_.blur == first > 0
    whole = Moments.of(parts.features_.queries(X[:600]), Y[:600])
    np.testing.assert_allclose(parts.statistics_.scatter, whole.scatter, atol=1e-9)


@pytest.mark.parametrize("dtype, atol", [(np.float64, 1e-9), (np.float32, 2e-4)])
def test_predictions_are_the_features_times_the_coefficients(data, dtype, atol):
    X, Y, _ = data
    fit = KernelRidge(gamma=0.1, map="landmarks", n_components=150, alpha=1e-4, random_state=0).fit(X.astype(dtype), Y)
    expected = fit.features_.queries(X) @ fit.coef_.T + fit.intercept_
    np.testing.assert_allclose(fit.predict(X.astype(dtype)), expected, atol=atol * np.abs(Y).max())


def test_nearly_dependent_landmarks_keep_their_features():
    rng = np.random.default_rng(1)
    points = rng.standard_normal((192, 3))
    points[100:103] = points[:3] + 1e-5  # the second of two that are almost the same
    X = rng.standard_normal((50, 3))
    phi = Approximation(kernels.Gaussian(0.3), maps.Landmarks(points), n_projections=192).fit(X, rng=0)
    (plain, T, gain), (stable, Q, less) = (phi.features.factored(stable=stable) for stable in (False, True))
    np.testing.assert_array_equal(stable.replaced, [100, 101, 102])
    assert less < 1e-3 * gain and gain == pytest.approx(np.linalg.norm(T, 2) ** 2, rel=0.2)
    np.testing.assert_array_equal(Q, np.triu(Q))
    for features, matrix in ((plain, T), (stable, Q)):
        np.testing.assert_allclose(phi.with_features(features).queries(X) @ matrix, phi.queries(X), atol=1e-9)


def test_automatic_strengths_stay_above_the_rounding_of_the_sums(data):
    X, Y, _ = data
    fit = KernelClassifier(map="landmarks", n_components=64, random_state=0).fit(X[:250], Y[:250, 0] > 0)
    assert fit.statistics_.blur > 0 and fit.alpha_ >= 10 * fit.statistics_.blur


def test_other_features_have_no_cheaper_ones(data):
    assert Approximation(kernels.Gaussian(), n_projections=8).fit(data[0], rng=0).features.factored(stable=True) is None
