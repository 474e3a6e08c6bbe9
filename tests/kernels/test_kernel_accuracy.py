"""Where plain formulas lose their digits: close points, far origins, parallel and zero vectors, extreme orders."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gamma, kv

from bochner.kernels import (
    Angular,
    ArcCosine,
    Cauchy,
    Gaussian,
    Laplacian,
    Linear,
    Matern,
    RationalQuadratic,
    Softmax,
    _distances,
)
from bochner.kernels._distances import squared_distances
from bochner.kernels._dot_product import angles
from support.kernel_references import SHIFT_INVARIANT, angle, matern, points

DTYPES = (np.float64, np.float32)


def exact_squared_distances(X, Y):
    return ((X[:, None].astype(np.longdouble) - Y.astype(np.longdouble)) ** 2).sum(axis=-1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", (2, 9, 60))
@pytest.mark.parametrize("spread", (1e-3, 1e-1, 1.0))
@pytest.mark.parametrize("offset", (0.0, 1e3))
def test_squared_distances_keep_their_digits(dtype, d, spread, offset):
    """Relative error: at most the five bits of the expansion and those of the sums in its norms."""
    X = points(30, d, 1, dtype) + dtype(offset)
    Y = (X + spread * points(30, d, 2)).astype(dtype)
    exact = exact_squared_distances(X, Y)
    assert np.max(np.abs(squared_distances(np, X, Y) - exact) / exact) < 2**5 * 8 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", (2, 60))
def test_many_close_pairs_keep_their_digits(dtype, d):
    X = np.concatenate([points(20, d, 1, dtype) / 1000 + c for c in (0, 30)]).astype(dtype)
    exact = exact_squared_distances(X, X)
    q = squared_distances(np, X, X)
    off = ~np.eye(40, dtype=bool)
    assert np.max(np.abs(q - exact)[off] / exact[off]) < 2**5 * 8 * np.finfo(dtype).eps


def test_points_far_from_the_origin_still_use_the_matrix_product(monkeypatch):
    def refuse(*_):
        raise AssertionError("computed from differences")

    monkeypatch.setattr(_distances, "_from_differences", refuse)
    X, Y = points(30, 20, 1), points(30, 20, 2)
    exact = exact_squared_distances(X + 1e6, Y + 1e6)
    np.testing.assert_allclose(squared_distances(np, X + 1e6, Y + 1e6), exact.astype(np.float64), rtol=1e-13)


@pytest.mark.parametrize("kernel", [k for k in SHIFT_INVARIANT if isinstance(k.lengthscale, float)], ids=repr)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", (1, 3, 50))
def test_equal_points_give_exactly_one(kernel, dtype, d):
    X = points(30, d, 1, dtype) * dtype(100) + dtype(1e4)
    np.testing.assert_array_equal(np.diagonal(kernel(X)), 1)
    np.testing.assert_array_equal(np.diagonal(kernel(X, X.copy())), 1)
    np.testing.assert_array_equal(kernel.paired(X, X.copy()), 1)


def test_shift_changes_nothing_where_it_is_exact():
    """Multiples of 1/1024 below 2^20 are exact in float32 after a shift by 4096."""
    X, Y = (np.round(points(20, 30, s) * 64).astype(np.float32) / 1024 for s in (1, 2))
    for kernel in (Gaussian(), Matern(0.5), Cauchy(), Laplacian()):
        np.testing.assert_allclose(kernel(X + 4096, Y + 4096), kernel(X, Y), rtol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", (2, 30))
@pytest.mark.parametrize("tilt", (1e-3, 1e-5, 1e-7, 1e-12))
@pytest.mark.parametrize("sign", (1, -1))
def test_angles_of_nearly_parallel_vectors(dtype, d, tilt, sign):
    X = points(12, d, 1, dtype)
    Y = (sign * 3 * X + tilt * points(12, d, 2)).astype(dtype)
    theta = np.pi - angles(np, X, Y).supplement(np).astype(np.float64)
    exact = [[angle(x, y) for y in Y.astype(np.longdouble)] for x in X.astype(np.longdouble)]
    np.testing.assert_allclose(theta, np.array(exact, dtype=np.float64), rtol=0, atol=8 * np.finfo(dtype).eps)


def test_angles_with_themselves_and_their_negatives_are_exact():
    X = points(12, 30)
    np.testing.assert_array_equal(np.diagonal(Angular()(X)), 1)
    np.testing.assert_array_equal(Angular().paired(X, -X), -1)
    np.testing.assert_array_equal(ArcCosine(0).paired(X, -2 * X), 0)
    np.testing.assert_array_equal(Angular()(np.eye(5)), np.eye(5))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("d", (1, 20))
def test_zero_vectors_are_at_right_angles_to_everything(dtype, d):
    X, Z = points(4, d, 1, dtype), np.zeros((2, d), dtype)
    np.testing.assert_array_equal(Angular()(X, Z), 0)
    np.testing.assert_array_equal(Angular()(Z), 0)
    np.testing.assert_array_equal(Angular().diagonal(Z), 0)
    np.testing.assert_allclose(ArcCosine(0)(X, Z), 0.5, rtol=np.finfo(dtype).eps)
    np.testing.assert_allclose(ArcCosine(0)(Z), 0.5, rtol=np.finfo(dtype).eps)
    np.testing.assert_array_equal(ArcCosine(1)(X, Z), 0)
    np.testing.assert_array_equal(ArcCosine(2)(Z), 0)


@pytest.mark.parametrize(
    "kernel", [Gaussian(), Matern(0.5), Matern(1.5), Matern(2.5), Matern(0.7), Cauchy(), Laplacian()]
)
@pytest.mark.parametrize("dtype, huge", [(np.float64, 1e200), (np.float32, 1e30)])
@pytest.mark.parametrize("d", (2, 20))
def test_distances_that_overflow_give_zero(kernel, dtype, huge, d):
    X = np.concatenate(
        [points(3, d, 1, dtype), dtype(huge) * np.eye(d, dtype=dtype)[:1], -dtype(huge) * np.eye(d, dtype=dtype)[:1]]
    )
    K = kernel(X)
    np.testing.assert_array_equal(np.diagonal(K), 1)
    np.testing.assert_allclose(K[3:, :3], 0, atol=1e-29)
    np.testing.assert_allclose(K[:3, :3], kernel(X[:3]), rtol=1e-6)


@pytest.mark.parametrize("huge", (1e200, 1e-200))
def test_angles_of_huge_and_tiny_vectors(huge):
    X, Y = points(5, 12, 1), points(4, 12, 2)
    np.testing.assert_allclose(Angular()(huge * X, Y), Angular()(X, Y), atol=1e-15)
    np.testing.assert_allclose(ArcCosine(1)(huge * X, Y / huge), ArcCosine(1)(X, Y), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("nu", (0.01, 0.1, 0.4, 0.7, 1.0, 2.0, 3.3, 10.0, 30.0))
def test_matern_against_the_bessel_function(nu):
    """Wherever the Bessel function itself does not overflow."""
    r = np.concatenate([np.geomspace(1e-10, 1, 60), np.linspace(0.05, 8, 60)])
    z = np.sqrt(2 * nu) * r
    expected = 2 ** (1 - nu) / gamma(nu) * z**nu * kv(nu, z)
    finite = np.isfinite(expected)
    ours = Matern(nu)(np.zeros((1, 1)), r[:, None])[0]
    np.testing.assert_allclose(ours[finite], expected[finite], rtol=2e-13)
    assert np.all(np.diff(ours[:60]) <= 0) and np.all((ours > 0) & (ours <= 1))


@pytest.mark.parametrize("nu", (3.5, 7.5, 10.5, 20.5))
def test_matern_at_half_integers_beyond_the_closed_forms(nu):
    r = np.geomspace(1e-8, 12, 100)
    expected = np.array([matern(np.zeros(1), np.longdouble([t]), nu, 1.0) for t in r])
    ours = Matern(nu)(np.zeros((1, 1)), r[:, None])[0]
    shown = expected > 1e-16
    np.testing.assert_allclose(ours[shown], expected[shown].astype(np.float64), rtol=2e-13)
    np.testing.assert_allclose(ours, expected.astype(np.float64), rtol=1e-8, atol=1e-29)


@pytest.mark.parametrize("nu", (0.5, 1.5, 2.5))
def test_matern_is_continuous_in_its_order_at_the_closed_forms(nu):
    X, Y = points(10, 3, 1), points(9, 3, 2)
    around = (Matern(nu * (1 - 1e-6))(X, Y) + Matern(nu * (1 + 1e-6))(X, Y)) / 2
    np.testing.assert_allclose(around, Matern(nu)(X, Y), rtol=1e-10)


@pytest.mark.parametrize("nu", (1e3, 1e6, 1e9))
def test_matern_of_large_order_approaches_the_gaussian_kernel_at_rate_one_over_nu(nu):
    """To first order k = e^(-q/2) (1 + (q^2/8 - q/2) / nu), as nu/Gamma_nu has mean 1 + 1/nu and variance 1/nu."""
    r = np.linspace(0, 2, 50)
    q = r**2
    ours = Matern(nu)(np.zeros((1, 1)), r[:, None])[0]
    np.testing.assert_allclose(ours, np.exp(-q / 2) * (1 + (q**2 / 8 - q / 2) / nu), rtol=10 / nu**2 + 1e-14)


@pytest.mark.parametrize("nu", (0.3, 0.5, 1.0, 1.5, 2.5, 40.0))
def test_matern_in_float32(nu):
    r = np.concatenate([[0.0], np.geomspace(1e-6, 10, 200)]).astype(np.float32)
    expected = Matern(nu)(np.zeros((1, 1)), r.astype(np.float64)[:, None])[0]
    np.testing.assert_allclose(Matern(nu)(np.zeros((1, 1), np.float32), r[:, None])[0], expected, rtol=2e-5, atol=1e-30)


def test_rational_quadratic_of_large_alpha_keeps_its_digits():
    r = np.linspace(0, 5, 50)
    q = r**2
    ours = RationalQuadratic(1e9)(np.zeros((1, 1)), r[:, None])[0]
    np.testing.assert_allclose(ours, np.exp(-q / 2) * (1 + q**2 / 8 / 1e9), rtol=1e-14)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kernel", [Matern(1.5, 1e-160), Gaussian(1e-160), Laplacian(1e-160), Gaussian((1e-160, 1.0))])
@pytest.mark.parametrize("d", [2])
def test_lengthscales_below_the_precision_give_zeros_and_ones(kernel, dtype, d):
    np.testing.assert_array_equal(kernel(points(5, d, 1, dtype)), np.eye(5))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1e30, 1e39, 1e300])
def test_softmax_of_any_scale_is_a_number(dtype, scale):
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype)
    with np.errstate(over="ignore"):
        K = Softmax(scale)(X, -X)
    np.testing.assert_array_equal(K, [[1, 1, 1], [1, 0, 1], [1, 1, 0]])


@pytest.mark.parametrize("kernel", [Linear(), Softmax()])
def test_dot_products_that_overflow_in_parts_are_numbers(kernel):
    with np.errstate(over="ignore"):
        K = kernel(np.array([[1e200, 1e200]]), np.array([[1e200, -1e200], [1e200, 1e200]]))
    assert not np.isnan(K).any()
    assert K[0, 1] == np.inf


@pytest.mark.parametrize("rows", [slice(None), slice(None, None, 2)])
def test_many_rows_with_themselves_and_with_others_of_the_same_memory(rows, monkeypatch):
    monkeypatch.setattr(_distances, "LARGE", 2)
    X = np.random.default_rng(0).standard_normal((9, 4))[rows]
    for one, other in ((X, X), (X, X[::-1]), (X[:-1], X[1:]), (X, X.copy()), (X[:, ::2], X[:, 1::2])):
        np.testing.assert_allclose(Linear()(one, other), one.copy() @ other.copy().T, rtol=1e-13, atol=1e-15)


def test_inputs_that_overflow_at_unit_scale_are_refused():
    with pytest.raises(
        ValueError, match="inputs at unit bandwidth must be finite in float32, got an overflow with Matern"
    ):
        Matern(1.5, 1e-160).scaled(np.full((1, 2), 100, np.float32))
