"""Cholesky factors in blocks, and what is solved with them, against NumPy."""

import numpy as np
import pytest

import bochner
from bochner.linalg import cholesky as module
from bochner.linalg.cholesky import Cholesky, symmetric_product


def positive(n, dtype=np.float64):
    F = np.random.default_rng(n).standard_normal((n, n + 3))
    return (F @ F.T / max(n, 1) + 0.1 * np.eye(n)).astype(dtype)


@pytest.fixture
def small_blocks(monkeypatch):
    """The path of large matrices at small orders, with tiles that do not divide them."""
    monkeypatch.setattr(module, "BLOCKED_ORDER", 10)
    monkeypatch.setattr(module, "LARGE_ORDER", 40)
    monkeypatch.setattr(module, "_PANELS", ((4, 7), (8, 5)))
    monkeypatch.setattr(module, "_SOLVED_COLUMNS", 6)


@pytest.mark.parametrize("n", [0, 1, 2, 9, 10, 12, 33, 40, 47])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_of_it_is_numpy_s_at_every_order(n, dtype, small_blocks):
    A = positive(n, dtype)
    factor, tolerance = Cholesky.of(A), 1e-3 if dtype == np.float32 else 1e-11
    exact = np.linalg.cholesky(A.astype(np.float64)) if n else np.zeros((0, 0))
    B = np.random.default_rng(1).standard_normal((n, 13)).astype(dtype)
    for found, expected in (
        (factor.lower, exact),
        (factor.solve(B), np.linalg.solve(A, B)),
        (factor.solve_lower(B), np.linalg.solve(exact, B)),
        (factor.inverse_root(), np.linalg.inv(exact).T),
        (factor.inverse(), np.linalg.inv(A)),
        (symmetric_product(B), B @ B.T),
    ):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, atol=tolerance, rtol=tolerance)
    np.testing.assert_allclose(factor.log_determinant, np.linalg.slogdet(A)[1], atol=tolerance * (n + 1))


@pytest.mark.parametrize("blocks", [(1, 1), (3, 50), (20, 4), (50, 50)])
def test_size_of_the_blocks_changes_rounding_only(blocks):
    A = positive(20)
    np.testing.assert_allclose(Cholesky.of(A, blocks=blocks).lower, np.linalg.cholesky(A), atol=1e-12)


def test_number_of_threads_cannot_change_a_bit(small_blocks):
    A, found = positive(100), []
    for n in (1, 3):
        with bochner.threads(n):
            factor = Cholesky.of(A)
            found.append((factor.lower, factor.inverse_root(), symmetric_product(A)))
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three)
    np.testing.assert_allclose(found[0][0], np.linalg.cholesky(A), atol=1e-11)


def test_matrix_is_kept_unless_it_may_be_overwritten():
    A = positive(12)
    before = A.copy()
    Cholesky.of(A, blocks=(5, 4))
    np.testing.assert_array_equal(A, before)
    factor = Cholesky.of(A, blocks=(5, 4), overwrite=True)
    assert np.shares_memory(factor.packed, A)
    transposed = np.array(before, order="F")
    np.testing.assert_allclose(Cholesky.of(transposed, overwrite=True).lower, factor.lower, atol=1e-13)
    np.testing.assert_array_equal(transposed, before)
    np.testing.assert_array_equal(
        Cholesky.of(np.triu(before), blocks=(5, 4)).lower, factor.lower
    )  # nothing else is read


@pytest.mark.parametrize("order", [1, 4, 5, 12])
def test_first_minor_that_is_not_positive_is_named(order):
    A = np.eye(12)
    A[order - 1, order - 1] = -1e-3
    with pytest.raises(np.linalg.LinAlgError, match=f"its leading minor of order {order} is not; add to its diagonal"):
        Cholesky.of(A, blocks=(4, 3))


@pytest.mark.parametrize("place", [(0, 0), (2, 11), (11, 11)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_matrices_that_are_not_finite_are_refused(place, value):
    A = np.eye(12)
    A[place] = value
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="matrix must be finite"):
        Cholesky.of(A, blocks=(4, 3))
