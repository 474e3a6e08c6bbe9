"""The engine: processes rows in tiles that fit the cache, on a pool of threads, with results that do not depend on it.

The size of a tile depends only on the shape of the work, each tile is computed by one thread, and BLAS is limited to
one thread inside a tile.  The result is therefore the same, bit for bit, for any number of threads.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .._validation import check_count

LANES = 16
"""Rows that a compiled transform processes side by side (see `bochner.linalg.compiled`)."""

CACHE_BYTES = 1 << 18
"""Size of what one thread reads and writes repeatedly: half the second-level cache of a small machine."""
TILE_BYTES = 1 << 20
"""Size of what one thread writes once: the results of a tile, which are still in a cache when they are used."""
CHUNK_BYTES = 1 << 26
"""Size of what is held at a time if a result need not fit a cache: 64 MB."""
_THREADED_ORDER = 2048
"""From here on a factorisation gains from the threads of BLAS; below, they wait for each other."""


def rows_per_tile(row_bytes: int, tile_bytes: int = TILE_BYTES) -> int:
    """Number of rows to process at a time: as many as fit in ``tile_bytes``, in groups of sixteen, and at least one group.

    This is the only rule for the size of tiles; its callers differ in what has to fit, and where.

    Parameters
    ----------
    row_bytes : int
        Bytes needed for one row.
    tile_bytes : int
        `CACHE_BYTES`, `TILE_BYTES` or `CHUNK_BYTES`.

    Returns
    -------
    int

    Examples
    --------
    >>> from bochner.linalg.engine import rows_per_tile
    >>> rows_per_tile(1024 * 4), rows_per_tile(10**9)          # float32 features of width 1024; very wide ones
    (256, 16)
    """
    return max(tile_bytes // max(row_bytes, 1) // LANES, 1) * LANES


_limit: contextvars.ContextVar[int | None] = contextvars.ContextVar("bochner_threads", default=None)


def available_threads() -> int:
    """Number of threads of the engine: the limit set by `threads`, or the cores that this process may run on."""
    chosen = _limit.get()
    if chosen is not None:
        return chosen
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def threads(n: int) -> Iterator[None]:
    """Limit the number of threads within a ``with`` block; results do not depend on it.

    Parameters
    ----------
    n : int
        Number of threads.

    Examples
    --------
    >>> import bochner
    >>> with bochner.threads(1):
    ...     phi = bochner.mechanism("orf", n_projections=8).draw(3, rng=0)
    """
    token = _limit.set(check_count("threads", "n", n))
    try:
        yield
    finally:
        _limit.reset(token)


class _SingleThreadedBlas:
    """Limits BLAS to one thread while any caller is inside; the first to enter sets the limit, the last to leave removes it.

    The limit holds for the whole process, and any thread may be first or last.
    """

    def __init__(self) -> None:
        self._libraries: list[Any] | None = None
        self.reset()

    def reset(self) -> None:
        """Forget which callers are inside, for a forked child process, in which there are none."""
        self._lock = threading.Lock()
        self._inside = 0
        self._limits: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                libraries = self._find()
                limits = [library.get_num_threads() for library in libraries]
                try:
                    _set_threads(libraries, [1] * len(libraries))
                except BaseException:  # an interruption on the way in leaves the limits as they were
                    _set_threads(libraries, limits)
                    raise
                self._limits = limits
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                _set_threads(self._find(), self._limits)

    def _find(self) -> list[Any]:
        if self._libraries is None:
            import threadpoolctl

            self._libraries = list(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)
        return self._libraries


def _set_threads(libraries: list[Any], limits: list[int]) -> None:
    """Set the number of threads of each library, whichever thread is calling.

    In recent versions of threadpoolctl, `set_num_threads` of OpenBLAS works for the first thread that calls it and
    ignores the others; the plain setter has the private name below.  In older versions the public setter is the plain
    one.
    """
    for library, limit in zip(libraries, limits, strict=True):
        getattr(library, "_real_set_num_threads", library.set_num_threads)(limit)


single_threaded_blas = _SingleThreadedBlas()


def blas_for(order: int) -> contextlib.AbstractContextManager[None]:
    """One thread of BLAS for matrices below order 2048, so that their solutions depend on no number of threads."""
    return single_threaded_blas if order < _THREADED_ORDER else contextlib.nullcontext()


_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()


def _pool(n: int) -> ThreadPoolExecutor:
    with _pools_lock:
        if n not in _pools:
            _pools[n] = ThreadPoolExecutor(n, thread_name_prefix="bochner")
        return _pools[n]


if hasattr(os, "register_at_fork"):  # a forked child has the pools' records but none of their threads
    os.register_at_fork(after_in_child=_pools.clear)
    os.register_at_fork(after_in_child=single_threaded_blas.reset)


def for_each_tile(n_rows: int, tile_rows: int, work: Callable[[int, int], None]) -> None:
    """Call ``work(start, stop)`` for every tile of ``tile_rows`` consecutive rows, in parallel.

    A nested call runs in its own thread: all threads are busy, and waiting for them would deadlock.
    """
    bounds = [(start, min(start + tile_rows, n_rows)) for start in range(0, n_rows, tile_rows)]
    n_threads = min(available_threads(), len(bounds))
    with single_threaded_blas:
        if n_threads <= 1:
            for start, stop in bounds:
                work(start, stop)
            return
        queue, lock = iter(bounds), threading.Lock()

        def drain() -> None:
            with threads(1):
                while True:
                    with lock:
                        tile = next(queue, None)
                    if tile is None:
                        return
                    work(*tile)

        others = [_pool(n_threads - 1).submit(drain) for _ in range(n_threads - 1)]
        try:
            drain()
        finally:
            for other in others:
                other.result()


def for_each_tile_of_lanes(
    n_rows: int, dim: int, capacity: int, dtype: np.dtype, work: Callable[[np.ndarray, int, int], None]
) -> None:
    """Call ``work(lanes, start, stop)`` for every tile of rows, with room for their ``capacity`` lines each."""

    def on_tile(start: int, stop: int) -> None:
        work(np.empty((-(-(stop - start) // LANES), capacity, LANES), dtype), start, stop)

    for_each_tile(n_rows, rows_per_tile(dim * dtype.itemsize, CACHE_BYTES), on_tile)


_PRODUCT_ROWS, _PRODUCT_COLUMNS = 512, 1024
"""Parts multiplied at a time: enough for BLAS to reach its speed, few enough to share among threads."""


def multiply(X: np.ndarray, matrix: np.ndarray, out: np.ndarray) -> None:
    """Compute ``out = X @ matrix`` in tiles, with results that do not depend on the number of threads.

    Many rows are split into tiles of rows; for few rows, the columns of the matrix are split instead.
    """
    if len(X) > _PRODUCT_ROWS:
        for_each_tile(len(X), _PRODUCT_ROWS, lambda i, j: _multiply(X[i:j], matrix, out[i:j]))
    else:
        for_each_tile(out.shape[1], _PRODUCT_COLUMNS, lambda i, j: _multiply(X, matrix[:, i:j], out[:, i:j]))


def _multiply(X: np.ndarray, matrix: np.ndarray, out: np.ndarray) -> None:
    np.matmul(X, matrix, out=out)
