"""Cholesky factors in blocks, and what is solved with them, against NumPy."""

import re
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from bochner.linalg import cholesky as module
from bochner.linalg.cholesky import Cholesky, room_for_triangle, symmetric_product


def positive(n, dtype=np.float64):
    F = np.random.default_rng(n).standard_normal((n, n + 3))
    return (F @ F.T / max(n, 1) + 0.1 * np.eye(n)).astype(dtype)


@pytest.fixture
def small_blocks(monkeypatch):
    """The path of large matrices at small orders, with blocks that do not divide them."""
    monkeypatch.setattr(module, "LARGE_ORDER", 10)
    monkeypatch.setattr(module, "BLOCK", 4)


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


@pytest.mark.parametrize("block", [1, 3, 7, 20, 50])
def test_size_of_the_blocks_changes_rounding_only(block, small_blocks, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    A = positive(20)
    np.testing.assert_allclose(Cholesky.of(A).lower, np.linalg.cholesky(A), atol=1e-12)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_of_blas_cannot_change_a_bit_of_small_matrices(threads, two_threads_of_blas):
    A = positive(300)
    with threadpool_limits(1, "blas"):
        factor = Cholesky.of(A)
        expected = factor.lower, factor.inverse_root(), factor.inverse(), factor.solve(A), symmetric_product(A)
    with threadpool_limits(threads, "blas"):
        factor = Cholesky.of(A)
        found = factor.lower, factor.inverse_root(), factor.inverse(), factor.solve(A), symmetric_product(A)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_matrix_is_kept_unless_it_may_be_overwritten(small_blocks):
    A = positive(12)
    before = A.copy()
    Cholesky.of(A)
    np.testing.assert_array_equal(A, before)
    factor = Cholesky.of(A, overwrite=True)
    assert np.shares_memory(factor.packed, A)
    transposed = np.array(before, order="F")
    np.testing.assert_allclose(Cholesky.of(transposed, overwrite=True).lower, factor.lower, atol=1e-13)
    np.testing.assert_array_equal(transposed, before)
    np.testing.assert_array_equal(Cholesky.of(np.triu(before)).lower, factor.lower)  # nothing else is read


@pytest.mark.parametrize("order", [1, 4, 5, 12])
def test_first_minor_that_is_not_positive_is_named(order, small_blocks):
    A = np.eye(12)
    A[order - 1, order - 1] = -1e-3
    with pytest.raises(np.linalg.LinAlgError, match=f"its leading minor of order {order} is not; add to its diagonal"):
        Cholesky.of(A)


@pytest.mark.parametrize("place", [(0, 0), (2, 11), (11, 11)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_matrices_that_are_not_finite_are_refused(place, value, small_blocks):
    A = np.eye(12)
    A[place] = value
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="matrix must be finite"):
        Cholesky.of(A)


def test_a_matrix_that_no_memory_holds_is_refused():
    with pytest.raises(
        ValueError, match=r"a matrix of order 400000: this takes about 1\.19e\+03 GiB, more than .* fewer"
    ):
        room_for_triangle(400_000, np.dtype(np.float64))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read where Linux tells it")
def test_a_triangle_that_is_never_written_takes_no_memory(monkeypatch):
    """32 MB of 64: rows of a page of 2 MB would have parts in both triangles."""

    def resident():
        return 1024 * int(re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])

    monkeypatch.setattr(module, "_LARGE_BYTES", 0)
    before = resident()
    A = room_for_triangle(2896, np.dtype(np.float64))
    for i in range(len(A)):
        A[i, i:] = 1
    assert A.nbytes > 2**26 - 2**20 and A.flags.c_contiguous and A.flags.writeable
    assert resident() - before < 0.7 * A.nbytes
    assert A[5, 2] == 0
    A[np.diag_indices_from(A)] += 5000
    np.testing.assert_allclose(Cholesky.of(A, overwrite=True).solve(np.ones((len(A), 1))), 1 / (2896 + 5000))
