"""Users choose by time as well as by error: each rival against the best of this library that takes no more time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from .._table import seconds, with_error
from ._cross_validation import Gap, Record, difference
from ._task import Task


class Verdict(NamedTuple):
    """A rival and an estimator of this library.

    Attributes
    ----------
    rival, ours : str
        Their labels; ours has the lowest error among those whose fit takes no more time, or among all.  If the recommended
        mechanism is within one standard error of it, ours is that.
    result : {"better", "tied", "worse"}
        What ours is, by the standard error of the paired difference.
    in_time : bool
        Whether the fit of ours takes no more time than that of the rival.
    gap : Gap
        Error of ours minus that of the rival.
    rival_seconds, our_seconds : float
        Seconds of one fit.
    measure : str
        Name of the error.
    folds : str
        On how many folds both were tested, if not on all; empty otherwise.
    """

    rival: str
    ours: str
    result: Literal["better", "tied", "worse"]
    in_time: bool
    gap: Gap
    rival_seconds: float
    our_seconds: float
    measure: str
    folds: str

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        rival, ours = f"{self.rival} ({seconds(self.rival_seconds)})", f"{self.ours} ({seconds(self.our_seconds)})"
        by = with_error(abs(self.gap.difference), self.gap.standard_error)
        result = {
            "tied": "is tied with it",
            "better": f"is better, {self.measure} lower by {by}",
            "worse": f"is worse, {self.measure} higher by {by}",
        }[self.result]
        if self.in_time:
            return f"Against {rival}: {ours} {result}, at no more time{self.folds}."
        return f"Against {rival}: nothing of ours fits as fast; {ours} {result}{self.folds}."

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**self._asdict(), "gap": self.gap._asdict()}


def verdicts(task: Task, records: Sequence[Record], recommended: Record, width: float) -> tuple[Verdict, ...]:
    """Judge every rival against ours; errors within ``width`` standard errors are tied."""
    ours = [record for record in records if record.contender.ours]
    return tuple(_verdict(task, record, ours, recommended, width) for record in records if not record.contender.ours)


def _verdict(task: Task, rival: Record, ours: Sequence[Record], recommended: Record, width: float) -> Verdict:
    limit = fit_time(rival)
    in_time = [record for record in ours if fit_time(record) <= limit]
    best = lowest_loss(in_time or ours)
    more = difference(task, recommended, best)
    if more.difference <= more.standard_error and (not in_time or fit_time(recommended) <= limit):
        best = recommended
    gap = difference(task, best, rival)
    result: Literal["better", "tied", "worse"] = "tied"
    if abs(gap.difference) > width * gap.standard_error:
        result = "better" if gap.difference < 0 else "worse"
    labels, n = (rival.contender.label, best.contender.label), min(len(rival.settings), len(best.settings))
    folds = f" (on {n} of {task.n_folds} folds)" if n < task.n_folds else ""
    return Verdict(*labels, result, bool(in_time), gap, limit, fit_time(best), task.measure, folds)


def fit_time(record: Record) -> float:
    """Median over folds of the seconds of a fit."""
    return float(np.median(record.fit_seconds))


def lowest_loss(records: Sequence[Record]) -> Record:
    """The lowest mean loss among those judged on the most folds: one lucky fold does not win."""
    most = max(len(record.settings) for record in records)
    return min((r for r in records if len(r.settings) == most), key=lambda r: float(np.nanmean(r.losses)))
