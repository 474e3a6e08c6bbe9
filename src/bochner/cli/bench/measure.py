"""Timing, and what a benchmark case is."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


def best_of(work: Callable[[], Any], repeats: int = 5) -> float:
    """Shortest of several runs in seconds, after one that is not counted."""
    return best_of_each([work], repeats)[0]


def best_of_each(works: Sequence[Callable[[], Any]], repeats: int = 7) -> list[float]:
    """Shortest runs of several pieces of work, taken in turn so that noise meets all of them alike."""
    for work in works:
        work()
    times = [[_time(work) for work in works] for _ in range(repeats)]
    return [min(column) for column in zip(*times, strict=True)]


def _time(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@dataclass(frozen=True)
class Result:
    """One measured line: a value, what it is compared with, and the goal it was built to."""

    case: str
    value: float
    unit: str
    goal: str
    met: bool
    details: str

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return asdict(self) | ({"value": None} if not math.isfinite(self.value) else {})


def measured(case: str, value: float, unit: str, details: str) -> Result:
    """A case without a goal."""
    return Result(case, value, unit, "-", True, details)


def not_measured(case: str, reason: str) -> Result:
    """A case that cannot be measured here, and why."""
    return Result(case, math.nan, "not measured", "-", True, reason)


def at_most(case: str, value: float, bound: float, unit: str, details: str) -> Result:
    """A case whose value must not exceed a bound."""
    return Result(case, value, unit, f"<= {bound:g} {unit}", value <= bound, details)


def at_least(case: str, value: float, bound: float, unit: str, details: str) -> Result:
    """A case whose value must reach a bound."""
    return Result(case, value, unit, f">= {bound:g} {unit}", value >= bound, details)


def peak_memory() -> float:
    """Largest resident memory of this process in bytes.

    Linux counts the memory of the process that started it in ``ru_maxrss``, so its own record is read there.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if found:
            return 1024.0 * int(found[1])
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
