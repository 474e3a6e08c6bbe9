"""Dot products, smoothed gradients and the constant of the discrepancy."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import theory
from bochner.theory._orthogonal_monte_carlo import haar_fourth_moment
from bochner.theory._pairs import pair_fraction
from support.checks import check_mean

X, Y = np.array([1.0, 2, 0, -1]), np.array([0.5, -1, 2, 1])


def haar(d, n, rng):
    q, r = np.linalg.qr(rng.standard_normal((n, d, d)))
    return q * np.sign(np.diagonal(r, axis1=-2, axis2=-1))[:, None, :]


@pytest.mark.parametrize(
    "T, expected",
    [
        (haar_fourth_moment(X, Y), 25 / 3),
        (theory.hadamard_fourth_moment(X, Y, 1), 9.875),
        (theory.hadamard_fourth_moment(X, Y, 2), 7.5625),
        (theory.kac_fourth_moment(X, Y, 5), 7.60164388),
        (theory.tree_fourth_moment(X, Y), 7.359375),
        (theory.tree_fourth_moment(X, Y, "beta"), 25 / 3),
    ],
)
def test_fourth_moment_golden(T, expected):
    assert float(T) == pytest.approx(expected, rel=1e-8)


def test_fourth_moments_start_and_end_where_they_must():
    start = (X**2 * Y**2).sum()
    assert float(theory.kac_fourth_moment(X, Y, 0)) == pytest.approx(start)
    assert float(theory.hadamard_fourth_moment(X, Y, 0)) == pytest.approx(start)
    haar_value = float(haar_fourth_moment(X, Y))
    assert float(theory.kac_fourth_moment(X, Y, 10_000)) == pytest.approx(haar_value)
    assert float(theory.hadamard_fourth_moment(X, Y, 200)) == pytest.approx(haar_value)


def test_beta_tree_is_isotropic_in_every_pair():
    A, B = np.random.default_rng(0).standard_normal((2, 5, 16))
    np.testing.assert_allclose(theory.tree_fourth_moment(A, B, "beta"), haar_fourth_moment(A, B))


def test_trees_need_a_power_of_two():
    with pytest.raises(ValueError, match="power of two, got 6"):
        theory.tree_fourth_moment(np.ones(6), np.ones(6))


def test_all_coordinates_leave_no_error_and_haar_beats_gaussian():
    T = haar_fourth_moment(X, Y)
    assert theory.subsampled_dot_product_mse(X, Y, 4, T) == 0
    for m in (1, 2, 3):
        assert theory.subsampled_dot_product_mse(X, Y, m, T) < theory.dot_product_mse(X, Y, m)


@pytest.mark.parametrize("constant, expected", [(2, 1.448), (3, 1.016), (4, 0.990)])
def test_kac_constant_golden(constant, expected):
    d, e1 = 256, np.eye(256)[0]
    T = theory.kac_fourth_moment(e1, e1, int(np.ceil(constant * d * np.log(d))))
    ratio = theory.subsampled_dot_product_mse(e1, e1, 1, T) / theory.dot_product_mse(e1, e1, 1)
    assert float(ratio) == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize("m", [1, 3, 8, 13])
def test_chi_rows_orthogonal_formula(m):
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, 8))
    p, q, d = x @ x * (y @ y), x @ y, 8
    expected = (p + q**2) / m - pair_fraction(m, d) * (d * p + (d - 2) * q**2) / ((d - 1) * (d + 2))
    assert float(theory.dot_product_mse(x, y, m, "orthogonal")) == pytest.approx(expected)
    assert float(theory.dot_product_mse(x, y, m)) == pytest.approx(float(theory.dot_product_mse(x, y, m)))


@pytest.mark.parametrize("coupling", ["orthogonal", "simplex"])
def test_chi_rows_against_simulation(coupling):
    rng, d, m = np.random.default_rng(5), 4, 6
    x, y = np.array([0.6, -0.3, 0.8, 0.1]), np.array([0.2, 0.7, 0.4, -0.5])
    total = 0.0
    for r in (4, 2):
        cosine = 0.0 if coupling == "orthogonal" else -1 / (r - 1)
        gram = np.full((r, r), cosine) + (1 - cosine) * np.eye(r)
        values, vectors = np.linalg.eigh(gram)
        shape = vectors * np.sqrt(np.maximum(values, 0))  # rows with the wanted cosines
        rows = np.einsum("ij,njk->nik", shape, haar(d, 60_000, rng)[:, :r])
        rows = rows * np.sqrt(rng.chisquare(d, (60_000, r, 1)))
        total = total + ((rows @ x) * (rows @ y)).sum(1)
    check_mean((total / m - x @ y) ** 2, float(theory.dot_product_mse(x, y, m, coupling)))


def orthogonal_rows(d, n, R, rng):
    """Unit rows in blocks of d orthogonal ones, the last block cut: (R, n, d)."""
    return np.concatenate([haar(d, R, rng) for _ in range(-(-n // d))], axis=1)[:, :n]


@pytest.mark.parametrize("n", [1, 3, 4, 6, 8])
def test_fixed_length_gradient_against_simulation(n):
    rng, d, a = np.random.default_rng(7), 4, np.array([0.5, -1.0, 0.3, 0.2])
    g = 2 * orthogonal_rows(d, n, 20_000, rng)
    errors = np.einsum("rn,rnd->rd", g @ a, g) / n - a
    check_mean((errors**2).sum(1), float(theory.fixed_length_gradient_mse(a, n)))


@pytest.mark.parametrize("estimator", ["antithetic", "forward", "plain"])
@pytest.mark.parametrize("coupling", ["iid", "orthogonal"])
@pytest.mark.parametrize("n", [2, 4, 9])
def test_smoothing_gradient_against_simulation(n, estimator, coupling):
    rng, d, sigma, f0, R = np.random.default_rng(6), 4, 0.5, 0.7, 40_000
    a = np.array([0.5, -1.0, 0.3, 0.2])
    H = np.array([[1, 0.2, 0, 0], [0.2, -0.5, 0.1, 0], [0, 0.1, 0.3, 0], [0, 0, 0, 0.4]])
    g = rng.standard_normal((R, n, d))
    if coupling == "orthogonal":
        g = orthogonal_rows(d, n, R, rng) * np.sqrt(rng.chisquare(d, (R, n, 1)))

    def F(e):
        return f0 + e @ a + np.einsum("...i,ij,...j->...", e, H, e) / 2

    values = {
        "antithetic": (F(sigma * g) - F(-sigma * g)) / 2,
        "forward": F(sigma * g) - f0,
        "plain": F(sigma * g),
    }[estimator]
    estimate = np.einsum("rn,rnd->rd", values, g) / (n * sigma)
    expected = theory.smoothing_gradient_mse(
        a, n, coupling=coupling, estimator=estimator, sigma=sigma, hessian=H, value=f0
    )
    check_mean(((estimate - a) ** 2).sum(1), float(expected))


def test_smoothing_limits():
    a = np.ones(6)
    assert float(theory.smoothing_gradient_mse(a, 6, coupling="orthogonal")) == pytest.approx(2 * 6 / 6)
    assert theory.fixed_length_gradient_mse(a, 6) == 0
    simplex, orthogonal = (theory.smoothing_gradient_mse(a, 6, coupling=c) for c in ("simplex", "orthogonal"))
    assert simplex > orthogonal
    with pytest.raises(ValueError, match="simplex directions need estimator='antithetic'"):
        theory.smoothing_gradient_mse(a, 6, coupling="simplex", estimator="forward")


def test_uniform_similarity_golden():
    rate = np.array([0.3, 1.0, 4.0])
    two, three = (np.exp(theory.log_uniform_similarity(d, rate)) for d in (2, 3))
    np.testing.assert_allclose(two, -np.expm1(-rate * np.pi) / (rate * np.pi), rtol=1e-12)
    np.testing.assert_allclose(three, (1 + np.exp(-rate * np.pi)) / (2 * (1 + rate**2)), rtol=1e-12)
    assert float(np.exp(theory.log_uniform_similarity(16, 1.0))) == pytest.approx(0.214909879, abs=1e-9)
    assert float(theory.log_uniform_similarity(4096, 1.0)) == pytest.approx(-np.pi / 2, abs=1e-3)
