"""Errors at distances at which every kernel is zero: right values, in no time."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import Approximation, kernels, maps, projections, theory
from bochner.theory._coupling import conformity_gap, trigonometric_pair
from bochner.theory._special_functions import hyp1f1_negative
from support.reference_formulas import largest_spherical_radial_variance

FAR = np.array([1e4, 1e8, 1e14, 1e18, 1e60, 1e300, np.inf])


@pytest.mark.parametrize("lengthscale", [1e-3, 1e-7, 3e-8, 1e-8, 1e-9, 1e-100])
@pytest.mark.parametrize("projection", [projections.IID(), projections.Orthogonal(), projections.Quadrature()], ids=str)
def test_trigonometric_error_of_far_points_is_its_limit(projection, lengthscale):
    X = np.random.default_rng(0).standard_normal((5, 3))
    spec = Approximation(kernels.Gaussian(lengthscale), maps.Trigonometric(), projection, n_projections=8)
    expected = 1 / 16 if not isinstance(projection, projections.Quadrature) else (3 / 2 + 2) / (2 * 4 * 1)
    np.testing.assert_allclose(spec.mse(X)[~np.eye(5, dtype=bool)], expected, rtol=1e-2 if lengthscale > 1e-6 else 1e-6)


@pytest.mark.parametrize("A", [0.0, -0.03])
@pytest.mark.parametrize("coupling", ["iid", "orthogonal", "simplex"])
def test_absolute_and_relative_errors_are_one(coupling, A):
    V = np.array([0.0, 1e-9, 0.3, 1.0, 7.0, 40.0, 450.0])
    relative = theory.gerf_log_relative_mse(A, -1, V, 7, 3, coupling)
    np.testing.assert_allclose(theory.trigonometric_mse(V, 7, 3, coupling, A), np.exp(relative - V), rtol=1e-9)


@pytest.mark.parametrize("d", [2, 3, 8, 64])
def test_rows_along_one_line_stay_correlated_far_away(d):
    """sigma_{-1} falls as one over the distance, by Laplace's method at equal lengths of the two rows."""
    from scipy.special import gammaln

    V = np.array([1e6, 1e12, 1e30])
    logs = gammaln((d + 1) / 2) + gammaln(d - 0.5) - gammaln(d) - gammaln((d - 1) / 2)
    np.testing.assert_allclose(trigonometric_pair(V, d, -1.0), np.exp(logs) / np.sqrt(V), rtol=1e-3)
    many = np.concatenate([V, np.linspace(401, 1e6, 500)])
    np.testing.assert_allclose(trigonometric_pair(many, d, -1.0)[:3], trigonometric_pair(V, d, -1.0), rtol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, 4096])
@pytest.mark.parametrize("c", [0.0, -1.0, -0.5])
def test_pair_values_vanish_far_away(d, c):
    assert np.all(np.abs(trigonometric_pair(FAR[1:], d, c)) < 1e-2)
    assert np.all(np.isfinite(trigonometric_pair(FAR, d, c)))


@pytest.mark.parametrize("d", [1, 2, 8, 4096])
def test_the_gain_of_coupled_positive_features_tends_to_one(d):
    np.testing.assert_allclose(conformity_gap(FAR[1:], d, -1 / max(d - 1, 1)), 1.0, rtol=1e-14)
    assert np.all(np.isfinite(theory.positive_log_relative_mse(FAR[:-1], 2 * d, d, "simplex")))
    assert np.all(np.isfinite(theory.hyperbolic_log_relative_mse(FAR[:-1], 2 * d, d, "simplex")))


def test_kummers_function_has_its_asymptotic_value():
    assert hyp1f1_negative(3, np.inf) == 0
    np.testing.assert_allclose(hyp1f1_negative(1, FAR[:-1]), -1 / (2 * FAR[:-1]), rtol=2e-4)
    below, above = hyp1f1_negative(3, np.array([400.0, np.nextafter(400.0, 401.0)]))
    assert above == pytest.approx(below, rel=1e-9)


def test_a_cosine_above_one_is_refused():
    with pytest.raises(ValueError, match="c must be a cosine, between -1 and 1, got 1e\\+300"):
        trigonometric_pair(1.0, 5, 1e300)


@pytest.mark.parametrize("d", [3, 4, 8, 64])
def test_quadrature_far_away_has_its_largest_variance(d):
    np.testing.assert_allclose(
        theory.spherical_radial_variance(FAR[3:-1], d), largest_spherical_radial_variance(d), rtol=1e-8
    )
