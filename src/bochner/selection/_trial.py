"""What a race will cost: the estimators that every comparison needs, tried on few rows before it begins.

From the seconds of a trial, and from the number of operations that an estimator states for any number of rows, follow those
of a fold.  The race then has as many rows as all folds of these estimators can have, and does not start what does not fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from .._table import seconds
from ._budget import Budget, OutOfTime, Shared
from ._contenders import Contender
from ._task import Task

ROWS = 250
"""Rows of a trial, and the least number of rows that a budget leaves."""
_NEEDED = 0.7
"""Share of the time left for all folds of these estimators."""
_SHARE = 0.25
"""Share of the time left for one fold of one of them; what needs more even with the fewest rows is left out."""


class Plan(NamedTuple):
    """A task with as many rows as there is time for, predicted seconds of one fold, and why some are left out."""

    task: Task
    costs: dict[Contender, float]
    left_out: dict[Contender, str]


def planned_race(task: Task, contenders: Sequence[Contender], seed: int, budget: Budget) -> Plan:
    """Choose the number of rows by a trial of contenders; the first of them is never left out."""
    few = task.first(min(ROWS, len(task.y) // 2))
    _tried(contenders[0], few, seed, budget)  # loads and compiles code that all of them use
    tried = {contender: _tried(contender, few, seed, budget) for contender in contenders}
    costs = {contender: spent for contender, spent in tried.items() if spent is not None}
    left_out, allowed = {}, _SHARE * max(budget.left, 0.0)
    for contender in contenders[1:]:
        if costs.get(contender, 0.0) > allowed:
            cost = costs.pop(contender)
            takes = f"one fold of {len(few.y)} rows takes about {seconds(cost)}"
            left_out[contender] = takes if cost < math.inf else "there was no time for a trial"
    counts = [len(task.y)]
    while counts[-1] > ROWS:  # halves, so that a machine that is a little slower does not change them
        counts.append(max(counts[-1] // 2, ROWS))
    for n in counts:
        predicted = {contender: spent * _growth(contender, few, task.first(n)) for contender, spent in costs.items()}
        if task.n_folds * sum(predicted.values()) <= _NEEDED * budget.left:
            break
    return Plan(task.first(n), predicted, left_out)


def _tried(contender: Contender, few: Task, seed: int, budget: Budget) -> float | None:
    """Seconds of one fold with few rows; infinite if they exceed its share, None if it fails, of which the race will tell.

    Its fits count by the median, and a single fit is repeated, since the first loads and compiles code.
    """
    _, part = next(iter(few.parts()))
    shared = Shared()
    found: list[list[float]] = []
    while sum(len(fits) for fits in found) < 2:
        shared.begin(_SHARE * budget.left)
        try:
            contender.judge(part, few, seed, shared)
        except (FloatingPointError, ValueError):
            return None
        except OutOfTime:
            return math.inf
        shared.end()
        found.append(list(shared.fits))
    return min(len(fits) * median(fits) for fits in found)


def _growth(contender: Contender, few: Task, many: Task) -> float:
    """How many times the operations of one fold with few rows those with many are."""
    d, t = few.X.shape[1], few.T.shape[1]
    before, after = (contender.work(len(task.y) - len(task.y) // task.n_folds, d, t) for task in (few, many))
    return after / before
