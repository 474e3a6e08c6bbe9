"""Ctrl-C anywhere in the engine leaves threads and the limits of BLAS as they were."""

from __future__ import annotations

import contextlib
import sys
import threading

import numpy as np
import pytest

import bochner
from bochner.linalg import engine
from bochner.linalg.engine import for_each_tile, single_threaded_blas
from linalg.test_engine import blas_threads


@contextlib.contextmanager
def interrupted(at):
    """Raise at the check number ``at`` for signals in the engine's Python code, in this thread; count the checks.

    CPython looks for signals when a function starts and after each call.
    """
    count = [0]

    def check(frame, event, argument):
        if event in ("call", "c_return") and frame.f_code.co_filename == engine.__file__:
            count[0] += 1
            if count[0] == at:
                sys.setprofile(None)
                raise KeyboardInterrupt("interrupted")

    before = sys.getprofile()
    sys.setprofile(check)
    try:
        yield count
    finally:
        sys.setprofile(before)


def answered(n_threads):
    """Whether a call in another thread returns, with every row visited once."""
    visits = np.zeros(40, int)

    def work(start, stop):
        visits[start:stop] += 1

    def call():
        with bochner.threads(n_threads):
            for_each_tile(40, 5, work)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(20)
    return not thread.is_alive() and (visits == 1).all()


@pytest.mark.parametrize("n_threads", (1, 3))
def test_no_interruption_hangs_the_pool_or_keeps_blas_limited(n_threads, two_threads_of_blas):
    """Each of them once: limits are restored at once, or, in the first instruction of ``__exit__``, by the next call."""

    def call():
        with bochner.threads(n_threads):
            for_each_tile(40, 5, lambda start, stop: None)

    call()
    at, missed = 0, 0
    while True:
        at += 1
        with interrupted(at) as count:
            try:
                call()
            except KeyboardInterrupt:
                pass
            else:
                if count[0] < at:
                    break
        if set(blas_threads()) != {2}:
            missed += 1
            call()
            assert set(blas_threads()) == {2}, f"check {at}"
        assert answered(n_threads), f"check {at}"
    assert at > 20 and missed <= 2
    assert single_threaded_blas.inside == 0


def test_the_context_of_the_caller_reaches_every_thread():
    """`numpy.errstate` holds in all tiles, whichever thread computes them."""
    zero = np.zeros(1)
    with bochner.threads(3), np.errstate(divide="ignore"):
        for_each_tile(200, 1, lambda start, stop: 1 / zero)


def test_a_tile_that_began_is_waited_for():
    """After an interruption nobody writes into the caller's memory any more."""
    began, ended = threading.Event(), []

    def work(start, stop):
        if threading.current_thread() is threading.main_thread():
            began.wait(60)
            raise KeyboardInterrupt
        began.set()
        ended.append(start)

    with bochner.threads(2), pytest.raises(KeyboardInterrupt):
        for_each_tile(400, 1, work)
    seen = len(ended)
    assert answered(2) and len(ended) == seen < 400
