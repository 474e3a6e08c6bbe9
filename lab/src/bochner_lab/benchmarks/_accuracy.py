"""Errors and fit times of kernel machines and their rivals on real data, at several widths.

Every method sees the same scaled columns and chooses its parameters on training rows only.  Times are those of fits with
the chosen parameters, for the automatic mode as for the others; how long the choice took stands beside it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bochner.reporting import seconds

from ..datasets import load
from ._bench import REST, Result, at_most, measured
from ._contenders import AUTOMATIC, DRAWS, NYSTROEM, SAMPLER, WIDE, Contender, Split, contenders

SPEED = "speed"
"""Stands for the cases of the suite without data sets."""
TOLERANCE = 2.0
"""By how many per cent an error may be above that of a rival whose fit took no less time."""
SLACK = 1.1
"""Times within this factor count as equal."""
RIVALS = (SAMPLER, NYSTROEM)
_LEAST_LOSS = 1e-9


@dataclass(frozen=True)
class Case:
    """A data set, whether its targets are classes, and what is done to its columns before anything else."""

    name: str
    classes: bool = False
    columns: Callable[[np.ndarray], np.ndarray] = np.asarray
    pixels: bool = False
    rows: int | None = None
    """Training rows that are used, at most."""

    def split(self) -> Split:
        """Training and test rows: as the data come, or a quarter at random for the test."""
        data = load(self.name)
        n = data.n_train or 3 * len(data.X) // 4
        order = np.arange(len(data.X)) if data.n_train else np.random.default_rng(0).permutation(len(data.X))
        X, y = self.columns(data.X[order].astype(np.float64)), data.y[order]
        kept = slice(None, n if self.rows is None else min(n, self.rows))
        if self.pixels:
            X = X / np.abs(X[kept]).max()
        else:
            spread = X[kept].std(axis=0)
            X = (X - X[kept].mean(axis=0)) / np.where(spread > 0, spread, 1)
        y = y.astype(np.int64 if self.classes else np.float64)
        return Split(self.name, X[kept], y[kept], X[n:], y[n:], self.classes, not self.pixels)


CASES = (
    Case("abalone"),
    Case("ccpp"),
    Case("cpu_act", columns=np.log1p),
    Case("parkinsons"),
    Case("wine-quality-white"),
    Case("krkopt", classes=True),
    Case("letter", classes=True),
    Case("usps", classes=True, pixels=True),
    Case("fashion-mnist-test", classes=True, pixels=True),
    Case("mnist", classes=True, pixels=True, rows=10_000),
)


@dataclass(frozen=True)
class Point:
    """One method at one width: losses of the test rows by draw, shortest time of a fit, time of the choice before it."""

    data: str
    method: str
    width: int | None
    losses: np.ndarray
    classes: bool
    fit: float
    search: float

    @property
    def errors(self) -> np.ndarray:
        """Error of each draw: the share of wrong classes, or the root of the mean squared error."""
        means = self.losses.mean(axis=1)
        return np.asarray(means if self.classes else np.sqrt(means))

    @property
    def error(self) -> float:
        """Mean over the draws."""
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over the draws."""
        n = len(self.errors)
        return float(np.std(self.errors, ddof=1) / np.sqrt(n)) if n > 1 else 0.0

    @property
    def log_losses(self) -> np.ndarray:
        """Derivatives of the logarithm of the error in the weights of rows of each draw, (draws, rows)."""
        means = np.maximum(self.losses.mean(axis=1, keepdims=True), _LEAST_LOSS)
        return np.asarray((1.0 if self.classes else 0.5) * (self.losses / means))


def checked_names(names: Sequence[str]) -> Sequence[str]:
    """The names, which are those of data sets or "speed"."""
    known = (SPEED, *(case.name for case in CASES))
    for name in names:
        if name not in known:
            raise ValueError(f"bochner-lab bench: --data must be one of {', '.join(map(repr, known))}, got {name!r}.")
    return names


def run(names: Sequence[str] = ()) -> Iterator[Result]:
    """Every data set that is found, or those of these names."""
    for case in CASES:
        if names and case.name not in names:
            continue
        try:
            split = case.split()
        except OSError as error:
            print(f"left out {case.name}: {error}", file=sys.stderr)
            continue
        points = []
        for point in measure(split):
            points.append(point)
            yield _line(point, split)
        yield from goals(points)


def measure(split: Split) -> Iterator[Point]:
    """All methods at all widths for which there are enough rows."""
    for contender in contenders():
        if contender.serves(split):
            for width in contender.widths or [None]:
                if width is None or len(split.X) > (1.5 if width >= WIDE else 1) * width:
                    yield _point(contender, split, width)


def _point(contender: Contender, split: Split, width: int | None) -> Point:
    found, search = contender.search(split, width or 0)
    losses, times = [], []
    for seed in range(min(contender.draws, DRAWS.get(width or 0, contender.draws))):
        time.sleep(REST)
        start = time.perf_counter()
        predict = contender.fit(split, width or 0, found, seed)
        times.append(time.perf_counter() - start)
        losses.append(split.losses(predict(split.X_test)))
    fit = min(times)
    search = max(search - fit, 0.0) if contender.search_fits else search
    return Point(split.name, contender.name, width, np.array(losses), split.classes, fit, search)


def _line(point: Point, split: Split) -> Result:
    case = f"{point.data}: {point.method}" + (f", width {point.width}" if point.width else "")
    details = f"+- {point.standard_error:.2g}; fit {seconds(point.fit)}, after a search of {seconds(point.search)}"
    line = measured(case, point.error, "error rate" if split.classes else "RMSE", details)
    return line.with_numbers(
        data=point.data,
        rows=len(split.X),
        method=point.method,
        width=point.width,
        errors=point.errors.tolist(),
        fit=point.fit,
        search=point.search,
    )


class Gap(NamedTuple):
    """Our error against that of a rival at the time of its fit: the logarithm of their ratio, and its standard error."""

    log_ratio: float
    standard_error: float
    width: int

    @property
    def percent(self) -> float:
        """By how many per cent our error is above."""
        return float(100 * np.expm1(self.log_ratio))

    @property
    def tie(self) -> bool:
        """Whether the difference is within two standard errors."""
        return abs(self.log_ratio) <= 2 * self.standard_error


def gap(ours: list[Point], theirs: Point) -> Gap:
    """Our error between the widths that were measured, and below the fastest of them infinite.

    Logarithms of errors are linear in those of times between two points.  The standard error adds up that of the test rows,
    which are the same for all methods, and that of the draws, which are independent.
    """
    front: list[Point] = []
    for point in sorted(ours, key=lambda point: point.fit):
        if not front or point.error < front[-1].error:  # a slower fit of larger error is nobody's choice
            front.append(point)
    assert theirs.width is not None
    if theirs.fit * SLACK < front[0].fit:
        return Gap(np.inf, 0.0, theirs.width)
    k = int(np.searchsorted([point.fit for point in front], theirs.fit))
    low, high = front[max(k - 1, 0)], front[min(k, len(front) - 1)]
    share = 0.0 if low is high else float(np.log(theirs.fit / low.fit) / np.log(high.fit / low.fit))
    parts = [(1 - share, low), (share, high), (-1.0, theirs)]
    log_ratio = sum(weight * np.log(max(point.error, _LEAST_LOSS)) for weight, point in parts)
    rows = sum(weight * point.log_losses.mean(axis=0) for weight, point in parts)
    variance = float(np.var(rows, ddof=1)) / len(rows)
    for weight, point in parts:
        variance += (weight * point.standard_error / max(point.error, _LEAST_LOSS)) ** 2
    return Gap(float(log_ratio), float(np.sqrt(variance)), theirs.width)


def goals(points: list[Point]) -> Iterator[Result]:
    """At each fit time of a rival, the automatic mode against it; the worst of them, and whether that is a tie."""
    ours = [point for point in points if point.method == AUTOMATIC]
    for rival in RIVALS:
        gaps = [gap(ours, theirs) for theirs in points if theirs.method == rival]
        worst = max(gaps, key=lambda one: one.log_ratio)
        above = [one for one in gaps if one.percent > TOLERANCE]
        ties = sum(one.tie for one in above)
        details = (
            f"+- {100 * worst.standard_error:.2g}, at its width {worst.width}{', a tie' if worst.tie else ''}; below it at "
            f"{sum(one.log_ratio < 0 for one in gaps)} of {len(gaps)} widths, more than {TOLERANCE:g} % above it at "
            f"{len(above)}, of which {ties} within two standard errors"
        )
        case = f"{points[0].data}: largest excess of our error over {rival}, at its fit times"
        line = at_most(case, worst.percent, TOLERANCE, "%", details)
        yield line.with_numbers(
            data=points[0].data,
            rival=rival,
            percent=[one.percent for one in gaps],
            standard_errors=[100 * one.standard_error for one in gaps],
            ties=[one.tie for one in gaps],
            widths=[one.width for one in gaps],
        )
