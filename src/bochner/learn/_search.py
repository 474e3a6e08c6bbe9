"""The search of the automatic mode: candidates on a sample of the rows, judged by rows that were left out.

Kernel, columns, metric and bandwidth are chosen with the exact kernel of some hundred rows, where leave-one-out errors of
every alpha come from one decomposition.  The map and the width, which only matter for more rows than the exact kernel can
take, are chosen with features.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg

from ..kernels import Kernel
from ..linalg.engine import blas_for
from ..maps import Landmarks
from ._coordinates import Coordinates
from ._feature_parameters import FeatureParameters, draw_features
from ._linear.leave_one_out import (
    GramFit,
    Judged,
    Score,
    about,
    best_of_many,
    doubt,
    fitted,
    grid_of,
    walk,
)
from ._linear.spectrum import NormalEquations
from ._metric import MOST_COLUMNS, at_median, with_metric
from ._row_source import Chunk, rows_in_memory
from ._selection import (
    EXACT_TRIAL_ROWS,
    GIVEN,
    LANDMARKS,
    LONGEST,
    MATERIAL,
    PERFECT,
    PIVOTS,
    SHORTEST,
    STEPS,
    WORTH,
    Trial,
)

EXACT_ROWS = 3000  # most rows of which all are landmarks, so that the kernel is exact: a fit of 3000 takes some seconds
_EXPLORED = 400  # rows of a trial with the exact kernel that only excludes candidates
_CLOSE = 1.15  # ratio of errors up to which the second of the kernels is tried on more rows, too
_FEATURE_ROWS, _FEATURE_WIDTH = 4096, 1024  # rows and features of trials with features
_WIDEST, _FIRST_WIDTH = 4096, 512  # widest features that the budget may choose, and the narrowest
_BUDGET = 6e11  # most multiplications n D^2 of a fit of the chosen width: about 20 s on two cores
_GAIN = 0.03  # share of the error for which twice the width is worth it
_GOOD, _FEW_COLUMNS, _FEWEST = 0.2, 8, 30
"""Error up to which, columns from which, and rows below which no far shorter bandwidth is looked at: many columns keep all
rows apart."""

AT_POINTS = {LANDMARKS: Landmarks("uniform"), PIVOTS: Landmarks("rpcholesky")}


@dataclass(eq=False)
class Search:
    """Trials on a sample of rows in random order."""

    owner: str
    sample: Chunk  # with targets (n, t) and weights
    n_rows: int  # rows from which the sample was drawn
    kernels: tuple[Any, ...]  # candidates; the first is the one to begin with
    bandwidth: bool  # whether their bandwidth is free
    columns: dict[str, Coordinates | None]  # candidates; the first is the one to begin with
    metrics: tuple[str, ...]  # candidates beside "none": "columns", "learned"
    classes: bool  # whether targets are signs of classes, and whether there is an intercept
    intercept: bool
    alphas: np.ndarray | None  # values of alpha to choose among; None for the default ones
    seed: int  # of the draws: the same numbers for all candidates
    tried: list[Trial] = field(default_factory=list)  # in the order in which they were tried
    with_metric: float = math.nan  # errors of held-out rows, where a metric was learned
    without_metric: float = math.nan
    screened: bool = False  # whether a metric began with the columns that trees use

    def __post_init__(self) -> None:
        self.judged = Judged.of(self.sample.targets, self.sample.weights, classes=self.classes)
        self.begun, self._spans = time.perf_counter(), dict[str, np.ndarray]()

    def best(self, told: FeatureParameters, maps: tuple[str, ...], width: int | None) -> Trial:
        """Best candidate: kernel, columns and metric by `exact`, if any is open, then map and width by `featured`."""
        if self.kernels[0] is not None and (self.bandwidth or len(self.kernels) > 1 or len(self.columns) > 1):
            best = self.exact()
        else:
            name, coordinates = next(iter(self.columns.items()))
            unknown = Score(math.nan, np.inf, np.inf, np.empty(0))
            best = Trial(told.kernel, name, coordinates, "none", math.nan, "exact", 0, 0, unknown)
        if maps != ("exact",):
            best = self.featured(best, told._replace(kernel=best.kernel), maps, width)
        else:
            best = best._replace(map="exact", width=self.n_rows)
        if self.bandwidth and any(c is not None and c.center is not None for c in self.columns.values()):  # not sparse
            best = best._replace(coordinates=(best.coordinates or Coordinates()).bounded(self.sample.X))
        return best

    def exact(self) -> Trial:
        """Best kernel, columns, bandwidth and metric, with the exact kernel.

        Candidates are first tried on few rows, and those that are left on more.
        """
        n = len(self.sample.X)
        first, start, rows = next(iter(self.columns)), 1.0 if n < 50 else 0.0, n if n <= EXACT_TRIAL_ROWS else _EXPLORED
        found = [self._walk(self.kernels[0], first, start, rows)]
        far = self._far(found[0])
        if far is not None:
            found, start, rows = [far], far.step, EXACT_TRIAL_ROWS
        found += [self._walk(kernel, first, start, rows) for kernel in self.kernels[1:]]
        best = self._first_best(found)
        if rows < min(n, EXACT_TRIAL_ROWS):  # rows decide between kernels, of which rough ones need fewer
            close = [trial for trial in found if trial is best or trial.error < _CLOSE * best.error]
            close = sorted(close, key=lambda trial: trial.error)[:3]
            best = self._first_best([self._exact_trial(t.kernel, first, t.step, EXACT_TRIAL_ROWS) for t in close])
        for name in list(self.columns)[1:]:
            other = self._walk(best.kernel, name, 0.0 if math.isnan(best.step) else best.step, best.n_rows)
            best = other if self.clearly_better(other, best) else best
        if self.bandwidth:
            best = self._walk(best.kernel, best.columns, best.step, best.n_rows, size=0.5, first=best)
        searched = self.bandwidth and best.kernel.metric is not None
        return with_metric(self, best) if self.metrics and searched else best

    def _first_best(self, trials: list[Trial]) -> Trial:
        """Best one, of which another than the first must be clearly better than those before."""
        best = trials[0]
        for trial in trials[1:]:
            best = trial if self.clearly_better(trial, best) else best
        return best

    def clearly_better(self, one: Trial, other: Trial, share: float = MATERIAL) -> bool:
        """Whether the error is lower by a share of it, and by more than the doubt about the mean of the differences."""
        if not np.isfinite(other.error) or not np.isfinite(one.error):
            return one.error < other.error
        gain = other.error - one.error
        if len(one.score.losses) != len(other.score.losses):
            return gain > share * other.error
        judged = self.judged.taken(one.rows)
        spread = float(judged.spread(other.score.losses - one.score.losses))
        return gain > max(share * other.error, doubt(len(one.score.losses)) * spread)

    def _walk(
        self, kernel: Kernel, columns: str, start: float, rows: int, *, size: float = 1.0, first: Trial | None = None
    ) -> Trial:
        """Best bandwidth from ``start``, whose trial may be known, downhill in steps until both neighbours are worse."""
        if not self.bandwidth:
            return self._exact_trial(kernel, columns, math.nan, rows)
        known = {start: self._exact_trial(kernel, columns, start, rows) if first is None else first}
        best = start
        while known[best].error > PERFECT:
            fresh = [s for s in (best + size, best - size) if s not in known and SHORTEST <= s <= LONGEST]
            if not fresh:
                break
            found = known[fresh[0]] = self._exact_trial(kernel, columns, fresh[0], rows)
            best = fresh[0] if self.clearly_better(found, known[best], WORTH) else best
        return known[best]

    def _far(self, best: Trial) -> Trial | None:
        """Best trial of much shorter bandwidths, if it is clearly better: rapid changes look like noise at longer ones."""
        n, d = self.sample.X.shape
        if not self.bandwidth or best.error < _GOOD or d > _FEW_COLUMNS or n < _FEWEST:
            return None
        rows = min(n, EXACT_TRIAL_ROWS)
        if best.n_rows < rows:
            best = self._exact_trial(best.kernel, best.columns, best.step, rows)
        for step in np.arange(best.step - 3, SHORTEST - 0.1, -2):
            found = self._exact_trial(best.kernel, best.columns, float(step), rows)
            if self.clearly_better(found, best):
                return self._walk(best.kernel, best.columns, float(step), rows, first=found)
        return None

    def _exact_trial(self, kernel: Kernel, columns: str, step: float, n: int) -> Trial:
        """Leave-one-out error of the exact kernel on some rows."""
        coordinates = self.columns[columns]
        Z = self._close_rows(columns, kernel)[:n]
        kernel = at_median(kernel, Z, step) if self.bandwidth else kernel
        judged = self.judged.taken(slice(n))
        fit = GramFit.of(kernel(Z), judged.targets, judged.weights, intercept=self.intercept)
        trial = Trial(
            kernel, columns, coordinates, "none", step, "exact", n, n, fit.score(judged, self.alphas), slice(n)
        )
        self.tried.append(trial)
        return trial

    def _close_rows(self, columns: str, kernel: Kernel) -> np.ndarray:
        """Rows for trials with the exact kernel: of many columns, coordinates in the span of the rows.

        They have the same products and Euclidean distances, and far fewer columns than TF-IDF.
        """
        n, d = self.sample.X.shape
        if d <= n or d <= MOST_COLUMNS or kernel.metric == "cityblock":
            return self.moved(self.columns[columns], slice(EXACT_TRIAL_ROWS))
        if columns not in self._spans:
            Z = self.moved(self.columns[columns], slice(EXACT_TRIAL_ROWS))
            with blas_for(len(Z)):
                values, U = linalg.eigh(Z @ Z.T, overwrite_a=True, check_finite=False, driver="evd")
            self._spans[columns] = U * np.sqrt(np.maximum(values, 0))
        return self._spans[columns]

    def moved(self, coordinates: Coordinates | None, rows: Any) -> np.ndarray:
        X = self.sample.X[rows].astype(np.float64)
        return np.asarray(X if coordinates is None else coordinates(X))

    @property
    def nothing(self) -> float:
        """Error of a constant prediction: one, and for classes that of the most frequent one."""
        if not self.judged.classes:
            return 1.0
        return float(self.judged.mean(self.judged.losses_of_a_constant()))

    def explains(self, best: Trial) -> bool:
        """Whether classes are told better than by a constant, beyond twice the doubt about the mean difference.

        The doubt is that of rows of the same class: how many a rare class has says nothing about the fit.
        """
        judged, losses = self.judged.taken(best.rows), best.score.losses
        if not judged.classes or len(losses) != len(judged.targets):
            return True
        gains = judged.losses_of_a_constant() - losses
        Y = judged.targets
        _, home = np.unique(Y.argmax(axis=1) if Y.shape[1] > 1 else Y[:, 0] > 0, return_inverse=True)
        usual = np.bincount(home, gains) / np.bincount(home)
        return bool(judged.mean(gains) > 2 * judged.spread(gains - usual[home]))

    def featured(self, best: Trial, parameters: FeatureParameters, maps: tuple[str, ...], width: int | None) -> Trial:
        """Best map, width and bandwidth with features, in the coordinates and with the kernel that were chosen.

        Parameters
        ----------
        best : Trial
        parameters : FeatureParameters
            Map and projection as they are given.
        maps : tuple of str
            Among which to choose.
        width : int or None
            The one that is given, or None.
        """
        found: Trial | None = None
        most = width or self._widest
        narrow = min(most, _FEATURE_WIDTH if width else _FIRST_WIDTH)
        failures = []
        for name in maps:
            try:
                trial = self._feature_walk(best, parameters, name, narrow, 0.0 if math.isnan(best.step) else best.step)
            except ValueError as error:  # a kernel without features of this kind
                failures.append(error)
                continue
            found = trial if found is None or self.clearly_better(trial, found) else found
        if found is None:
            raise failures[0]
        while width is None and found.width < most and found.error > PERFECT:
            wider = self._feature_trial(found, parameters, found.map, min(2 * found.width, most), found.step)
            if wider.width <= found.width or wider.error > (1 - _GAIN) * found.error:
                break
            found = wider
        if found.map == LANDMARKS and PIVOTS not in maps:  # outliers may deserve landmarks of their own
            trial = self._feature_trial(found, parameters, PIVOTS, found.width, found.step)
            found = trial if self.clearly_better(trial, found) else found
        return found if width is None or width == found.width else found._replace(width=width)

    @property
    def _widest(self) -> int:
        """Most features that a fit of all rows can afford."""
        return int(np.clip(2 ** math.floor(math.log2(math.sqrt(_BUDGET / self.n_rows))), _FIRST_WIDTH, _WIDEST))

    def _feature_walk(self, like: Trial, parameters: FeatureParameters, name: str, width: int, start: float) -> Trial:
        known = {start: self._feature_trial(like, parameters, name, width, start)}
        best = start
        while self.bandwidth and len(known) < STEPS and known[best].error > PERFECT:
            fresh = [s for s in (best - 1, best + 1) if s not in known and SHORTEST <= s <= LONGEST]
            if not fresh:
                break
            found = known[fresh[0]] = self._feature_trial(like, parameters, name, width, fresh[0])
            best = fresh[0] if self.clearly_better(found, known[best], WORTH) else best
        return known[best]

    def _feature_trial(self, like: Trial, parameters: FeatureParameters, name: str, width: int, step: float) -> Trial:
        """Leave-one-out error of features; landmarks are rows of the first half, and the second half judges all."""
        n = min(len(self.sample.X), max(_FEATURE_ROWS, 4 * width))
        half = n // 2
        Z, Y, weights = (
            self.moved(like.coordinates, slice(n)),
            self.sample.targets[:n],
            self.judged.taken(slice(n)).weights,
        )
        kernel = like.kernel
        if self.bandwidth:
            kernel = kernel.with_bandwidth(kernel.bandwidth * 2.0 ** (step - like.step))
        chosen = parameters._replace(
            kernel=kernel,
            gamma=None,
            map=AT_POINTS.get(name, parameters.map if name == GIVEN else None),
            n_components=min(width, half) if name in AT_POINTS else width,
        )
        rows = rows_in_memory(self.owner, Z[:half] if name in AT_POINTS else Z)
        phi = draw_features(chosen, rows, np.random.default_rng(self.seed), symmetric=True)
        F = phi.queries(Z)
        equations, means = fitted(F, Y, weights, intercept=self.intercept)
        F, Y = about(means, F[half:], Y[half:])
        judged = self.judged.taken(slice(half, n))
        grid = grid_of(equations) if self.alphas is None else self.alphas
        if isinstance(equations, NormalEquations) and len(grid) > 1:
            near = grid[len(grid) // 3] if like.map == "exact" else like.score.alpha
            score = walk(equations, F, Y, judged, grid, float(near), 10)
        else:
            score = best_of_many(equations, F, Y, judged, grid)[0]
        trial = like._replace(
            kernel=kernel, step=step, map=name, width=phi.n_features_out, n_rows=n, score=score, rows=slice(half, n)
        )
        self.tried.append(trial)
        return trial
