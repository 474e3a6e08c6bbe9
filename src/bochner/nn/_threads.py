"""Threads of the fused operators: one parallel region for a whole call, on torch's own threads where they can be had.

Torch divides every operation among its threads, which spin until the slowest is done.  Where neighbours keep the cores
busy, each of hundreds of small operations then waits for a thread that is not running.  Here each thread has a share of
the whole work, and there is one wait for all of it.

After an operation that torch has divided, its threads go on spinning for some milliseconds (8 with libgomp), in case
another one follows.  Threads of our own would not get these cores until then.  So the work is given to torch's threads, as
a region of the OpenMP runtime that torch is linked with; within it, operations are not divided any further.  Where torch
has another runtime, a pool of our own does the work, whose threads sleep while they wait.

The entry of the runtime is called through ctypes, since torch lends its threads to C++ only.  It can go when torch has such
a call in Python, or when its idle threads do not spin.  The gain is on idle cores, where a call of 20 ms would otherwise
wait up to 8 ms; beside a load of 12 on 2 cores both ways take the same time (216 and 197 ms, the best of 20 causal calls
with 2048 positions, 8 heads and 256 rows).
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from queue import SimpleQueue
from typing import Any

import torch

_Region = Callable[[int, Callable[[], None]], None]
"""Runs a function on that many threads at once, and returns when all are done."""

_pools: dict[int, SimpleQueue[Callable[[], None]]] = {}
_forked = threading.Event()
_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def run_all(tasks: Sequence[Callable[[], None]]) -> None:
    """Run tasks without gradients, on as many threads as torch has, and return when all are done.

    A single task, or a single thread, needs no region: its operations are divided by torch.  Threads take one task after
    the other, so that one that starts late holds up nobody.  After an error, tasks that have not begun are left, and the
    error is raised when those that have are done.
    """
    n_threads = min(torch.get_num_threads(), len(tasks))
    if n_threads <= 1:
        with torch.no_grad():
            for task in tasks:
                task()
        return
    waiting, inference, errors = list(reversed(tasks)), torch.is_inference_mode_enabled(), []

    def drain() -> None:
        try:
            with torch.inference_mode(inference), torch.no_grad():
                for task in iter(lambda: _next(waiting), None):
                    task()
        except BaseException as raised:
            errors.append(raised)
            waiting.clear()

    # a smaller team would end the other threads of the runtime
    region = None if _forked.is_set() or n_threads < torch.get_num_threads() else _torch_threads()
    try:
        (region or _own_threads)(n_threads, drain)
        if waiting and not errors:
            raise KeyboardInterrupt  # before the first task of a thread, where ctypes prints it and goes on
    finally:
        waiting.clear()
    if errors:
        raise errors[0]


def _next(waiting: list[Callable[[], None]]) -> Callable[[], None] | None:
    """The next task, or None; threads share the list, whose pop is atomic."""
    try:
        return waiting.pop()
    except IndexError:
        return None


@cache
def _torch_threads() -> _Region | None:
    """A region of the OpenMP runtime that torch is linked with; None if it has no such entry, as outside of Linux."""
    if "parallel backend: OpenMP" not in torch.__config__.parallel_info():
        return None
    try:  # symbols of a library include those of the libraries that it needs
        parallel: Any = ctypes.CDLL(torch._C.__file__).GOMP_parallel
    except (OSError, AttributeError):
        return None
    parallel.argtypes, parallel.restype = (_BODY, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint), None

    def region(n: int, function: Callable[[], None]) -> None:
        parallel(_BODY(lambda _: function()), None, n, 0)

    return region


def _own_threads(n: int, function: Callable[[], None]) -> None:
    """A region of a pool."""
    done: SimpleQueue[None] = SimpleQueue()

    def work() -> None:
        function()
        done.put(None)

    pool = _pool(n)
    for _ in range(n):
        pool.put(work)
    for _ in range(n):
        done.get()


def _after_fork() -> None:
    """A forked child has the records of threads, those of the runtime too, but none of the threads."""
    _pools.clear()
    _forked.set()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _pool(n: int) -> SimpleQueue[Callable[[], None]]:
    """The queue of n threads; of two that are made at once one is kept, without a lock that Ctrl-C could leave held."""
    if n not in _pools:
        fresh = _new_pool(n)
        if _pools.setdefault(n, fresh) is not fresh:
            for _ in range(n):
                fresh.put(sys.exit)
    return _pools[n]


def _new_pool(n: int) -> SimpleQueue[Callable[[], None]]:
    """Threads that have started and wait at a queue, with torch on one thread in each.

    `torch.set_num_threads` is about the calling thread and about threads that have not asked for the number yet.  So all
    of these ask for it and set their own, and the caller restores the number of all others.
    """
    number, started = torch.get_num_threads(), threading.Barrier(n + 1)
    queue: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def work() -> None:
        torch.get_num_threads()
        torch.set_num_threads(1)
        started.wait()
        while True:
            queue.get()()

    for i in range(n):
        threading.Thread(target=work, name=f"bochner-torch-{i}", daemon=True).start()
    started.wait()
    torch.set_num_threads(number)
    return queue
