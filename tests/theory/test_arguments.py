"""Impossible arguments are refused in words."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import theory
from bochner.theory._coupling import trigonometric_pair

X = np.array([[0.5, -0.3], [0.2, 0.4]])
PAIRS = theory.Pairs.of(X, X)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: theory.positive_log_relative_mse(-1.0, 4, 4),
            "squared lengths must be a squared length, zero or more, got -1",
        ),
        (lambda: theory.trigonometric_mse([1.0, np.nan], 4, 4), "trigonometric_mse: squared lengths must be .*got nan"),
        (lambda: theory.hyperbolic_log_relative_mse(1.0, 0, 4), "m must be an integer of at least 1, got 0"),
        (lambda: theory.gerf_log_relative_mse(0.2, 1, 1.0, 4, 4), r"Re\(1 - 8A\) must be positive"),
        (lambda: theory.gerf_log_relative_mse(-0.1, 2, 1.0, 4, 4), "s must be one of -1, 1, got 2"),
        (
            lambda: theory.gerf_log_relative_mse(-0.1, -1, 1.0, 4, 4, antithetic=True),
            "antithetic features need s=1, a real A and coupling='iid' for a closed form, got s=-1",
        ),
        (
            lambda: theory.optimal_positive_log_relative_mse(1.0, 4, 4, "simplex", antithetic=True),
            "antithetic features need coupling='iid' for a closed form, got coupling='simplex'",
        ),
        (lambda: theory.optimal_rho(-1.0, 4), "optimal_rho: V must be a finite squared length, zero or more, got -1"),
        (
            lambda: theory.optimal_gerf(np.inf, 1, 4),
            "optimal_gerf: V must be a finite squared length, zero or more, got inf",
        ),
        (lambda: theory.poisson_log_relative_mse(X, X, -1.0), "rate must be positive, got -1"),
        (lambda: theory.geometric_log_relative_mse(X, X, 2.0), "p must be between 0 and 1, got 2"),
        (
            lambda: theory.geometric_log_relative_mse(X, X, [0.5, 0.5, 0.5]),
            r"one for each pair, \(2,\), got shape \(3,\)",
        ),
        (lambda: theory.optimal_poisson_rate([-1.0], [1.0]), "mean_x2 must be a squared length, zero or more, got -1"),
        (lambda: theory.optimal_geometric_p(X, X[:, :1]), "expected an array whose last axis is 2, got shape .2, 1."),
        (lambda: theory.Pairs.of(X, X[:, :1]), "Pairs.of: expected an array whose last axis is 2"),
        (
            lambda: theory.Pairs.of(np.ones((3, 2)), X),
            r"the rows of X and Y must broadcast, got shapes \(3, 2\) and \(2, 2\)",
        ),
        (lambda: theory.dot_product_mse(X, X[:, :1], 4), "expected an array whose last axis is 2, got shape .2, 1."),
        (lambda: theory.subsampled_dot_product_mse(X, X, 3, lengths="chi"), "lengths must be"),
        (lambda: theory.kac_fourth_moment(X[:, :1], X[:, :1], 3), "Kac's walk rotates pairs of coordinates, got d = 1"),
        (lambda: theory.tree_fourth_moment(X, X, "gamma"), "angles must be one of 'uniform', 'beta', got 'gamma'"),
        (lambda: theory.complex_argument(X, X, np.ones(3)), r"A must be a number, a diagonal \(2,\) or a matrix"),
        (lambda: theory.complex_exponential_log_relative_mse(3.0), "z must be finite vectors"),
        (lambda: theory.angular_hybrid_log_relative_mse(PAIRS, 2, 0, 2), "n must be an integer of at least 1, got 0"),
        (
            lambda: theory.gaussian_hybrid_log_relative_mse(PAIRS, 2, 2, 2, sigma=-1.0, radius=1.0),
            "sigma must be a positive number, got -1",
        ),
        (lambda: theory.spherical_radial_variance(-1.0, 3), "minus must be a squared length, zero or more, got -1"),
        (lambda: theory.origin_weight(0), "origin_weight: d must be an integer of at least 1, got 0"),
        (lambda: theory.fixed_norm_bias(np.inf, 4), "minus must be a finite squared length, zero or more, got inf"),
        (lambda: theory.smoothing_gradient_mse([1.0], 1, sigma=0.0), "sigma must be a positive number, got 0"),
        (lambda: theory.fixed_length_gradient_mse([1.0, 2.0], 0), "n must be an integer of at least 1, got 0"),
        (lambda: theory.log_uniform_similarity(3, -1.0), "rate must be a finite number, zero or more, got -1"),
        (lambda: theory.log_tail_bound(PAIRS, 0.0, 4, -0.1, 2), "epsilon must be positive, got 0"),
        (
            lambda: theory.log_tail_bound(PAIRS, 1.0, 4, 0.1, 2),
            "A must be negative, or features are unbounded, got 0.1",
        ),
        (
            lambda: theory.log_max_angular_error_bound(0.5, 2, 2),
            "radius must be finite and at least one, where the bound holds, got 0.5",
        ),
        (lambda: trigonometric_pair(1.0, 5, 3.0), "c must be a cosine, between -1 and 1, got 3"),
    ],
)
def test_impossible_values_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("value", ["far", None, 1j, [[1.0], [1.0, 2.0]]])
def test_what_is_not_a_number_is_refused(value):
    with pytest.raises(TypeError, match="positive_log_relative_mse: squared lengths must be a squared length"):
        theory.positive_log_relative_mse(value, 4, 4)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: theory.angular_hybrid_log_relative_mse(0, 2, 2, 2),
            r"pairs must be Pairs, made by Pairs\.of\(X, Y\), got 0",
        ),
        (lambda: theory.log_tail_bound(None, 1.0, 2, -0.1, 2), "log_tail_bound: pairs must be Pairs, made by"),
        (lambda: theory.trigonometric_mse(1.0, 2, 2, "iid", "A"), "trigonometric_mse: A must be a number, got 'A'"),
        (lambda: theory.complex_exponential_log_relative_mse("z"), "z must be complex vectors, got 'z'"),
        (lambda: theory.dot_product_mse(["x"], ["y"], 2), "expected an array of real numbers"),
    ],
)
def test_things_of_another_kind_are_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_numbers_whose_squares_overflow_are_refused():
    with pytest.raises(ValueError, match=r"Pairs.of: expected numbers of at most 1e\+150, whose squares are finite"):
        theory.Pairs.of([[1e200]], [[1.0]])


def test_single_precision_is_computed_in_double():
    assert theory.Pairs.of(X.astype(np.float32), X.astype(np.float32)).x2.dtype == np.float64


def test_one_constant_for_all_pairs():
    with pytest.raises(
        ValueError, match=r"optimal_gerf: V must be one number, got shape \(2,\); A is common to all pairs"
    ):
        theory.optimal_gerf([1.0, 2.0], 1, 4)


def test_fixed_norm_bias_of_far_points_is_small():
    bias = theory.fixed_norm_bias(np.array([9999.0, 10001.0, 1e12, 1e300]), 4)
    assert np.all(np.abs(bias) < 1e-3)
    assert bias[0] == pytest.approx(bias[1], abs=2e-3)
