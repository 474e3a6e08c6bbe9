"""Spherical-radial rules, the weight at the origin, and biases of rows that are not Gaussian."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import jv

from bochner import theory
from support.points import SPREAD
from support.reference_formulas import (
    hadamard_block_mean,
    largest_spherical_radial_variance,
    spherical_radial_variance_bound,
)

RULES = [("simplex", "own"), ("simplex", "shared"), ("orthoplex", "own")]


@pytest.mark.parametrize(
    "z, radii, expected",
    [
        (0.5, "own", 1.0779e-5),
        (1, "own", 0.00151601),
        (2, "own", 0.0479738),
        (1, "shared", 0.00240315),
        (2, "shared", 0.102538),
    ],
)
def test_spherical_radial_golden(z, radii, expected):
    assert float(theory.spherical_radial_variance(z**2, 8, radii=radii)) == pytest.approx(expected, rel=1e-5)


def test_comparison_of_mechanisms_golden():
    d = 16
    for z, expected in ((0.3, (2.2e-4, 4.6e-5, 5.8e-5, 1.3e-7)), (1, (0.0118, 0.00244, 0.00309, 0.00088))):
        V = z**2
        mse = [np.exp(theory.trigonometric_log_relative_mse(V, d + 1, d, c) - V) for c in ("iid", "orthogonal")]
        np.testing.assert_allclose(mse[0], expected[0], rtol=0.02)
        np.testing.assert_allclose(mse[1], expected[1], rtol=0.02)
        np.testing.assert_allclose(theory.spherical_radial_variance(V, d), expected[3], rtol=0.03)


@pytest.mark.parametrize("vertices, radii", RULES)
@pytest.mark.parametrize("d", [1, 2, 3, 8, 64, 4096])
def test_variance_is_finite_and_joins_its_series(d, vertices, radii):
    values = theory.spherical_radial_variance(SPREAD, d, vertices, radii)
    assert values[0] == 0
    assert np.all(np.isfinite(values))
    assert np.all(values[1:] > 0)
    below, above = theory.spherical_radial_variance(np.array([1 - 1e-9, 1 + 1e-9]), d, vertices, radii)
    assert below == pytest.approx(above, rel=2e-6)


def test_two_dimensions_are_the_limit_of_neighbours():
    V = np.array([0.5, 4.0])
    values = [theory.spherical_radial_variance(V, d) for d in (1, 2, 3)]
    assert np.all(values[0] > values[1])
    assert np.all(values[1] > values[2])


def test_small_distance_law():
    # the leading term z^8/(24 d) of large d
    assert float(theory.spherical_radial_variance(1e-4, 4096)) == pytest.approx(1e-16 / (24 * 4096), rel=2e-3)


@pytest.mark.parametrize("d", [3, 8, 64])
def test_own_radii_beat_shared_ones_and_simplex_beats_orthoplex(d):
    V = np.linspace(0.1, 60, 40)
    own, shared, ortho = (theory.spherical_radial_variance(V, d, *rule) for rule in RULES)
    assert np.all(own < shared)
    assert np.all(own < ortho * (d + 1) / d)


@pytest.mark.parametrize("d", [3, 8, 64])
def test_bounds_hold(d):
    V = np.linspace(0, 100, 200)
    largest = theory.spherical_radial_variance(V, d, n_rules=3).max()
    assert largest <= spherical_radial_variance_bound(d, 3)
    limit = theory.spherical_radial_variance(1e6, d)
    assert float(limit) == pytest.approx(largest_spherical_radial_variance(d), rel=5e-3)


def test_largest_variance_golden():
    assert largest_spherical_radial_variance(8) == pytest.approx(0.111, abs=5e-4)
    assert spherical_radial_variance_bound(8) == pytest.approx(0.667, abs=5e-4)


@pytest.mark.parametrize("vertices", ("simplex", "orthoplex"))
@pytest.mark.parametrize("d, m", ((2, 2), (4, 7), (8, 30)))
def test_incomplete_rules_against_draws(d, m, vertices):
    """Directions and radii drawn here; 20000 draws, far away, where cut rules lose most, and near."""
    rng = np.random.default_rng([d, m])
    if vertices == "simplex":
        V = np.eye(d + 1) - 1 / (d + 1)
        V = np.linalg.svd(V)[0][:, :d] * np.sqrt((d + 1) / d)  # centred unit vectors, in their own span
    else:
        V = np.eye(d)
    draws, size = 20_000, len(V)
    squares = np.array([0.25, 9.0])
    mean = np.zeros((draws, 2))
    for start in range(0, m, size):
        rows = V[: min(size, m - start)]
        first = rng.standard_normal((draws, d))
        first /= np.linalg.norm(first, axis=1, keepdims=True)  # Q^T e_1, all that a distance along e_1 needs
        rho = np.sqrt(rng.chisquare(d + 2, (draws, len(rows))))
        angles = (rho * (first @ rows.T))[..., None] * np.sqrt(squares)
        mean += (d / rho[..., None] ** 2 * (np.cos(angles) - 1)).sum(axis=1) / m
    errors = (1 + mean - np.exp(-squares / 2)) ** 2
    z = (errors.mean(0) - theory.spherical_radial_variance(squares, d, vertices, rows=m)) / (
        errors.std(0) / np.sqrt(draws)
    )
    assert (np.abs(z) < 5).all()


def test_whole_rules_are_rows():
    for vertices, size in (("simplex", 9), ("orthoplex", 8)):
        for V in (0.3, 4.0):
            rows, rules = (
                theory.spherical_radial_variance(V, 8, vertices, rows=3 * size),
                theory.spherical_radial_variance(V, 8, vertices, n_rules=3),
            )
            np.testing.assert_allclose(rows, rules, rtol=1e-12)
    with pytest.raises(ValueError, match="rows must be a multiple of 9, got 10"):
        theory.spherical_radial_variance(1.0, 8, radii="shared", rows=10)


def test_impossible_rules_are_refused():
    with pytest.raises(ValueError, match="orthoplex vertices need radii='own'"):
        theory.spherical_radial_variance(1.0, 4, "orthoplex", "shared")


@pytest.mark.parametrize("d, mean", [(3, 0.292), (4, 0.236), (8, 0.132), (16, 0.069), (64, 0.0176)])
def test_origin_weight_golden(d, mean):
    assert theory.origin_weight(d).conditional_mean == pytest.approx(mean, abs=6e-4)


def test_origin_weight_against_draws():
    d, rng = 5, np.random.default_rng(3)
    weight = 1 - (d / (d + 1) / rng.chisquare(d + 2, (200_000, d + 1))).sum(1)
    law = theory.origin_weight(d)
    hit = weight >= 0
    assert abs(hit.mean() - law.probability) < 5 * np.sqrt(0.25 / hit.size)
    kept = weight[hit]
    assert abs(kept.mean() - law.conditional_mean) < 5 * kept.std() / np.sqrt(kept.size)


def test_origin_weight_tends_to_a_fair_coin():
    chances = [theory.origin_weight(d).probability for d in (3, 16, 256, 4096)]
    assert chances == sorted(chances, reverse=True)
    assert chances[-1] == pytest.approx(0.5, abs=1e-3)


def test_fixed_norm_bias_golden():
    assert float(theory.fixed_norm_bias(1.5**2, 8)) == pytest.approx(-0.0517, abs=5e-5)


@pytest.mark.parametrize("d", [2, 3, 8, 64])
def test_fixed_norm_bias_is_a_bessel_function(d):
    from scipy.special import gamma

    z = np.array([0.3, 1.0, 4.0, 20.0])
    x, nu = np.sqrt(d) * z, d / 2 - 1
    expected = gamma(d / 2) * (2 / x) ** nu * jv(nu, x) - np.exp(-(z**2) / 2)
    np.testing.assert_allclose(theory.fixed_norm_bias(z**2, d), expected, atol=1e-12)


def test_fixed_norm_bias_in_high_dimension():
    V = np.array([0.0, 1e-4, 1.0, 900.0])
    bias = theory.fixed_norm_bias(V, 4096)
    np.testing.assert_allclose(bias, -(V**2) * np.exp(-V / 2) / (4 * 4096), rtol=2e-3, atol=1e-12)


def test_hadamard_block_mean_golden():
    assert float(hadamard_block_mean(1.5 * np.eye(8)[0])) == pytest.approx(0.11099, abs=5e-6)


def test_hadamard_block_mean_is_a_mean_over_signs():
    rng = np.random.default_rng(4)
    z, d = np.array([0.7, -0.4, 0.2, 0.5]), 4
    rows = rng.choice([-1.0, 1.0], (300_000, d)) * np.sqrt(rng.chisquare(d, (300_000, 1)) / d)
    for values, positive in ((np.cos(rows @ z), False), (np.exp(rows @ z), True)):
        error = values.std() / np.sqrt(len(values))
        assert abs(values.mean() - hadamard_block_mean(z, positive=positive)) < 5 * error


@pytest.mark.parametrize("vertices", ("simplex", "orthoplex"))
@pytest.mark.parametrize("d", (1, 2, 8))
def test_the_slope_of_a_rule_has_mean_square_at_most_one(d, vertices):
    """The frame bound that the uniform bound rests on, at the steepest of many points of each draw."""
    rng = np.random.default_rng(d)
    polytope = np.linalg.svd(np.eye(d + 1) - 1 / (d + 1))[0][:, :d] * np.sqrt((d + 1) / d)
    polytope = polytope if vertices == "simplex" else np.eye(d)
    Z, found = 3 * rng.standard_normal((200, d)), []
    for _ in range(300):
        U = polytope @ np.linalg.qr(rng.standard_normal((d, d)))[0]
        rho = np.sqrt(rng.chisquare(d + 2, len(U)))
        slopes = (np.sin(rho * (Z @ U.T)) * (d / (len(U) * rho))) @ U
        found.append([(slopes**2).sum(axis=1).max(), d / len(U) * (1 / rho**2).sum()])
    steepest, bound = np.array(found).T
    assert (steepest <= bound + 1e-12).all()
    assert abs(bound.mean() - 1) < 5 * bound.std() / np.sqrt(len(bound)) or d == 1  # 1/rho^4 has no mean for d = 1


def test_uniform_bound_is_above_simulated_errors():
    """One dimension, where a grid gives the supremum and few rules make the bound say something."""
    rng = np.random.default_rng(0)
    draws, rules, R, epsilon = 200, 400, 1.0, np.array([0.2, 0.3, 0.5])
    rho = np.sqrt(rng.chisquare(3, (draws, rules, 2)))  # the two vertices of a simplex are +1 and -1
    z = np.linspace(0, R, 101)[:, None, None, None]
    estimate = 1 + ((np.cos(rho * z) - 1) / rho**2).mean(axis=(-1, -2))
    largest = np.abs(estimate - np.exp(-(z[..., 0, 0] ** 2) / 2)).max(axis=0)
    bound = np.exp(theory.log_quadrature_uniform_bound(epsilon, R, 1, rules))
    assert ((largest[:, None] >= epsilon).mean(axis=0) <= bound).all()
    assert bound[-1] < 0.5


def test_uniform_bound_falls_with_error_and_rules():
    bounds = theory.log_quadrature_uniform_bound([0.1, 0.2, 0.4], 2.0, 4, 10, "orthoplex")
    assert bounds.shape == (3,) and (np.diff(bounds) < 0).all()
    assert (theory.log_quadrature_uniform_bound([0.1, 0.2, 0.4], 2.0, 4, 1000, "orthoplex") < bounds).all()
    with pytest.raises(ValueError, match="log_quadrature_uniform_bound: epsilon must be positive"):
        theory.log_quadrature_uniform_bound(0.0, 1.0, 3)
    with pytest.raises(ValueError, match="radius must be one number, got an array of shape"):
        theory.log_quadrature_uniform_bound(0.1, [1.0, 2.0], 3)
