"""What the automatic mode has tried, what it has chosen, and why, in words."""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..kernels import Kernel
from ..reporting import format_table
from ._coordinates import Coordinates
from ._linear.leave_one_out import Score

if TYPE_CHECKING:
    from ._search import Search

_LOG = logging.getLogger("bochner")
_NOTHING, _TOLD = 0.95, 100
"""Share of the error of a constant prediction from which a fit explains nothing, and rows from which that is said."""
SHORTEST, LONGEST = -9, 5
"""Doublings of the bandwidth from the median distance; far longer ones only extrapolate more wildly."""
EXACT_TRIAL_ROWS = 800  # rows of a trial with the exact kernel, whose decomposition takes a tenth of a second
MATERIAL, WORTH = 0.01, 0.01
"""Share of an error that counts as a difference between candidates, and for which a walk over bandwidths goes on."""
PERFECT = 1e-6  # share of the variance below which a fit leaves nothing to improve
STEPS = 5  # most bandwidths of a walk with features, or in a metric

LEARNED = ("columns", "learned")
RANDOM, LANDMARKS, PIVOTS, GIVEN = "random features", "landmarks", "pivoted landmarks", "given"


class Trial(NamedTuple):
    """A candidate and its score."""

    kernel: Any  # with its bandwidth
    columns: str  # "standardised", "clipped", "compressed" or "as they are"
    coordinates: Coordinates | None  # columns, and the metric behind them
    metric: str  # "none", "columns", "learned" or "given"
    step: float  # doublings of the bandwidth from the median distance; NaN if it was given
    map: str  # "exact" for the kernel itself
    width: int
    n_rows: int
    score: Score
    rows: Any = slice(None)  # rows of the sample that have judged it
    wrong: np.ndarray | None = None  # (n,): wrong classes among these rows, where a metric is judged

    @property
    def error(self) -> float:
        """Error of rows that were left out."""
        return self.score.error


@dataclass(frozen=True)
class Selection:
    """The choice of the automatic mode: a value to print, with the table of all candidates."""

    kernel: str  # the kernel with its bandwidth
    # "standardised", "clipped" (at five robust deviations), "compressed" (long tails to about their logarithms), "as
    # they are", or standardised with another scale of categories
    columns: str
    metric: str  # "none", "columns" (a scale of each), "learned" (a matrix) or "given"
    # "exact" (landmarks at all rows), "random features", "landmarks" (uniform ones), "pivoted landmarks" or "given"
    map: str
    n_components: int  # width of the features
    alpha: Any  # regularisation
    # leave-one-out error of the choice, in units of the variance of the targets, and its standard error. For classes,
    # the share of wrong ones plus a tenth of that.
    error: float
    standard_error: float
    reason: str  # why, in words
    # what deserves a warning: an error near that of a constant, or a bandwidth at the limit of the search
    edges: tuple[str, ...] = ()
    # a table, one row for each candidate: what it was, and its error on how many rows, at which width
    candidates: dict[str, list[Any]] = field(default_factory=dict, repr=False)
    seconds: float = 0.0  # how long the search took

    def __repr__(self) -> str:
        head = (
            f"Selection({self.kernel}, columns {self.columns}, metric {self.metric}, {self.map} of width "
            f"{self.n_components}, alpha={_number(self.alpha)}, leave-one-out error={self.error:.3g} +- "
            f"{self.standard_error:.1g})"
        )
        return "\n".join([head, self.reason, *self.edges, *([self.table()] if self.candidates else [])])

    def table(self) -> str:
        """Return the candidates as text, in the order in which they were tried."""
        rows = zip(*self.candidates.values(), strict=True)
        return format_table(list(self.candidates), [[_number(value) for value in row] for row in rows])

    def announce(self, owner: str) -> None:
        """Log the choice, and warn of what deserves it."""
        _LOG.info("%s: %s", owner, self.reason)
        for edge in self.edges:
            warnings.warn(f"{owner}: {edge}", UserWarning, stacklevel=2)


def selected(search: Search, best: Trial, *, alpha: Any, given_metric: bool) -> Selection:
    """Return the choice of a search; ``alpha`` is None where it is left open, and the one that is given otherwise."""
    seconds = time.perf_counter() - search.begun
    table: dict[str, list[Any]] = {
        "kernel": [_short(t.kernel) for t in search.tried],
        "columns": [t.columns for t in search.tried],
        "metric": ["given" if given_metric else t.metric for t in search.tried],
        "map": [t.map for t in search.tried],
        "bandwidth": [_bandwidth(t.kernel) for t in search.tried],
        "alpha": [t.score.alpha for t in search.tried],
        "error": [t.error for t in search.tried],
        "standard_error": [t.score.standard_error for t in search.tried],
        "n_rows": [t.n_rows for t in search.tried],
        "width": [t.width for t in search.tried],
    }
    return Selection(
        repr(best.kernel),
        best.columns,
        "given" if given_metric else best.metric,
        best.map,
        best.width,
        best.score.alpha if alpha is None else alpha,
        best.error,
        best.score.standard_error,
        _reason(search, best, seconds),
        _edges(search, best),
        table,
        seconds,
    )


def _reason(search: Search, best: Trial, seconds: float) -> str:
    """Return why this candidate was chosen, in words."""
    n = len(search.sample.X)
    parts = [
        f"{len(search.tried)} candidates by errors of left-out rows, on {n} of {search.n_rows} rows in {seconds:.1f} s"
    ]
    if len(search.kernels) > 1:
        parts.append(f"{_short(best.kernel)} kernel{_others(search, 'kernel', best)}")
    if search.bandwidth and not math.isnan(best.step):
        times = f"{2**best.step:.3g} times " if best.step else ""
        parts.append(f"bandwidth {_bandwidth(best.kernel):.3g}, {times}the median distance")
    if len(search.columns) > 1:
        parts.append(f"columns {best.columns}{_others(search, 'columns', best)}")
    if search.metrics:
        if best.metric == "none":
            parts.append("no metric, since none that was learned had a clearly lower error of held-out rows")
        else:
            kind = "a scale of each column" if best.metric == "columns" else "a matrix"
            held = f"{search.with_metric:.3g} against {search.without_metric:.3g} without"
            parts.append(f"learned metric, {kind}, held-out error {held}")
    if best.map == "exact":
        parts.append("landmarks at all rows, which make the kernel exact")
    elif best.map in (LANDMARKS, PIVOTS, RANDOM):
        parts.append(f"{best.map} of width {best.width}{_others(search, 'map', best)}")
    return "; ".join(parts) + "."


def _others(search: Search, name: str, best: Trial) -> str:
    """Return the errors of the best candidates of other kinds, judged as the best one of this kind was."""

    def kind(trial: Trial) -> str:
        return _short(trial.kernel) if name == "kernel" else str(getattr(trial, name))

    stage = [t for t in search.tried if t.metric == "none" and (t.map == "exact") == (name != "map")]
    usual = Counter(t.n_rows for t in stage).most_common(1)[0][0] if stage else 0
    stage = [t for t in stage if t.n_rows == usual]
    least: dict[str, float] = {}
    for trial in stage:
        least[kind(trial)] = min(trial.error, least.get(kind(trial), np.inf))
    own = least.pop(kind(best), math.nan)
    if not least or not own <= min(least.values()):
        return ""  # it was chosen on more rows or at another width, and these errors are no reason for it
    others = ", ".join(f"{error:.3g} {other}" for other, error in sorted(least.items(), key=lambda pair: pair[1]))
    return f", error {own:.3g} against {others}"


def _edges(search: Search, best: Trial) -> tuple[str, ...]:
    """Return what deserves a warning."""
    if len(search.sample.X) < _TOLD:
        return ()
    if best.error > _NOTHING * search.nothing or not search.explains(best):
        return (
            f"the fit explains nothing: its leave-one-out error is {best.error:.3g}, and that of a constant "
            f"{search.nothing:.3g}.",
        )
    if search.bandwidth and best.step <= SHORTEST:  # long ones have a limit, to which predictions tend
        return (
            f"the bandwidth {_bandwidth(best.kernel):.3g} is at the limit of the search, {2**best.step:.3g} times the "
            f"median distance; transform the columns (logarithms?) or pass gamma.",
        )
    return ()


def _short(kernel: Any) -> str:
    """Return the kernel without its bandwidth."""
    if not isinstance(kernel, Kernel) or not kernel.has_bandwidth or np.ndim(kernel.bandwidth):
        return repr(kernel)
    text = repr(kernel.with_bandwidth(1.0))
    return text.replace("lengthscale=1.0", "").replace("scale=1.0", "").replace(", )", ")").replace("()", "")


def _bandwidth(kernel: Any) -> float:
    found = kernel.bandwidth if isinstance(kernel, Kernel) else math.nan
    return float(found) if isinstance(found, float | int) else math.nan


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
