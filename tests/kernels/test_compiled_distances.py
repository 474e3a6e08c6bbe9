"""Compiled distances against SciPy's, and kernels computed in place against their formulas."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from bochner.kernels import Laplacian, Matern
from bochner.kernels._distances import manhattan_distances, squared_distances


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lengthscale", [0.7, (0.5, 2.0, 3.0)], ids=str)
@pytest.mark.parametrize(
    ("compute", "metric", "power"), [(manhattan_distances, "cityblock", 1), (squared_distances, "sqeuclidean", 2)]
)
def test_distances_from_differences_are_those_of_scipy(compute, metric, power, lengthscale, dtype):
    rng = np.random.default_rng(0)
    X, Y = (100 + rng.standard_normal((n, 3)).astype(dtype) for n in (37, 1500))  # more points than one tile holds
    Y[:5] = X[:5]
    expected = cdist(X / np.asarray(lengthscale), Y / np.asarray(lengthscale), metric)
    found = compute(np, X, Y, lengthscale)
    assert found.dtype == dtype
    assert np.all(found[np.arange(5), np.arange(5)] == 0)
    np.testing.assert_allclose(found, expected, rtol=40 * np.finfo(dtype).eps, atol=1e-10)


def test_differences_that_overflow_have_finite_distances():
    X, Y = (np.full((3, 2), sign * 3e38, np.float32) for sign in (1, -1))
    np.testing.assert_allclose(manhattan_distances(np, X, Y, 1e38), 12.0, rtol=1e-6)


@pytest.mark.parametrize("order", ["C", "F"])
def test_strided_and_read_only_rows(order):
    X = np.asarray(np.random.default_rng(0).standard_normal((40, 6)), order=order)[::2, ::2]
    X.flags.writeable = False
    np.testing.assert_allclose(manhattan_distances(np, X, X), cdist(X, X, "cityblock"), rtol=1e-14)
    assert manhattan_distances(np, X[:0], X).shape == (0, 20)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("d", [3, 20])
def test_matern_in_place_is_its_profile(nu, d):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((50, d)), rng.standard_normal((2000, d))
    X[0], Y[1] = Y[0], 1e300
    kernel = Matern(nu, 1.5)
    np.testing.assert_allclose(kernel.columns(Y)(X), kernel.entries(np, X, Y), rtol=1e-12, atol=1e-300)
    assert kernel.columns(Y)(X)[0, 0] == 1


def test_laplacian_of_close_points_keeps_its_digits():
    X = np.array([[1e6, 1.0]])
    Y = X + np.array([[2.0**-20, 0.0], [0.0, 2.0**-40]])
    np.testing.assert_allclose(-np.log1p(Laplacian()(X, Y) - 1), [[2.0**-20, 2.0**-40]], rtol=1e-3)
