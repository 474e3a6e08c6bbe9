"""The variance of every map is the known one.

References are written here from the closed forms of the papers, corrected where those are wrong; all are relative second
moments E[Z^2]/k^2 of one projection, the same for the Gaussian and the softmax kernel, so that the variance is
k^2 (rel2 - 1).  Checks are z-tests at |z| < 5 of squared errors over R independent replicates: rows of one large draw
where rows are independent, blocks of one where they are coupled, redraws where the whole estimate matters.

Squared errors of exponentials are skewed, and z with them: at skewness g a false alarm is 1 + 44 g/sqrt(R) times as likely
as once in 1.7 million.  So maps with heavy tails are checked on points that are scaled down (``shrunk``) until that factor
is of order ten; bounded ones, on points where exp is curved.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import hyp1f1, ive

from bochner import Approximation, kernels, maps
from bochner.maps.coefficients import AngularCoefficient, GaussianCoefficient
from bochner.maps.gerf_variance import A_of_rho, log_second_moment, minimise, optimal_rho
from bochner.maps.statistics import Data
from bochner.projections import IID, Orthogonal, Simplex
from bochner.projections.base import draw_blocks, named_streams
from bochner.radii import Chi
from bochner.rotations import StructuredGivens
from checks import check_mean

X = np.array([0.5, -0.3, 0.2, 0.4])
Y = np.array([0.1, 0.45, -0.25, 0.3])
XD = np.array([0.7, -0.5, 0.0, 0.9])
YD = np.array([-0.4, -0.8, 0.6, 0.5])
PAIRS = [
    (X, Y),
    (0.9 * np.eye(4)[0], -0.2 * np.eye(4)[0]),
    (0.3 * np.ones(4), 0.1 * np.ones(4)),
    (0.6 * np.ones(4), -0.8 * np.ones(4)),
    (np.array([1.2, 0.3, -0.2, 0.1]), np.array([-0.2, 0.1, 0.1, 0.2])),
]
GERF = maps.GeneralizedExponential
GAUSSIAN, SOFTMAX = kernels.Gaussian(), kernels.Softmax()
KERNELS = (GAUSSIAN, SOFTMAX, kernels.Gaussian(0.9), kernels.Softmax(1.3))
ROWS = 150_000
DIAGONAL = np.array([1.1 + 0.3j, 0.2 + 0.9j, 0.8 - 0.4j, -0.3 + 1.1j])
FULL = np.diag([0.9, 1.1j, 0.9 + 0.2j, 1.0]) + 0.15 * np.array(
    [[0, 1, 1j, 0], [1, 0, 0, -1], [0, 1j, 0, 1], [1, 0, -1j, 0]]
)


def shrunk(factor, pairs=PAIRS):
    return [(factor * x, factor * y) for x, y in pairs]


# References


def squared(x):
    """Sum of squares without conjugation."""
    return np.sum(x * x)


def value(kernel, x, y):
    return float(kernel(x[None], y[None])[0, 0])


def rel2_trigonometric(x, y):
    return np.cosh(squared(x - y))


def rel2_hyperbolic(x, y):
    return np.cosh(squared(x + y))


def rel2_positive(x, y):
    return np.exp(squared(x + y))


def rel2_gerf(A, s, V, d):
    """CRT Theorem 3.2, V = |x + s y|^2."""
    w = 1 - 8 * complex(A)
    first = ((1 - 4 * A) / np.sqrt(w)) ** d * np.exp(s * V / w)
    size = abs(1 - 4 * A)
    return (first.real + (size**2 / w.real) ** (d / 2) * np.exp((size + 4 * s * np.real(A)) * V / w.real)) / 2


def log_rel2_optimal(rho, V, d):
    """The same for s = 1 and real A = (1 - 1/rho)/8."""
    return d * np.log((1 + rho) / 2) - d / 2 * np.log(rho) + rho * V


def known_rho(V, d):
    """Positive root of 2V rho^2 + (2V + d) rho - d, by companion matrix."""
    roots = np.roots([2 * V, 2 * V + d, -d])
    return float(roots[roots > 0][0])


def rel2_gerf_pair(A, V, d):
    """Real A, s = 1, both of w and -w."""
    rho = 1 / (1 - 8 * A)
    return ((1 + rho) ** 2 / (4 * rho)) ** (d / 2) * (np.exp(rho * V) + np.exp(-V)) / 2


def complex_sum(A, x, y):
    """Ax plus the transposed inverse of A times y."""
    A = np.diag(A) if np.ndim(A) == 1 else np.asarray(A)
    return A @ x + np.linalg.inv(A).T @ y


def rel2_complex(z):
    return (np.exp(np.sum(abs(z) ** 2)) + np.exp(squared(z)).real) / 2


def rel2_complex_pair(z):
    return (np.cosh(np.sum(abs(z) ** 2)) + np.cosh(squared(z)).real) / 2


def rel2_complex_cross(z1, z2):
    """E[Z_1 Z_2]/k^2 of two complex exponentials with the same w."""
    return (np.exp(np.sum(z1 * z2)) + np.exp(np.sum(z1 * np.conj(z2)))).real / 2


def rel2_poisson(x, y, rate):
    """CRT Eq. 11."""
    return np.exp(rate * len(x) + np.sum(x**2 * y**2) / rate - 2 * x @ y)


def log_rel2_geometric(x, y, p):
    """CRT Eq. 13."""
    z = 2 * np.abs(x * y) / np.sqrt(1 - p)
    return -x.shape[-1] * np.log(p) + np.sum(np.log(ive(0, z)) + z - 2 * x * y, axis=-1)


def sine_law(d):
    """Nodes and weights for s = sin(phi), density proportional to sin(phi)^(d-1)."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    s = np.sin((nodes + 1) * np.pi / 2)
    weights = weights * s ** (d - 1)
    return s, weights / weights.sum()


def pair_positive(c, V, d):
    """E exp((w_1 + w_2).v) of rows at cosine c with independent lengths, V = |v|^2."""
    s, weights = sine_law(d)
    return weights @ hyp1f1(d, d / 2, V / 2 * (1 + c * s))


def pair_trigonometric(c, V, d):
    """E cos(w_1.v) cos(w_2.v) of rows at cosine c with independent lengths."""
    s, weights = sine_law(d)
    return weights @ (hyp1f1(d, d / 2, -V / 2 * (1 + c * s)) + hyp1f1(d, d / 2, -V / 2 * (1 - c * s))) / 2


def row_covariance(s, c, x, y):
    """Covariance of the estimates of two rows at cosine c, Gaussian kernel, any A (CRT Theorem 4.1, exact)."""
    V, N = squared(x + s * y), squared(x) + squared(y)
    if s == -1:
        return pair_trigonometric(c, V, len(x)) - np.exp(-V)
    return np.exp(-2 * N) * (pair_positive(c, V, len(x)) - np.exp(V))


def coupled_mse(kernel, s, blocks, x, y):
    """A = 0, with blocks of rows (size, cosine)."""
    m = sum(r for r, _ in blocks)
    k = np.exp(-squared(x - y) / 2)
    single = k**2 * ((rel2_positive if s == 1 else rel2_trigonometric)(x, y) - 1)
    gaussian = single / m + sum(r * (r - 1) * row_covariance(s, c, x, y) for r, c in blocks if r > 1) / m**2
    return gaussian * (np.exp(squared(x) + squared(y)) if kernel == SOFTMAX else 1)


def angle(x, y):
    u, v = x / np.linalg.norm(x), y / np.linalg.norm(y)
    return 2 * np.arctan2(np.linalg.norm(u - v), np.linalg.norm(u + v))


def mixture_mse(k, m, mean, variance, first, rest, cross):
    """Two bases of m rows mixed by a coefficient of this mean and variance, from relative variances (HRF Theorem 3.1)."""
    relative = (mean**2 + variance) * first + ((1 - mean) ** 2 + variance) * rest
    return k**2 * (relative + 2 * (mean * (1 - mean) - variance) * cross) / m


def bipolar_mse(x, y, m, mean, variance, shared):
    """Softmax; Hyperbolic with the coefficient, Trigonometric with the rest."""
    first, rest = rel2_hyperbolic(x, y) - 1, rel2_trigonometric(x, y) - 1
    cross = rel2_complex_cross(x + y, 1j * (x - y)) - 1 if shared else 0.0
    return mixture_mse(np.exp(x @ y), m, mean, variance, first, rest, cross)


def angular_mse(x, y, m, n, shared):
    p = angle(x, y) / np.pi
    return bipolar_mse(x, y, m, p, p * (1 - p) / n, shared)


def normalized_mse(x, y, m, n, sigma, radius, shared):
    rho = 1 - np.exp(-2 * sigma**2 * radius**2)
    t = sigma**2 * squared(x - y)
    return bipolar_mse(x, y, m, (1 - np.exp(-t / 2)) / rho, (1 - np.exp(-t)) ** 2 / (2 * n * rho**2), shared)


# Estimates


def single_rows(spec, pairs, seed, *, fit=None):
    """The estimates of k(x, y) by each row of one draw, (pairs, rows)."""
    phi = spec.fit(*fit, rng=seed) if fit else spec.draw(len(pairs[0][0]), rng=seed)
    xs, ys = (np.stack(points) for points in zip(*pairs, strict=True))
    return rows_of(phi.queries(xs) * phi.keys(ys), spec.n_projections)


def rows_of(products, rows):
    """Products of features as an estimate a row; partners (cosine and sine, w and -w) are added."""
    return products.reshape(*products.shape[:-1], -1, rows).sum(axis=-2) * rows


def check_variance(estimates, k, variance, label):
    """Mean and variance of independent estimates, each with a false alarm once in 1.7 million."""
    check_mean(estimates, k, f"{label}:")
    check_mean((estimates - k) ** 2, variance, f"{label}: squared error,")


def check_rows(feature_map, kernel, rel2, pairs, seed, *, fit=None, rows=ROWS):
    """Every row of one draw by itself: ``rel2(x, y)`` at the scaled points."""
    spec = Approximation(kernel, feature_map, IID(), rows)
    for (x, y), estimates in zip(pairs, single_rows(spec, pairs, seed, fit=fit), strict=True):
        k = value(kernel, x, y)
        expected = rel2(*(kernel.scaled(point[None])[0] for point in (x, y)))
        check_variance(estimates, k, k**2 * (expected - 1), f"{spec!r} at {x}, {y}")


def rotated(x, y, copies=16):
    """The pair in several orientations, which change no closed form: their errors are averaged in each redraw."""
    Q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((copies, len(x), len(x))))
    return Q @ x, Q @ y


def check_redraws(spec, x, y, mse, seed, draws):
    """Error of the whole estimate over redraws of everything."""
    k, rng = value(spec.kernel, x, y), np.random.default_rng(seed)
    A, B = rotated(x, y)
    estimates = np.empty((draws, len(A)))
    for i in range(draws):
        phi = spec.draw(len(x), rng=rng)
        estimates[i] = np.sum(phi.queries(A) * phi.keys(B), axis=1)
    check_mean(estimates.mean(axis=1), k, f"{spec!r}:")
    check_mean(((estimates - k) ** 2).mean(axis=1), mse, f"{spec!r}: squared error,")


def hybrids_of(phi, x, y, groups):
    """Estimates by independent hybrids, made of the rows of one large draw cut into groups."""
    drawn = phi.features
    m = phi.spec.n_projections
    bases = [rows_of(base(x[None], key=False) * base(y[None], key=True), m) for base in drawn.bases]
    *first, rest = (rows.reshape(groups, -1).mean(axis=1) for rows in bases)
    total, remaining = 0.0, 1.0
    for base, c in zip(first, drawn.coefficients, strict=True):
        n = c.tau.shape[0]
        products = rows_of(c.features(x[None], key=False) * c.features(y[None], key=True), n)
        weight = c.a + c.s * products.reshape(groups, -1).mean(axis=1)
        total, remaining = total + weight * base, remaining - weight
    return total + remaining * rest


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
    fit = (X[None], Y[None]) if feature_map.needs_data else None
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


RATE, SUCCESS = 0.332001506021, 0.747265992104


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


def orthogonal_blocks(m):
    return [(min(4, m - start), 0.0) for start in range(0, m, 4)]


def simplex_blocks(m):
    return [(r, -1 / max(r - 1, 1)) for r, _ in orthogonal_blocks(m)]


BLOCKS = 30_000
COUPLED = {"orthogonal": (Orthogonal(), orthogonal_blocks), "simplex": (Simplex(), simplex_blocks)}


@pytest.mark.parametrize("kernel", (GAUSSIAN, SOFTMAX), ids=repr)
@pytest.mark.parametrize("feature_map", (maps.Trigonometric(), maps.Positive()), ids=repr)
@pytest.mark.parametrize("coupling", COUPLED)
def test_whole_blocks(coupling, feature_map, kernel, seed):
    """Blocks of four rows, of which one large draw has many."""
    projection, blocks = COUPLED[coupling]
    s = 1 if feature_map.positive else -1
    spec = Approximation(kernel, feature_map, projection, 4 * BLOCKS)
    pairs = shrunk(0.5) if s == 1 else PAIRS
    for (x, y), rows in zip(pairs, single_rows(spec, pairs, seed), strict=True):
        mse = coupled_mse(kernel, s, blocks(4), x, y)
        check_variance(rows.reshape(-1, 4).mean(axis=1), value(kernel, x, y), mse, f"{spec!r} at {x}, {y}")


def cut(kind, r):
    """The projection with every block cut to r rows, of which one large draw has many."""

    class Cut(kind):
        def _draw(self, name, d, m, rng, kernel):
            directions, lengths = named_streams(rng)
            radii = Chi().lengths(d, m, lengths)
            return draw_blocks(name, d, self.rotation, self.geometry(), (r,) * (m // r), radii, directions)

    return Cut()


@pytest.mark.parametrize("feature_map", (maps.Trigonometric(), maps.Positive()), ids=repr)
@pytest.mark.parametrize("coupling", COUPLED)
def test_cut_blocks(coupling, feature_map, seed):
    """Two or three rows of four dimensions, and ten rows as 4 + 4 + 2; a cut simplex block is an r-simplex."""
    projection, blocks = COUPLED[coupling]
    s = 1 if feature_map.positive else -1
    pairs = shrunk(0.5) if s == 1 else PAIRS

    def sums(law, r, rng):
        """(pairs, BLOCKS) sums over r rows."""
        rows = single_rows(Approximation(GAUSSIAN, feature_map, law, r * BLOCKS), pairs, rng)
        return rows.reshape(len(pairs), BLOCKS, r).sum(axis=2)

    rng = np.random.default_rng(seed)
    cuts = {r: sums(cut(type(projection), r), r, rng) for r in (2, 3)}
    ten = (sums(projection, 8, rng) + cuts[2]) / 10
    for k, (x, y) in enumerate(pairs):
        for m, estimates in ((2, cuts[2][k] / 2), (3, cuts[3][k] / 3), (10, ten[k])):
            mse = coupled_mse(GAUSSIAN, s, blocks(m), x, y)
            check_variance(estimates, value(GAUSSIAN, x, y), mse, f"{feature_map!r} {m} {coupling} rows at {x}, {y}")


@pytest.mark.parametrize("feature_map", (maps.Trigonometric(), maps.Positive()), ids=repr)
@pytest.mark.parametrize("coupling", COUPLED)
def test_ten_rows_drawn_again_and_again(coupling, feature_map, seed):
    """The same through the library's own cutting of the last block."""
    projection, blocks = COUPLED[coupling]
    s = 1 if feature_map.positive else -1
    spec = Approximation(GAUSSIAN, feature_map, projection, 10)
    assert spec.projection.sample(4, 10, 0).block_sizes == (4, 4, 2)
    x, y = np.array([0.3, 0.1, -0.2, 0.4]), np.array([0.2, -0.1, 0.1, 0.3])
    x, y = (0.6 * x, 0.6 * y) if s == 1 else (x, -y - 0.3)
    check_redraws(spec, x, y, coupled_mse(GAUSSIAN, s, blocks(10), x, y), seed, 700)


@pytest.mark.parametrize(
    ("A", "scale"), ((-0.15, 1.0), (-0.0869414031882, 1.0), (-0.05 + 0.08j, 1.0), (-0.3 - 0.2j, 1.0), (0.0, 0.5))
)
@pytest.mark.parametrize("s", (1, -1))
@pytest.mark.parametrize("coupling", COUPLED)
def test_the_covariance_of_coupled_rows_does_not_depend_on_A(coupling, s, A, scale, seed):
    """And is the known one, with M = 4 and with M = 3 rows a block."""
    projection, blocks = COUPLED[coupling]
    ((_, c),) = blocks(4)
    spec = Approximation(GAUSSIAN, GERF(A, s), projection, 4 * BLOCKS)
    x, y = (scale * X, scale * Y) if s == 1 else (X, Y)
    k = value(GAUSSIAN, x, y)
    errors = single_rows(spec, [(x, y)], seed).reshape(-1, 4) - k
    for M in (4, 3):
        part = errors[:, :M]
        covariance = (part.sum(axis=1) ** 2 - (part**2).sum(axis=1)) / (M * (M - 1))
        check_mean(covariance, row_covariance(s, c, x, y), f"{spec!r}: covariance of {M} rows,")
        variance = k**2 * (rel2_gerf(A, s, squared(x + s * y), 4) - 1)
        mse = variance / M + (1 - 1 / M) * row_covariance(s, c, x, y)
        check_mean(part.mean(axis=1) ** 2, mse, f"{spec!r}: squared error of {M} rows,")


@pytest.mark.parametrize("coupling", COUPLED)
def test_hyperbolic_rows_have_the_covariance_of_their_even_part(coupling, seed):
    """cosh is the mean over both signs: cosines c and -c; orthogonal rows have the covariance of Positive."""
    projection, blocks = COUPLED[coupling]
    ((_, c),) = blocks(4)
    spec = Approximation(GAUSSIAN, maps.Hyperbolic(), projection, 4 * BLOCKS)
    x, y = 0.8 * X, 0.8 * Y
    errors = single_rows(spec, [(x, y)], seed).reshape(-1, 4) - value(GAUSSIAN, x, y)
    covariance = (errors.sum(axis=1) ** 2 - (errors**2).sum(axis=1)) / 12
    check_mean(covariance, (row_covariance(1, c, x, y) + row_covariance(1, -c, x, y)) / 2, f"{spec!r}: covariance,")


def test_dot_products_by_rows_of_fixed_length(seed):
    """Haar rows without replacement: (d-m)(d p + (d-2) q^2) / (m (d-1)(d+2)), and no error with whole blocks."""
    x, y = np.array([1.0, 2.0, 0.0, -1.0]), np.array([0.5, -1.0, 2.0, 1.0])
    p, q = squared(x) * squared(y), x @ y
    spec = Approximation(kernels.Linear(), n_projections=3)
    check_redraws(spec, x, y, (4 * p + 2 * q**2) / (3 * 3 * 6), seed, 500)
    for m in (4, 12):
        phi = Approximation(kernels.Linear(), n_projections=m).draw(4, rng=seed)
        assert phi.gram(x[None], y[None])[0, 0] == pytest.approx(q, rel=1e-12)


# Hybrids


GROUPS = 40_000
MIXED = [(X, Y), *shrunk(0.6)[1:]]


def check_hybrid(hybrid, m, n, mse, seed, pairs=MIXED):
    """The error of m rows and n coefficients, ``mse(x, y)``; ``hybrid(n)`` is a map."""
    phi = Approximation(SOFTMAX, hybrid(n * GROUPS), IID(), m * GROUPS).draw(4, rng=seed)
    for x, y in pairs:
        check_variance(hybrids_of(phi, x, y, GROUPS), value(SOFTMAX, x, y), mse(x, y), f"{hybrid(n)!r} at {x}, {y}")


@pytest.mark.parametrize("shared", (True, False))
@pytest.mark.parametrize("n", (1, 4))
def test_angular_hybrid(n, shared, seed):
    check_hybrid(lambda n: maps.AngularHybrid(n, shared), 3, n, lambda x, y: angular_mse(x, y, 3, n, shared), seed)


@pytest.mark.parametrize("shared", (True, False))
def test_gaussian_hybrid(shared, seed):
    check_hybrid(
        lambda n: maps.GaussianHybrid(n, 0.8, 1.0, shared=shared), 3, 4,
        lambda x, y: normalized_mse(x, y, 3, 4, 0.8, 1.0, shared), seed,
    )  # fmt: skip


def bump_mse(x, y, m, n, M, c, shared):
    """One coefficient exp(-|x + My|^2/(2c^2)) by n cosines, M diagonal; Hyperbolic with the rest."""
    mean = np.exp(-squared(x + M * y) / (2 * c**2))
    variance = (1 - mean**2) ** 2 / (2 * n)
    z = complex_sum(1 / np.sqrt(M.astype(complex)), x, y)
    first, rest = rel2_complex(z) - 1, rel2_hyperbolic(x, y) - 1
    cross = (rel2_complex_cross(z, x + y) + rel2_complex_cross(z, -x - y)) / 2 - 1 if shared else 0.0
    return mixture_mse(np.exp(x @ y), m, mean, variance, first, rest, cross)


@pytest.mark.parametrize("shared", (True, False))
def test_gaussian_hybrid_around_a_relation(shared, seed):
    M = np.array([1.0, -1.2, 0.8, -0.7])
    check_hybrid(
        lambda n: maps.GaussianHybrid(n, matrices=[M], width=1.5, shared=shared), 3, 4,
        lambda x, y: bump_mse(x, y, 3, 4, M, 1.5, shared), seed,
    )  # fmt: skip


HYBRIDS = [
    maps.AngularHybrid(4),
    maps.AngularHybrid(4, shared=False),
    maps.GaussianHybrid(4, 0.8, 1.0),
    maps.GaussianHybrid(4, 0.8, 1.0, shared=False),
    maps.GaussianHybrid(4, matrices=[1.0, -1.0, np.array([1.0, -1.2, 0.8, -0.7])]),
    maps.Hybrid(
        [maps.ComplexExponential(DIAGONAL), maps.Positive(), maps.Trigonometric()],
        [AngularCoefficient(3), GaussianCoefficient(0.7, -0.4, 2)],
    ),
]


@pytest.mark.parametrize("hybrid", HYBRIDS, ids=repr)
def test_features_of_a_hybrid_are_the_mixture(hybrid, seed):
    """queries . keys = sum lambda_k base_k + (1 - sum lambda_k) base, number by number."""
    phi = Approximation(SOFTMAX, hybrid, IID(), 3).draw(4, rng=seed)
    for x, y in PAIRS:
        assert phi.gram(x[None], y[None])[0, 0] == pytest.approx(hybrids_of(phi, x, y, 1)[0], rel=1e-11)


@pytest.mark.parametrize(
    ("hybrid", "mse"),
    [
        (maps.AngularHybrid(4), lambda x, y: angular_mse(x, y, 3, 4, True)),
        (maps.AngularHybrid(4, shared=False), lambda x, y: angular_mse(x, y, 3, 4, False)),
        (maps.GaussianHybrid(4, 0.8, 1.0), lambda x, y: normalized_mse(x, y, 3, 4, 0.8, 1.0, True)),
        (maps.GaussianHybrid(4, 0.8, 1.0, shared=False), lambda x, y: normalized_mse(x, y, 3, 4, 0.8, 1.0, False)),
    ],
    ids=("angular-shared", "angular", "gaussian-shared", "gaussian"),
)
def test_hybrids_drawn_again_and_again(hybrid, mse, seed):
    x, y = 0.5 * X, 0.5 * Y
    check_redraws(Approximation(SOFTMAX, hybrid, IID(), 3), x, y, mse(x, y), seed, 600)


def clustered(seed):
    """Two clusters of queries and two of keys, with their members."""
    rng = np.random.default_rng(seed)
    queries = np.array([[1.0, -0.8, 0.6, 0.1], [-0.9, 0.9, 0.5, -0.2]])
    keys = np.array([[0.8, 0.9, -0.5, 0.4], [-1.0, -0.7, -0.6, 0.5]])
    return [centres[:, None] + 0.15 * rng.standard_normal((2, 12, 4)) for centres in (queries, keys)]


def test_cluster_hybrid(seed):
    """Zero-one weights: the base of the pair's clusters, whose A comes from second moments."""
    P, Q = clustered(3)
    spec = Approximation(SOFTMAX, maps.ClusterHybrid(2, 2), IID(), ROWS // 2)
    phi = spec.fit(P.reshape(-1, 4), Q.reshape(-1, 4), rng=seed)
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        size = (np.mean(Q[j] ** 2, axis=0) / np.mean(P[i] ** 2, axis=0)) ** 0.25
        A = size * np.where(P[i].mean(axis=0) * Q[j].mean(axis=0) > 0, 1j, 1)
        x, y = P[i, 0], Q[j, 0]
        products = (phi.queries(x[None]) * phi.keys(y[None]))[0]
        estimates = rows_of(products[products != 0], spec.n_projections)
        k = value(SOFTMAX, x, y)
        rel2 = rel2_complex(complex_sum(A, x, y))
        check_variance(estimates, k, k**2 * (rel2 - 1), f"{spec.map!r} clusters {i}, {j}")


def test_cluster_hybrid_with_gaussian_coefficients(seed):
    """The same features as the general hybrid of the formulas; whose error is known."""
    P, Q = (points[0] for points in clustered(3))
    size = (np.mean(Q**2, axis=0) / np.mean(P**2, axis=0)) ** 0.25
    imaginary = P.mean(axis=0) * Q.mean(axis=0) > 0
    A = size * np.where(imaginary, 1j, 1)
    tau = 1.5

    def hybrid(n):
        coefficient = GaussianCoefficient(size / tau, np.where(imaginary, 1, -1) / size / tau, n)
        return maps.Hybrid([maps.ComplexExponential(A), maps.Hyperbolic()], [coefficient], shared=False)

    clusters = maps.ClusterHybrid(1, 1, "gaussian", width=tau, n_coefficients=4, shared=False)
    one, two = (Approximation(SOFTMAX, f, IID(), 3).fit(P, Q, rng=seed) for f in (clusters, hybrid(4)))
    np.testing.assert_allclose(one.queries(P), two.queries(P), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(one.keys(Q), two.keys(Q), rtol=1e-10, atol=1e-12)

    def mse(x, y):
        z = complex_sum(A, x, y)
        mean = np.exp(-np.sum(abs(z) ** 2) / (2 * tau**2))
        parts = (mean, (1 - mean**2) ** 2 / 8, rel2_complex(z) - 1, rel2_hyperbolic(x, y) - 1, 0.0)
        return mixture_mse(np.exp(x @ y), 3, *parts)

    off_centre = [(0.5 * P[1], 0.6 * Q[2]), (0.3 * P[3] + 0.2, 0.6 * Q[4])]
    check_hybrid(hybrid, 3, 4, mse, seed, off_centre)


# Where there is no variance


def exact(feature_map, kernel, x, y, seed, projection=None):
    """Whether a draw of few rows gives the kernel to rounding."""
    spec = Approximation(kernel, feature_map, projection, 5)
    phi = spec.fit(x[None], y[None], rng=seed) if feature_map.needs_data else spec.draw(len(x), rng=seed)
    return bool(np.allclose(phi.gram(x[None], y[None]), kernel(x[None], y[None]), rtol=1e-11, atol=0))


@pytest.mark.parametrize("projection", (IID(), Orthogonal(), Simplex()), ids=repr)
@pytest.mark.parametrize("kernel", (GAUSSIAN, SOFTMAX), ids=repr)
def test_points_without_variance(kernel, projection, seed):
    x = 1.5 * X
    assert exact(maps.Trigonometric(), kernel, x, x, seed, projection)
    assert not exact(maps.Trigonometric(), kernel, x, Y, seed, projection)
    for feature_map in (maps.Positive(), maps.Hyperbolic(), maps.OptimalPositive()):
        assert exact(feature_map, kernel, x, -x, seed, projection)
        assert not exact(feature_map, kernel, x, Y, seed, projection)


@pytest.mark.parametrize("shared", (True, False))
def test_angular_hybrid_is_exact_at_both_ends(shared, seed):
    hybrid, x = maps.AngularHybrid(4, shared), 1.5 * X
    assert exact(hybrid, SOFTMAX, x, x, seed) and exact(hybrid, SOFTMAX, x, -x, seed)
    assert not exact(hybrid, SOFTMAX, x, Y, seed)
    bipolar = maps.GaussianHybrid(4, 0.8, 1.0, shared=shared)
    assert exact(bipolar, SOFTMAX, x, x, seed) and not exact(bipolar, SOFTMAX, x, -x, seed)


def test_complex_exponential_is_exact_where_its_points_cancel(seed):
    x, y = np.array([0.7, -0.4, 0.9, 0.3]), np.array([0.5, 0.6, -0.2, 0.8])
    diagonal = np.sqrt(-y / x + 0j)  # HRF Eq. 86-87: imaginary where signs agree
    real = np.abs(FULL) + 0.1
    assert diagonal.real.any() and diagonal.imag.any()
    for antithetic in (False, True):
        assert exact(maps.ComplexExponential(diagonal, antithetic), SOFTMAX, x, y, seed)
        assert not exact(maps.ComplexExponential(diagonal, antithetic), SOFTMAX, x, Y, seed)
        assert exact(maps.ComplexExponential(real, antithetic), GAUSSIAN, x, -real.T @ real @ x, seed)
        assert exact(maps.ComplexExponential(1j * real, antithetic), GAUSSIAN, x, real.T @ real @ x, seed)


def test_cluster_hybrid_is_exact_at_its_centres(seed):
    """Clusters of one point each."""
    queries, keys = np.array([XD + 0.3, -2 * XD + 0.1]), np.array([YD, 2 * X, -3 * X])
    phi = Approximation(SOFTMAX, maps.ClusterHybrid(2, 3), n_projections=5).fit(queries, keys, rng=seed)
    np.testing.assert_allclose(phi.gram(queries, keys), SOFTMAX(queries, keys), rtol=1e-10)


def test_discrete_maps_are_exact_where_no_coordinate_is_shared(seed):
    """Then the rate goes to zero and the success to one."""
    x, y = np.array([0.7, 0.0, -0.4, 0.0]), np.array([0.0, 0.5, 0.0, 0.3])
    for feature_map in (maps.Poisson(), maps.Geometric()):
        phi = Approximation(GAUSSIAN, feature_map, n_projections=5).fit(x[None], y[None], rng=seed)
        np.testing.assert_allclose(phi.gram(x[None], y[None]), GAUSSIAN(x[None], y[None]), rtol=1e-7)


# Limiting cases


def features_of(feature_map, kernel, seed, points=PAIRS, projection=None, m=6):
    """Queries and keys of all points, side by side."""
    points = np.concatenate(points)
    spec = Approximation(kernel, feature_map, projection or IID(), m)
    phi = spec.fit(points, rng=seed) if feature_map.needs_data else spec.draw(points.shape[1], rng=seed)
    return phi.queries(points), phi.keys(points)


def assert_same(one, two, kernel, seed, rtol=1e-11, **options):
    """The same features from the same seed."""
    for a, b in zip(*(features_of(f, kernel, seed, **options) for f in (one, two)), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-14)


@pytest.mark.parametrize("kernel", (GAUSSIAN, SOFTMAX), ids=repr)
def test_special_cases_are_the_maps_of_other_names(kernel, seed):
    ce = maps.ComplexExponential
    for one, two in (
        (GERF(0.0, -1), maps.Trigonometric()),
        (GERF(0.0, 1), maps.Positive()),
        (GERF(0.0, 1, antithetic=True), maps.Hyperbolic()),
        (maps.Positive(antithetic=True), maps.Hyperbolic()),
        (ce(1j), maps.Trigonometric()),
        (ce(1.0), maps.Positive()),
        (ce([1.0] * 4), maps.Positive()),
        (ce(np.eye(4)), maps.Positive()),
        (ce(1j * np.eye(4)), maps.Trigonometric()),
        (ce(1.0, antithetic=True), maps.Hyperbolic()),
    ):
        assert_same(one, two, kernel, seed)


@pytest.mark.parametrize("plain", (GERF(-0.1, -1), maps.ComplexExponential(1j)), ids=repr)
def test_reflections_change_no_cosine(plain, seed):
    paired = type(plain)(**(vars(plain) | {"antithetic": True}))
    (q1, k1), (q2, k2) = (features_of(f, GAUSSIAN, seed) for f in (plain, paired))
    assert q2.shape[1] == 2 * q1.shape[1]
    np.testing.assert_allclose(q2 @ k2.T, q1 @ k1.T, rtol=1e-11)


def test_hybrids_with_certain_coefficients_are_their_bases(seed):
    """A bump of no slope is one everywhere; the angle is zero or one between multiples of a point."""
    first, rest = maps.ComplexExponential(DIAGONAL), maps.Hyperbolic()
    points = np.concatenate(PAIRS)

    def gram(feature_map, x=points, y=points):
        return Approximation(SOFTMAX, feature_map, IID(), 3).draw(4, rng=seed).gram(x, y)

    certain = maps.Hybrid([first, rest], [GaussianCoefficient(0.0, 0.0, 4)])
    np.testing.assert_allclose(gram(certain), gram(first), rtol=1e-10)
    x, multiples = X[None], np.array([[0.5], [2.0]]) * X
    angular = maps.AngularHybrid(4)
    np.testing.assert_allclose(gram(angular, x, multiples), gram(maps.Trigonometric(), x, multiples), rtol=1e-10)
    np.testing.assert_allclose(gram(angular, x, -multiples), gram(maps.Hyperbolic(), x, -multiples), rtol=1e-10)


def test_limits_of_the_references():
    """And so of what the maps were compared with."""
    assert row_covariance(1, 0, X, -X) == pytest.approx(0, abs=1e-15)
    for t in (0.3, 2.0):
        assert pair_positive(0, 2 * t, 2) == pytest.approx(np.exp(t) * (1 + t))
        assert pair_positive(0, 2 * t, 4) == pytest.approx(np.exp(t) * (1 + t + t**2 / 6))
    x, y = PAIRS[-1]
    assert angular_mse(x, y, 3, 1, True) == pytest.approx(angular_mse(x, y, 3, 1, False), rel=1e-12)
    assert angular_mse(x, y, 3, 4, True) < angular_mse(x, y, 3, 4, False)
    for s in (1, -1):
        assert rel2_gerf(0, s, squared(x + s * y), 4) == pytest.approx((rel2_positive, rel2_trigonometric)[s < 0](x, y))


# Constants chosen from data


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
        assert optimal_rho(V, d) == pytest.approx(rho, rel=1e-9)
        assert A_of_rho(optimal_rho(V, d)) == pytest.approx(A, rel=1e-8)
        if log_rel2 is not None:
            assert log_second_moment(A, 1, V, d) == pytest.approx(log_rel2, abs=1e-6)
        point = np.sqrt(V) / 2 * np.eye(d)[1]
        options = {"points": [(point, point)], "rtol": 1e-6 if V > 2 else 1e-7}
        assert_same(maps.OptimalPositive(), GERF(A, 1), SOFTMAX, seed, **options)
    for d in (1, 4, 64):
        assert optimal_rho(0.0, d) == 1.0 and A_of_rho(1.0) == 0.0
        assert optimal_rho(1e-8, d) == pytest.approx(1 - 4e-8 / d, rel=1e-15)  # where the printed form loses its digits
        assert optimal_rho(1e9, d) == pytest.approx(d / 2e9, rel=1e-6)


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
        drawn = Approximation(GAUSSIAN, chosen, n_projections=4).fit(P, Q, rng=seed).features
        s, A = drawn.s, (1 - drawn.s * drawn.b**2) / 4
        assert sign in (None, s)
        attained = log_second_moment(A, s, V[s], d)
        rivals = special[1] + special[-1] if sign is None else special[sign]
        assert attained <= min(rivals) + 1e-9 * max(1.0, abs(min(rivals)))
        if attained < 200:
            assert attained == pytest.approx(np.log(rel2_gerf(A, s, V[s], d)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("d", (2, 16))
@pytest.mark.parametrize("V", (0.05, 0.5, 2.0))
def test_the_best_cosines_satisfy_their_equation(V, d):
    """d (rho - 1) / (2 rho (1 + rho)) = V / (exp((1 + rho) V) + 1) at the best real A for s = -1."""
    best, A = minimise(V, -1, d)
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
    c = Approximation(GAUSSIAN, shifted, n_projections=4).fit(P, Q, rng=seed).features.shift
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
