"""Hybrids: golden values, their bases at the ends, and the largest error."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import theory
from bochner.theory._bounds import (
    angular_log_relative_rmse,
    hyperbolic_log_relative_rmse,
    log_max_relative_rmse,
    trigonometric_log_relative_rmse,
)
from bochner.theory._hybrid_errors import (
    CoefficientMoments,
    angular_coefficient,
    bipolar_log_relative_mse,
    bipolar_relative_covariance,
    gaussian_coefficient,
    hybrid_mse,
    normalized_gaussian_coefficient,
)
from bochner.theory._pairs import COUPLINGS
from support.points import PAIR, SOFTMAX2, X, Y

UNIT = theory.Pairs.of(X / np.linalg.norm(X), Y / np.linalg.norm(Y))


@pytest.mark.parametrize("shared, expected", [(False, 0.0885407077766), (True, 0.0866888075257)])
def test_angular_golden(shared, expected):
    got = SOFTMAX2 * np.exp(theory.angular_hybrid_log_relative_mse(PAIR, 3, 4, 4, shared=shared))
    assert float(got) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("shared, expected", [(False, 0.0933507546362), (True, 0.0915596982503)])
def test_gaussian_golden(shared, expected):
    got = SOFTMAX2 * np.exp(
        theory.gaussian_hybrid_log_relative_mse(PAIR, 3, 4, 4, sigma=0.8, radius=1.0, shared=shared)
    )
    assert float(got) == pytest.approx(expected, rel=1e-10)


def test_covariance_golden():
    assert float(SOFTMAX2 * bipolar_relative_covariance(PAIR, 1)) == pytest.approx(-0.0148220621015, rel=1e-10)


@pytest.mark.parametrize(
    "r, fraction, expected",
    [
        (1.0, 0.05, (0.0015, 0.4476, 0.1164)),
        (1.0, 0.25, (0.0371, 0.3332, 0.2878)),
        (1.0, 0.5, (0.1469, 0.1469, 0.3116)),
        (1.5, 0.05, (0.0035, 5.4716, 1.4216)),
        (1.5, 0.5, (0.5864, 0.5864, 1.2439)),
    ],
)
def test_relative_errors_golden(r, fraction, expected):
    theta = fraction * np.pi
    got = [
        trigonometric_log_relative_rmse(theta, r, 128),
        hyperbolic_log_relative_rmse(theta, r, 128),
        angular_log_relative_rmse(theta, r, 16, 8),
    ]
    np.testing.assert_allclose(np.exp(got), expected, atol=6e-5)


@pytest.mark.parametrize("weight, base", [(0.0, "trigonometric"), (1.0, "hyperbolic")])
@pytest.mark.parametrize("coupling", COUPLINGS)
def test_a_certain_coefficient_gives_its_base(weight, base, coupling):
    moments = CoefficientMoments.of(weight, 0.0)
    got = bipolar_log_relative_mse(PAIR, moments, 5, 4, coupling=coupling)
    expected = {
        "trigonometric": theory.trigonometric_log_relative_mse(PAIR.minus, 5, 4, coupling),
        "hyperbolic": theory.hyperbolic_log_relative_mse(PAIR.plus, 5, 4, coupling),
    }
    assert float(got) == pytest.approx(float(expected[base]), abs=1e-12)


def test_the_general_hybrid_holds_the_bipolar_one():
    moments = angular_coefficient(PAIR.angle, 4)
    cov = bipolar_relative_covariance(PAIR, 3)
    covariances = [
        [np.exp(theory.hyperbolic_log_relative_mse(PAIR.plus, 3, 4)), cov],
        [cov, np.exp(theory.trigonometric_log_relative_mse(PAIR.minus, 3, 4))],
    ]
    expected = np.exp(theory.angular_hybrid_log_relative_mse(PAIR, 3, 4, 4, shared=True))
    assert float(hybrid_mse([moments], covariances)) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("n", [1, 3, 50])
def test_coefficient_moments_are_consistent(n):
    theta = np.linspace(0, np.pi, 9)
    for moments in (
        angular_coefficient(theta, n),
        normalized_gaussian_coefficient(4 * np.sin(theta / 2) ** 2, 1.0, 0.8, n),
        gaussian_coefficient(np.c_[theta, theta], np.c_[theta, -theta], n),
    ):
        np.testing.assert_allclose(moments.square + moments.product, moments.mean, atol=1e-14)
        np.testing.assert_allclose(moments.complement + moments.product, 1 - moments.mean, atol=1e-14)
        assert np.all(moments.square >= moments.mean**2 - 1e-15)


def test_one_sign_makes_sharing_indifferent():
    shared, own = (theory.angular_hybrid_log_relative_mse(PAIR, 3, 1, 4, shared=s) for s in (True, False))
    assert float(shared) == pytest.approx(float(own), rel=1e-14)


def test_gaussian_coefficient_fires_without_variance_by_trigonometric_features():
    u = np.array([0.3, 0.4])
    assert gaussian_coefficient(u, u, 5).complement == 0
    positive = gaussian_coefficient(u, u, 5, positive=True)
    assert float(positive.complement) == pytest.approx((np.exp(4 * u @ u) - 1) / 5)


def test_angular_hybrid_is_exact_at_both_ends():
    x = np.array([0.6, 0.8])
    for y in (x, -x):
        assert np.exp(theory.angular_hybrid_log_relative_mse(theory.Pairs.of(x, y), 4, 4, 2)) < 1e-30


def test_shared_coupled_projections_are_refused():
    with pytest.raises(ValueError, match="shared projections must be independent rows"):
        theory.angular_hybrid_log_relative_mse(PAIR, 4, 4, 4, shared=True, coupling="orthogonal")


def test_hybrids_do_not_overflow():
    x = np.array([[15.0, 0.0], [15.0, 0.0], [15.0, 0.0]])
    y = np.array([[15.0, 0.0], [0.0, 15.0], [-15.0, 1.0]])
    pairs = theory.Pairs.of(x, y)
    for coupling in COUPLINGS:
        assert np.all(theory.angular_hybrid_log_relative_mse(pairs, 8, 8, 4096, coupling=coupling) < 1e4)
        values = theory.gaussian_hybrid_log_relative_mse(pairs, 8, 8, 4096, sigma=0.1, radius=15.0, coupling=coupling)
        assert not np.any(np.isnan(values))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 50])
def test_largest_error_stays_below_the_corrected_bound(n):
    theta = np.concatenate([np.geomspace(1e-6, 0.1, 2000), np.linspace(0.1, np.pi, 2000)])
    for r in (1.0, 2.0, 5.0, 12.0, 30.0):
        largest = angular_log_relative_rmse(theta, r, 1, n).max()
        assert largest < theory.log_max_angular_error_bound(r, 1, n)


def test_base_errors_reach_their_maximum_and_mirror():
    assert float(trigonometric_log_relative_rmse(np.pi, 30.0, 7)) == pytest.approx(
        float(log_max_relative_rmse(30.0, 7))
    )
    theta = np.linspace(0.1, 3, 7)
    np.testing.assert_allclose(
        trigonometric_log_relative_rmse(theta, 2.0, 5),
        hyperbolic_log_relative_rmse(np.pi - theta, 2.0, 5),
    )


def test_errors_of_pairs_and_of_angles_agree():
    got = theory.angular_hybrid_log_relative_mse(UNIT, 5, 3, 4) / 2
    assert float(got) == pytest.approx(float(angular_log_relative_rmse(UNIT.angle, 1.0, 5, 3)), rel=1e-10)
