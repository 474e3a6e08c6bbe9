"""Conformities, pair values and densities: golden values and order."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bochner import theory
from bochner.theory._coupling import (
    conformity_gap,
    even_excess,
    log_conformity,
    orthogonality_relative_gap,
    trigonometric_excess,
    trigonometric_pair,
)
from bochner.theory._pairs import sine_law, sine_moment
from support.points import SPREAD
from support.reference_formulas import log_hyp1f1, small_norm_factor, sum_density, sum_second_moment

CONFORMITY = {
    (2, 1): (2.47308190605, 1.25562116815),
    (4, 1): (2.54177862566, 1.95593114464),
    (8, 2): (33.1451945009, 21.5651473609),
    (64, 1): (2.6983450578, 2.6567831818),
    (64, 2): (48.9667370088, 46.1262070404),
}
TRIGONOMETRIC = {
    (2, 1): (0.303265329856, 0.433456015781),
    (4, 1): (0.328537440678, 0.345744989374),
    (8, 2): (-0.00644453729698, -0.00374189889888),
    (64, 1): (0.365018295014, 0.365064267733),
}


@pytest.mark.parametrize("d, v", CONFORMITY)
def test_conformity_golden(d, v):
    orthogonal, simplex = CONFORMITY[d, v]
    np.testing.assert_allclose(np.exp(log_conformity(v**2, d)), orthogonal, rtol=1e-11)
    np.testing.assert_allclose(np.exp(log_conformity(v**2, d, -1 / (d - 1))), simplex, rtol=1e-11)


@pytest.mark.parametrize("d, z", TRIGONOMETRIC)
def test_trigonometric_pair_golden(d, z):
    orthogonal, simplex = TRIGONOMETRIC[d, z]
    np.testing.assert_allclose(trigonometric_pair(z**2, d), orthogonal, rtol=1e-10)
    np.testing.assert_allclose(trigonometric_pair(z**2, d, -1 / (d - 1)), simplex, rtol=1e-10)


@pytest.mark.parametrize("d", [2, 3, 8, 64, 4096])
def test_simplex_conforms_less_than_orthogonal_less_than_independent(d):
    V = SPREAD[SPREAD >= 0.01]
    simplex, orthogonal = log_conformity(V, d, -1 / (d - 1)), log_conformity(V, d)
    assert np.all(simplex < orthogonal)
    assert np.all(orthogonal < V)


@pytest.mark.parametrize("d, c", [(2, -1.0), (3, 0.0), (8, -1 / 7), (64, -1.0), (4096, -1 / 4095)])
def test_gap_and_conformity_are_one(d, c):
    gap = conformity_gap(SPREAD, d, c)
    np.testing.assert_allclose(gap, -np.expm1(log_conformity(SPREAD, d, c) - SPREAD), rtol=1e-6, atol=1e-12)
    assert gap[0] == 0
    assert np.all(np.diff(gap) > -1e-14)
    assert np.all(gap < 1 + 1e-14)


def test_gap_keeps_its_digits_at_small_norms():
    V = np.array([1e-10, 1e-6])
    np.testing.assert_allclose(conformity_gap(V, 8), V**2 / (2 * 10), rtol=1e-5)  # (V^2/2)(1 - r_2)
    np.testing.assert_allclose(conformity_gap(V, 8, -1 / 7), V / 7 * sine_moment(8, 1), rtol=1e-5)


def test_orthogonal_conformity_tends_to_the_independent_one():
    gaps = [float(conformity_gap(4.0, d)) for d in (4, 64, 1024, 4096)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 2.5e-3


def test_trigonometric_excess_joins_its_series_and_its_difference():
    V = np.array([0.5, 0.9, 1.0, 1.5])
    for d, c in ((2, -1.0), (8, 0.0), (8, -1 / 7), (4096, 0.0)):
        difference = trigonometric_pair(V, d, c) - np.exp(-V)
        np.testing.assert_allclose(trigonometric_excess(V, d, c), difference, atol=3e-15)


def test_trigonometric_excess_at_small_distances():
    V = np.array([1e-8, 1e-5])
    np.testing.assert_allclose(trigonometric_excess(V, 8), -(V**2) / 20, rtol=1e-4)
    lift = trigonometric_excess(V, 8, -1 / 7) - trigonometric_excess(V, 8)
    np.testing.assert_allclose(lift, V**2 / 2 * 8 / 10 / 49, rtol=1e-3)  # (z^4/2)(d/(d+2)) c^2


@pytest.mark.parametrize("d, c", [(2, -1.0), (8, -1 / 7), (64, -1.0)])
def test_even_excess_is_the_mean_of_two_gaps(d, c):
    V = np.array([0.3, 2.0, 25.0, 31.0, 60.0])
    both = (conformity_gap(V, d, c) + conformity_gap(V, d, -c)) / 2
    np.testing.assert_allclose(even_excess(V, d, c), -both * np.exp(-V), rtol=1e-8)


def test_even_excess_at_right_angles_is_the_gap():
    V = np.array([1e-3, 1.0, 20.0, 40.0])
    np.testing.assert_allclose(even_excess(V, 8, 0.0), -np.exp(-V) * conformity_gap(V, 8), rtol=1e-9)


def test_orthogonality_gap_is_the_difference_of_errors():
    V = np.array([0.2, 1.0, 3.0])
    for m in (1, 3, 8, 21):
        difference = np.exp(theory.positive_log_relative_mse(V, m, 8)) - np.exp(
            theory.positive_log_relative_mse(V, m, 8, "orthogonal")
        )
        np.testing.assert_allclose(orthogonality_relative_gap(V, m, 8), difference, atol=1e-13)


def test_small_norm_factor_of_the_paper():
    assert small_norm_factor(64, 64, -1 / 63) == pytest.approx(0.00778175, abs=5e-9)


@pytest.mark.parametrize("d, c", [(2, None), (3, 0.0), (8, -1 / 7), (64, None), (64, -1.0), (4096, -1 / 4095)])
def test_density_of_a_sum_integrates_to_its_moments(d, c):
    w = np.linspace(0, 2 * np.sqrt(2 * d) + 15, 40_001)
    density = sum_density(w, d, c)
    assert np.trapezoid(density, w) == pytest.approx(1, abs=1e-7)
    expected = sum_second_moment(d, c or 0.0)
    assert np.trapezoid(w**2 * density, w) == pytest.approx(expected, rel=1e-6)


def test_density_of_a_sum_of_independent_rows_is_chi():
    w = np.linspace(0.1, 9, 30)
    np.testing.assert_allclose(sum_density(w, 5), stats.chi(5, scale=np.sqrt(2)).pdf(w), rtol=1e-12)
    np.testing.assert_allclose(sum_density(w, 5, 0.0), stats.chi(10).pdf(w), rtol=1e-12)


@pytest.mark.parametrize("d, c", [(2, -1.0), (3, -0.5), (8, -1 / 7), (64, -1.0)])
@pytest.mark.parametrize("reach", [3.0, 30.0])
def test_many_pairs_are_as_accurate_as_few(d, c, reach):
    V = np.linspace(0, reach, 3001) ** 2
    few = slice(0, None, 100)
    np.testing.assert_allclose(trigonometric_pair(V, d, c)[few], trigonometric_pair(V[few], d, c), atol=1e-13)


@pytest.mark.parametrize("d, c", [(2, -1.0), (8, -1 / 7), (8, 1 / 7), (64, 1.0)])
def test_conformity_is_a_mean_of_hypergeometric_functions(d, c):
    V = np.array([0.5, 20.0, 300.0])
    s, w = sine_law(d)
    logs = log_hyp1f1(d, V[:, None] / 2 * (1 + c * s))
    np.testing.assert_allclose(log_conformity(V, d, c), np.log(np.exp(logs) @ w), rtol=1e-10)
