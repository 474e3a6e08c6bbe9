"""Gram matrices against long double, scikit-learn and published numbers; diagonals, pairs, positive definiteness."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, rbf_kernel

from bochner import kernels
from bochner.kernels import (
    Angular,
    ArcCosine,
    Cauchy,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    RationalQuadratic,
    Softmax,
)
from support.kernel_references import ANY_WIDTH, KERNELS, SCALES, D, exact_gram, points

X, Y = points(23, D, 1), points(17, D, 2)


def test_every_kernel_has_a_reference():
    classes = [kind for kind in (getattr(kernels, name) for name in kernels.__all__) if isinstance(kind, type)]
    concrete = {kind for kind in classes if issubclass(kind, Kernel) and not inspect.isabstract(kind)}
    assert {type(k) for k in KERNELS} == concrete


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gram_is_the_formula(kernel):
    np.testing.assert_allclose(kernel(X, Y), exact_gram(kernel, X, Y), rtol=2e-13, atol=1e-15)


@pytest.mark.parametrize("kernel", ANY_WIDTH, ids=repr)
def test_gram_is_the_formula_in_many_dimensions(kernel):
    """Wide enough for the matrix product, with a pair of equal points and one of close ones."""
    A = points(12, 40, 3) / 4
    B = np.concatenate([points(9, 40, 4) / 4, A[:1], A[1:2] + 1e-9 * points(1, 40, 5)])
    np.testing.assert_allclose(kernel(A, B), exact_gram(kernel, A, B), rtol=2e-13, atol=1e-15)


@pytest.mark.parametrize("kernel", ANY_WIDTH, ids=repr)
def test_float32_gram_is_the_formula(kernel):
    A, B = points(12, 40, 3, np.float32) / 4, points(9, 40, 4, np.float32) / 4
    np.testing.assert_allclose(kernel(A, B), exact_gram(kernel, A, B), rtol=1e-5, atol=1e-6)


def test_golden_values():
    x, y = [[0.5, -0.3, 0.2, 0.4]], [[0.1, 0.45, -0.25, 0.3]]
    theta = 1.60458962727
    assert Softmax()(x, y).item() == pytest.approx(0.985111939603, abs=1e-12)
    assert Gaussian()(x, y).item() == pytest.approx(0.626566728714, abs=1e-12)
    assert ArcCosine(0)(x, y).item() == pytest.approx(1 - theta / np.pi, abs=1e-11)
    assert Angular()(x, y).item() == pytest.approx(1 - 2 * theta / np.pi, abs=1e-11)


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (Gaussian(1.7), lambda X, Y: rbf_kernel(X, Y, gamma=1 / (2 * 1.7**2))),
        (Gaussian(SCALES), gp.RBF(SCALES)),
        (Laplacian(1.7), lambda X, Y: laplacian_kernel(X, Y, gamma=1 / 1.7)),
        (Linear(), linear_kernel),
        *((Matern(nu, SCALES), gp.Matern(SCALES, nu=nu)) for nu in (0.2, 0.5, 0.9, 1.5, 2.5, 3.1)),
        (RationalQuadratic(0.6, 1.3), gp.RationalQuadratic(1.3, 0.6)),
        (Cauchy(1.3), gp.RationalQuadratic(1.3 / 2**0.5, 1.0)),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_agrees_with_scikit_learn(ours, theirs):
    np.testing.assert_allclose(ours(X, Y), theirs(X, Y), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_paired_is_the_diagonal_of_the_gram(kernel):
    np.testing.assert_allclose(kernel.paired(X[:17], Y), np.diagonal(kernel(X[:17], Y)), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_diagonal_is_the_diagonal_of_the_gram(kernel):
    np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(kernel(X)), rtol=1e-14)


@pytest.mark.parametrize("order, diagonal", [(0, lambda s: s**0), (1, lambda s: s), (2, lambda s: 3 * s**2)])
def test_arc_cosine_diagonal(order, diagonal):
    np.testing.assert_allclose(ArcCosine(order).diagonal(X), diagonal((X**2).sum(axis=1)), rtol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_missing_second_argument_means_the_first(kernel):
    np.testing.assert_allclose(kernel(X), kernel(X, X.copy()), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("n", (40, 900))
@pytest.mark.swept(3)
def test_gram_of_one_set_is_exactly_symmetric(kernel, n):
    A = points(n, D)
    K = kernel(A)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(K, kernel(A, A))


@pytest.mark.parametrize("kernel", ANY_WIDTH, ids=repr)
@pytest.mark.parametrize("d", (1, 2, 30))
def test_gram_is_positive_semidefinite(kernel, d):
    """Up to rounding, and with repeated points, where it is singular."""
    A = points(40, d)
    K = kernel(np.concatenate([A, A[:10]]) / d**0.5)
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] > -100 * np.finfo(np.float64).eps * eigenvalues[-1]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_scaled_inputs_carry_the_scale(kernel):
    unit = kernel.with_bandwidth(1.0) if kernel.has_bandwidth else kernel
    K = unit(kernel.scaled(X), kernel.scaled(Y))
    np.testing.assert_allclose(K, kernel(X, Y), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("d", (D, 30))
def test_one_lengthscale_is_many_equal_ones(d):
    A, B = points(8, d, 1), points(6, d, 2)
    for kind in (Gaussian, Laplacian, Cauchy):
        np.testing.assert_allclose(kind(1.7)(A, B), kind([1.7] * d)(A, B), rtol=1e-13)


def test_limits_of_families():
    A, B = points(8, D, 1), points(6, D, 2)
    np.testing.assert_allclose(RationalQuadratic(1e12)(A, B), Gaussian()(A, B), rtol=1e-9)
    np.testing.assert_allclose(Matern(1e12)(A, B), Gaussian()(A, B), rtol=1e-9)
    np.testing.assert_allclose(RationalQuadratic(1.0, 1.3 / 2**0.5)(A, B), Cauchy(1.3)(A, B), rtol=1e-14)
    np.testing.assert_allclose(Angular()(A, B), 2 * ArcCosine(0)(A, B) - 1, atol=1e-15)


def test_softmax_is_the_gaussian_kernel_between_its_diagonals():
    A, B = points(8, D, 1), points(6, D, 2)
    half = np.sqrt(Softmax().diagonal(A))[:, None] * np.sqrt(Softmax().diagonal(B))
    np.testing.assert_allclose(Softmax()(A, B), half * Gaussian()(A, B), rtol=1e-14)
