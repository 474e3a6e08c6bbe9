"""Variances of one projection: golden values, limits, and each against the others."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import theory
from support.points import DIAGONAL, GAUSSIAN2, PAIR, SOFTMAX2, SPREAD, XD, YD, X, Y


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
        (theory.trigonometric_variance(PAIR.minus), 0.45601202785),
        (theory.hyperbolic_variance(PAIR.plus), 0.395814316288),
        (theory.positive_variance(PAIR.plus), 1.35753228102),
        (theory.complex_exponential_variance(theory.complex_argument(X, Y, DIAGONAL)), 0.881509107643),
        (theory.antithetic_complex_exponential_variance(theory.complex_argument(X, Y, DIAGONAL)), 0.332572206061),
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
    assert float(GAUSSIAN2 * np.exp(theory.gerf_variance(A, s, V, 4))) == pytest.approx(expected, rel=1e-10)


def test_optimal_positive_golden():
    assert float(PAIR.plus) == pytest.approx(0.875)
    assert float(theory.optimal_rho(0.875, 4)) == pytest.approx(0.589785658298, abs=1e-12)
    assert float(theory.optimal_A(0.875, 4)) == pytest.approx(-0.0869414031882, abs=1e-12)
    assert float(GAUSSIAN2 * np.exp(theory.optimal_positive_variance(0.875, 4))) == pytest.approx(0.362338835199)


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
    assert float(theory.rho_log_second_moment(rho, V, 64)) == pytest.approx(log_moment, abs=1e-6)


def test_figure_1_of_crt():
    ratio = theory.optimal_positive_variance(100.0, 64) - theory.positive_variance(100.0)
    assert float(ratio) == pytest.approx(-61.22, abs=0.005)


def test_discrete_golden():
    gaussian2 = np.exp(2 * theory.Pairs.of(XD, YD).log_gaussian)
    rate, p = theory.optimal_poisson_rate(XD, YD), theory.optimal_geometric_p(XD, YD)
    assert float(rate) == pytest.approx(0.332001506021, abs=1e-12)
    assert float(p) == pytest.approx(0.747265992104, abs=1e-11)
    assert float(gaussian2 * np.exp(theory.poisson_variance(XD, YD, rate))) == pytest.approx(0.57584400544)
    assert float(gaussian2 * np.exp(theory.geometric_variance(XD, YD, p))) == pytest.approx(0.601386968111)


def test_discrete_optima_are_minima_and_vectorise():
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((2, 6, 5))
    for optimum, variance in (
        (theory.optimal_poisson_rate(A, B), theory.poisson_variance),
        (theory.optimal_geometric_p(A, B), theory.geometric_variance),
    ):
        best = variance(A, B, optimum)
        assert best.shape == (6,)
        assert np.all(best < variance(A, B, optimum * 0.98))
        assert np.all(best < variance(A, B, np.minimum(optimum * 1.02, (1 + optimum) / 2)))


def test_discrete_variance_vanishes_where_no_coordinate_is_shared():
    x, y = np.array([1.0, 0.0]), np.array([0.0, 2.0])
    assert np.exp(theory.poisson_variance(x, y, 1e-9)) < 1e-8
    assert theory.optimal_geometric_p(x, y) > 1 - 1e-12


@pytest.mark.parametrize("s", [-1, 1])
def test_generalised_exponential_at_zero_is_its_neighbour(s):
    near = theory.gerf_log_second_moment(1e-12, s, np.array([0.3, 2.0, 900.0]), 7)
    exact = np.logaddexp(0, theory.gerf_variance(0.0, s, np.array([0.3, 2.0, 900.0]), 7))
    np.testing.assert_allclose(near, exact, rtol=1e-8)
    base = theory.positive_variance if s == 1 else theory.trigonometric_variance
    np.testing.assert_array_equal(theory.gerf_variance(0.0, s, SPREAD, 7), base(SPREAD))


def test_generalised_exponential_at_the_optimum_is_the_optimal_one():
    V = 3.0
    got = theory.gerf_variance(float(theory.optimal_A(V, 8)), 1, V, 8)
    assert float(got) == pytest.approx(float(theory.optimal_positive_variance(V, 8)), rel=1e-10)


def test_generalised_exponential_needs_a_finite_variance():
    with pytest.raises(ValueError, match=r"Re\(1 - 8A\) must be positive"):
        theory.gerf_log_second_moment(0.2, 1, 1.0, 4)


def test_optimal_is_best_and_antithetic_better():
    V = SPREAD[SPREAD > 0.001]
    for d in (2, 64, 4096):
        best = theory.optimal_positive_variance(V, d)
        assert np.all(best <= theory.positive_variance(V) + 1e-9)
        assert np.all(theory.antithetic_optimal_positive_variance(V, d) < best - np.log(2) + 1e-6)


def test_antithetic_positive_is_hyperbolic():
    V = np.array([0.01, 1.0, 900.0])
    np.testing.assert_allclose(
        theory.antithetic_optimal_positive_variance(V, 5, 1.0), theory.hyperbolic_variance(V), rtol=1e-9
    )


def test_complex_exponential_contains_the_others():
    z = theory.complex_argument(X, Y, 1j)
    np.testing.assert_allclose(theory.complex_exponential_variance(z), theory.trigonometric_variance(PAIR.minus))
    np.testing.assert_allclose(
        theory.antithetic_complex_exponential_variance(z), theory.complex_exponential_variance(z), rtol=1e-12
    )
    z = theory.complex_argument(X, Y, 1.0)
    np.testing.assert_allclose(theory.complex_exponential_variance(z), theory.positive_variance(PAIR.plus))
    np.testing.assert_allclose(theory.antithetic_complex_exponential_variance(z), theory.hyperbolic_variance(PAIR.plus))


def test_complex_argument_of_a_matrix_and_its_diagonal_agree():
    np.testing.assert_allclose(
        theory.complex_argument(X, Y, np.diag(DIAGONAL)), theory.complex_argument(X, Y, DIAGONAL)
    )


def test_complex_exponential_is_deterministic_at_zero_and_finite_far_away():
    z = np.zeros((2, 4), dtype=complex)
    z[1] = 20 + 3j
    for variance in (theory.complex_exponential_variance, theory.antithetic_complex_exponential_variance):
        near, far = variance(z)
        assert near == -np.inf
        assert 1500 < far < 1700


def test_complex_exponential_covariance_holds_theorem_3_1_and_the_variance():
    z1, z2 = theory.complex_argument(X, Y, 1.0), theory.complex_argument(X, Y, 1j)
    np.testing.assert_allclose(theory.complex_exponential_covariance(z1, z2), theory.bipolar_covariance(PAIR, 1))
    z = theory.complex_argument(X, Y, DIAGONAL)
    np.testing.assert_allclose(
        theory.complex_exponential_covariance(z, z), np.exp(theory.complex_exponential_variance(z))
    )


@pytest.mark.parametrize(
    "variance", [theory.trigonometric_variance, theory.positive_variance, theory.hyperbolic_variance]
)
def test_base_variances_rise_from_nothing_without_overflow(variance):
    values = variance(SPREAD)
    assert values[0] == -np.inf
    assert np.all(np.isfinite(values[1:]))
    assert np.all(np.diff(values[1:]) > 0)
