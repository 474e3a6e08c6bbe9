"""Cross-validation of many contenders as a race, within a budget of time.

All contenders are judged on the same folds, with as many rows as a trial says there is time for (`_trial`).  The first fold
may take a part of the budget, and the others are run with as many of the best mechanisms as time allows.  What is predicted
to end too late is not started.  After each fold, mechanisms that are clearly worse than good ones are dropped, so that time
is spent where the decision is close.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from .._progress import progress
from .._random import streams
from .._table import seconds
from ._applicable import plainness
from ._budget import Budget, OutOfTime, Shared
from ._contenders import Contender
from ._task import Part, Task
from ._trial import Plan, planned_race

_CLEARLY = 4.0
"""Standard errors by which a mechanism must be worse to be dropped."""
_TYPICAL = 5
"""It is compared with the mechanism at this place: the best of a hundred owes its place to luck."""
_PLAIN = 2
"""Mechanisms that are plainer than this, the kernel's default and landmarks, are judged on all folds in any case."""
_WORSE = 1.05
"""Factor by which its error must also be larger."""
_FIRST = 0.4
"""Share of the time left for the first fold; contenders that are not reached are not judged."""
_CAREFUL = 0.9
"""Share of the time left for which later folds are planned."""
_LATE = 1.1
"""Share of the budget after which a later fold, though planned within the budget, is given up."""
_SHARE = 0.25
"""Largest share of the budget for one contender; it is not judged on further folds beyond that."""
_FITS = 7
"""Fits with which a mechanism chooses the bandwidth of its map."""


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
    left_out: str = ""

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
    """The records of a race, its task, its seconds, and how many contenders the budget kept from some of the folds.

    Those that it kept from all folds say why in ``left_out``.
    """

    records: list[Record]
    task: Task
    seconds: float
    n_cut: int

    @property
    def left_out(self) -> dict[str, str]:
        """Why the budget left contenders out."""
        return {r.contender.label: r.left_out for r in self.records if r.left_out and not r.settings}


class Gap(NamedTuple):
    """Difference of two errors on the rows that both were tested on, and its standard error."""

    difference: float
    standard_error: float


def run_race(
    task: Task, contenders: Sequence[Contender], seed: int, budget: Budget, *, shown: bool, n_needed: int = 0
) -> Race:
    """Judge all contenders, in the given order within each fold, as far as the budget allows.

    A trial of the first ``n_needed`` of them chooses the number of rows.
    """
    task, costs, left_out = planned_race(task, contenders[:n_needed], seed, budget) if n_needed else Plan(task, {}, {})
    records = [Record(c, np.full(len(task.y), np.nan), left_out=left_out.get(c, "")) for c in contenders]
    running = [record for record in records if not record.left_out]
    skipped: set[int] = set()
    for k, (rows, part) in enumerate(task.parts()):
        chosen = _affordable(running, _CAREFUL * budget.left / (task.n_folds - k)) if k else running
        skipped |= {id(record) for record in running} - {id(record) for record in chosen}
        ends = (_LATE * budget.seconds,) * 2 if k else _first(budget, task.n_folds - 1, costs)
        draw = int(streams(seed, f"fold/{k}")[0].integers(2**31))
        fold = _Fold(task, rows, part, draw, budget, *ends, Shared(), costs)
        bar = progress(chosen, label=f"fold {k + 1} of {task.n_folds}", shown=shown, delay=0.0)
        late = {id(record) for record in bar if not fold.judge(record, certain=not k and record is records[0])}
        skipped |= late
        if k and any(id(record) in late and record.contender.spec is not None for record in chosen):
            for record in chosen:  # a fold that only some mechanisms have run would decide by who they are
                record.forget(rows)
            skipped |= {id(record) for record in chosen}
            break
        running = _kept(task, [record for record in running if record.running and record.settings])
    n_cut = sum(bool(record.settings) and id(record) in skipped for record in records)
    return Race(records, task, budget.spent, n_cut)


def _first(budget: Budget, n_more: int, costs: dict[Contender, float]) -> tuple[float, float]:
    """When the first fold ends, for what every comparison needs and for other mechanisms.

    These have a share of the time left, unless the other folds of what is needed take more.
    """
    now, left = budget.spent, max(budget.left, 0.0)
    spare = min(_FIRST * left, _CAREFUL * left - n_more * sum(costs.values()))
    return now + _CAREFUL * left, now + max(spare, 0.0)


class _Fold(NamedTuple):
    """One fold of a race: its rows, when it ends, what contenders share, and predicted seconds of those that are needed.

    ``end`` is for the needed ones, and ``end_of_others`` for further mechanisms.
    """

    task: Task
    rows: np.ndarray
    part: Part
    seed: int
    budget: Budget
    end: float
    end_of_others: float
    shared: Shared
    costs: dict[Contender, float]

    def judge(self, record: Record, *, certain: bool) -> bool:
        """Judge a contender, if it is predicted to end in time or certain to be judged; whether it was."""
        predicted = self._predicted(record)
        needed = record.contender in self.costs or record.contender.spec is None
        end = self.end if needed else self.end_of_others
        if not certain and self.budget.spent + predicted > end:
            takes = f"; one fold takes about {seconds(predicted)}" if predicted else ""
            record.left_out = f"there was no time for it{takes}"
            return False
        start = time.perf_counter()
        self.shared.begin(math.inf if certain else end - self.budget.spent)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                outcome = record.contender.judge(self.part, self.task, self.seed, self.shared)
                losses = self.task.losses(outcome.scores, self.task.T[self.rows])
        except OutOfTime:
            record.left_out = f"one fold takes more than {seconds(time.perf_counter() - start)}"
            return False
        except (
            FloatingPointError,
            ValueError,
        ) as error:  # a ValueError is that of an estimator that cannot use these rows
            record.running, record.failure = False, str(error)
            return True
        if not np.isfinite(losses).all():
            record.running, record.failure = False, "its predictions are not finite"
            return True
        record.losses[self.rows] = losses
        record.settings.append(outcome.settings)
        record.fit_seconds.append(outcome.fit_seconds)
        record.seconds_per_row.append(outcome.seconds_per_row)
        record.spent += time.perf_counter() - start
        record.running = record.spent <= _SHARE * self.budget.seconds
        if record.contender.spec is not None:
            self.shared.known["seconds of a fit"] = outcome.fit_seconds
        return True

    def _predicted(self, record: Record) -> float:
        """Seconds by the folds before, or by a trial; of another mechanism, by the fits of the one before it."""
        if record.settings:
            return _cost(record)
        known, cost = self.shared.known, self.costs.get(record.contender)
        if cost is not None or record.contender.spec is None:
            return cost or 0.0
        return float(known.get("seconds of a fit", 0.0)) * (1 if record.contender.spec.map in known else _FITS)


def _affordable(running: list[Record], seconds: float) -> list[Record]:
    """Those whose next fold takes that many seconds together, the plainest mechanisms and the best one in any case.

    Then come the estimators that are no mechanisms, the quick ones first, and further mechanisms by their error.
    """
    mechanisms = [record for record in running if record.contender.spec is not None]
    mechanisms.sort(key=lambda record: float(np.nanmean(record.losses)))
    plain = [r for r in mechanisms if r.contender.spec is not None and plainness(r.contender.spec) < _PLAIN]
    others = sorted((record for record in running if record.contender.spec is None), key=_cost)
    certain = list({id(record): record for record in [*plain, *mechanisms[:1]]}.values())
    order = {id(record): record for record in [*certain, *others, *mechanisms]}
    kept, total = {id(record) for record in certain}, sum(map(_cost, certain))
    for key, record in order.items():
        if key not in kept and total + _cost(record) <= seconds:
            kept.add(key)
            total += _cost(record)
    return [record for record in running if id(record) in kept]


def _cost(record: Record) -> float:
    return record.spent / max(len(record.settings), 1)


def _kept(task: Task, records: list[Record]) -> list[Record]:
    """All but mechanisms that are clearly worse than good ones."""
    mechanisms = [record for record in records if record.contender.spec is not None]
    mechanisms.sort(key=lambda record: float(np.nanmean(record.losses)))
    dropped = set()
    for record in mechanisms[_TYPICAL:]:
        good = mechanisms[_TYPICAL - 1]
        gap = difference(task, record, good)
        worse = task.error(record.losses[record.judged]) > _WORSE * task.error(good.losses[record.judged])
        if worse and gap.difference > _CLEARLY * gap.standard_error:
            dropped.add(id(record))
    return [record for record in records if id(record) not in dropped]


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
