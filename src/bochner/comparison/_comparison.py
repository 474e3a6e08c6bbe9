"""The result of a comparison: estimators with their errors and times, what to use, why, and the code for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

from ..reporting import figure, format_table, seconds, with_error
from ._candidates import BOOSTED, CONSTANT, DEFAULTS, LINEAR, NYSTROEM, SAMPLER
from ._source import source

SLOW, UNTRIED = "since a fit of", "since there was no time to try it"
"""How the reasons begin for which a candidate is left out for lack of time."""
_WORTH_NAMING = 1.5
"""Ratio of errors up to which a faster estimator is named: with few rows, four times the error may be insignificant too."""
_HEADER = ("estimator", "{measure}", "{score}", "difference", "verdict", "fit", "predict 1000 rows")
_ALTERNATIVES = {CONSTANT: "a constant", LINEAR: "the linear model", SAMPLER: SAMPLER, NYSTROEM: NYSTROEM,
                 BOOSTED: "boosted trees"}  # fmt: skip
"""What one would use instead, and how the headline calls it."""


@dataclass(frozen=True)
class Result:
    """One estimator on the folds of a comparison.

    Attributes
    ----------
    name : str
        Its name in tables.
    estimator : estimator
        The estimator, unfitted.
    ours : bool
        Whether it is a kernel machine of this library.
    errors : tuple of float
        Error on the test rows of each fold.
    score : float
        R2, or accuracy, averaged over the folds.
    fit_seconds : float
        Median time of a fit, searches for settings included.
    predict_seconds : float
        Median time to predict 1000 rows.
    chosen : str
        What the estimator says about its own choices, if it does.
    """

    name: str
    estimator: Any
    ours: bool
    errors: tuple[float, ...]
    score: float
    fit_seconds: float
    predict_seconds: float
    chosen: str = ""

    @property
    def error(self) -> float:
        """Mean error over the folds."""
        return float(np.mean(self.errors))

    @property
    def code(self) -> str:
        """Code that builds and fits the estimator on arrays ``X`` and ``y``."""
        imports, expression = source(self.estimator)
        return "\n".join([*imports, "", f"model = {expression}", "model.fit(X, y)"])


def difference(result: Result, other: Result) -> tuple[float, float]:
    """See `Comparison.difference`."""
    differences = np.subtract(result.errors, other.errors)
    k = len(differences)
    variance = differences.var(ddof=1) * (1 / k + 1 / (k - 1))
    return float(differences.mean()), float(np.sqrt(variance))


def verdict(result: Result, other: Result) -> str:
    """See `Comparison.verdict`."""
    mean, error = difference(result, other)
    if abs(mean) <= stats.t.ppf(0.975, len(result.errors) - 1) * error or mean == 0:
        return "undecided"
    return "worse" if mean > 0 else "better"


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`: estimators evaluated on the same folds; print it to see the table.

    Attributes
    ----------
    results : tuple of Result
        All evaluated estimators: the recommended one first, then the others in order of mean error.
    task : {"regression", "classification"}
        What was predicted.
    n_rows, n_used : int
        Rows of the data, and rows that were used.
    n_folds : int
        Folds on which every estimator was evaluated.
    left_out : dict of str to str
        Estimators that were not evaluated, and why.
    notes : tuple of str
        Deviations from what was requested, each in one sentence.
    seconds : float
        Time of the comparison.
    """

    results: tuple[Result, ...]
    task: str
    n_rows: int
    n_used: int
    n_folds: int
    left_out: dict[str, str]
    notes: tuple[str, ...]
    seconds: float

    @property
    def best(self) -> Result:
        """The recommended estimator: the default machine, unless another is better by more than noise."""
        return self.results[0]

    @property
    def default(self) -> Result | None:
        """The default machine of this library, `KernelRidge()` or `KernelClassifier()`; None if it could not be fitted."""
        return next((result for result in self.results if result.name in DEFAULTS), None)

    @property
    def measure(self) -> str:
        """Name of the error: "RMSE" or "error rate"."""
        return "RMSE" if self.task == "regression" else "error rate"

    @property
    def code(self) -> str:
        """Code that builds and fits the recommended estimator on arrays ``X`` and ``y``."""
        return self.best.code

    def __getitem__(self, name: str) -> Result:
        """The result of a name."""
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(
            f"Comparison: there is no estimator {name!r}; there are {', '.join(r.name for r in self.results)}."
        )

    def difference(self, result: Result, other: Result | None = None) -> tuple[float, float]:
        """Mean difference of errors to another result (the best by default), paired over the folds, and its standard error.

        Training rows of folds overlap, which makes errors of folds dependent; the variance is therefore multiplied by
        1 + k/(k-1) for k folds (Nadeau and Bengio, 2003).
        """
        return difference(result, other or self.best)

    def verdict(self, result: Result, other: Result | None = None) -> str:
        """Whether a result is "better", "worse" or "undecided" against another (the best by default), at a level of 5 %."""
        return verdict(result, other or self.best)

    @cached_property
    def undecided(self) -> tuple[Result, ...]:
        """Results that these folds cannot tell from the best, fastest fit first."""
        others = [result for result in self.results[1:] if self.verdict(result) == "undecided"]
        return tuple(sorted(others, key=lambda result: result.fit_seconds))

    @property
    def headline(self) -> str:
        """Headline: the recommended estimator, its error, and how far that is below the usual baselines."""
        best = self.best
        named = [(self._found(name), shown) for name, shown in _ALTERNATIVES.items()]
        named.append((self.default, _name(self.default)))
        others = [(other, shown) for other, shown in named if other is not None and other is not best]
        below = [f", {self._percent(other)} below {shown}" for other, shown in others if self.verdict(other) == "worse"]
        open_ = [f"{shown} ({figure(other.error)})" for other, shown in others if self.verdict(other) != "worse"]
        undecided = f"; not significantly different from {_listed(open_)}" if open_ else ""
        return f"Use {best.name}: {self._level(best)}{''.join(below)}{undecided}."

    @property
    def reasons(self) -> tuple[str, ...]:
        """Cost of the recommended estimator, why it is the best as far as other errors show, and a faster alternative."""
        best, linear, boosted = self.best, self._found(LINEAR), self._found(BOOSTED)
        said = [f"{_capital(self._cost(best))}."]
        constant = self._found(CONSTANT)
        if constant is not None and constant is not best and self.verdict(constant) == "undecided":
            said.append("A constant is not clearly worse: no estimator is shown to predict the target.")
        if linear is not None and linear is not best:
            if self.verdict(linear) == "undecided" and linear.error > 1.5 * best.error:
                said.append(
                    f"A linear model has {self._times(linear)} the error, which with so few rows is not significant."
                )
            elif self.verdict(linear) == "undecided":
                said.append(
                    "A linear model is not clearly worse: the relation is close to linear, or there are too few rows."
                )
            else:
                said.append(f"The relation is not linear: a linear model has {self._times(linear)} the error.")
        if best.ours and boosted is not None and self.verdict(boosted) == "worse":
            said.append(f"It is smooth: boosted trees, which predict in steps, have {self._times(boosted)} the error.")
        elif (
            best.name in (BOOSTED, "extra trees") and self.default is not None and self.verdict(self.default) == "worse"
        ):
            behind = self._times(self.default)
            said.append(f"It has steps, or few relevant columns: {self.default.name} has {behind} the error.")
        if best.chosen:
            said.append(f"Its own choice: {best.chosen}")
        quick = next((other for other in self.undecided if other.error <= _WORTH_NAMING * best.error), None)
        if quick is not None and quick.fit_seconds < best.fit_seconds / 2:
            ratio = best.fit_seconds / quick.fit_seconds
            said.append(
                f"{_capital(quick.name)}: a fit is {ratio:.{0 if ratio >= 10 else 1}f} times faster, and the error of "
                f"{figure(quick.error)} is not significantly different."
            )
        return tuple(said)

    @property
    def sentences(self) -> tuple[str, ...]:
        """One sentence for each estimator."""
        return tuple(self._sentence(result) for result in self.results)

    @property
    def not_judged(self) -> tuple[str, ...]:
        """Estimators that were left out: the slow ones in one sentence, each other one with its reason."""
        slow = [name for name, why in self.left_out.items() if why.startswith((SLOW, UNTRIED))]
        said = [f"Not evaluated for lack of time: {', '.join(slow)}."] if slow else []
        return (*said, *(f"Not evaluated: {name}, {why}." for name, why in self.left_out.items() if name not in slow))

    @property
    def header(self) -> list[str]:
        """Titles of the columns of the table."""
        return [title.format(measure=self.measure, score=self._score_name) for title in _HEADER]

    def table(self) -> str:
        """Return all results as text."""
        return format_table(self.header, [self.row(result) for result in self.results])

    def row(self, result: Result) -> list[str]:
        """Return the cells of one line of the table."""
        spread = float(np.std(result.errors, ddof=1) / np.sqrt(len(result.errors)))
        best = result is self.best
        return [
            result.name,
            with_error(result.error, spread),
            f"{result.score:.3f}",
            "" if best else with_error(*self.difference(result)),
            self._standing if best else self.verdict(result),
            seconds(result.fit_seconds),
            seconds(result.predict_seconds),
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return a dictionary for JSON."""
        rows = []
        for result in self.results:
            mean, error = self.difference(result)
            rows.append({
                "name": result.name, "ours": result.ours, "error": result.error, "errors": list(result.errors),
                "score": result.score, "difference": mean, "standard_error": error, "verdict": self.row(result)[4],
                "fit_seconds": result.fit_seconds, "predict_seconds": result.predict_seconds, "code": result.code,
            })  # fmt: skip
        return {
            "best": self.best.name, "headline": self.headline, "reasons": list(self.reasons), "task": self.task,
            "measure": self.measure, "n_rows": self.n_rows, "n_used": self.n_used, "n_folds": self.n_folds,
            "results": rows, "left_out": self.left_out, "notes": list(self.notes), "seconds": self.seconds,
            "code": self.code,
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [self.headline, *self.reasons, "", self.table(), "", *self.sentences]
        return "\n".join([*lines, *self.not_judged, *self.notes, "", self.code])

    __repr__ = __str__

    @property
    def _score_name(self) -> str:
        return "R2" if self.task == "regression" else "accuracy"

    @property
    def _standing(self) -> str:
        """What the table says of the recommended result: another one may have a lower error, within noise."""
        return "best" if self.best.error <= min(result.error for result in self.results) else "default"

    def _found(self, name: str) -> Result | None:
        return next((result for result in self.results if result.name == name), None)

    def _level(self, result: Result) -> str:
        return f"{self.measure} {figure(result.error)} ({self._score_name} {result.score:.3f})"

    def _cost(self, result: Result) -> str:
        return f"a fit takes {seconds(result.fit_seconds)}, 1000 predictions {seconds(result.predict_seconds)}"

    def _percent(self, other: Result) -> str:
        return f"{100 * (1 - self.best.error / other.error):.0f} %" if other.error > 0 else "0 %"

    def _times(self, other: Result) -> str:
        if not self.best.error > 0:
            return "more than"
        ratio = other.error / self.best.error
        return f"{ratio:.{0 if ratio >= 10 else 2}f} times"

    def _sentence(self, result: Result) -> str:
        cost = self._cost(result)
        name = _capital(result.name)
        if result is self.best:
            said = "the best" if self._standing == "best" else "the default, which no other beats by more than noise"
            return f"{name}: {self.measure} {figure(result.error)}, {said}; {cost}."
        undecided = self.verdict(result) == "undecided"
        gap = f"{'undecided, a difference of' if undecided else 'worse by'} {with_error(*self.difference(result))}"
        return f"{name}: {gap} in {self.measure}, paired over {self.n_folds} folds; {cost}."


def _name(result: Result | None) -> str:
    return "" if result is None else result.name


def _listed(names: list[str]) -> str:
    """Names as in a sentence: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]
