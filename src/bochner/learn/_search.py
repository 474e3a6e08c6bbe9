"""The search of the automatic mode: candidates on a sample of the rows, judged by rows that were left out.

Kernel, columns, metric and bandwidth are chosen with the exact kernel of some hundred rows, where leave-one-out errors of
every alpha come from one decomposition.  The map and the width, which only matter for more rows than the exact kernel can
take, are chosen with features.
"""

from __future__ import annotations

import math
import time
from itertools import islice
from typing import Any, NamedTuple

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
from ._metric import at_median, iterates, screened_root, times
from ._row_source import Chunk, rows_in_memory

EXACT_ROWS = 3000
"""Most rows of which all are landmarks, so that the kernel is exact: a fit of 3000 takes some seconds."""
EXACT_TRIAL_ROWS, _EXPLORED = 800, 400
"""Rows of a trial with the exact kernel, whose decomposition takes a tenth of a second, and of one to exclude candidates."""
_CLOSE = 1.15
"""Ratio of errors up to which the second of the kernels is tried on more rows, too."""
_FEATURE_ROWS, _FEATURE_WIDTH = 4096, 1024
"""Rows and features of trials with features."""
_WIDEST, _FIRST_WIDTH = 4096, 512  # widest features that the budget may choose, and the narrowest
_BUDGET = 6e11
"""Most multiplications n D^2 of a fit of the chosen width: about 20 s on two cores."""
_GAIN = 0.03
"""Share of the error for which twice the width is worth it."""
_MATERIAL = 0.01
"""Share of an error that counts as a difference between kernels, maps and metrics."""
_WORTH = 0.01
"""Share of an error for which a walk over bandwidths goes on."""
_GOOD, _FEW_COLUMNS = 0.2, 8
"""Error up to which, and columns from which, no far shorter bandwidth is looked at: many columns keep all rows apart."""
_POOR = 0.8
"""Error from which columns are screened before a metric is learned."""
_PERFECT = 1e-6
"""Share of the variance below which a fit leaves nothing to improve."""
SHORTEST, LONGEST = -9, 5
"""Doublings of the bandwidth from the median distance; far longer ones only extrapolate more wildly."""
_ITERATIONS, _DIAGONAL = 10, 2
"""Most iterates of a diagonal metric, and of a matrix, and most of the former before the latter."""
MOST_LEARNED, _FIRST_LEARNED, _FEWEST = 1024, 512, 30
"""Most rows from which a metric is learned, those of its iterates but the last, and fewest."""
_FEATURE_STEPS = 5
"""Most bandwidths of a walk with features, or in a metric."""
_ASTRAY = 1.5
"""Ratio of leave-one-out errors from which a metric of a fold is better than that of all rows."""
_MOST_COLUMNS = 1024
"""Most columns of a metric that is a matrix."""

LEARNED = ("columns", "learned")
STANDARD, CLIPPED, COMPRESSED, RAW = "standardised", "clipped", "compressed", "as they are"
RANDOM, LANDMARKS, PIVOTS, GIVEN = "random features", "landmarks", "pivoted landmarks", "given"
AT_POINTS = {LANDMARKS: Landmarks("uniform"), PIVOTS: Landmarks("rpcholesky")}


class Trial(NamedTuple):
    """A candidate and its score.

    Attributes
    ----------
    kernel : Kernel
        With its bandwidth.
    columns : str
        "standardised", "clipped", "compressed" or "as they are".
    coordinates : Coordinates or None
        Columns, and the metric behind them.
    metric : str
        "none", "columns", "learned" or "given".
    step : float
        Doublings of the bandwidth from the median distance; NaN if it was given.
    map : str
        "exact" for the kernel itself.
    width, n_rows : int
    score : Score
    rows : slice or array
        Rows of the sample that have judged it.
    """

    kernel: Any
    columns: str
    coordinates: Coordinates | None
    metric: str
    step: float
    map: str
    width: int
    n_rows: int
    score: Score
    rows: Any = slice(None)

    @property
    def error(self) -> float:
        """Error of rows that were left out."""
        return self.score.error


class Search:
    """Trials on a sample of rows in random order.

    Parameters
    ----------
    owner : str
    sample : Chunk
        With targets (n, t) and weights.
    n_rows : int
        Rows from which the sample was drawn.
    kernels : tuple of Kernel
        Candidates; the first is the one to begin with.
    bandwidth : bool
        Whether their bandwidth is free.
    columns : dict of str to Coordinates or None
        Candidates; the first is the one to begin with.
    metrics : tuple of str
        Candidates beside "none": "columns", "learned".
    classes, intercept : bool
        Whether targets are signs of classes, and whether there is an intercept.
    alphas : array or None
        Values of alpha to choose among; None for the default ones.
    seed : int
        Of the draws: the same numbers for all candidates.
    """

    def __init__(
        self,
        owner: str,
        sample: Chunk,
        n_rows: int,
        *,
        kernels: tuple[Any, ...],
        bandwidth: bool,
        columns: dict[str, Coordinates | None],
        metrics: tuple[str, ...],
        classes: bool,
        intercept: bool,
        alphas: np.ndarray | None,
        seed: int,
    ) -> None:
        self.owner, self.sample, self.n_rows, self.seed = owner, sample, n_rows, seed
        self.kernels, self.bandwidth, self.columns, self.metrics = kernels, bandwidth, columns, metrics
        self.intercept, self.alphas = intercept, alphas
        self.judged = Judged.of(sample.targets, sample.weights, classes=classes)
        self.tried: list[Trial] = []
        self.with_metric = self.without_metric = math.nan
        self.screened, self._spans = False, dict[str, np.ndarray]()
        self.begun = time.perf_counter()

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
        return self._with_metric(best) if self.metrics and searched else best

    def _first_best(self, trials: list[Trial]) -> Trial:
        """Best one, of which another than the first must be clearly better than those before."""
        best = trials[0]
        for trial in trials[1:]:
            best = trial if self.clearly_better(trial, best) else best
        return best

    def clearly_better(self, one: Trial, other: Trial, share: float = _MATERIAL) -> bool:
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
        while known[best].error > _PERFECT:
            fresh = [s for s in (best + size, best - size) if s not in known and SHORTEST <= s <= LONGEST]
            if not fresh:
                break
            found = known[fresh[0]] = self._exact_trial(kernel, columns, fresh[0], rows)
            best = fresh[0] if self.clearly_better(found, known[best], _WORTH) else best
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
        if d <= n or d <= _MOST_COLUMNS or kernel.metric == "cityblock":
            return self._moved(self.columns[columns], slice(EXACT_TRIAL_ROWS))
        if columns not in self._spans:
            Z = self._moved(self.columns[columns], slice(EXACT_TRIAL_ROWS))
            with blas_for(len(Z)):
                values, U = linalg.eigh(Z @ Z.T, overwrite_a=True, check_finite=False, driver="evd")
            self._spans[columns] = U * np.sqrt(np.maximum(values, 0))
        return self._spans[columns]

    def _moved(self, coordinates: Coordinates | None, rows: Any) -> np.ndarray:
        X = self.sample.X[rows].astype(np.float64)
        return np.asarray(X if coordinates is None else coordinates(X))

    def _with_metric(self, plain: Trial) -> Trial:
        """Return the same trial, or a better one with a metric, which is learned from some rows and judged by others."""
        n, d = self.sample.X.shape
        if plain.error < _PERFECT or n < _FEWEST or d < 2:
            return plain
        self.screened = min(trial.error for trial in self.tried) > _POOR * self.nothing
        # what few rows do not show at all may still be there
        folds, Z = (
            _folds(n, MOST_LEARNED if self.screened else _FIRST_LEARNED),
            self._moved(plain.coordinates, slice(None)),
        )
        before = best = self._held_out(plain, plain.kernel, plain.step, [np.ones(d)] * len(folds), folds, Z)
        path: tuple[Any, ...] = ()
        roots: list[np.ndarray] = []
        for start in self._metric_starts(plain):
            moved = Z if start.columns == plain.columns else self._moved(start.coordinates, slice(None))
            found, lengths, learned = self._descend(start, folds, moved)
            if found is not None and self.clearly_better(found, best):
                best, path, roots = found, (start.kernel, start.step, *lengths), learned
        if not path:
            return plain
        Z = self._moved(best.coordinates, slice(None))
        for kernel in self._relatives(best.kernel):
            known: set[float] = set()
            while len(known) < _FEATURE_STEPS:
                fresh = [s for s in (best.step, best.step - 1, best.step + 1) if s not in known and s <= LONGEST]
                if not fresh:
                    break
                known.add(fresh[0])
                found = self._held_out(best, kernel, fresh[0], roots, folds, Z)
                best = found if self.clearly_better(found, best, _WORTH) else best
        self.with_metric, self.without_metric = best.error, before.error
        if len(folds) == 1:
            best, root = self._with_more_rows(best, roots[0], folds[0][1], Z)
        else:
            root = self._sound_root([self._learned_root(path, Z), *roots], best, Z)
        coordinates = (best.coordinates or Coordinates()).followed_by(root)
        kernel = at_median(best.kernel, times(Z, root), best.step)
        return best._replace(kernel=kernel, coordinates=coordinates, metric="columns" if root.ndim == 1 else "learned")

    def _with_more_rows(self, best: Trial, root: np.ndarray, test: slice, Z: np.ndarray) -> tuple[Trial, np.ndarray]:
        """One more iterate of a metric, from all the rows before those that judge it."""
        rows = slice(test.start)
        matrix_after = math.inf if root.ndim == 1 else 0.0
        path = iterates(
            best.kernel, best.step, Z[rows], self.judged.taken(rows), start=root, matrix_after=matrix_after,
            intercept=self.intercept, halve=False,
        )  # fmt: skip
        found = [(self._scored(best, p[1], best.step, [p], [(rows, test)], Z), p[0]) for p in islice(path, 2)]
        return min(found, key=lambda pair: pair[0].error)

    def _sound_root(self, roots: list[np.ndarray], best: Trial, Z: np.ndarray) -> np.ndarray:
        """The root learned from all rows, or one of a fold if it lost its way: nobody has judged the former."""
        errors = []
        for root in roots:
            X = times(Z, root)
            fit = GramFit.of(
                at_median(best.kernel, X, best.step)(X),
                self.judged.targets,
                self.judged.weights,
                intercept=self.intercept,
            )
            errors.append(fit.score(self.judged, np.array([best.score.alpha])).error)
        return roots[0] if errors[0] <= _ASTRAY * min(errors) else roots[int(np.argmin(errors))]

    def _metric_starts(self, plain: Trial) -> list[Trial]:
        """Trials from whose fits a metric is learned: the best one, and the best of Euclidean distance.

        A metric scales columns anew, so that those of the second need not be scaled as those of the first.
        """
        near = [t for t in self.tried if t.map == "exact" and t.metric == "none" and t.kernel.metric == "euclidean"]
        if plain.kernel.metric == "euclidean" or not near:
            return [plain]
        most = max(t.n_rows for t in near)  # errors on fewer rows are larger
        return [plain, min((t for t in near if t.n_rows == most), key=lambda t: t.error)]

    def _turns(self, kernel: Kernel, d: int) -> bool:
        """Whether a matrix is learned: not of city-block distances, which turning would change, or of many columns."""
        return "learned" in self.metrics and kernel.metric == "euclidean" and d <= _MOST_COLUMNS

    def _relatives(self, kernel: Kernel) -> list[Kernel]:
        """The kernel and the other candidates of the same distance."""
        others = [k for k in self.kernels if k.metric == kernel.metric and k != kernel.with_bandwidth(k.bandwidth)]
        return [kernel, *others]

    def _descend(
        self, start: Trial, folds: list[Any], Z: np.ndarray
    ) -> tuple[Trial | None, tuple[int, int], list[np.ndarray]]:
        """Best iterate of a metric by held-out rows, the number of diagonal ones and of all, and its root for each fold.

        Columns are scaled until that lowers the error no more.  Directions are learned from the best of the first scales,
        or else from the last of these: later ones say more about columns, and less about sums and differences of them.
        """
        paths = [self._path(start.kernel, start.step, math.inf, fold[0], Z) for fold in folds]
        scaled = self._iterates(start, paths, folds, Z)
        if not scaled:
            return None, (0, 0), []
        place = _lowest(scaled)
        (best, parts), lengths = scaled[place], (place, place)
        early = scaled[: _DIAGONAL + 1]
        for first in dict.fromkeys((_lowest(early), len(early) - 1)):
            if early[first][0].error < _PERFECT or not self._turns(start.kernel, Z.shape[1]):
                break
            pairs = zip(early[first][1], folds, strict=True)
            paths = [self._path(start.kernel, step, 0.0, fold[0], Z, root) for (root, step), fold in pairs]
            turned = self._iterates(start, paths, folds, Z)
            place = _lowest(turned)
            if turned[place][0].error < (1 - _MATERIAL) * best.error:
                (best, parts), lengths = turned[place], (first, first + place)
                break
        return best, lengths, [root for root, _ in parts]

    def _iterates(
        self, start: Trial, paths: list[Any], folds: list[Any], Z: np.ndarray
    ) -> list[tuple[Trial, list[tuple[np.ndarray, float]]]]:
        """Iterates, each with its root and its step for each fold, until two in a row have no lower error."""
        found: list[tuple[Trial, list[tuple[np.ndarray, float]]]] = []
        for parts in zip(*paths, strict=False):
            step = float(np.median([part[3] for part in parts]))
            trial = self._scored(start, start.kernel, step, list(parts), folds, Z)
            found.append((trial, [(part[0], part[3]) for part in parts]))
            k = len(found) - 1
            if k - _lowest(found) > 1 or k >= _ITERATIONS or trial.error < _PERFECT:
                break
        return found

    def _path(
        self,
        kernel: Kernel,
        step: float,
        matrix_after: float,
        rows: Any,
        Z: np.ndarray,
        start: np.ndarray | None = None,
    ) -> Any:
        """Iterates on some rows; where the first fit explains little they start from the columns that trees use."""
        judged = self.judged.taken(rows)
        if start is None:
            start = screened_root(Z[rows], judged, self.seed) if self.screened else np.ones(Z.shape[1])
        return iterates(kernel, step, Z[rows], judged, start=start, matrix_after=matrix_after, intercept=self.intercept)

    def _learned_root(self, path: tuple[Any, ...], Z: np.ndarray) -> np.ndarray:
        """Root of the metric after as many iterates on all rows, where several folds have judged it."""
        kernel, step, scaled, length = path
        found = next(islice(self._path(kernel, step, scaled, slice(MOST_LEARNED), Z), length, None))
        return np.asarray(found[0])

    @property
    def nothing(self) -> float:
        """Error of a constant prediction: one, and for classes that of the most frequent one."""
        if not self.judged.classes:
            return 1.0
        mean = self.judged.mean(self.judged.targets)
        return float(self.judged.mean(self.judged.losses(self.judged.targets - mean)))

    def explains(self, best: Trial) -> bool:
        """Whether classes are told better than by a constant, beyond twice the doubt about the mean difference."""
        judged, losses = self.judged.taken(best.rows), best.score.losses
        if not judged.classes or len(losses) != len(judged.targets):
            return True
        constant = judged.losses(judged.targets - judged.mean(judged.targets))
        return bool(judged.mean(constant - losses) > 2 * judged.spread(constant - losses))

    def _held_out(
        self, like: Trial, kernel: Kernel, step: float, roots: list[np.ndarray], folds: list[Any], Z: np.ndarray
    ) -> Trial:
        """Error of held-out rows in the metric of each fold."""
        fits = []
        for root, (train, _) in zip(roots, folds, strict=True):
            X, judged = times(Z[train], root), self.judged.taken(train)
            at = at_median(kernel, X, step) if self.bandwidth else kernel
            fit = GramFit.of(at(X), judged.targets, judged.weights, intercept=self.intercept)
            fits.append((root, at, fit, step))
        return self._scored(like, kernel, step, fits, folds, Z)

    def _scored(
        self, like: Trial, kernel: Kernel, step: float, fits: list[Any], folds: list[Any], Z: np.ndarray
    ) -> Trial:
        """Trial of fits to the folds; alpha is the best one for all of them, in units of the kernel."""
        losses, index = [], []
        for (root, at, fit, _), (train, test) in zip(fits, folds, strict=True):
            judged, alphas = self.judged.taken(test), fit.alphas if self.alphas is None else self.alphas
            predicted = fit.predict(at(times(Z[test], root), times(Z[train], root)), alphas)
            losses.append(judged.losses(judged.targets[:, None, :] - predicted))
            index.append(np.arange(len(Z))[test])
        rows = np.concatenate(index)
        judged = self.judged.taken(rows)._replace(units=self.judged.units)
        score = Score.best(alphas, np.concatenate(losses), judged)
        metric = (
            "none"
            if fits[0][0].ndim == 1 and (fits[0][0] == 1).all()
            else "columns"
            if fits[0][0].ndim == 1
            else "learned"
        )
        trial = Trial(
            fits[0][1],
            like.columns,
            like.coordinates,
            metric,
            step,
            "exact",
            len(fits[0][2].roots),
            len(rows),
            score,
            rows,
        )
        self.tried.append(trial)
        return trial

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
        while width is None and found.width < most and found.error > _PERFECT:
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
        while self.bandwidth and len(known) < _FEATURE_STEPS and known[best].error > _PERFECT:
            fresh = [s for s in (best - 1, best + 1) if s not in known and SHORTEST <= s <= LONGEST]
            if not fresh:
                break
            found = known[fresh[0]] = self._feature_trial(like, parameters, name, width, fresh[0])
            best = fresh[0] if self.clearly_better(found, known[best], _WORTH) else best
        return known[best]

    def _feature_trial(self, like: Trial, parameters: FeatureParameters, name: str, width: int, step: float) -> Trial:
        """Leave-one-out error of features; landmarks are rows of the first half, and the second half judges all."""
        n = min(len(self.sample.X), max(_FEATURE_ROWS, 4 * width))
        half = n // 2
        Z, Y, weights = (
            self._moved(like.coordinates, slice(n)),
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


def _lowest(found: list[tuple[Trial, Any]]) -> int:
    """Place of the last trial whose error is clearly below those before."""
    best = 0
    for k, (trial, _) in enumerate(found):
        best = k if trial.error < (1 - _MATERIAL) * found[best][0].error else best
    return best


def _folds(n: int, most: int) -> list[tuple[Any, Any]]:
    """Rows to learn a metric from and rows to judge it by: one pair of many rows, or halves or thirds of few.

    At most so many rows of the first part of many are taken.
    """
    if n >= 2 * EXACT_TRIAL_ROWS:
        m = min(n // 2, MOST_LEARNED)
        return [(slice(min(most, m)), slice(m, min(n, 2 * m + EXACT_TRIAL_ROWS)))]
    k, index = 2 if n >= EXACT_TRIAL_ROWS else 3, np.arange(n)
    return [(index[index % k != i], index[index % k == i]) for i in range(k)]
