"""Errors of many projections: golden values, couplings against each other, and no overflow."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import theory
from bochner.theory._coupling import conformity_gap
from bochner.theory._pairs import COUPLINGS, pair_fraction
from support.points import GAUSSIAN2, PAIR, PAIR_S, SPREAD

MECHANISMS = {
    "trigonometric": theory.trigonometric_log_relative_mse,
    "positive": theory.positive_log_relative_mse,
    "hyperbolic": theory.hyperbolic_log_relative_mse,
    "optimal": theory.optimal_positive_log_relative_mse,
    "gerf+": lambda V, *rest: theory.gerf_log_relative_mse(-0.1 + 0.05j, 1, V, *rest),
    "gerf-": lambda V, *rest: theory.gerf_log_relative_mse(-0.01, -1, V, *rest),
}
GOLDEN = {
    3: (0.320470, 0.298167, 0.197544),
    4: (0.240353, 0.215262, 0.102060),
}


@pytest.mark.parametrize("m", GOLDEN)
def test_positive_golden(m):
    gaussian2 = np.exp(2 * PAIR_S.log_gaussian)
    errors = [
        gaussian2 * np.exp(theory.positive_log_relative_mse(PAIR_S.plus, m, 4, coupling)) for coupling in COUPLINGS
    ]
    iid, orthogonal, simplex = GOLDEN[m]
    np.testing.assert_allclose(errors[:2], [iid, orthogonal], rtol=3e-6)
    if m == 4:
        np.testing.assert_allclose(errors[2], simplex, rtol=6e-6)
    # the golden simplex value of m = 3 takes three rows of the 4-simplex; a true 3-simplex has a smaller error
    single, gap = np.expm1(PAIR_S.plus), conformity_gap(PAIR_S.plus, 4, -1 / 3)
    np.testing.assert_allclose(gaussian2 * (single / m - (m - 1) / m * gap), simplex, rtol=6e-6)
    assert errors[2] <= simplex * (1 + 1e-5)


def test_positive_golden_with_a_cut_block():
    gaussian2 = np.exp(2 * PAIR_S.log_gaussian)
    errors = [
        gaussian2 * np.exp(theory.positive_log_relative_mse(PAIR_S.plus, 10, 4, coupling)) for coupling in COUPLINGS
    ]
    np.testing.assert_allclose(errors[:2], [0.0961411, 0.0874428], rtol=1e-6)
    # golden with two rows of the 4-simplex in the last block; ours are opposite there, which is better
    rows = np.expm1(PAIR_S.plus) / 10 - pair_fraction(10, 4) * conformity_gap(PAIR_S.plus, 4, -1 / 3)
    np.testing.assert_allclose(gaussian2 * rows, 0.0481997, rtol=2e-6)
    assert errors[2] < 0.0481997


def test_true_simplex_of_a_partial_block_golden():
    V, d, r = 0.8**2, 8, 3
    true = np.exp(
        V + theory.positive_log_relative_mse(V, r, d, "simplex")
    )  # times exp(2|x|^2 + 2|y|^2), for the Gaussian kernel
    rows = np.exp(V) * (np.expm1(V) / r - (r - 1) / r * conformity_gap(V, d, -1 / 7))
    assert float(true) == pytest.approx(0.2336, abs=5e-5)
    assert float(rows) == pytest.approx(0.4465, abs=5e-5)


@pytest.mark.parametrize("s, expected", [(1, -0.0201331311911), (-1, -0.0361157367242)])
@pytest.mark.parametrize("A", [0.0, -0.15, -0.05 + 0.08j])
def test_orthogonal_covariance_golden_whatever_A(s, expected, A):
    V = PAIR.plus if s == 1 else PAIR.minus
    single = GAUSSIAN2 * np.exp(theory.gerf_log_relative_mse(A, s, V, 4, 4))
    coupled = GAUSSIAN2 * np.exp(theory.gerf_log_relative_mse(A, s, V, 4, 4, "orthogonal"))
    assert float((coupled - single) / 0.75) == pytest.approx(expected, rel=1e-9)


def test_simplex_covariance_golden():
    gap = GAUSSIAN2 * conformity_gap(PAIR.plus, 4, -1 / 3)
    assert float(gap) == pytest.approx(0.0972651541225, rel=1e-10)


def test_trigonometric_ratios_golden():
    for d, orthogonal, simplex in ((4, 0.409, 0.668), (64, 0.0978, 0.1123)):
        base = theory.trigonometric_log_relative_mse(1.0, d, d)
        assert np.exp(theory.trigonometric_log_relative_mse(1.0, d, d, "orthogonal") - base) == pytest.approx(
            orthogonal, abs=6e-4
        )
        assert np.exp(theory.trigonometric_log_relative_mse(1.0, d, d, "simplex") - base) == pytest.approx(
            simplex, abs=6e-4
        )


def test_trigonometric_small_distance_law():
    V, d = 1e-6, 8
    for m in (2, 8):
        got = np.exp(theory.trigonometric_log_relative_mse(V, m, d, "orthogonal") - V)
        assert got == pytest.approx(V**2 * (d + 3 - m) / (2 * m * (d + 2)), rel=1e-4)


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("d", [1, 2, 3, 8, 4096])
def test_no_overflow_and_exact_where_points_meet(name, d):
    for coupling in COUPLINGS:
        for m in (1, d, 2 * d + 2):
            values = MECHANISMS[name](SPREAD, m, d, coupling)
            assert values.shape == SPREAD.shape
            assert np.all(np.isfinite(values[1:]))
            if not name.startswith("gerf"):
                assert values[0] == -np.inf


@pytest.mark.parametrize("name", MECHANISMS)
def test_one_projection_knows_no_coupling(name):
    values = [MECHANISMS[name](SPREAD, 1, 8, coupling) for coupling in COUPLINGS]
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_array_equal(values[0], values[2])


@pytest.mark.parametrize("name", ["positive", "optimal", "gerf+"])
def test_simplex_beats_orthogonal_beats_independent_for_one_sided_positive_features(name):
    V = SPREAD[(SPREAD >= 0.01) & (SPREAD < 10)]  # beyond, the difference is below rounding
    iid, orthogonal, simplex = (MECHANISMS[name](V, 16, 8, coupling) for coupling in COUPLINGS)
    assert np.all(simplex < orthogonal)
    assert np.all(orthogonal < iid)


@pytest.mark.parametrize("name", ["trigonometric", "hyperbolic"])
def test_simplex_is_worse_than_orthogonal_for_even_features(name):
    V = np.array([1e-6, 0.01, 0.5, 1.0, 2.0])
    assert np.all(MECHANISMS[name](V, 16, 8, "orthogonal") < MECHANISMS[name](V, 16, 8, "simplex"))


@pytest.mark.parametrize("d", [2, 8])
def test_hyperbolic_cut_blocks_of_two_are_wasted(d):
    # two opposite rows are one row for an even feature, up to their lengths
    V = np.array([0.5, 2.0])
    assert np.all(theory.hyperbolic_log_relative_mse(V, 2, d, "simplex") > theory.hyperbolic_log_relative_mse(V, 2, d))


@pytest.mark.parametrize("name", MECHANISMS)
def test_error_falls_with_whole_blocks_as_one_over_their_number(name):
    V = np.array([0.3, 1.0, 6.0])
    for coupling in COUPLINGS:
        one, four = (MECHANISMS[name](V, m, 8, coupling) for m in (8, 32))
        np.testing.assert_allclose(one - four, np.log(4), rtol=1e-12)


def test_generalised_exponential_at_zero_is_its_neighbour():
    for coupling in COUPLINGS:
        np.testing.assert_array_equal(
            theory.gerf_log_relative_mse(0.0, 1, SPREAD, 11, 4, coupling),
            theory.positive_log_relative_mse(SPREAD, 11, 4, coupling),
        )
        np.testing.assert_array_equal(
            theory.gerf_log_relative_mse(0.0, -1, SPREAD, 11, 4, coupling),
            theory.trigonometric_log_relative_mse(SPREAD, 11, 4, coupling),
        )


def test_errors_vectorise_over_gram_matrices():
    rows = np.random.default_rng(0).standard_normal((20, 3))
    pairs = theory.Pairs.of(rows[:, None], rows)
    matrix = theory.positive_log_relative_mse(pairs.plus, 7, 3, "simplex")
    assert matrix.shape == (20, 20)
    np.testing.assert_allclose(
        matrix[3, 5], theory.positive_log_relative_mse(pairs.plus[3, 5], 7, 3, "simplex"), rtol=1e-12
    )
    matrix = theory.trigonometric_log_relative_mse(pairs.minus, 7, 3, "simplex")
    assert np.all(np.diag(matrix) == -np.inf)
