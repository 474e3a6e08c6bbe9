"""Constants that maps choose from data."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import Approximation, maps, theory
from bochner.maps import Data
from bochner.projections import IID, Orthogonal
from bochner.rotations import StructuredGivens
from support.map_variances import (
    GAUSSIAN,
    GERF,
    RATE,
    SOFTMAX,
    SUCCESS,
    assert_same,
    known_rho,
    log_rel2_geometric,
    log_rel2_optimal,
    rel2_gerf,
)
from support.points import XD, YD


def two_sets(d, size, n=40, p=23, seed=7):
    rng = np.random.default_rng(seed)
    return size * rng.standard_normal((n, d)) + 0.3 * size, size * rng.standard_normal((p, d)) - 0.5 * size


@pytest.mark.parametrize("n", (40, 70_000))
def test_mean_square_is_the_mean_over_all_pairs(n):
    """Sets of different sizes; the larger one is read in chunks."""
    P, Q = two_sets(3, 1.3, n, 5)
    for s in (1, -1):
        brute = np.mean(((P[:, None] + s * Q[None]) ** 2).sum(axis=-1))
        assert Data(P, Q).mean_square(s) == pytest.approx(brute, rel=1e-12)
    assert Data(P.reshape(2, -1, 3), Q).mean_square(1) == pytest.approx(Data(P, Q).mean_square(1), rel=1e-12)


def test_optimal_constants_have_their_known_values(seed):
    """At d = 4 and 64, as numbers and as what the map draws: V = |x + y|^2 of a single pair."""
    for d, V, rho, A, log_rel2 in (
        (4, 0.875, 0.589785658298, -0.0869414031882, None),
        (64, 1.0, 0.9427635425, -0.0075889201, 0.970551),
        (64, 100.0, 0.2092525525, -0.4723642783, 38.778820),
        (64, 128.0, 0.1753905297, -0.5876952648, 44.134684),
    ):
        assert theory.optimal_rho(V, d) == pytest.approx(rho, rel=1e-9)
        assert theory.optimal_A(V, d) == pytest.approx(A, rel=1e-8)
        if log_rel2 is not None:
            assert np.logaddexp(0, theory.gerf_log_relative_mse(A, 1, V, 1, d)) == pytest.approx(log_rel2, abs=1e-6)
        point = np.sqrt(V) / 2 * np.eye(d)[1]
        options = {"points": [(point, point)], "rtol": 1e-6 if V > 2 else 1e-7}
        assert_same(maps.OptimalPositive(), GERF(A, 1), SOFTMAX, seed, **options)
    for d in (1, 4, 64):
        assert theory.optimal_rho(0.0, d) == 1.0 and theory.optimal_A(0.0, d) == 0.0
        assert theory.optimal_rho(1e-8, d) == pytest.approx(
            1 - 4e-8 / d, rel=1e-15
        )  # where the printed form loses its digits
        assert theory.optimal_rho(1e9, d) == pytest.approx(d / 2e9, rel=1e-6)


def test_optimal_positive_takes_statistics_of_all_pairs(seed):
    """The mean of |x + y|^2, or its quantile, at the dimension in which rows are drawn."""
    P, Q = two_sets(5, 0.4)
    squares = ((P[:, None] + Q[None]) ** 2).sum(axis=-1)
    for feature_map, V in (
        (maps.OptimalPositive(), squares.mean()),
        (maps.OptimalPositive(quantile=0.9), np.quantile(squares, 0.9)),
    ):
        for projection, dim in ((IID(), 5), (Orthogonal(StructuredGivens()), 8)):
            chosen = GERF((1 - 1 / known_rho(V, dim)) / 8, 1)
            one, two = (Approximation(SOFTMAX, f, projection, 16).fit(P, Q, rng=seed) for f in (feature_map, chosen))
            np.testing.assert_allclose(one.queries(P), two.queries(P), rtol=1e-10)


@pytest.mark.parametrize("d", (1, 4, 64))
@pytest.mark.parametrize("size", (0.05, 0.3, 1.0, 3.0))
def test_the_best_gerf_is_never_worse_than_its_special_cases(d, size, seed):
    P, Q = two_sets(d, size)
    V = {s: np.mean(((P[:, None] + s * Q[None]) ** 2).sum(axis=-1)) for s in (1, -1)}
    special = {
        1: [V[1], log_rel2_optimal(known_rho(V[1], d), V[1], d)],
        -1: [np.logaddexp(V[-1], -V[-1]) - np.log(2)],
    }
    for sign in (None, 1, -1):
        chosen = GERF("optimal", sign)
        plan = Approximation(GAUSSIAN, chosen, n_projections=4).plan(P, Q, rng=seed)
        s, A = plan.map.s, complex(plan.map.A)
        assert sign in (None, s)
        attained = np.logaddexp(0, theory.gerf_log_relative_mse(A, s, V[s], 1, d))
        rivals = special[1] + special[-1] if sign is None else special[sign]
        assert attained <= min(rivals) + 1e-9 * max(1.0, abs(min(rivals)))
        if attained < 200:
            assert attained == pytest.approx(np.log(rel2_gerf(A, s, V[s], d)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("d", (2, 16))
@pytest.mark.parametrize("V", (0.05, 0.5, 2.0))
def test_the_best_cosines_satisfy_their_equation(V, d):
    """d (rho - 1) / (2 rho (1 + rho)) = V / (exp((1 + rho) V) + 1) at the best real A for s = -1."""
    best, A = theory.optimal_gerf(V, -1, d)
    rho = 1 / (1 - 8 * A.real)
    assert A.imag == 0 and rho > 1
    left, right = d * (rho - 1) / (2 * rho * (1 + rho)), V / (np.exp((1 + rho) * V) + 1)
    assert left == pytest.approx(right, rel=1e-4)
    grid = [np.log(rel2_gerf(a + 1j * b, -1, V, d)) for a in np.linspace(-1, 0.12, 225) for b in (0, 0.02, 0.1, 0.5)]
    assert best <= min(grid) + 1e-12


def parameter_at_zero(feature_map, P, Q, seed, kernel=GAUSSIAN):
    """The constant of rows of zeros, whose feature at the origin alone is not zero: e^{rate d/2} or p^{-d/2}."""
    m = 200
    phi = Approximation(kernel, feature_map, n_projections=m).fit(P, Q, rng=seed)
    return 2 / P.shape[1] * np.log(phi.queries(np.zeros((1, P.shape[1]))).max() * np.sqrt(m))


@pytest.mark.parametrize("size", (0.1, 0.5))
def test_rate_of_poisson(size, seed):
    """CRT Eq. 12, for sets of different sizes; it minimises the mean log second moment."""
    P, Q = two_sets(3, size)
    rate = np.sqrt(np.sum(np.mean(P**2, axis=0) * np.mean(Q**2, axis=0)) / 3)
    assert parameter_at_zero(maps.Poisson(), P, Q, seed) == pytest.approx(rate, rel=1e-12)
    grid = np.geomspace(rate / 2, rate * 2, 2001)
    products = np.mean((P[:, None] * Q[None]) ** 2, axis=(0, 1)).sum()
    assert grid[np.argmin(3 * grid + products / grid)] == pytest.approx(rate, rel=1e-3)
    shifted = maps.Poisson(positive=True)
    c = np.array(Approximation(GAUSSIAN, shifted, n_projections=4).plan(P, Q, rng=seed).map.shift)
    rate = np.sqrt(np.sum(np.mean((P - c) ** 2, axis=0) * np.mean((Q - c) ** 2, axis=0)) / 3)
    one, two = (
        Approximation(SOFTMAX, f, n_projections=50).fit(P, Q, rng=seed).queries(P)
        for f in (shifted, maps.Poisson(positive=True, rate=rate))
    )
    np.testing.assert_allclose(one, two, rtol=1e-10)


@pytest.mark.parametrize("size", (0.1, 0.5))
def test_success_of_geometric(size, seed):
    """Near the minimiser of the exact mean log second moment over all pairs, by brute force."""
    P, Q = two_sets(3, size)
    p = np.exp(-parameter_at_zero(maps.Geometric(), P, Q, seed))

    def objective(p):
        return np.mean(log_rel2_geometric(P[:, None], Q[None], p))

    grid = np.linspace(0.0005, 0.9995, 2000)
    values = [objective(q) for q in grid]
    assert abs(p - grid[np.argmin(values)]) <= 6e-4
    assert objective(p) <= min(values) + 1e-12


def test_success_of_geometric_for_one_pair(seed):
    """The golden value."""
    p = np.exp(-parameter_at_zero(maps.Geometric(), XD[None], YD[None], seed))
    assert p == pytest.approx(SUCCESS, rel=2e-5)
    assert parameter_at_zero(maps.Poisson(), XD[None], YD[None], seed) == pytest.approx(RATE, rel=1e-11)
