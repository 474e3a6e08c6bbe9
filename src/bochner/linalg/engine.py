"""The engine: processes rows in tiles that fit the cache, on a pool of threads, with results that do not depend on it.

The size of a tile depends only on the shape of the work, each tile is computed by one thread, and BLAS is limited to
one thread inside a tile.  The result is therefore the same, bit for bit, for any number of threads.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from queue import SimpleQueue
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from .._validation import check_count

LANES = 16  # rows that a compiled transform processes side by side (see `bochner.linalg.compiled`)

CACHE_BYTES = 1 << 18
"""Size of what one thread reads and writes repeatedly: half the second-level cache of a small machine."""
TILE_BYTES = 1 << 20
"""Size of what one thread writes once: the results of a tile, which are still in a cache when they are used."""
CHUNK_BYTES = 1 << 26  # size of what is held at a time if a result need not fit a cache: 64 MB
_THREADED_ORDER = 2048  # from here on a factorisation gains from the threads of BLAS; below, they wait for each other


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


class _Holder(NamedTuple):
    """Who is inside of `single_threaded_blas`: a thread, and the call in it that entered."""

    thread: int
    frame: FrameType


class _SingleThreadedBlas:
    """Limits BLAS to one thread while any caller is inside; the first to enter sets the limit, the last to leave removes it.

    The limit holds for the whole process, and any thread may be first or last.  Ctrl-C can raise between any two
    instructions, so the former limits are noted before they are changed and forgotten after they are restored, and what
    an interruption cuts short is done again before it goes on.  Python offers no way to protect the first instruction of
    ``__exit__``; a holder that was lost there is recognised by its call, which is no longer running, when its thread
    enters again.  The lock is one that its thread may take again, and is let go in ``finally``, not by ``with``: from Python
    3.14 on, Ctrl-C can come after ``with`` has taken a lock and before it would let it go.
    """

    def __init__(self) -> None:
        self._libraries: list[Any] | None = None
        self.reset()

    def reset(self) -> None:
        """Forget which callers are inside, for a forked child process, in which there are none."""
        self._lock = threading.RLock()
        self._holders: list[_Holder] = []
        self._limits: list[int] | None = None

    @property
    def inside(self) -> int:
        """Number of callers inside."""
        return len(self._holders)

    def __enter__(self) -> None:
        holder = _Holder(threading.get_ident(), sys._getframe(1))
        try:
            self._add(holder)
        except BaseException:
            self._remove(holder)
            raise

    def __exit__(self, *exception: object) -> None:
        holder = None
        try:
            holder = self._mine(sys._getframe(1))
            self._remove(holder)
        except BaseException:
            self._remove(holder or self._mine(sys._getframe(1)))
            raise

    def _add(self, holder: _Holder) -> None:
        libraries = self._find()
        try:
            self._lock.acquire()
            if self._holders:
                self._holders = [old for old in self._holders if old.thread != holder.thread or _is_running(old.frame)]
            if not self._holders:
                if self._limits is None:
                    self._limits = [library.get_num_threads() for library in libraries]
                self._holders.append(holder)
                _set_threads(libraries, [1] * len(libraries))
            else:
                self._holders.append(holder)
        finally:
            self._let_go()

    def _remove(self, holder: _Holder | None) -> None:
        """Remove a holder if it is there, and the limit with the last one; to be called again if it was interrupted."""
        try:
            self._lock.acquire()
            self._holders = [old for old in self._holders if old is not holder]
            if not self._holders and self._limits is not None:
                _set_threads(self._find(), self._limits)
                self._limits = None
        finally:
            self._let_go()

    def _let_go(self) -> None:
        """Release the lock as often as this thread holds it: once, or twice after an interruption right here."""
        while self._lock._is_owned():  # type: ignore[attr-defined]  # as `threading.Condition` asks it
            self._lock.release()

    def _mine(self, frame: FrameType) -> _Holder | None:
        """The last holder of this call; a call may be inside more than once."""
        mine = [old for old in self._holders if old.frame is frame]
        return mine[-1] if mine else None

    def _find(self) -> list[Any]:
        if self._libraries is None:
            import threadpoolctl

            self._libraries = list(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)
        return self._libraries


def _is_running(frame: FrameType) -> bool:
    """Whether a call is among those that lead to this one."""
    caller: FrameType | None = sys._getframe(1)
    while caller is not None and caller is not frame:
        caller = caller.f_back
    return caller is frame


def _set_threads(libraries: list[Any], limits: list[int]) -> None:
    """Set the number of threads of each library, whichever thread is calling.

    In recent versions of threadpoolctl, `set_num_threads` of OpenBLAS works for the first thread that calls it and
    ignores the others; the plain setter has the private name below.  In older versions the public setter is the plain
    one.  The private name can go when the public setter works in every thread.
    """
    for library, limit in zip(libraries, limits, strict=True):
        getattr(library, "_real_set_num_threads", library.set_num_threads)(limit)


single_threaded_blas = _SingleThreadedBlas()


def blas_for(order: int) -> contextlib.AbstractContextManager[None]:
    """One thread of BLAS for matrices below order 2048, so that their solutions depend on no number of threads."""
    return single_threaded_blas if order < _THREADED_ORDER else contextlib.nullcontext()


_pools: dict[int, SimpleQueue[Callable[[], None]]] = {}


def _pool(n: int) -> SimpleQueue[Callable[[], None]]:
    """The tasks that n threads wait for.

    A queue of this kind is one step of C, which an interruption comes before or after.  The pools of the standard library
    are Python code with locks: Ctrl-C inside of ``submit`` left one of them held, and the next call waited for ever.
    """
    if n not in _pools:
        tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        for _ in range(n):
            threading.Thread(target=_serve, args=(tasks,), name="bochner", daemon=True).start()
        if _pools.setdefault(n, tasks) is not tasks:  # another thread was first; one step, so no lock is needed
            for _ in range(n):
                tasks.put(sys.exit)
    return _pools[n]


def _serve(tasks: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        tasks.get()()


if hasattr(os, "register_at_fork"):  # a forked child has the pools' records but none of their threads
    os.register_at_fork(after_in_child=_pools.clear)
    os.register_at_fork(after_in_child=single_threaded_blas.reset)


def for_each_tile(n_rows: int, tile_rows: int, work: Callable[[int, int], None]) -> None:
    """Call ``work(start, stop)`` for every tile of ``tile_rows`` consecutive rows, in parallel.

    A nested call runs in its own thread: all threads are busy, and waiting for them would deadlock.  Functions called see
    the context of the caller, its `numpy.errstate` included.  After an error or an interruption, tiles that have not begun
    are left, and it is raised when those that have are done.
    """
    waiting = [(start, min(start + tile_rows, n_rows)) for start in range(0, n_rows, tile_rows)]
    n_threads = min(available_threads(), len(waiting))
    with single_threaded_blas:
        if n_threads <= 1:
            for start, stop in waiting:
                work(start, stop)
            return
        waiting.reverse()
        done: SimpleQueue[BaseException | None] = SimpleQueue()

        def drain() -> None:
            _limit.set(1)  # in a context of its own: nothing to reset, whatever happens
            while waiting:
                try:
                    tile = waiting.pop()  # one step of C: no two threads get one tile
                except IndexError:  # another thread took the last one
                    return
                work(*tile)

        def help_out(context: contextvars.Context) -> None:
            error = None
            try:
                context.run(drain)
            except BaseException as raised:
                error = raised
                waiting.clear()
            finally:
                done.put(error)

        helpers, errors = 0, []
        try:
            pool = _pool(n_threads - 1)
            for _ in range(n_threads - 1):
                pool.put(partial(help_out, contextvars.copy_context()))
                helpers += 1
            contextvars.copy_context().run(drain)
        except BaseException:
            waiting.clear()
            raise
        finally:
            for _ in range(helpers):
                errors.append(done.get())
        for error in errors:
            if error is not None:
                raise error


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
