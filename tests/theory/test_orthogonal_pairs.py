"""Covariances of exponentials of two orthogonal rows along different directions."""

import numpy as np
import pytest
from scipy.special import hyp1f1

from bochner import theory
from bochner.theory import _orthogonal_pairs as pairs
from bochner.theory import orthogonal_pair_covariance

RNG = np.random.default_rng(0)


def orthogonal_rows(d, n, seed):
    """Two orthogonal rows with independent chi lengths, (n, d) each, by Gram-Schmidt."""
    rng = np.random.default_rng(seed)
    g, h = rng.standard_normal((2, n, d))
    u = g / np.linalg.norm(g, axis=1, keepdims=True)
    h -= (h * u).sum(1, keepdims=True) * u
    v = h / np.linalg.norm(h, axis=1, keepdims=True)
    return g, np.sqrt(rng.chisquare(d, (n, 1))) * v


def vectors(d):
    e1, ones, z = np.eye(d)[0], np.ones(d) / np.sqrt(d), np.random.default_rng(d).standard_normal((2, d))
    return {
        "cosh and cosine, one axis": (1.2 * e1, 1.5j * e1),
        "cosh and cosine, ones": (1.2 * ones, 1.5j * (ones + 0.3 * e1)),
        "complex": (0.4 * z[0] + 0.5j * z[1], 0.3 * z[1] - 0.4j * z[0]),
        "conjugates": (0.4 * z[0] + 0.5j * z[1], 0.4 * z[0] - 0.5j * z[1]),
        "isotropic": (0.7 * (e1 + 1j * np.eye(d)[1]), 0.7 * (e1 - 1j * np.eye(d)[1])),
    }


def sample(a, b, n=200_000):
    w1, w2 = orthogonal_rows(len(a), n, 1)
    return np.exp(w1 @ a + w2 @ b - (a @ a + b @ b) / 2).real - 1


@pytest.mark.parametrize("d", [2, 3, 6])
@pytest.mark.parametrize("name", vectors(3))
def test_it_is_the_mean_over_orthogonal_rows(name, d):
    """200,000 pairs, |z| < 5; independent rows, value zero, are rejected somewhere (below)."""
    a, b = vectors(d)[name]
    values = sample(a, b)
    z = (values.mean() - orthogonal_pair_covariance(a @ a, b @ b, a @ b, d).real) / (
        values.std() / np.sqrt(len(values))
    )
    assert abs(z) < 5


@pytest.mark.parametrize("mutant", ["independent", "chi of d - 1", "no cross product"])
def test_mutants_are_rejected(mutant):
    scores = []
    for d in (2, 3):
        for a, b in vectors(d).values():
            values, products = sample(a, b), [a @ a, b @ b, a @ b]
            if mutant == "independent":
                wrong = 0.0
            elif mutant == "no cross product":
                wrong = orthogonal_pair_covariance(products[0], products[1], 0.0, d).real
            else:  # lengths of the complement
                wrong = ((1 + orthogonal_pair_covariance(*products, d + 1)) - 1).real
            scores.append((values.mean() - wrong) / (values.std() / np.sqrt(len(values))))
    assert np.abs(scores).max() > 5


@pytest.mark.parametrize("d", [2, 3, 8, 64])
def test_equal_vectors_have_the_conformity_of_the_simplex_paper(d):
    V = np.array([1e-3, 0.5, 3.0, 20.0, 90.0])
    expected = hyp1f1(d, d / 2, V / 2) * np.exp(-V) - 1
    np.testing.assert_allclose(orthogonal_pair_covariance(V, V, V, d).real, expected, rtol=1e-9, atol=1e-13)
    V = -np.array([0.5, 3.0, 8.0])
    expected = hyp1f1(d, d / 2, V / 2) * np.exp(-V) - 1
    np.testing.assert_allclose(orthogonal_pair_covariance(V, V, V, d).real, expected, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("d", [2, 5, 64])
def test_the_table_of_many_pairs_has_the_values_of_single_ones(d):
    X, Y = np.random.default_rng(1).standard_normal((2, 200, 4)) * 0.9
    plus, minus = X[:, None] + Y[None], X[:, None] - Y[None]
    alpha, beta, gamma = (plus**2).sum(-1), -(minus**2).sum(-1), 1j * (plus * minus).sum(-1)
    table = orthogonal_pair_covariance(alpha, beta, gamma, d)
    assert alpha.size > 8 * pairs._DEGREE**3
    single = orthogonal_pair_covariance(alpha[::40, ::40], beta[::40, ::40], gamma[::40, ::40], d)
    np.testing.assert_allclose(table[::40, ::40], single, atol=1e-8 * np.abs(table).max())


def test_orthogonal_complex_exponentials_hold_trigonometric_and_positive_ones():
    x, y = np.random.default_rng(2).standard_normal((2, 5)) * 0.7
    for A, expected in (
        (1j, theory.trigonometric_log_relative_mse(((x - y) ** 2).sum(), 7, 5, "orthogonal")),
        (1.0, theory.positive_log_relative_mse(((x + y) ** 2).sum(), 7, 5, "orthogonal")),
    ):
        z = theory.complex_argument(x, y, A)
        got = theory.complex_exponential_log_relative_mse(z, 7, coupling="orthogonal")
        np.testing.assert_allclose(got, expected, rtol=1e-9)
