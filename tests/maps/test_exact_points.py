"""Points without variance, special cases and limits."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import Approximation, maps
from bochner.maps.coefficients import GaussianCoefficient
from bochner.projections import IID, Orthogonal, Simplex
from support.map_variances import (
    FULL,
    GAUSSIAN,
    GERF,
    PAIRS,
    SOFTMAX,
    angular_mse,
    assert_same,
    features_of,
    pair_positive,
    rel2_gerf,
    rel2_positive,
    rel2_trigonometric,
    row_covariance,
    squared,
)
from support.points import DIAGONAL, XD, YD, X, Y


def exact(feature_map, kernel, x, y, seed, projection=None):
    """Whether a draw of few rows gives the kernel to rounding."""
    spec = Approximation(kernel, feature_map, projection, 5)
    phi = spec.fit(x[None], y[None], rng=seed)
    return bool(np.allclose(phi.gram(x[None], y[None]), kernel(x[None], y[None]), rtol=1e-11, atol=0))


@pytest.mark.parametrize("projection", (IID(), Orthogonal(), Simplex()), ids=repr)
@pytest.mark.parametrize("kernel", (GAUSSIAN, SOFTMAX), ids=repr)
def test_points_without_variance(kernel, projection, seed):
    x = 1.5 * X
    assert exact(maps.Trigonometric(), kernel, x, x, seed, projection)
    assert not exact(maps.Trigonometric(), kernel, x, Y, seed, projection)
    for feature_map in (maps.Positive(), maps.Hyperbolic(), maps.OptimalPositive()):
        assert exact(feature_map, kernel, x, -x, seed, projection)
        assert not exact(feature_map, kernel, x, Y, seed, projection)


@pytest.mark.parametrize("shared", (True, False))
def test_angular_hybrid_is_exact_at_both_ends(shared, seed):
    hybrid, x = maps.AngularHybrid(4, shared), 1.5 * X
    assert exact(hybrid, SOFTMAX, x, x, seed) and exact(hybrid, SOFTMAX, x, -x, seed)
    assert not exact(hybrid, SOFTMAX, x, Y, seed)
    bipolar = maps.GaussianHybrid(4, 0.8, 1.0, shared=shared)
    assert exact(bipolar, SOFTMAX, x, x, seed) and not exact(bipolar, SOFTMAX, x, -x, seed)


def test_complex_exponential_is_exact_where_its_points_cancel(seed):
    x, y = np.array([0.7, -0.4, 0.9, 0.3]), np.array([0.5, 0.6, -0.2, 0.8])
    diagonal = np.sqrt(-y / x + 0j)  # HRF Eq. 86-87: imaginary where signs agree
    real = np.abs(FULL) + 0.1
    assert diagonal.real.any() and diagonal.imag.any()
    for antithetic in (False, True):
        assert exact(maps.ComplexExponential(diagonal, antithetic), SOFTMAX, x, y, seed)
        assert not exact(maps.ComplexExponential(diagonal, antithetic), SOFTMAX, x, Y, seed)
        assert exact(maps.ComplexExponential(real, antithetic), GAUSSIAN, x, -real.T @ real @ x, seed)
        assert exact(maps.ComplexExponential(1j * real, antithetic), GAUSSIAN, x, real.T @ real @ x, seed)


def test_cluster_hybrid_is_exact_at_its_centres(seed):
    """Clusters of one point each."""
    queries, keys = np.array([XD + 0.3, -2 * XD + 0.1]), np.array([YD, 2 * X, -3 * X])
    phi = Approximation(SOFTMAX, maps.ClusterHybrid(2, 3), n_projections=5).fit(queries, keys, rng=seed)
    np.testing.assert_allclose(phi.gram(queries, keys), SOFTMAX(queries, keys), rtol=1e-10)


def test_gaussian_mixtures_are_exact_at_one_pair_of_centres_or_refused(seed):
    """Bumps of other pairs spoil the centres (HRF Definition H.1); the message has the closed-form errors."""
    queries, keys = np.array([XD + 0.3, -2 * XD + 0.1]), np.array([YD, 2 * X, -3 * X])
    mixture = maps.ClusterHybrid(1, 1, "gaussian", n_coefficients=4)
    assert exact(mixture, SOFTMAX, queries[0], keys[0], seed)
    several = Approximation(SOFTMAX, maps.ClusterHybrid(2, 3, "gaussian"), n_projections=5).plan(
        queries, keys, rng=seed
    )
    with pytest.raises(ValueError, match=r"relative error of .*, and the default base alone has .*'zero-one'"):
        several.draw(len(X), rng=seed)


def test_discrete_maps_are_exact_where_no_coordinate_is_shared(seed):
    """Then the rate goes to zero and the success to one."""
    x, y = np.array([0.7, 0.0, -0.4, 0.0]), np.array([0.0, 0.5, 0.0, 0.3])
    for feature_map in (maps.Poisson(), maps.Geometric()):
        phi = Approximation(GAUSSIAN, feature_map, n_projections=5).fit(x[None], y[None], rng=seed)
        np.testing.assert_allclose(phi.gram(x[None], y[None]), GAUSSIAN(x[None], y[None]), rtol=1e-7)


# Limiting cases


@pytest.mark.parametrize("kernel", (GAUSSIAN, SOFTMAX), ids=repr)
def test_special_cases_are_the_maps_of_other_names(kernel, seed):
    ce = maps.ComplexExponential
    for one, two in (
        (GERF(0.0, -1), maps.Trigonometric()),
        (GERF(0.0, 1), maps.Positive()),
        (GERF(0.0, 1, antithetic=True), maps.Hyperbolic()),
        (ce(1j), maps.Trigonometric()),
        (ce(1.0), maps.Positive()),
        (ce([1.0] * 4), maps.Positive()),
        (ce(np.eye(4)), maps.Positive()),
        (ce(1j * np.eye(4)), maps.Trigonometric()),
        (ce(1.0, antithetic=True), maps.Hyperbolic()),
    ):
        assert_same(one, two, kernel, seed)


@pytest.mark.parametrize("plain", (GERF(-0.1, -1), maps.ComplexExponential(1j)), ids=repr)
def test_reflections_change_no_cosine(plain, seed):
    paired = type(plain)(**(vars(plain) | {"antithetic": True}))
    (q1, k1), (q2, k2) = (features_of(f, GAUSSIAN, seed) for f in (plain, paired))
    assert q2.shape[1] == 2 * q1.shape[1]
    np.testing.assert_allclose(q2 @ k2.T, q1 @ k1.T, rtol=1e-11)


def test_hybrids_with_certain_coefficients_are_their_bases(seed):
    """A bump of no slope is one everywhere; the angle is zero or one between multiples of a point."""
    first, rest = maps.ComplexExponential(DIAGONAL), maps.Hyperbolic()
    points = np.concatenate(PAIRS)

    def gram(feature_map, x=points, y=points):
        return Approximation(SOFTMAX, feature_map, IID(), 3).draw(4, rng=seed).gram(x, y)

    certain = maps.Hybrid([first, rest], [GaussianCoefficient(0.0, 0.0, 4)])
    np.testing.assert_allclose(gram(certain), gram(first), rtol=1e-10)
    x, multiples = X[None], np.array([[0.5], [2.0]]) * X
    angular = maps.AngularHybrid(4)
    np.testing.assert_allclose(gram(angular, x, multiples), gram(maps.Trigonometric(), x, multiples), rtol=1e-10)
    np.testing.assert_allclose(gram(angular, x, -multiples), gram(maps.Hyperbolic(), x, -multiples), rtol=1e-10)


def test_limits_of_the_references():
    """And so of what the maps were compared with."""
    assert row_covariance(1, 0, X, -X) == pytest.approx(0, abs=1e-15)
    for t in (0.3, 2.0):
        assert pair_positive(0, 2 * t, 2) == pytest.approx(np.exp(t) * (1 + t))
        assert pair_positive(0, 2 * t, 4) == pytest.approx(np.exp(t) * (1 + t + t**2 / 6))
    x, y = PAIRS[-1]
    assert angular_mse(x, y, 3, 1, True) == pytest.approx(angular_mse(x, y, 3, 1, False), rel=1e-12)
    assert angular_mse(x, y, 3, 4, True) < angular_mse(x, y, 3, 4, False)
    for s in (1, -1):
        assert rel2_gerf(0, s, squared(x + s * y), 4) == pytest.approx((rel2_positive, rel2_trigonometric)[s < 0](x, y))


# Constants chosen from data
