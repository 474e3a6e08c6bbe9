"""Threads of the fused operators: one pool, whose threads run torch on one thread each and sleep while they wait.

Torch divides every operation among its threads, which spin until the slowest is done.  Where neighbours keep the cores
busy, each of hundreds of small operations then waits for a thread that is not running.  Here each thread has a share of
the whole work, and there is one wait for all of it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

import torch

_pools: dict[int, SimpleQueue[Callable[[], None]]] = {}
_lock = threading.Lock()

if hasattr(os, "register_at_fork"):  # a forked child has the records of the pools but none of their threads
    os.register_at_fork(after_in_child=_pools.clear)


def run_all(tasks: Sequence[Callable[[], None]]) -> None:
    """Run tasks without gradients, on as many threads as torch has, and return when all are done.

    A single task, or a single thread, needs no pool: its operations run on the threads of the caller.  After an error,
    tasks that have not begun are left, and the error is raised when those that have are done.
    """
    n_threads = min(torch.get_num_threads(), len(tasks))
    if n_threads <= 1:
        with torch.no_grad():
            for task in tasks:
                task()
        return
    waiting, inference = list(reversed(tasks)), torch.is_inference_mode_enabled()
    done: SimpleQueue[BaseException | None] = SimpleQueue()

    def drain() -> None:
        error = None
        try:
            with torch.inference_mode(inference), torch.no_grad():
                for task in iter(lambda: _next(waiting), None):
                    task()
        except BaseException as raised:
            error = raised
            waiting.clear()
        done.put(error)

    pool = _pool(n_threads)
    for _ in range(n_threads):
        pool.put(drain)
    try:
        errors = [done.get() for _ in range(n_threads)]
    finally:
        waiting.clear()  # also where the wait itself is interrupted
    for error in errors:
        if error is not None:
            raise error


def _next(waiting: list[Callable[[], None]]) -> Callable[[], None] | None:
    """The next task, or None; threads share the list, whose pop is atomic."""
    try:
        return waiting.pop()
    except IndexError:
        return None


def _pool(n: int) -> SimpleQueue[Callable[[], None]]:
    """The queue of n threads."""
    with _lock:
        if n not in _pools:
            _pools[n] = _new_pool(n)
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
