"""Cross-validation of many contenders as a race, within a budget of time.

All contenders are judged on the same folds.  The first fold may take a part of the budget, and the others are run with
as many of the best mechanisms as time allows.  After each fold, mechanisms that are clearly worse than good ones are
dropped, so that time is spent where the decision is close.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from .._progress import progress
from .._random import streams
from ._applicable import plainness
from ._contenders import Contender
from ._task import Task

_CLEARLY = 4.0
"""Standard errors by which a mechanism must be worse to be dropped."""
_TYPICAL = 5
"""It is compared with the mechanism at this place: the best of a hundred owes its place to luck."""
_PLAIN = 2
"""Mechanisms that are plainer than this, the kernel's default and landmarks, are judged on all folds in any case."""
_WORSE = 1.05
"""Factor by which its error must also be larger."""
_FIRST = 0.4
"""Share of the budget for the first fold; contenders that are not reached are not judged."""
_CAREFUL = 0.9
"""Share of the time left for which later folds are planned."""
_LATE = 1.2
"""Share of the budget after which a later fold, though planned within the budget, is given up."""
_SHARE = 0.25
"""Largest share of the budget for one contender; it is not judged on further folds beyond that."""


@dataclass
class Record:
    """What one contender did so far: losses of test rows (NaN where not judged), and an outcome per fold."""

    contender: Contender
    losses: np.ndarray
    settings: list[dict[str, Any]] = field(default_factory=list)
    fit_seconds: list[float] = field(default_factory=list)
    seconds_per_row: list[float] = field(default_factory=list)
    spent: float = 0.0
    running: bool = True
    failure: str = ""

    def forget(self, rows: np.ndarray) -> None:
        """Take back the latest fold, if these are its test rows."""
        if self.judged[rows].any():
            self.losses[rows] = np.nan
            for results in (self.settings, self.fit_seconds, self.seconds_per_row):
                results.pop()

    @property
    def judged(self) -> np.ndarray:
        """Which rows were tested."""
        return np.asarray(np.isfinite(self.losses))


class Race(NamedTuple):
    """The records of a race, its seconds, and how many contenders the budget kept from some or from all folds."""

    records: list[Record]
    seconds: float
    n_cut: int
    n_unjudged: int


class Gap(NamedTuple):
    """Difference of two errors on the rows that both were tested on, and its standard error."""

    difference: float
    standard_error: float


def run_race(task: Task, contenders: Sequence[Contender], seed: int, budget: float, *, shown: bool) -> Race:
    """Judge all contenders, in the given order within each fold, as far as the budget allows."""
    start = time.perf_counter()
    records = [Record(contender, np.full(len(task.y), np.nan)) for contender in contenders]
    cut: set[int] = set()
    for k, (rows, part) in enumerate(task.parts()):
        known: dict[Any, Any] = {}
        (stream,) = streams(seed, f"fold/{k}")
        draw = int(stream.integers(2**31))
        running = [record for record in records if record.running]
        if k:
            left = start + budget - time.perf_counter()
            affordable = _affordable(running, _CAREFUL * left / (task.n_folds - k))
            cut |= {id(record) for record in running if not any(record is one for one in affordable)}
            running = affordable
        end = start + (_LATE if k else _FIRST) * budget
        late = []
        for record in progress(running, label=f"fold {k + 1} of {task.n_folds}", shown=shown, delay=0.0):
            if time.perf_counter() > end:
                late.append(record)
            else:
                _judge(record, task, rows, part, draw, known, budget)
        if late and k:  # a fold that only some have run would decide by who they are
            for record in running:
                record.forget(rows)
            cut |= {id(record) for record in running}
            break
        cut |= {id(record) for record in late}
        for record in records:
            record.running = record.running and id(record) not in cut
        _drop(task, records)
    unjudged = sum(not record.settings and not record.failure for record in records)
    return Race(records, time.perf_counter() - start, len(cut) - unjudged, unjudged)


def _affordable(running: list[Record], seconds: float) -> list[Record]:
    """Those whose next fold takes that many seconds together, the plainest and the few best mechanisms in any case.

    Then come the estimators that are no mechanisms, the quick ones first, and further mechanisms by their error.
    """
    mechanisms = [record for record in running if record.contender.spec is not None]
    mechanisms.sort(key=lambda record: float(np.nanmean(record.losses)))
    plain = [r for r in mechanisms if r.contender.spec is not None and plainness(r.contender.spec) < _PLAIN]
    others = sorted((record for record in running if record.contender.spec is None), key=_cost)
    certain = list({id(record): record for record in [*plain, *mechanisms[:_TYPICAL]]}.values())
    order = {id(record): record for record in [*certain, *others, *mechanisms]}
    kept, total = {id(record) for record in certain}, sum(map(_cost, certain))
    for key, record in order.items():
        if key not in kept and total + _cost(record) <= seconds:
            kept.add(key)
            total += _cost(record)
    return [record for record in running if id(record) in kept]


def _cost(record: Record) -> float:
    return record.spent / max(len(record.settings), 1)


def _judge(
    record: Record, task: Task, rows: np.ndarray, part: Any, draw: int, known: dict[Any, Any], budget: float
) -> None:
    start = time.perf_counter()
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            outcome = record.contender.judge(part, task, draw, known)
            losses = task.losses(outcome.scores, task.T[rows])
    except FloatingPointError as error:
        record.running, record.failure = False, str(error)
        return
    if not np.isfinite(losses).all():
        record.running, record.failure = False, "its predictions are not finite"
        return
    record.losses[rows] = losses
    record.settings.append(outcome.settings)
    record.fit_seconds.append(outcome.fit_seconds)
    record.seconds_per_row.append(outcome.seconds_per_row)
    record.spent += time.perf_counter() - start
    record.running = record.spent <= _SHARE * budget


def _drop(task: Task, records: list[Record]) -> None:
    """Stop mechanisms that are clearly worse than good ones."""
    mechanisms = [record for record in records if record.running and record.contender.spec is not None]
    mechanisms.sort(key=lambda record: float(np.nanmean(record.losses)))
    for record in mechanisms[_TYPICAL:]:
        good = mechanisms[_TYPICAL - 1]
        gap = difference(task, record, good)
        worse = task.error(record.losses[record.judged]) > _WORSE * task.error(good.losses[record.judged])
        record.running = not (worse and gap.difference > _CLEARLY * gap.standard_error)


def critical(n: int) -> float:
    """Standard errors within which the lowest of n errors is called equal to another.

    The lowest of many owes its place to luck, so the 5 % by which a comparison may err are divided by their number.

    Examples
    --------
    >>> round(critical(1), 2), round(critical(100), 2)
    (1.64, 3.29)
    """
    return NormalDist().inv_cdf(1 - 0.05 / n)


def difference(task: Task, one: Record, other: Record) -> Gap:
    """The error of one minus that of another, on common test rows.

    The standard error is the larger of two: that of paired differences of rows, and that of paired differences of folds,
    which includes the luck of the draw and the dependence of training sets (Nadeau and Bengio's correction).
    """
    common = one.judged & other.judged
    d = one.losses[common] - other.losses[common]
    folds = [d[task.fold[common] == k].mean() for k in np.unique(task.fold[common])]
    J = len(folds)
    spread = float(np.std(d) / np.sqrt(len(d)))
    if J > 1:
        spread = max(spread, float(np.std(folds, ddof=1)) * float(np.sqrt(1 / J + 1 / (task.n_folds - 1))))
    scale = 1.0
    if task.kind == "regression":  # from mean squares to their roots
        scale = task.error(one.losses[common]) + task.error(other.losses[common]) or 1.0
    return Gap(float(d.mean()) / scale, spread / scale)


def standard_error(task: Task, record: Record) -> float:
    """Standard error of the error itself, from the spread over rows."""
    losses = record.losses[record.judged]
    spread = float(np.std(losses) / np.sqrt(len(losses)))
    return spread / (2 * task.error(losses) or 1.0) if task.kind == "regression" else spread
