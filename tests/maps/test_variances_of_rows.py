"""Variances with independent rows."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import Approximation, kernels, maps
from bochner.projections import IID, Orthogonal
from bochner.rotations import StructuredGivens
from support.checks import check_mean
from support.map_variances import (
    FULL,
    GAUSSIAN,
    GERF,
    KERNELS,
    PAIRS,
    RATE,
    ROWS,
    SOFTMAX,
    SUCCESS,
    angle,
    angular_mse,
    check_rows,
    complex_sum,
    coupled_mse,
    known_rho,
    log_rel2_geometric,
    log_rel2_optimal,
    normalized_mse,
    pair_positive,
    pair_trigonometric,
    rel2_complex,
    rel2_complex_cross,
    rel2_complex_pair,
    rel2_gerf,
    rel2_gerf_pair,
    rel2_hyperbolic,
    rel2_poisson,
    rel2_positive,
    rel2_trigonometric,
    row_covariance,
    shrunk,
    simplex_blocks,
    single_rows,
    squared,
    value,
)
from support.points import DIAGONAL, XD, YD, X, Y


def test_the_references_have_their_known_values():
    K, SM = value(GAUSSIAN, X, Y), value(SOFTMAX, X, Y)
    V = squared(X + Y)

    def gerf(A, s):
        return K**2 * (rel2_gerf(A, s, squared(X + s * Y), 4) - 1)

    z = complex_sum(DIAGONAL, X, Y)
    unit = (0.8, 1.0)  # sigma and radius
    known = [
        (SM, 0.985111939603),
        (K, 0.626566728714),
        (angle(X, Y), 1.60458962727),
        (SM**2 * (rel2_trigonometric(X, Y) - 1), 0.45601202785),
        (SM**2 * (rel2_hyperbolic(X, Y) - 1), 0.395814316288),
        (SM**2 * (rel2_positive(X, Y) - 1), 1.35753228102),
        (SM**2 * (rel2_complex_cross(X + Y, 1j * (X - Y)) - 1), -0.0148220621015),
        (angular_mse(X, Y, 3, 4, False), 0.0885407077766),
        (angular_mse(X, Y, 3, 4, True), 0.0866888075257),
        (normalized_mse(X, Y, 3, 4, *unit, False), 0.0933507546362),
        (normalized_mse(X, Y, 3, 4, *unit, True), 0.0915596982503),
        (SM**2 * (rel2_complex(z) - 1), 0.881509107643),
        (SM**2 * (rel2_complex_pair(z) - 1), 0.332572206061),
        (gerf(-0.15, 1), 0.398639111192),
        (gerf(-0.15, -1), 0.458204637345),
        (gerf(-0.05 + 0.08j, 1), 0.394391265218),
        (gerf(-0.05 + 0.08j, -1), 0.33428647297),
        (V, 0.875),
        (known_rho(0.875, 4), 0.589785658298),
        (K**2 * np.expm1(log_rel2_optimal(known_rho(V, 4), V, 4)), 0.362338835199),
        (row_covariance(1, 0, X, Y), -0.0201331311911),
        (row_covariance(-1, 0, X, Y), -0.0361157367242),
        (row_covariance(1, -1 / 3, X, Y), -0.0972651541225),
        (value(GAUSSIAN, XD, YD) ** 2 * (rel2_poisson(XD, YD, 0.332001506021) - 1), 0.57584400544),
        (value(GAUSSIAN, XD, YD) ** 2 * np.expm1(log_rel2_geometric(XD, YD, 0.747265992104)), 0.601386968111),
    ]
    for computed, expected in known:
        assert computed == pytest.approx(expected, rel=5e-12)


def test_coupled_references_have_their_known_values():
    """Formulas of SimRF: pairs of rows, and errors with m = 3, 4, 10 rows in d = 4 dimensions."""
    positive = {(2, 1): (2.47308190605, 1.25562116815), (4, 1): (2.54177862566, 1.95593114464)}
    positive |= {(8, 2): (33.1451945009, 21.5651473609), (64, 1): (2.6983450578, 2.6567831818)}
    positive |= {(64, 2): (48.9667370088, 46.1262070404)}
    for (d, v), expected in positive.items():
        computed = [pair_positive(c, v**2, d) for c in (0, -1 / (d - 1))]
        assert computed == pytest.approx(expected, rel=2e-11)
    trigonometric = {(2, 1): (0.303265329856, 0.433456015781), (4, 1): (0.328537440678, 0.345744989374)}
    trigonometric |= {(8, 2): (-0.00644453729698, -0.00374189889888), (64, 1): (0.365018295014, 0.365064267733)}
    for (d, z), expected in trigonometric.items():
        computed = [pair_trigonometric(c, z**2, d) for c in (0, -1 / (d - 1))]
        assert computed == pytest.approx(expected, rel=2e-11)
    x, y = np.array([0.3, 0.1, -0.2, 0.4]), np.array([0.2, -0.1, 0.1, 0.3])
    # rows of a cut simplex block at the cosine of the whole one; ours, a true r-simplex, have less error
    for sizes, expected in (
        ((3,), (0.320470, 0.298167, 0.197544)),
        ((4,), (0.240353, 0.215262, 0.102060)),
        ((4, 4, 2), (0.0961411, 0.0874428, 0.0481997)),
    ):
        independent = coupled_mse(GAUSSIAN, 1, [(1, 0)] * sum(sizes), x, y)
        coupled = [coupled_mse(GAUSSIAN, 1, [(r, c) for r in sizes], x, y) for c in (0, -1 / 3)]
        assert [independent, *coupled] == pytest.approx(expected, rel=5e-6)
    assert coupled_mse(GAUSSIAN, 1, simplex_blocks(10), x, y) < 0.0481997


def test_hybrid_references_have_their_known_values():
    """Relative errors at equal norms: 128 projections against an angular hybrid of 16 and 8."""
    for r, t, expected in (
        (1, 0.05, (0.0015, 0.4476, 0.1164)),
        (1, 0.25, (0.0371, 0.3332, 0.2878)),
        (1, 0.5, (0.1469, 0.1469, 0.3116)),
        (1.5, 0.05, (0.0035, 5.4716, 1.4216)),
        (1.5, 0.5, (0.5864, 0.5864, 1.2439)),
    ):
        x, y = r * np.array([1.0, 0.0]), r * np.array([np.cos(t * np.pi), np.sin(t * np.pi)])
        bases = [(rel2(x, y) - 1) / 128 for rel2 in (rel2_trigonometric, rel2_hyperbolic)]
        computed = np.sqrt([*bases, angular_mse(x, y, 16, 8, True) * np.exp(-2 * x @ y)])
        assert computed == pytest.approx(expected, abs=5.1e-5)
    # r = 1, theta = 2, m = 3, n = 4, where HRF Eq. 47 prints a wrong coefficient
    assert angular_mse(np.array([1.0, 0]), np.array([np.cos(2), np.sin(2)]), 3, 4, True) == pytest.approx(
        0.2583, abs=5e-5
    )


# Independent rows


GOLDEN = [
    (maps.Trigonometric(), SOFTMAX, 0.45601202785),
    (maps.Hyperbolic(), SOFTMAX, 0.395814316288),
    (maps.Positive(), SOFTMAX, 1.35753228102),
    (maps.ComplexExponential(DIAGONAL), SOFTMAX, 0.881509107643),
    (maps.ComplexExponential(DIAGONAL, antithetic=True), SOFTMAX, 0.332572206061),
    (GERF(-0.15, 1), GAUSSIAN, 0.398639111192),
    (GERF(-0.15, -1), GAUSSIAN, 0.458204637345),
    (GERF(-0.05 + 0.08j, 1), GAUSSIAN, 0.394391265218),
    (GERF(-0.05 + 0.08j, -1), GAUSSIAN, 0.33428647297),
    (GERF(-0.0869414031882, 1), GAUSSIAN, 0.362338835199),
    (maps.OptimalPositive(), GAUSSIAN, 0.362338835199),
]


@pytest.mark.parametrize(("feature_map", "kernel", "variance"), GOLDEN, ids=repr)
def test_golden_values(feature_map, kernel, variance, seed):
    fit = None if feature_map.planned else (X[None], Y[None])
    rel2 = 1 + variance / value(kernel, X, Y) ** 2
    check_rows(feature_map, kernel, lambda x, y: rel2, [(X, Y)], seed, fit=fit, rows=4 * ROWS)


BASIC = {
    "trigonometric": (maps.Trigonometric(), rel2_trigonometric, PAIRS),
    "positive": (maps.Positive(), rel2_positive, shrunk(0.6)),
    "hyperbolic": (maps.Hyperbolic(), rel2_hyperbolic, shrunk(0.6)),
}


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("name", BASIC)
def test_basic_maps(name, kernel, seed):
    feature_map, rel2, pairs = BASIC[name]
    check_rows(feature_map, kernel, rel2, pairs, seed)


@pytest.mark.parametrize("kernel", (GAUSSIAN, SOFTMAX), ids=repr)
@pytest.mark.parametrize("A", (-0.15, 0.03, -0.05 + 0.08j))
@pytest.mark.parametrize("s", (1, -1))
def test_generalized_exponential(A, s, kernel, seed):
    pairs = shrunk(0.2) if (A, s) == (0.03, 1) else PAIRS
    check_rows(GERF(A, s), kernel, lambda x, y: rel2_gerf(A, s, squared(x + s * y), 4), pairs, seed)


@pytest.mark.parametrize(("A", "scale"), ((-0.15, 1.0), (0.03, 0.2)))
def test_antithetic_generalized_exponential(A, scale, seed):
    feature_map = GERF(A, 1, antithetic=True)
    check_rows(feature_map, GAUSSIAN, lambda x, y: rel2_gerf_pair(A, squared(x + y), 4), shrunk(scale), seed)


@pytest.mark.parametrize("A", (-0.1, -0.05 + 0.08j))
@pytest.mark.parametrize("s", (1, -1))
def test_padding_takes_the_dimension_of_the_rows(A, s, seed):
    """Rows in 8 dimensions for data in 5: the closed form holds at 8."""
    x, y = np.array([0.5, -0.3, 0.2, 0.4, 0.1]), np.array([0.1, 0.45, -0.25, 0.3, -0.2])
    spec = Approximation(GAUSSIAN, GERF(A, s), Orthogonal(StructuredGivens()), 8 * 20_000)
    k = value(GAUSSIAN, x, y)
    blocks = single_rows(spec, [(x, y)], seed).reshape(-1, 8)
    check_mean(blocks.mean(axis=1), k, f"{spec!r}:")
    expected = k**2 * (rel2_gerf(A, s, squared(x + s * y), 8) - 1)
    check_mean(((blocks - k) ** 2).mean(axis=1), expected, f"{spec!r}: squared error,")


@pytest.mark.parametrize("kernel", (GAUSSIAN, SOFTMAX), ids=repr)
@pytest.mark.parametrize("antithetic", (False, True))
def test_optimal_positive(antithetic, kernel, seed):
    def rel2(x, y):
        V = squared(x + y)
        rho = known_rho(V, 4)
        return rel2_gerf_pair((1 - 1 / rho) / 8, V, 4) if antithetic else np.exp(log_rel2_optimal(rho, V, 4))

    for x, y in ((X, Y), (0.7 * np.ones(4), 0.8 * np.ones(4))):
        check_rows(maps.OptimalPositive(None, antithetic), kernel, rel2, [(x, y)], seed, fit=(x[None], y[None]))


@pytest.mark.parametrize("A", (DIAGONAL, FULL, 0.9 + 0.3j), ids=("diagonal", "full", "number"))
@pytest.mark.parametrize("kernel", (GAUSSIAN, SOFTMAX), ids=repr)
def test_complex_exponential(A, kernel, seed):
    matrix = A if np.ndim(A) else np.full(4, A)
    for antithetic, rel2 in ((False, rel2_complex), (True, rel2_complex_pair)):
        feature_map = maps.ComplexExponential(A, antithetic)
        check_rows(feature_map, kernel, lambda x, y, rel2=rel2: rel2(complex_sum(matrix, x, y)), shrunk(0.6), seed)


def test_two_maps_on_the_same_rows(seed):
    """Covariance of Hyperbolic and Trigonometric, and of two complex exponentials, of one seed."""
    x, y = 0.8 * X, 0.8 * Y
    diagonal, full = (complex_sum(A, x, y) for A in (DIAGONAL, FULL))
    for first, second, z1, z2 in (
        (maps.Hyperbolic(), maps.Trigonometric(), x + y, 1j * (x - y)),
        (maps.ComplexExponential(DIAGONAL), maps.ComplexExponential(FULL), diagonal, full),
    ):
        k = value(SOFTMAX, x, y)
        specs = (Approximation(SOFTMAX, f, IID(), ROWS) for f in (first, second))
        one, two = (single_rows(spec, [(x, y)], seed)[0] - k for spec in specs)
        check_mean(one * two, k**2 * (rel2_complex_cross(z1, z2) - 1), f"{first!r} and {second!r}:")


@pytest.mark.parametrize("kernel", (GAUSSIAN, SOFTMAX), ids=repr)
def test_discrete_maps(kernel, seed):
    pairs = [(XD, YD), *PAIRS]
    check_rows(maps.Poisson(rate=RATE), kernel, lambda x, y: rel2_poisson(x, y, RATE), pairs, seed)
    check_rows(
        maps.Geometric(success=SUCCESS), kernel, lambda x, y: np.exp(log_rel2_geometric(x, y, SUCCESS)), pairs, seed
    )


def small_sets():
    """Seven queries and five keys."""
    rng = np.random.default_rng(5)
    return 0.25 * rng.standard_normal((7, 3)) + 0.3, 0.25 * rng.standard_normal((5, 3)) - 0.1


@pytest.mark.parametrize("kernel", (GAUSSIAN, SOFTMAX), ids=repr)
def test_shifted_discrete_maps(kernel, seed):
    """Moving all points by c changes no Gaussian kernel: the closed forms hold at the shifted points."""
    P, Q = small_sets()
    lowest = np.minimum(P.min(axis=0), Q.min(axis=0))
    for feature_map, rel2 in (
        (maps.Poisson(positive=True, rate=0.4), lambda x, y: rel2_poisson(x, y, 0.4)),
        (maps.Geometric(positive=True, success=0.6), lambda x, y: np.exp(log_rel2_geometric(x, y, 0.6))),
    ):
        phi = Approximation(kernel, feature_map, n_projections=4).fit(P, Q, rng=seed)
        c = phi.features.shift
        assert (lowest - 0.05 < c).all() and (c < lowest).all()
        assert (phi.queries(P) > 0).all() and (phi.keys(Q) > 0).all()
        # the second query is below the data: signs appear, and nothing else changes
        pairs = [(P[2], Q[1]), (P[2] - 0.5, Q[1])]
        check_rows(feature_map, kernel, lambda x, y, c=c, f=rel2: f(x - c, y - c), pairs, seed, fit=(P, Q))


def test_homogeneous_maps(seed):
    """Signs, positive parts and the rows themselves."""
    x, y = 2 * X, 2 * Y
    t = angle(x, y)
    phi = np.linspace(-np.pi, np.pi, 20001)[:-1]
    fourth = np.mean(np.clip(np.cos(phi), 0, None) ** 4 * np.clip(np.cos(phi - t), 0, None) ** 4)
    moments = {
        maps.Sign(): (kernels.Angular(), 1.0),
        maps.Rectified(0): (kernels.ArcCosine(0), 2 * value(kernels.ArcCosine(0), x, y)),
        maps.Rectified(1): (kernels.ArcCosine(1), 2 * value(kernels.ArcCosine(2), x, y)),
        maps.Rectified(2): (kernels.ArcCosine(2), 4 * 384 * fourth * squared(x) ** 2 * squared(y) ** 2),
        maps.Identity(): (kernels.Linear(), squared(x) * squared(y) + 2 * (x @ y) ** 2),
    }
    for feature_map, (kernel, second) in moments.items():
        rel2 = second / value(kernel, x, y) ** 2
        check_rows(feature_map, kernel, lambda x, y, rel2=rel2: rel2, [(x, y)], seed)


# Coupled rows
