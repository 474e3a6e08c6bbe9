"""Variances of one projection: golden values, limits, and each against the others."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import theory
from bochner.theory._exponential_errors import (
    gerf_log_relative_variance,
    hyperbolic_log_relative_variance,
    positive_log_relative_variance,
    trigonometric_log_relative_variance,
)
from bochner.theory._hybrid_errors import bipolar_relative_covariance
from bochner.theory._optimal_positive import (
    antithetic_positive_log_relative_variance,
    gerf_log_relative_second_moment,
    optimal_positive_log_relative_variance,
    rho_log_relative_second_moment,
)
from support.points import DIAGONAL, GAUSSIAN2, PAIR, SOFTMAX2, SPREAD, XD, YD, X, Y

Z = theory.complex_argument(X, Y, DIAGONAL)


def test_kernels_and_angle_golden():
    assert float(np.sqrt(SOFTMAX2)) == pytest.approx(0.985111939603, abs=1e-12)
    assert float(np.sqrt(GAUSSIAN2)) == pytest.approx(0.626566728714, abs=1e-12)
    assert float(PAIR.angle) == pytest.approx(1.60458962727, abs=1e-11)


def test_angles_at_their_ends():
    pairs = theory.Pairs.of([[1.0, 0], [1.0, 0], [0.0, 0], [2.0, 0]], [[3.0, 0], [-2.0, 0], [1.0, 0], [0, 1.0]])
    np.testing.assert_allclose(pairs.angle, [0, np.pi, np.pi / 2, np.pi / 2], atol=1e-12)


def test_pairs_broadcast_to_a_gram_matrix():
    rows = np.random.default_rng(0).standard_normal((5, 3))
    assert theory.Pairs.of(rows[:, None], rows).minus.shape == (5, 5)
    assert theory.Pairs.of(rows[:, None], rows).x2.shape == (5, 5)


@pytest.mark.parametrize(
    "log_variance, expected",
    [
        (trigonometric_log_relative_variance(PAIR.minus), 0.45601202785),
        (hyperbolic_log_relative_variance(PAIR.plus), 0.395814316288),
        (positive_log_relative_variance(PAIR.plus), 1.35753228102),
        (theory.complex_exponential_log_relative_mse(theory.complex_argument(X, Y, DIAGONAL)), 0.881509107643),
        (
            theory.complex_exponential_log_relative_mse(theory.complex_argument(X, Y, DIAGONAL), antithetic=True),
            0.332572206061,
        ),
    ],
)
def test_softmax_variance_golden(log_variance, expected):
    assert float(SOFTMAX2 * np.exp(log_variance)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    "A, s, expected",
    [
        (-0.15, 1, 0.398639111192),
        (-0.15, -1, 0.458204637345),
        (-0.05 + 0.08j, 1, 0.394391265218),
        (-0.05 + 0.08j, -1, 0.33428647297),
    ],
)
def test_generalised_exponential_variance_golden(A, s, expected):
    V = PAIR.plus if s == 1 else PAIR.minus
    assert float(GAUSSIAN2 * np.exp(gerf_log_relative_variance(A, s, V, 4))) == pytest.approx(expected, rel=1e-10)


def test_optimal_positive_golden():
    assert float(PAIR.plus) == pytest.approx(0.875)
    assert float(theory.optimal_rho(0.875, 4)) == pytest.approx(0.589785658298, abs=1e-12)
    assert float(theory.optimal_A(0.875, 4)) == pytest.approx(-0.0869414031882, abs=1e-12)
    assert float(GAUSSIAN2 * np.exp(optimal_positive_log_relative_variance(0.875, 4))) == pytest.approx(0.362338835199)


@pytest.mark.parametrize(
    "V, rho, A, log_moment",
    [
        (1.0, 0.9427635425, -0.0075889201, 0.970551),
        (100.0, 0.2092525525, -0.4723642783, 38.778820),
        (128.0, 0.1753905297, -0.5876952648, 44.134684),
    ],
)
def test_optimal_positive_golden_in_64_dimensions(V, rho, A, log_moment):
    assert float(theory.optimal_rho(V, 64)) == pytest.approx(rho, abs=1e-10)
    assert float(theory.optimal_A(V, 64)) == pytest.approx(A, abs=1e-10)
    assert float(rho_log_relative_second_moment(rho, V, 64)) == pytest.approx(log_moment, abs=1e-6)


def test_figure_1_of_crt():
    ratio = optimal_positive_log_relative_variance(100.0, 64) - positive_log_relative_variance(100.0)
    assert float(ratio) == pytest.approx(-61.22, abs=0.005)


def test_discrete_golden():
    gaussian2 = np.exp(2 * theory.Pairs.of(XD, YD).log_gaussian)
    rate, p = theory.optimal_poisson_rate(XD**2, YD**2), theory.optimal_geometric_p(XD, YD)
    assert float(rate) == pytest.approx(0.332001506021, abs=1e-12)
    assert float(p) == pytest.approx(0.747265992104, abs=1e-11)
    assert float(gaussian2 * np.exp(theory.poisson_log_relative_mse(XD, YD, rate))) == pytest.approx(0.57584400544)
    assert float(gaussian2 * np.exp(theory.geometric_log_relative_mse(XD, YD, p))) == pytest.approx(0.601386968111)


def test_discrete_optima_are_minima_and_vectorise():
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((2, 6, 5))
    each = np.array([theory.optimal_geometric_p(a, b) for a, b in zip(A, B, strict=True)])
    for optimum, error in (
        (theory.optimal_poisson_rate(A**2, B**2), theory.poisson_log_relative_mse),
        (each, theory.geometric_log_relative_mse),
    ):
        best = error(A, B, optimum)
        assert best.shape == (6,)
        assert np.all(best < error(A, B, optimum * 0.98))
        assert np.all(best < error(A, B, np.minimum(optimum * 1.02, (1 + optimum) / 2)))


def test_the_common_geometric_probability_minimises_the_mean_log_second_moment():
    A, B = np.random.default_rng(2).standard_normal((2, 50, 3))
    p = theory.optimal_geometric_p(A, B)
    means = [
        np.logaddexp(0, theory.geometric_log_relative_mse(A, B, value)).mean() for value in (0.99 * p, p, 1.01 * p)
    ]
    assert means[1] < min(means[0], means[2])


@pytest.mark.parametrize("s", [-1, 1])
@pytest.mark.parametrize("V, d", [(0.0, 4), (0.5, 1), (3.0, 8), (200.0, 64)])
def test_the_optimal_generalised_exponential_is_a_minimum(V, d, s):
    best, A = theory.optimal_gerf(V, s, d)
    assert best == pytest.approx(float(gerf_log_relative_second_moment(A, s, V, d)), rel=1e-9, abs=1e-12)
    for step in (1e-3, -1e-3, 1e-3j):
        assert gerf_log_relative_second_moment(A + step, s, V, d) >= best - 1e-12


def test_antithetic_errors_of_m_projections():
    V = np.array([0.1, 2.0])
    for m in (1, 5):
        expected = antithetic_positive_log_relative_variance(V, 4, 1 / (1 + 0.8)) - np.log(m)
        np.testing.assert_allclose(theory.gerf_log_relative_mse(-0.1, 1, V, m, 4, antithetic=True), expected)
        expected = antithetic_positive_log_relative_variance(V, 4) - np.log(m)
        np.testing.assert_allclose(theory.optimal_positive_log_relative_mse(V, m, 4, antithetic=True), expected)


def test_discrete_variance_vanishes_where_no_coordinate_is_shared():
    x, y = np.array([1.0, 0.0]), np.array([0.0, 2.0])
    assert np.exp(theory.poisson_log_relative_mse(x, y, 1e-9)) < 1e-8
    assert theory.optimal_geometric_p(x, y) > 1 - 1e-12


@pytest.mark.parametrize("s", [-1, 1])
def test_generalised_exponential_at_zero_is_its_neighbour(s):
    near = gerf_log_relative_second_moment(1e-12, s, np.array([0.3, 2.0, 900.0]), 7)
    exact = np.logaddexp(0, gerf_log_relative_variance(0.0, s, np.array([0.3, 2.0, 900.0]), 7))
    np.testing.assert_allclose(near, exact, rtol=1e-8)
    base = positive_log_relative_variance if s == 1 else trigonometric_log_relative_variance
    np.testing.assert_array_equal(gerf_log_relative_variance(0.0, s, SPREAD, 7), base(SPREAD))


def test_generalised_exponential_at_the_optimum_is_the_optimal_one():
    V = 3.0
    got = gerf_log_relative_variance(float(theory.optimal_A(V, 8)), 1, V, 8)
    assert float(got) == pytest.approx(float(optimal_positive_log_relative_variance(V, 8)), rel=1e-10)


def test_generalised_exponential_needs_a_finite_variance():
    with pytest.raises(ValueError, match=r"Re\(1 - 8A\) must be positive"):
        theory.gerf_log_relative_mse(0.2, 1, 1.0, 4, 4)


def test_optimal_is_best_and_antithetic_better():
    V = SPREAD[SPREAD > 0.001]
    for d in (2, 64, 4096):
        best = optimal_positive_log_relative_variance(V, d)
        assert np.all(best <= positive_log_relative_variance(V) + 1e-9)
        assert np.all(antithetic_positive_log_relative_variance(V, d) < best - np.log(2) + 1e-6)


def test_antithetic_positive_is_hyperbolic():
    V = np.array([0.01, 1.0, 900.0])
    np.testing.assert_allclose(
        antithetic_positive_log_relative_variance(V, 5, 1.0),
        hyperbolic_log_relative_variance(V),
        rtol=1e-9,
    )


def test_complex_exponential_contains_the_others():
    z = theory.complex_argument(X, Y, 1j)
    np.testing.assert_allclose(
        theory.complex_exponential_log_relative_mse(z), trigonometric_log_relative_variance(PAIR.minus)
    )
    np.testing.assert_allclose(
        theory.complex_exponential_log_relative_mse(z, antithetic=True),
        theory.complex_exponential_log_relative_mse(z),
        rtol=1e-12,
    )
    z = theory.complex_argument(X, Y, 1.0)
    np.testing.assert_allclose(
        theory.complex_exponential_log_relative_mse(z), positive_log_relative_variance(PAIR.plus)
    )
    np.testing.assert_allclose(
        theory.complex_exponential_log_relative_mse(z, antithetic=True), hyperbolic_log_relative_variance(PAIR.plus)
    )


def test_complex_argument_of_a_matrix_and_its_diagonal_agree():
    np.testing.assert_allclose(
        theory.complex_argument(X, Y, np.diag(DIAGONAL)), theory.complex_argument(X, Y, DIAGONAL)
    )


def test_complex_exponential_is_deterministic_at_zero_and_finite_far_away():
    z = np.zeros((2, 4), dtype=complex)
    z[1] = 20 + 3j
    for antithetic in (False, True):
        near, far = theory.complex_exponential_log_relative_mse(z, antithetic=antithetic)
        assert near == -np.inf
        assert 1500 < far < 1700


def test_complex_exponential_covariance_holds_theorem_3_1_and_the_variance():
    z1, z2 = theory.complex_argument(X, Y, 1.0), theory.complex_argument(X, Y, 1j)
    np.testing.assert_allclose(theory.shared_relative_covariance(z1, z2, 1, 4), bipolar_relative_covariance(PAIR, 1))
    z = theory.complex_argument(X, Y, DIAGONAL)
    np.testing.assert_allclose(
        theory.shared_relative_covariance(z, z, 1, 4), np.exp(theory.complex_exponential_log_relative_mse(z))
    )


@pytest.mark.parametrize(
    "variance",
    [
        trigonometric_log_relative_variance,
        positive_log_relative_variance,
        hyperbolic_log_relative_variance,
    ],
)
def test_base_variances_rise_from_nothing_without_overflow(variance):
    values = variance(SPREAD)
    assert values[0] == -np.inf
    assert np.all(np.isfinite(values[1:]))
    assert np.all(np.diff(values[1:]) > 0)
