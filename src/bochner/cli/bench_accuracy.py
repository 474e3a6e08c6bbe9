"""Errors and fit times of kernel machines and their rivals on real data, at several widths.

Every method sees the same scaled columns and chooses its parameters on training rows only.  Times are those of the fit
after that choice; how long the choice took stands beside it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .._table import seconds
from ..datasets import load
from .accuracy_contenders import Contender, Split, contenders
from .bench import Result, at_most, measured

WIDTHS = (128, 512, 2048)
SEEDS = range(2)
TOLERANCE = 2.0
"""By how many per cent an error may be above that of a rival whose fit took no less time."""
SLACK = 1.1
"""Times within this factor count as equal."""
RIVALS = ("RBFSampler + Ridge", "Nystroem + Ridge")


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
    """One method at one width: errors by seed, shortest time of the fit alone, time of the choice before it."""

    data: str
    method: str
    width: int | None
    errors: tuple[float, ...]
    fit: float
    search: float

    @property
    def error(self) -> float:
        """Mean over the seeds."""
        return float(np.mean(self.errors))

    @property
    def standard_error(self) -> float:
        """Of the mean."""
        return float(np.std(self.errors, ddof=1) / np.sqrt(len(self.errors))) if len(self.errors) > 1 else 0.0


def run() -> Iterator[Result]:
    """Every data set that is found."""
    for case in CASES:
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
    """All methods at all widths below the number of rows."""
    for contender in contenders():
        if contender.serves(split):
            widths = [width for width in WIDTHS if width < len(split.X)] if contender.widths else [None]
            for width in widths:
                yield _point(contender, split, width)


def _point(contender: Contender, split: Split, width: int | None) -> Point:
    start = time.perf_counter()
    found = contender.search(split, width or 0)
    search, errors, times = time.perf_counter() - start, [], []
    for seed in SEEDS:
        start = time.perf_counter()
        predict, searched = contender.fit(split, width or 0, found, seed)
        times.append(time.perf_counter() - start - searched)
        search = max(search, searched)
        errors.append(split.error(predict(split.X_test)))
        if not contender.random:
            break
    return Point(split.name, contender.name, width, tuple(errors), min(times), search)


def _line(point: Point, split: Split) -> Result:
    case = f"{point.data}: {point.method}" + (f", width {point.width}" if point.width else "")
    details = f"+- {point.standard_error:.2g}; fit {seconds(point.fit)}, after a search of {seconds(point.search)}"
    line = measured(case, point.error, "error rate" if split.classes else "RMSE", details)
    return line.with_numbers(
        data=point.data,
        rows=len(split.X),
        method=point.method,
        width=point.width,
        errors=point.errors,
        fit=point.fit,
        search=point.search,
    )


def error_at(points: list[Point], fit: float) -> float:
    """The error that a fit of this time has, between the widths that were measured; infinite below the fastest of them.

    Logarithms of errors are linear in those of times between two points.
    """
    points = sorted(points, key=lambda point: point.fit)
    if fit * SLACK < points[0].fit:
        return np.inf
    times, errors = np.log([point.fit for point in points]), np.log(np.maximum([point.error for point in points], 1e-9))
    return float(np.exp(np.interp(np.log(fit), times, np.minimum.accumulate(errors))))


def goals(points: list[Point]) -> Iterator[Result]:
    """At each fit time of a rival, the automatic mode against it; the worst of them."""
    ours = [point for point in points if point.method == points[0].method]
    for rival in RIVALS:
        found = []
        for theirs in (point for point in points if point.method == rival):
            excess = 100 * (error_at(ours, theirs.fit) / theirs.error - 1)
            found.append((excess, theirs.width))
        worst, width = max(found)
        below = sum(excess < 0 for excess, _ in found)
        case = f"{points[0].data}: largest excess of our error over {rival}, at its fit times"
        details = f"at its width {width}; below it at {below} of {len(found)} widths"
        yield at_most(case, worst, TOLERANCE, "%", details)
