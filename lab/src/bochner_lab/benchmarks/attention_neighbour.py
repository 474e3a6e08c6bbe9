"""How much attention slows down beside two busy processes: ``bochner-lab bench attention --neighbour``."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from bochner.reporting import seconds

from ._bench import Result, at_most, not_measured
from .attention import _exact, _inputs, _ours

_REPEATS = {2048: 15, 8192: 5}
"""Calls of each length; those of exact attention take most of the time of the benchmark, which is about a minute."""
_NEIGHBOURS = 2
_FACTOR = 4.5
"""Two neighbours that use all cores leave a third of the machine: a factor of three if nothing is lost by waiting."""

_WORK = """
import numpy as np
a = np.random.default_rng(0).standard_normal((1500, 1500))
print("ready", flush=True)
while True:
    a @ a
"""


def run() -> Iterator[Result]:
    """Times of linear and of exact attention, alone and beside the neighbours, as ratios of medians."""
    try:
        import torch
    except ImportError:
        yield not_measured("linear_attention beside neighbours", 'needs PyTorch: pip install "torch>=2.4"')
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with torch.no_grad():
            for length in _REPEATS:
                for causal in (False, True):
                    yield from _slowdown(length, causal)
    finally:
        torch.set_num_threads(threads)


def _slowdown(length: int, causal: bool) -> Iterator[Result]:
    inputs = _inputs(length)
    works = [_ours(*inputs, causal=causal), _exact(*inputs, causal=causal)]
    for work in works:
        work()
    alone = _medians(works, _REPEATS[length])
    with _neighbours():
        beside = _medians(works, _REPEATS[length])
    ours, exact = (b / a for a, b in zip(alone, beside, strict=True))
    case = f"{'causal ' if causal else ''}linear_attention beside two busy processes / alone, L = {length}"
    details = f"{seconds(alone[0])} to {seconds(beside[0])}; exact {seconds(alone[1])} to {seconds(beside[1])}"
    yield at_most(case, ours, _FACTOR, "x", details)
    yield at_most(f"{case}, against the same of exact attention", ours / exact, 1.0, "x", f"{ours:.3g} and {exact:.3g}")


def _medians(works: list[Callable[[], Any]], repeats: int) -> list[float]:
    """Median times of several functions, one after the other in turn."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, column in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            column.append(time.perf_counter() - start)
    return [statistics.median(column) for column in times]


@contextlib.contextmanager
def _neighbours() -> Iterator[None]:
    """Processes of normal priority that multiply NumPy matrices on all cores."""
    started = [
        subprocess.Popen([sys.executable, "-c", _WORK], stdout=subprocess.PIPE, text=True) for _ in range(_NEIGHBOURS)
    ]
    try:
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        yield
    finally:
        for process in started:
            process.kill()
            process.communicate()
