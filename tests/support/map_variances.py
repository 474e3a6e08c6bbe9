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
from scipy.special import hyp1f1, ive

from bochner import Approximation, kernels, maps
from bochner.projections import IID
from support.checks import check_mean
from support.points import X, Y

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


RATE, SUCCESS = 0.332001506021, 0.747265992104


def orthogonal_blocks(m):
    return [(min(4, m - start), 0.0) for start in range(0, m, 4)]


def simplex_blocks(m):
    return [(r, -1 / max(r - 1, 1)) for r, _ in orthogonal_blocks(m)]


def features_of(feature_map, kernel, seed, points=PAIRS, projection=None, m=6):
    """Queries and keys of all points, side by side."""
    points = np.concatenate(points)
    spec = Approximation(kernel, feature_map, projection or IID(), m)
    phi = spec.fit(points, rng=seed)
    return phi.queries(points), phi.keys(points)


def assert_same(one, two, kernel, seed, rtol=1e-11, **options):
    """The same features from the same seed."""
    for a, b in zip(*(features_of(f, kernel, seed, **options) for f in (one, two)), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-14)
