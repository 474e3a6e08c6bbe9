"""The tile engine: all rows once, errors passed on, BLAS threads given back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import bochner
from bochner.linalg.tiles import available_threads, for_each_tile, single_threaded_blas


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


def test_blas_is_single_threaded_inside_and_restored_after_overlapping_users():
    before = blas_threads()

    def overlapping():
        with single_threaded_blas:
            return set(blas_threads())

    with ThreadPoolExecutor(1) as pool:
        with single_threaded_blas:
            assert set(blas_threads()) == {1}
            assert pool.submit(overlapping).result(10) == {1}
            assert set(blas_threads()) == {1}  # the other one left, this one is still inside
        assert blas_threads() == before


def test_threads_nest():
    with bochner.threads(3):
        with bochner.threads(2):
            assert available_threads() == 2
        assert available_threads() == 3
