"""Threads of the fused operators: one pool, whose threads run torch on one thread each and sleep while they wait.

Torch divides every operation among its threads, which spin until the slowest is done.  Where neighbours keep the cores
busy, each of hundreds of small operations then waits for a thread that is not running.  Here each thread has a share of
the whole work, and there is one wait for all of it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch

_pools: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()

if hasattr(os, "register_at_fork"):  # a forked child has the records of the pools but none of their threads
    os.register_at_fork(after_in_child=_pools.clear)


def run_all(tasks: Sequence[Callable[[], None]]) -> None:
    """Run tasks without gradients, on as many threads as torch has, and return when all are done.

    A single task, or a single thread, needs no pool: its operations run on the threads of the caller.
    """
    n_threads = min(torch.get_num_threads(), len(tasks))
    if n_threads <= 1:
        with torch.no_grad():
            for task in tasks:
                task()
        return
    queue, inference = iter(tasks), torch.is_inference_mode_enabled()

    def drain() -> None:
        with torch.inference_mode(inference), torch.no_grad():
            for task in iter(lambda: _next(queue), None):
                task()

    drains = [_pool(n_threads).submit(drain) for _ in range(n_threads)]
    try:
        for one in drains:
            one.result()
    finally:
        for _ in iter(lambda: _next(queue), None):  # after an error, what has not begun is left
            pass
        for one in drains:
            one.exception()


def _next(queue: object) -> Callable[[], None] | None:
    with _lock:
        task: Callable[[], None] | None = next(queue, None)  # type: ignore[call-overload]
        return task


def _pool(n: int) -> ThreadPoolExecutor:
    with _lock:
        if n not in _pools:
            _pools[n] = _new_pool(n)
        return _pools[n]


def _new_pool(n: int) -> ThreadPoolExecutor:
    """Threads that have started, with torch on one thread in each.

    `torch.set_num_threads` is about the calling thread and about threads that have not asked for the number yet.  So all
    of these ask for it and set their own, and the caller restores the number of all others.
    """
    number, started = torch.get_num_threads(), threading.Barrier(n)

    def set_one() -> None:
        torch.get_num_threads()
        torch.set_num_threads(1)
        started.wait()

    pool = ThreadPoolExecutor(n, thread_name_prefix="bochner-torch")
    for one in [pool.submit(set_one) for _ in range(n)]:
        one.result()
    torch.set_num_threads(number)
    return pool
