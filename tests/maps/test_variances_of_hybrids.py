"""Variances of mixtures."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import Approximation, maps
from bochner.maps.coefficients import AngularCoefficient, GaussianCoefficient
from bochner.projections import IID
from support.map_variances import (
    PAIRS,
    ROWS,
    SOFTMAX,
    angular_mse,
    check_redraws,
    check_variance,
    complex_sum,
    hybrids_of,
    mixture_mse,
    normalized_mse,
    rel2_complex,
    rel2_complex_cross,
    rel2_hyperbolic,
    rows_of,
    shrunk,
    squared,
    value,
)
from support.points import DIAGONAL, X, Y

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
