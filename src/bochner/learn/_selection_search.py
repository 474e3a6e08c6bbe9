"""The search of the automatic mode: a fixed small number of fits to a sample of the rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import catalogue
from ..maps import Landmarks
from ._coordinates import Coordinates
from ._feature_parameters import FeatureParameters, draw_features, look_up
from ._linear.spectrum import NormalEquations
from ._row_source import Chunk, rows_in_memory
from ._selection import Selection
from ._selection_criterion import (
    Score,
    best_of_many,
    fitted,
    score_of,
    strengths,
    units_of,
    walk,
    weighted_median_distance,
)

FIRST_ROWS, FIRST_WIDTH = 2048, 512
"""Rows and features of the first trials."""
SECOND_ROWS, SECOND_WIDTH = 4096, 1024
"""Rows and features of the trials around the best of the first ones, where there are more rows than those."""
JUDGED_ROWS = 2048
"""Rows whose leave-one-out errors choose the strength of the final fit, and of the second trials."""
_EXACT_WIDTH = 256
"""Up to here the first trials have as many features as rows."""
_MOST_STEPS = 6
"""Doublings of the bandwidth in either direction, from the median distance."""
_MATERIAL = 0.01
"""Share of an error that counts as a difference."""
_WORTH = 0.003
"""Share of an error for which a walk goes on."""
_GOOD = 0.05
"""Share of the variance, or of the rows, up to which no far shorter bandwidth is looked at."""
_PERFECT = 1e-6
"""Share of the variance below which a fit leaves nothing to improve."""
_MEDIAN_ROWS = 1000

RANDOM, LANDMARKS, PIVOTS, GIVEN = "random features", "landmarks", "pivoted landmarks", "given"
AT_POINTS = {LANDMARKS: Landmarks("uniform"), PIVOTS: Landmarks("rpcholesky")}


class Freedom(NamedTuple):
    """What may be chosen, and what is given.

    Attributes
    ----------
    owner : str
    parameters : FeatureParameters
        Kernel as a value, map as it is given.
    bandwidth : bool
        Whether the bandwidth of the kernel is to be chosen.
    maps : tuple of str
        Among which to choose.
    columns : dict of bool to Coordinates or None
        Coordinates of rows whose columns are standardised (True) or as they are (False), preferred ones first.
    alphas : array or None
        Strengths to choose among; None for the default ones.
    intercept : bool
    alike : bool
        Whether targets are the signs of classes, which have the same unit and are judged by the wrong ones.
    whole : bool
        Whether rows are left out whole, whatever their weights: those of classes are no repetitions.
    exact : bool
        Whether there are no more rows than features, so that landmarks at all rows make the kernel exact.
    """

    owner: str
    parameters: FeatureParameters
    bandwidth: bool
    maps: tuple[str, ...]
    columns: dict[bool, Coordinates | None]
    alphas: np.ndarray | None
    intercept: bool
    alike: bool
    whole: bool
    exact: bool

    @property
    def fit_options(self) -> dict[str, bool]:
        """How fits are made and judged."""
        return {"intercept": self.intercept, "whole": self.whole, "classes": self.alike}

    def map_of(self, name: str) -> Any:
        """The parameter ``map`` of a kind of features."""
        return AT_POINTS.get(name, self.parameters.map if name == GIVEN else None)

    def keeps_points(self, name: str) -> bool:
        """Whether features of this kind are made from points of the data."""
        found = self.map_of(name)
        found = look_up(self.owner, catalogue.map, found) if isinstance(found, str) else found
        return isinstance(found, Landmarks) and isinstance(found.pivots, str)


@dataclass(frozen=True)
class Trial:
    """A candidate and its score."""

    map: str
    standardize: bool
    step: float
    bandwidth: float | None
    score: Score
    share: float
    n_rows: int
    width: int

    @property
    def error(self) -> float:
        """Leave-one-out error."""
        return self.score.error


class Search:
    """Trials on a sample of rows.

    Parameters
    ----------
    freedom : Freedom
    sample : Chunk
        At most `SECOND_ROWS` rows in random order, with targets and weights.
    n_rows : int
        Rows from which the sample was drawn.
    seed : int
        Of the draws: the same numbers for all candidates.
    """

    def __init__(self, freedom: Freedom, sample: Chunk, n_rows: int, seed: int) -> None:
        self.freedom, self.sample, self.n_rows, self.seed = freedom, sample, n_rows, seed
        self.units = units_of(sample.targets, sample.weights, alike=freedom.alike)
        self.base: dict[bool, float] = {}
        self.tried: list[Trial] = []
        self.halved = not freedom.exact and any(map(freedom.keeps_points, freedom.maps))

    def run(self) -> Selection:
        """Try, and return the best."""
        start = time.perf_counter()
        n, width = min(len(self.sample.X), FIRST_ROWS), int(self.freedom.parameters.n_components)
        narrow = min(width, FIRST_WIDTH, max(_EXACT_WIDTH, n // 4))
        first = self._first(n, min(narrow, max(n // 2, 1)) if self.halved else narrow)
        best = first
        if len(self.sample.X) > n:
            best = self._second(first, min(width, SECOND_WIDTH))
        return self._selection(best, time.perf_counter() - start)

    def _first(self, n: int, width: int) -> Trial:
        """The best map, columns and bandwidth, in steps of two from the median distance."""
        columns = list(self.freedom.columns)
        best: Trial | None = None
        failures = []
        for name in self.freedom.maps:
            begin = 0.0 if best is None else best.step
            try:
                found = self._walk(name, columns[0], begin, 1.0, n, width)
            except ValueError as error:  # a kernel without features of this kind
                failures.append(error)
                continue
            found = self._far(found, n, width) if best is None else found
            best = found if best is None or found.error < (1 - _MATERIAL) * best.error else best
        if best is None:
            raise failures[0]
        for other in columns[1:]:
            found = self._walk(best.map, other, best.step, 1.0, n, width)
            best = found if found.error < (1 - _MATERIAL) * best.error else best
        return best

    def _far(self, best: Trial, n: int, width: int) -> Trial:
        """Also try much shorter bandwidths: at longer ones a rapidly varying target looks like noise."""
        if not self.freedom.bandwidth or best.error < _GOOD:
            return best
        for step in (*np.arange(best.step - 3, -_MOST_STEPS, -2), -_MOST_STEPS):
            if step > best.step - 2:  # known
                break
            found = self._trial(best.map, best.standardize, float(step), n, width)
            if found.error < (1 - _MATERIAL) * best.error:
                return self._walk(best.map, best.standardize, float(step), 1.0, n, width, first=found)
        return best

    def _second(self, first: Trial, width: int) -> Trial:
        """More rows and features: smaller steps around the best, and the other map once more if it was close."""
        n = len(self.sample.X)
        best = self._walk(first.map, first.standardize, first.step, 0.5, n, width, first.score.alpha)
        for name in self.freedom.maps:
            others = [t for t in self.tried if t.map == name != first.map and t.standardize == first.standardize]
            rival = min(others, key=lambda trial: trial.error, default=None)
            if rival is not None and rival.error < 1.25 * first.error:
                found = self._trial(name, first.standardize, rival.step, n, width, rival.score.alpha)
                best = found if found.error < (1 - _MATERIAL) * best.error else best
        for columns in self.freedom.columns:  # on fewer rows, outliers may have decided between them
            others = [t for t in self.tried if t.standardize == columns != first.standardize]
            rival = min(others, key=lambda trial: trial.error, default=None)
            if rival is not None and rival.error < 1.5 * first.error:
                found = self._trial(rival.map, columns, rival.step, n, width, rival.score.alpha)
                best = found if found.error < (1 - _MATERIAL) * best.error else best
        if best.map == LANDMARKS:  # outliers may deserve landmarks of their own
            found = self._trial(PIVOTS, best.standardize, best.step, n, width, best.score.alpha)
            best = found if found.error < (1 - _MATERIAL) * best.error else best
        return best

    def _walk(
        self,
        name: str,
        standardize: bool,
        begin: float,
        size: float,
        n: int,
        width: int,
        alpha: float | None = None,
        first: Trial | None = None,
    ) -> Trial:
        """From a bandwidth, whose trial may be known, downhill in steps until both neighbours are worse."""
        known = {0: self._trial(name, standardize, begin, n, width, alpha) if first is None else first}
        best = 0
        while self.freedom.bandwidth:
            fresh = [k for k in (best - 1, best + 1) if k not in known and abs(begin + size * k) <= _MOST_STEPS]
            if not fresh:
                break
            found = known[fresh[0]] = self._trial(name, standardize, begin + size * fresh[0], n, width, alpha)
            best = fresh[0] if found.error < (1 - _WORTH) * known[best].error else best
        return known[best]

    def _trial(
        self, name: str, standardize: bool, step: float, n: int, width: int, alpha: float | None = None
    ) -> Trial:
        """One candidate: its best strength by leave-one-out, near ``alpha`` if it is given."""
        freedom = self.freedom
        bandwidth = self._bandwidth(standardize, step)
        coordinates = freedom.columns[standardize]
        X, Y, weights = self.sample.taken(slice(n))
        Z = X if coordinates is None else coordinates(X)
        parameters = freedom.parameters._replace(
            kernel=self.kernel_of(bandwidth),
            map=freedom.map_of(name),
            n_components=min(width, n // 2 if self.halved else n) if name in AT_POINTS else width,
        )
        half = n // 2 if self.halved else 0  # landmarks are rows of the first half, and the second half is new to all
        known = rows_in_memory(freedom.owner, Z[:half] if half else Z)
        phi = draw_features(parameters, known, np.random.default_rng(self.seed), symmetric=True)
        equations, judged = fitted(phi.queries(Z), Y, weights, self.units, **freedom.fit_options)
        judged = judged.taken(slice(half, None))
        grid = strengths(equations) if freedom.alphas is None else freedom.alphas
        share = math.nan
        if alpha is None or not isinstance(equations, NormalEquations):
            score, values = best_of_many(equations, judged, grid)
            share = _share_of_eigenvalues(values)
        else:
            score = walk(partial(score_of, equations, judged.taken(slice(JUDGED_ROWS))), grid, alpha, 5)
        trial = Trial(name, standardize, step, bandwidth, score, share, n, phi.n_features_out)
        self.tried.append(trial)
        return trial

    def kernel_of(self, bandwidth: float | None) -> Any:
        """The kernel with a bandwidth that was tried."""
        kernel = self.freedom.parameters.kernel
        return kernel if bandwidth is None else kernel.with_bandwidth(bandwidth)

    def _bandwidth(self, standardize: bool, step: float) -> float | None:
        """Two to the ``step`` times the median distance."""
        if not self.freedom.bandwidth:
            return None
        if standardize not in self.base:
            coordinates = self.freedom.columns[standardize]
            X, _, weights = self.sample.taken(slice(_MEDIAN_ROWS))
            Z = X if coordinates is None else coordinates(X)
            metric = self.freedom.parameters.kernel.metric or "euclidean"
            self.base[standardize] = weighted_median_distance(Z, weights, metric)
        return float(self.base[standardize] * 2.0**step)

    def _selection(self, best: Trial, seconds: float) -> Selection:
        table: dict[str, list[Any]] = {
            "map": [t.map for t in self.tried],
            "standardize": [t.standardize for t in self.tried],
            "bandwidth": [t.bandwidth for t in self.tried],
            "alpha": [t.score.alpha for t in self.tried],
            "error": [t.error for t in self.tried],
            "standard_error": [t.score.standard_error for t in self.tried],
            "n_rows": [t.n_rows for t in self.tried],
            "width": [t.width for t in self.tried],
        }
        return Selection(
            best.map,
            best.standardize,
            best.bandwidth,
            best.score.alpha,
            best.error,
            best.score.standard_error,
            self._reason(best, seconds),
            tuple(self._edges(best)),
            table,
            seconds,
        )

    def _reason(self, best: Trial, seconds: float) -> str:
        freedom = self.freedom
        parts = [
            f"{len(self.tried)} candidates by leave-one-out error on {len(self.sample.X)} of {self.n_rows} rows in "
            f"{seconds:.1f} s, all of the same width"
        ]
        if freedom.exact and best.map == LANDMARKS:
            parts.append("landmarks, since there are no more rows than features and they make the kernel exact")
        elif len(freedom.maps) > 1:
            parts.append(self._reason_of_map(best))
        if freedom.bandwidth:
            parts.append(f"bandwidth {best.bandwidth:.3g}, {2**best.step:.3g} times the median distance")
        if len(freedom.columns) > 1:
            rivals = {t.n_rows for t in self.tried if t.standardize != best.standardize}
            n = best.n_rows if best.n_rows in rivals else min(rivals)
            other = self._least(lambda t: t.standardize != best.standardize and t.n_rows == n)
            own = self._least(lambda t: t.standardize == best.standardize and t.n_rows == n)
            word = ("standardised", "as they are")[:: 1 if best.standardize else -1]
            parts.append(f"columns {word[0]}, error {_against(own or best, other)} {word[1]}")
        return "; ".join(parts) + "."

    def _reason_of_map(self, best: Trial) -> str:
        other = self._least(lambda t: (t.map == RANDOM) != (best.map == RANDOM))
        own = self._least(lambda t: t.map == best.map and t.n_rows == other.n_rows) if other else best
        shares = [t.share for t in self.tried if t.standardize == best.standardize and not math.isnan(t.share)]
        share = shares[-1] if shares else math.nan
        kind = "steep" if share < 0.5 else "flat"
        spectrum = f"the spectrum is {kind}: {100 * share:.0f} % of the eigenvalues carry 99 % of the trace"
        return f"{best.map}, error {_against(own or best, other)} of {other.map if other else 'none'}; {spectrum}"

    def _least(self, condition: Callable[[Trial], bool]) -> Trial | None:
        return min((t for t in self.tried if condition(t)), key=lambda t: t.error, default=None)

    def _edges(self, best: Trial) -> list[str]:
        """Where the error still falls by more than a little at the last candidate."""
        if best.error < _PERFECT or not self.freedom.bandwidth or abs(best.step) < _MOST_STEPS:
            return []
        inside = [
            t for t in self.tried if (t.map, t.standardize, t.n_rows) == (best.map, best.standardize, best.n_rows)
        ]
        nearest = min((t for t in inside if t is not best), key=lambda t: abs(t.step - best.step), default=best)
        gain = nearest.score.losses - best.score.losses
        doubt = 2 * float(np.std(gain)) / math.sqrt(len(gain)) if np.isfinite(gain).all() else 0.0
        if nearest.error - best.error < max(_MATERIAL * best.error, doubt):
            return []
        return [
            f"the bandwidth {best.bandwidth:.3g} is at the edge of the grid, {2**best.step:.3g} times the median "
            f"distance, and the error still falls there; transform the columns (logarithms?) or pass gamma."
        ]


def _share_of_eigenvalues(values: np.ndarray) -> float:
    """Share of the descending eigenvalues that add up to 99 % of their sum."""
    sums = np.cumsum(values)
    return float(1 + np.searchsorted(sums, 0.99 * sums[-1])) / len(values)


def _against(one: Trial, other: Trial | None) -> str:
    if other is None:
        return f"{one.error:.3g}"
    return f"{one.error:.3g} +- {one.score.standard_error:.1g} against {other.error:.3g} +- {other.score.standard_error:.1g}"
