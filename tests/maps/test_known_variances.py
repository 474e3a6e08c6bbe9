"""The variance of every map is the known one.

References are written here from the closed forms of the papers, corrected where those are wrong; all are relative second
moments E[Z^2]/k^2 of one projection, the same for the Gaussian and the softmax kernel, so that the variance is
k^2 (rel2 - 1).  Checks are z-tests at |z| < 5 of squared errors over independent replicates: rows of one large draw where
rows are independent, blocks of one where they are coupled, redraws where the whole estimate matters.  Norms are such that
exp is curved and fourth moments are still finite and small.
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
from bochner.rotations import StructuredGivens
from checks import check_mean

X = np.array([0.5, -0.3, 0.2, 0.4])
Y = np.array([0.1, 0.45, -0.25, 0.3])
XD = np.array([0.7, -0.5, 0.0, 0.9])
YD = np.array([-0.4, -0.8, 0.6, 0.5])
PAIRS = {
    "generic": (X, Y),
    "axis": (0.9 * np.eye(4)[0], -0.2 * np.eye(4)[0]),
    "ones": (0.3 * np.ones(4), 0.1 * np.ones(4)),
    "far": (0.6 * np.ones(4), -0.8 * np.ones(4)),
    "unequal": (np.array([1.2, 0.3, -0.2, 0.1]), np.array([-0.2, 0.1, 0.1, 0.2])),
}
GAUSSIAN, SOFTMAX = kernels.Gaussian(), kernels.Softmax()
KERNELS = (GAUSSIAN, SOFTMAX, kernels.Gaussian(0.9), kernels.Softmax(1.3))
ROWS = 300_000
DIAGONAL = np.array([1.1 + 0.3j, 0.2 + 0.9j, 0.8 - 0.4j, -0.3 + 1.1j])
FULL = np.diag([0.9, 1.1j, 0.9 + 0.2j, 1.0]) + 0.15 * np.array(
    [[0, 1, 1j, 0], [1, 0, 0, -1], [0, 1j, 0, 1], [1, 0, -1j, 0]]
)


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


def bipolar_mse(x, y, m, mean, variance, shared):
    """Softmax; Hyperbolic with a coefficient of this mean and variance, Trigonometric with the rest (HRF Theorem 3.1)."""
    k = np.exp(x @ y)
    hyperbolic, trigonometric = rel2_hyperbolic(x, y) - 1, rel2_trigonometric(x, y) - 1
    covariance = np.cos(squared(x) - squared(y)) - 1 if shared else 0.0
    relative = (mean**2 + variance) * hyperbolic + ((1 - mean) ** 2 + variance) * trigonometric
    return k**2 * (relative + 2 * (mean * (1 - mean) - variance) * covariance) / m


def angular_mse(x, y, m, n, shared):
    p = angle(x, y) / np.pi
    return bipolar_mse(x, y, m, p, p * (1 - p) / n, shared)


def normalized_mse(x, y, m, n, sigma, radius, shared):
    rho = 1 - np.exp(-2 * sigma**2 * radius**2)
    t = sigma**2 * squared(x - y)
    return bipolar_mse(x, y, m, (1 - np.exp(-t / 2)) / rho, (1 - np.exp(-t)) ** 2 / (2 * n * rho**2), shared)


# Estimates


def single_rows(spec, x, y, seed, *, fit=None):
    """The estimate of k(x, y) by each row of one draw; partners (cosine and sine, w and -w) are added."""
    phi = spec.fit(*fit, rng=seed) if fit else spec.draw(len(x), rng=seed)
    return rows_of(phi.queries(x[None]) * phi.keys(y[None]), spec.n_projections)


def rows_of(products, rows):
    return products.reshape(-1, rows).sum(axis=0) * rows


def check_variance(estimates, k, variance, label):
    """Mean and variance of independent estimates, each with a false alarm once in 1.7 million."""
    check_mean(estimates, k, f"{label}:")
    check_mean((estimates - k) ** 2, variance, f"{label}: squared error,")


def check_rows(feature_map, kernel, rel2, x, y, seed, *, fit=None, rows=ROWS):
    k = value(kernel, x, y)
    estimates = single_rows(Approximation(kernel, feature_map, IID(), rows), x, y, seed, fit=fit)
    check_variance(estimates, k, k**2 * (rel2 - 1), f"{feature_map!r} {kernel!r}")


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


def test_the_references_have_their_known_values():
    K, SM = value(GAUSSIAN, X, Y), value(SOFTMAX, X, Y)
    N, V = squared(X) + squared(Y), squared(X + Y)

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
        (gerf(-0.15, -1), 0.458204637345 * np.exp(-N)),
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
        print(computed, expected, computed/expected-1)
