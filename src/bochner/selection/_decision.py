"""The result of `recommend` with targets: errors of prediction, which of them are equal, and code to paste."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._table import format_table, label, seconds, with_error
from ..approximation import Approximation
from ._code import Snippet, Source, script
from ._contenders import median_settings
from ._cross_validation import Gap, Race, Record, critical, difference, standard_error
from ._task import Task
from ._verdicts import Verdict, fit_time, lowest_loss, verdicts

_SHOWN = 14
_LISTED = 6
_CLOSE, _POINT = 0.02, 0.005
"""A mechanism may be recommended if its error is within this share, and for classes this much, of the lowest."""
_FAST, _SHORT = 2.0, 0.05
"""Among equal mechanisms, those whose fit takes at most this many times that of the fastest, or seconds, are fast."""


@dataclass(frozen=True)
class Judged:
    """One estimator with its cross-validated error.

    Attributes
    ----------
    label : str
        Name of the estimator; a mechanism means a ridge on its features.
    spec : Approximation or None
        The specification of a mechanism, with the median of the bandwidths that the folds chose.
    settings : dict
        Medians of the settings that the folds chose, such as ``alpha``.
    error, standard_error : float
        Root mean squared error or error rate on test rows, and its standard error.  Of an estimator that was not tested
        on all folds, the lowest error plus ``gap``, since folds differ.
    gap : Gap
        Difference to the lowest error on the same rows, with the standard error of the paired difference.
    equal : bool
        Whether that difference is within ``Decision.critical`` standard errors, and it was tested on all folds.
    undecided : bool
        Whether it is within that, but was tested on fewer folds, which the budget allowed.
    n_folds : int
        Number of folds on which it was tested; clearly worse mechanisms are dropped early.
    width : int or None
        Number of features.
    fit_seconds, seconds_per_row : float
        Time of one fit with known settings, and of a prediction per row; medians over folds.
    """

    label: str
    spec: Approximation | None
    settings: dict[str, Any]
    error: float
    standard_error: float
    gap: Gap
    equal: bool
    undecided: bool
    n_folds: int
    width: int | None
    fit_seconds: float
    seconds_per_row: float
    snippet: Snippet | None = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON."""
        plain = {
            name: value for name, value in vars(self).items() if name not in ("spec", "gap", "settings", "snippet")
        }
        settings = {name: list(value) if isinstance(value, tuple) else value for name, value in self.settings.items()}
        spec = None if self.spec is None else repr(self.spec)
        return {**plain, "spec": spec, "settings": settings, **self.gap._asdict(), "equal": self.equal}


@dataclass(frozen=True)
class Decision:
    """Estimators in the order of their cross-validated error; print it to see a table.

    Attributes
    ----------
    lines : tuple of Judged
        All estimators, lowest error first, and those that were not tested on all folds after the others.
    recommended : Judged
        The mechanism to use: of those that are equal to the best mechanism, and within two per cent or one standard error
        of it, a plain one among the fast.
    equal_mechanisms : tuple of Judged
        The mechanisms that are equal to the best one of them.
    verdicts : tuple of Verdict
        Each estimator of scikit-learn, and exact kernel ridge, against the best of this library that takes no more time.
    critical : float
        Standard errors of a paired difference within which errors are called equal; it grows with the number of
        estimators, since the lowest of many errors is low by luck.
    failures : dict of str to str
        Why mechanisms could not be judged.
    task : Task
        Rows, targets and folds.
    notes : tuple of str
        Sentences about the protocol: what was sampled, what the budget allowed.
    """

    lines: tuple[Judged, ...]
    recommended: Judged
    equal_mechanisms: tuple[Judged, ...]
    verdicts: tuple[Verdict, ...]
    critical: float
    failures: dict[str, str]
    task: Task
    notes: tuple[str, ...]
    source: Source = field(repr=False)

    @property
    def best(self) -> Approximation:
        """The recommended specification: ``KernelRidge.from_spec(decision.best, alpha=decision.alpha)``."""
        assert self.recommended.spec is not None
        return self.recommended.spec

    @property
    def alpha(self) -> float:
        """The regularisation strength of the recommended mechanism."""
        return float(self.recommended.settings["alpha"])

    @property
    def ranking(self) -> tuple[Judged, ...]:
        """The mechanisms, lowest error first."""
        return tuple(line for line in self.lines if line.spec is not None)

    @property
    def code(self) -> str:
        """Python code of the recommended estimator, which runs as it is where X and y are defined."""
        return self.code_of(self.recommended)

    def code_of(self, line: Judged) -> str:
        """Return Python code of an estimator; empty for exact kernel ridge, which is there as a reference.

        Parameters
        ----------
        line : Judged
            One of the lines.

        Returns
        -------
        str
        """
        return "" if line.snippet is None else script(line.snippet, self.task, self.source)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The decision in words: which estimators are equal, what each rival is at the same time, and what to use."""
        top, gap, mechanisms = self.lines[0], self.recommended.gap, self.equal_mechanisms
        found = [_equal(self.lines, self.critical)]
        undecided = [line for line in self.lines if line.undecided]
        if undecided:
            are = "is" if len(undecided) == 1 else "are"
            found.append(f"Judged on fewer folds, {len(undecided)} more {are} not told apart: {_listed(undecided)}.")
        if not self.recommended.equal:
            found.append(
                f"{top.label} predicts better than the recommended mechanism, by "
                f"{with_error(gap.difference, gap.standard_error)}."
            )
            if len(mechanisms) > 1:
                found.append(f"Of the mechanisms, these {len(mechanisms)} are equal: {_listed(mechanisms)}.")
        found += [verdict.sentence for verdict in self.verdicts]
        why = ", a plain and fast one of the mechanisms that are nearly as good as the best of them"
        return (*found, f"Recommended: {self.recommended.label}{why if len(mechanisms) > 1 else ''}.")

    def table(self, top: int | None = _SHOWN) -> str:
        """Return estimators as text: those of scikit-learn, and the best mechanisms of different maps.

        Parameters
        ----------
        top : int or None
            Number of lines; None means all.

        Returns
        -------
        str
        """
        return format_table(self.header, [self.row(line) for line in self.chosen(top)])

    def chosen(self, top: int | None) -> list[Judged]:
        """The lines of a short table: the recommended, all of scikit-learn, the best of each map, then the next best."""
        if top is None:
            return list(self.lines)
        complete = [line for line in self.ranking if line.n_folds == self.recommended.n_folds]
        first = {line.spec.map: line for line in reversed(complete) if line.spec is not None}
        wanted = [self.recommended, *(line for line in self.lines if line.spec is None)]
        wanted += [line for line in complete if line in first.values()] + complete
        kept = [line.label for line in wanted]
        allowed = set(list(dict.fromkeys(kept))[:top])
        return [line for line in self.lines if line.label in allowed]

    @property
    def header(self) -> list[str]:
        """Titles of the columns of `row`."""
        return ["estimator", self.task.measure, "above the lowest", "features", "fit", "prediction per row", "folds"]

    def row(self, line: Judged) -> list[str]:
        """Return one line as text."""
        gap = with_error(line.gap.difference, line.gap.standard_error)
        gap = "equal" if line.equal else f"{gap}, undecided" if line.undecided else gap
        gap = "lowest" if line is self.lines[0] else gap
        error = with_error(line.error, line.standard_error)
        width = "" if line.width is None else str(line.width)
        return [
            line.label,
            error,
            gap,
            width,
            seconds(line.fit_seconds),
            seconds(line.seconds_per_row),
            str(line.n_folds),
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON."""
        return {
            "task": self.task.kind,
            "critical": self.critical,
            "measure": self.task.measure,
            "best": repr(self.best),
            "recommended": self.recommended.label,
            "code": self.code,
            "equal_mechanisms": [line.label for line in self.equal_mechanisms],
            "estimators": [line.as_dict() for line in self.lines],
            "verdicts": [verdict.as_dict() for verdict in self.verdicts],
            "failures": self.failures,
            "sentences": list(self.sentences),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        hidden = len(self.lines) - len(self.chosen(_SHOWN))
        more = f"... and {hidden} more; table(None) and the report of bochner compare have all\n" if hidden > 0 else ""
        words = "\n".join([*self.sentences, *self.notes])
        return f"{self.table()}\n{more}\n{words}\n\n{self.code}"

    __repr__ = __str__


def decide(race: Race, source: Source, notes: Sequence[str]) -> Decision:
    """Turn the records of a race into lines, find what is equal, and choose a mechanism."""
    task = race.task
    judged = [record for record in race.records if record.settings]
    best, width = lowest_loss(judged), critical(max(len(judged) - 1, 1))
    lines = {id(record): _line(task, record, best, width) for record in judged}
    most = len(best.settings)
    ordered = sorted(lines.values(), key=lambda line: (line is not lines[id(best)], line.n_folds < most, line.error))
    mechanisms = [record for record in judged if record.contender.spec is not None]
    lead = lowest_loss(mechanisms)
    gaps = {id(record): difference(task, record, lead) for record in mechanisms}
    run = len(lead.settings)
    equal = [record for record in mechanisms if _equals(gaps[id(record)], width) and len(record.settings) == run]
    close = _CLOSE * task.error(lead.losses[lead.judged]) + (_POINT if task.kind == "classification" else 0.0)
    good = [record for record in equal if gaps[id(record)].difference <= max(close, gaps[id(record)].standard_error)]
    chosen = _plain_and_fast(good)
    failures = {record.contender.label: record.failure for record in race.records if record.failure}
    return Decision(
        tuple(ordered),
        lines[id(chosen)],
        tuple(line for line in ordered if any(lines[id(record)] is line for record in equal)),
        verdicts(task, judged, chosen, width),
        width,
        failures,
        task,
        tuple(notes),
        source,
    )


def _equals(gap: Gap, width: float) -> bool:
    return gap.difference <= width * gap.standard_error


def _line(task: Task, record: Record, best: Record, width: float) -> Judged:
    settings = median_settings(record.settings)
    gap = difference(task, record, best)
    return Judged(
        label=record.contender.label,
        spec=record.contender.fitted_spec(settings),
        settings=settings,
        error=task.error(best.losses[best.judged]) + gap.difference,
        standard_error=standard_error(task, record),
        gap=gap,
        equal=_equals(gap, width) and len(record.settings) == len(best.settings),
        undecided=_equals(gap, width) and len(record.settings) < len(best.settings),
        n_folds=len(record.settings),
        width=record.contender.width,
        fit_seconds=fit_time(record),
        seconds_per_row=float(np.median(record.seconds_per_row)),
        snippet=record.contender.snippet(settings, task),
    )


def _plain_and_fast(equal: Sequence[Record]) -> Record:
    """Of good mechanisms in the order of the race (the library's defaults first), the first whose fit is not slow.

    Which of them has the lowest error is luck; this choice depends less on it.
    """
    fastest = min(fit_time(record) for record in equal)
    limit = max(_FAST * fastest, _SHORT)
    fast = {id(record) for record in equal if fit_time(record) <= limit}
    return next(record for record in equal if id(record) in fast)


def _equal(lines: Sequence[Judged], width: float) -> str:
    equal = [line for line in lines if line.equal]
    if len(lines) == 1:
        return f"Only {lines[0].label} could be judged."
    within = f"{width:.2g} standard errors of paired differences"
    if len(equal) == 1:
        of_all = f" of those judged on {equal[0].n_folds} folds" if any(line.undecided for line in lines) else ""
        return f"{equal[0].label} has the lowest error{of_all}, by more than {within}."
    return f"These {len(equal)} are equal within {within}: {_listed(equal)}."


def _listed(lines: Sequence[Judged]) -> str:
    """Names of a few lines; of many, the maps with the number of their projections, and the others."""
    if len(lines) <= _LISTED:
        return "; ".join(line.label for line in lines)
    counts: dict[str, int] = {}
    for line in lines:
        name = line.label if line.spec is None else label(line.spec.map)
        counts[name] = counts.get(name, 0) + 1
    return "; ".join(f"{name} with {n} projections" if n > 1 else name for name, n in counts.items())
