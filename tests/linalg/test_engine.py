"""The tile engine: all rows once, errors passed on, BLAS threads given back."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import bochner
from bochner.linalg.engine import (
    CACHE_BYTES,
    CHUNK_BYTES,
    LANES,
    TILE_BYTES,
    available_threads,
    for_each_tile,
    multiply,
    rows_per_tile,
    single_threaded_blas,
)


@pytest.mark.parametrize("n_threads", (1, 2, 7))
@pytest.mark.parametrize("n_rows", (0, 1, 64, 1000))
def test_every_row_is_visited_once(n_threads, n_rows):
    visits = np.zeros(n_rows, int)

    def work(start, stop):
        visits[start:stop] += 1

    with bochner.threads(n_threads):
        for_each_tile(n_rows, 17, work)
    assert (visits == 1).all()


@pytest.mark.parametrize("n_threads", (1, 3))
def test_errors_reach_the_caller(n_threads):
    def work(start, stop):
        if start == 51:
            raise ValueError("tile 3")

    with bochner.threads(n_threads), pytest.raises(ValueError, match="tile 3"):
        for_each_tile(1000, 17, work)


def blas_threads():
    """Threads of the BLAS that NumPy multiplies with; other packages may have brought another."""
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    own = [library for library in libraries if "numpy" in library["filepath"]]
    return [library["num_threads"] for library in own or libraries]


def test_blas_is_single_threaded_inside_and_restored_whoever_leaves_last(two_threads_of_blas):
    """Two threads that are not the main one enter in turn and leave in the order in which they came."""
    entered, left = (threading.Event(), threading.Event()), (threading.Event(), threading.Event())
    seen = []

    def first():
        with single_threaded_blas:
            entered[0].set()
            entered[1].wait(300)
        left[0].set()

    def second():
        entered[0].wait(300)
        with single_threaded_blas:
            entered[1].set()
            left[0].wait(300)
            seen.append(set(blas_threads()))
        left[1].set()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result(600)
    assert seen == [{1}]
    assert set(blas_threads()) == {2}


def test_threads_nest():
    with bochner.threads(3):
        with bochner.threads(2):
            assert available_threads() == 2
        assert available_threads() == 3


@pytest.mark.parametrize("tile_bytes", (CACHE_BYTES, TILE_BYTES, CHUNK_BYTES))
@pytest.mark.parametrize("row_bytes", (0, 1, 100, 4096, 5000, 2**17, 2**40))
def test_tiles_are_whole_groups_of_lanes_that_fit(row_bytes, tile_bytes):
    rows = rows_per_tile(row_bytes, tile_bytes)
    assert rows % LANES == 0 and rows >= LANES
    assert rows == LANES or rows * row_bytes <= tile_bytes < (rows + LANES) * max(row_bytes, 1)


def test_products_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((40, 2100))
    for n in (3, 1500):
        X, results = rng.standard_normal((n, 40)), []
        for n_threads in (1, 2, 5):
            results.append(np.empty((n, 2100)))
            with bochner.threads(n_threads):
                multiply(X, matrix, results[-1])
        np.testing.assert_allclose(results[0], X @ matrix, atol=1e-12)
        for other in results[1:]:
            np.testing.assert_array_equal(other, results[0])
