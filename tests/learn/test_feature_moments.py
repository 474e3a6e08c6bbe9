"""Sums over the features of rows, in groups and tiles, against the features of all rows at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from bochner import Approximation, kernels, maps, threads
from bochner.learn import KernelRidge
from bochner.learn._linear import feature_moments
from bochner.learn._linear.feature_moments import collect_moments
from bochner.learn._linear.moments import Moments
from bochner.learn._row_source import rows_in_memory

NAMES = ("feature_mean", "target_mean", "scatter", "cross", "target_scatter")


def data(n, d, t=2, dtype=np.float64):
    rng = np.random.default_rng(n + d)
    X = rng.standard_normal((n, d)).astype(dtype)
    X[: n // 3] += 2.0  # groups have means of their own
    return X, rng.standard_normal((n, t)) + 5.0, rng.integers(0, 3, n).astype(float)


def drawn(d, width):
    return Approximation(kernels.Gaussian(2.0)).with_width(width, exactly=True).draw(d, rng=0)


def check_equal(found, expected, tolerance):
    assert (found.n_rows, found.units, found.rounding) == (expected.n_rows, expected.units, expected.rounding)
    assert found.weight == pytest.approx(expected.weight)
    for name in NAMES:
        right = getattr(expected, name)
        np.testing.assert_allclose(getattr(found, name), right, rtol=0, atol=tolerance * np.abs(right).max())


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("dtype, exact", [(np.float64, True), (np.float32, True), (np.float32, False)], ids=str)
@pytest.mark.parametrize("n, d, width", [(1, 2, 3), (255, 3, 1), (1025, 3, 40), (4099, 5, 321), (1500, 300, 7)])
def test_groups_of_rows_add_up_to_all_of_them(n, d, width, dtype, exact, weighted):
    X, Y, w = data(n, d, dtype=dtype)
    w = w + (n == 1) if weighted else None
    phi = drawn(d, width)
    found = collect_moments(phi, rows_in_memory("test", X, Y, w), exact=exact)
    # some BLAS round a row of float32 otherwise at the edge of a tile (measured: 4e-10); sums in float32 are 1e-8 off
    tolerance = (1e-11 if dtype is np.float64 else 2e-9) if exact else 1e-5
    check_equal(found, Moments.of(phi.queries(X), Y, w), tolerance)


def test_sparse_rows_too():
    X, Y, w = data(2100, 6)
    X[X < 1] = 0
    phi = drawn(6, 30)
    found = collect_moments(phi, rows_in_memory("test", sparse.csr_array(X), Y, w))
    check_equal(found, Moments.of(phi.queries(X), Y, w), 1e-11)


def test_threads_do_not_change_a_bit():
    X, Y, w = data(5000, 4)
    phi, found = drawn(4, 50), []
    for n in (1, 3):
        with threads(n):
            found.append(collect_moments(phi, rows_in_memory("test", X, Y, w)))
    for name in NAMES:
        np.testing.assert_array_equal(*(getattr(one, name) for one in found))


@pytest.mark.parametrize("n", [1, 1023, 1024, 10_000, 65_536])
@pytest.mark.parametrize("width", [1, 128, 640])
def test_groups_can_be_shared_among_threads_and_are_not_too_many(n, width):
    rows = feature_moments._group_rows(n, width)
    groups = -(-n // rows)
    assert groups == 1 if n < 1024 else groups >= 4 and rows >= min(n // 4, max(1024, 4 * width)) // 2


def test_rows_of_weight_zero_are_ignored_group_by_group():
    X, Y, _ = data(3000, 3)
    w = np.repeat([0.0, 1.0], 1500)
    phi = drawn(3, 20)
    found = collect_moments(phi, rows_in_memory("test", X, Y, w))
    check_equal(found, Moments.of(phi.queries(X), Y, w), 1e-11)


def test_wide_and_narrow_features_give_one_fit(monkeypatch):
    X, Y, w = data(1500, 4)
    options = {"gamma": 0.1, "map": maps.Landmarks("rpcholesky"), "alpha": 1e-3, "n_components": 60, "random_state": 0}
    narrow = KernelRidge(**options).fit(X, Y, w)
    monkeypatch.setattr(feature_moments, "_NARROW", 0)
    np.testing.assert_allclose(narrow.predict(X), KernelRidge(**options).fit(X, Y, w).predict(X), atol=1e-9)
