"""Special functions: golden values, elementary cases, and no overflow."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import hyp1f1

from bochner import theory
from bochner.theory._pairs import block_counts, coupled_pairs, pair_fraction, sine_law, sine_moment
from bochner.theory._special_functions import hyp1f1_negative
from support.reference_formulas import chi_mean, log_hyp1f1


@pytest.mark.parametrize("d", [1, 2, 3, 4, 8, 65, 256])
def test_log_hyp1f1_is_scipys_where_that_is_finite(d):
    t = np.array([0.0, 1e-9, 0.3, 2.0, 40.0, 150.0])
    np.testing.assert_allclose(log_hyp1f1(d, t), np.log(hyp1f1(d, d / 2, t)), rtol=1e-12, atol=1e-14)


def test_log_hyp1f1_of_two_and_four_dimensions_is_elementary():
    t = np.array([0.0, 0.5, 30.0, 450.0, 5000.0])
    np.testing.assert_allclose(log_hyp1f1(2, t), t + np.log1p(t), rtol=1e-12)
    np.testing.assert_allclose(log_hyp1f1(4, t), t + np.log1p(t + t**2 / 6), rtol=1e-12)


@pytest.mark.parametrize("d", [3, 64, 4096])
def test_log_hyp1f1_lies_between_its_bounds_at_large_arguments(d):
    t = np.array([1.0, 100.0, 450.0, 2000.0])
    value = log_hyp1f1(d, t)
    assert np.all((t < value) & (value < 2 * t))


def test_hyp1f1_at_negative_arguments_is_a_laguerre_polynomial_for_even_dimensions():
    t = np.linspace(0, 9, 20)
    np.testing.assert_allclose(hyp1f1_negative(2, t), np.exp(-t) * (1 - t), atol=1e-15)
    np.testing.assert_allclose(hyp1f1_negative(4, t), np.exp(-t) * (1 - t + t**2 / 6), atol=1e-15)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 64, 256, 1024, 4096])
def test_sine_law_has_its_moments(d):
    s, w = sine_law(d)
    for p in (1, 2, 7):
        np.testing.assert_allclose(w @ s**p, sine_moment(d, p), rtol=1e-11)
    np.testing.assert_allclose(w @ (1 - s), 1 - sine_moment(d, 1), rtol=1e-7)


def test_sine_law_is_that_of_chi_lengths():
    rng = np.random.default_rng(0)
    a, b = np.sqrt(rng.chisquare(5, (2, 200_000)))
    s = 2 * a * b / (a**2 + b**2)
    assert abs(s.mean() - sine_moment(5, 1)) < 5 * s.std() / np.sqrt(s.size)


@pytest.mark.parametrize("d", [1, 2, 8, 64, 4096])
def test_chi_mean_and_first_sine_moment_agree(d):
    # E s = E[2 w1 w2]/E[w1^2 + w2^2], because s and the sum of squares are independent
    np.testing.assert_allclose(chi_mean(d) ** 2 / d, sine_moment(d, 1), rtol=1e-11)


@pytest.mark.parametrize(
    "m, d, sizes", [(3, 4, (3,)), (4, 4, (4,)), (10, 4, (4, 4, 2)), (9, 4, (4, 4, 1)), (3, 1, (1, 1, 1))]
)
def test_blocks_are_whole_but_the_last(m, d, sizes):
    assert block_counts(m, d) == {size: sizes.count(size) for size in sizes}
    assert pair_fraction(m, d) == pytest.approx(sum(n * (n - 1) for n in sizes) / m**2)


@pytest.mark.parametrize("m, d", [(1, 4), (3, 4), (8, 4), (10, 4), (9, 4), (5, 1), (2, 2)])
def test_couplings_share_one_pair_fraction(m, d):
    for coupling in ("orthogonal", "simplex"):
        assert sum(f for f, _ in coupled_pairs(m, d, coupling)) == pytest.approx(pair_fraction(m, d))
    assert coupled_pairs(m, d, "iid") == ()


def test_pair_fraction_of_one_block_and_of_whole_blocks():
    assert pair_fraction(5, 8) == pytest.approx(4 / 5)
    assert pair_fraction(24, 8) == pytest.approx(7 / 24)


def test_an_unknown_coupling_is_refused():
    with pytest.raises(ValueError, match="coupling must be one of 'iid', 'orthogonal', 'simplex', got 'haar'"):
        coupled_pairs(4, 4, "haar")


def test_counts_are_checked():
    with pytest.raises(ValueError, match="m must be an integer of at least 1, got 0"):
        pair_fraction(0, 4)


@pytest.mark.parametrize("coupling", ("iid", "orthogonal", "simplex"))
@pytest.mark.parametrize("error", (theory.trigonometric_log_relative_mse, theory.hyperbolic_log_relative_mse))
def test_errors_of_tiny_lengths_are_their_square(error, coupling):
    """No NaN where the square of a length underflows: the error over V^2 is that of longer ones."""
    V = np.array([1e-30, 1e-59, 1e-61, 1e-100, 1e-160, 1e-300])
    np.testing.assert_allclose(
        error(V, 4, 3, coupling) - 2 * np.log(V), error(1e-30, 4, 3, coupling) - 2 * np.log(1e-30)
    )
    assert error(0.0, 4, 3, coupling) == -np.inf


@pytest.mark.parametrize("coupling", ("orthogonal", "simplex"))
def test_the_number_of_rows_costs_nothing(coupling):
    """Two thousand million rows; a loop over their blocks took minutes."""
    m = 2**31 - 2
    one = np.exp(theory.trigonometric_log_relative_mse(1.0, 6, 3, coupling))
    np.testing.assert_allclose(
        np.exp(theory.trigonometric_log_relative_mse(1.0, m, 3, coupling)), one * 6 / m, rtol=1e-6
    )
