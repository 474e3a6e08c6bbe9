"""Metrics: given ones, and learned ones, in which directions count more if the prediction changes along them.

Iterates of a metric are learned from some rows, and judged by rows that were held out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validation import shown
from ..kernels import Kernel, median_distance
from ._coordinates import Coordinates
from ._linear.leave_one_out import GramFit, Judged, Score, doubt
from ._selection import EXACT_TRIAL_ROWS, LONGEST, MATERIAL, PERFECT, STEPS, WORTH, Trial

if TYPE_CHECKING:
    from ._search import Search

LEAST = 1e-3  # share of the mean eigenvalue that every direction keeps
MEDIAN_ROWS = 500  # 125,000 distances: enough for a start that the search moves
_HALVED = 0.02  # share of the error for which the bandwidth is halved
_MOST_TARGETS = 4  # targets whose gradients are taken; of more targets, so many random combinations
_STEP = 1e-3  # relative change of the bandwidth whose effect is the derivative of the kernel in the distance
_ITERATIONS, _DIAGONAL = 10, 2
"""Most iterates of a diagonal metric, and of a matrix, and most of the former before the latter."""
MOST_LEARNED, _FIRST_LEARNED, _FEWEST = 1024, 512, 20
"""Most rows from which a metric is learned, those of its iterates but the last, and fewest: with 24 rows of real tables the
error falls by 5 % on the mean, and with 22 rows of five columns, of which one matters, by a third; with 14 by nothing."""
_POOR = 0.8  # error from which columns are screened before a metric is learned
_ASTRAY = 1.5  # ratio of leave-one-out errors from which a metric of a fold is better than that of all rows
MOST_COLUMNS = 1024  # most columns of a metric that is a matrix


def given_root(owner: str, metric: Any, d: int) -> np.ndarray:
    """Square root of a metric that is given: the diagonal (d,), or a positive semidefinite matrix (d, d)."""
    message = (
        f"{owner}: metric must be 'auto', None, 'columns', 'learned', non-negative numbers ({d},), or a symmetric positive "
        f"semidefinite matrix ({d}, {d}), got {shown(metric)}."
    )
    try:
        M = np.asarray(metric, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(message) from None
    if M.shape not in ((d,), (d, d)) or not np.isfinite(M).all() or not M.any():
        raise ValueError(message)
    if M.ndim == 1:
        if (M < 0).any():
            raise ValueError(message)
        return np.sqrt(M)
    values, vectors = np.linalg.eigh((M + M.T) / 2)
    if not np.allclose(M, M.T, atol=1e-8 * np.abs(M).max()) or values[0] < -1e-8 * values[-1]:
        raise ValueError(message)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)


def at_median(kernel: Kernel, Z: np.ndarray, step: float) -> Kernel:
    """Return the kernel with a bandwidth of two to the ``step`` times the median distance between rows."""
    base = median_distance(Z[:MEDIAN_ROWS], metric=kernel.metric or "euclidean")
    return kernel.with_bandwidth(base * 2.0**step)


def iterates(
    kernel: Kernel,
    step: float,
    Z: np.ndarray,
    judged: Judged,
    *,
    start: np.ndarray,
    matrix_after: float,
    intercept: bool,
    halve: bool = True,
) -> Iterator[tuple[np.ndarray, Kernel, GramFit, float]]:
    r"""Learn a metric on rows: roots of metrics one after another, each with its kernel, its fit, and its step.

    An iterate fits the exact kernel in the present coordinates, with alpha by leave-one-out errors, and replaces the
    metric by the mean of the outer products of the gradients of the prediction at the rows,
    :math:`M = \frac1n\sum_i \nabla f(x_i)\nabla f(x_i)^T` (recursive feature machines).  Columns are scaled first, and
    directions are learned from there: where most columns do not matter, the first fits are too poor to show directions.

    Parameters
    ----------
    kernel : Kernel
        Of Euclidean or city-block distances.
    step : float
        Bandwidth to begin with: two to the step times the median distance.  The fewer directions matter, the shorter it
        can be; each metric halves it while that lowers the leave-one-out error.
    Z : array (n, d)
    judged : Judged
        Targets and weights of these rows.
    start : array (d,) or (d, d)
        Root of the first metric.
    matrix_after : float
        Iterates of a diagonal metric before those of a matrix; infinite if columns are only scaled.
    intercept, halve : bool
        Whether there is an intercept, and whether shorter bandwidths are tried.
    """
    root, first = start, halve
    for k in count(1):
        X = times(Z, root)
        at, fit, score = _fitted(kernel, X, step, judged, intercept=intercept)
        if halve:
            shorter = _fitted(kernel, X, step - 1, judged, intercept=intercept)
            halve = shorter[2].error < (1 - _HALVED) * score.error
            if halve:
                (at, fit, score), step = shorter, step - 1
        yield root, at, fit, step
        G = gradients(at, X, fit.coefficients(score.alpha) / judged.units)
        back = times(G, root)  # in the coordinates before, since the root is symmetric
        M = back.T @ back
        if not np.isfinite(M).all() or not M.any():
            return
        root, halve = _root(M, diagonal=k <= matrix_after), halve or (first and k == 1)


def _fitted(
    kernel: Kernel, X: np.ndarray, step: float, judged: Judged, *, intercept: bool
) -> tuple[Kernel, GramFit, Score]:
    at = at_median(kernel, X, step)
    fit = GramFit.of(at(X), judged.targets, judged.weights, intercept=intercept)
    return at, fit, fit.score(judged)


def gradients(kernel: Kernel, X: np.ndarray, c: np.ndarray) -> np.ndarray:
    r"""Gradients at rows X (n, d) of functions :math:`\sum_j c_jk(x, x_j)`, for coefficients (n, t): (n t, d).

    The derivative of the kernel in the distance r is that in the bandwidth: :math:`r\,k'(r) = -\partial k/\partial\log b`.
    """
    if c.shape[1] > _MOST_TARGETS:
        signs = np.random.default_rng(0).standard_normal((c.shape[1], _MOST_TARGETS))
        c = c @ signs / np.sqrt(_MOST_TARGETS)
    up, down = (kernel.with_bandwidth(kernel.bandwidth * np.exp(sign * _STEP))(X) for sign in (1, -1))
    slope = (down - up) / (2 * _STEP)  # r k'(r)
    if kernel.metric == "cityblock":
        return _city_block_gradients(slope, X, c)
    norms = np.einsum("nd,nd->n", X, X)
    squares = norms[:, None] + norms - 2 * X @ X.T
    G = np.where(squares > 1e-12 * norms.max(), slope / np.where(squares > 0, squares, 1.0), 0.0)
    return np.concatenate([(G @ b)[:, None] * X - (G * b) @ X for b in c.T])


def _city_block_gradients(slope: np.ndarray, X: np.ndarray, c: np.ndarray) -> np.ndarray:
    from ..linalg.loops import manhattan, signed_sums

    distances, columns = np.empty_like(slope), np.ascontiguousarray(X.T)
    manhattan(X, columns, np.ones(X.shape[1]), distances)
    G = np.where(distances > 0, slope / np.where(distances > 0, distances, 1.0), 0.0)
    found = np.empty((c.shape[1], *X.shape))
    for b, out in zip(c.T, found, strict=True):
        signed_sums(X, columns, G * b, out)
    return found.reshape(-1, X.shape[1])


def screened_root(X: np.ndarray, judged: Judged, seed: int) -> np.ndarray:
    """Root of a diagonal metric by how much trees use each column, for a start where a first fit explains nothing.

    Trees find the few columns that matter among many, where distances that add up all columns show nothing.
    """
    from sklearn.ensemble import ExtraTreesRegressor

    trees = ExtraTreesRegressor(60, min_samples_leaf=3, max_features=0.7, random_state=seed % 2**31)
    Y = judged.targets / judged.units
    share = trees.fit(X, Y[:, 0] if Y.shape[1] == 1 else Y, judged.weights).feature_importances_
    excess = np.maximum(share - np.median(share), 0) if len(share) > 4 else share
    return np.asarray(np.sqrt(excess / max(excess.mean(), 1e-300) + LEAST))


def times(Z: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Rows times a matrix or a diagonal."""
    return np.asarray(Z * root if root.ndim == 1 else Z @ root)


def _root(M: np.ndarray, *, diagonal: bool) -> np.ndarray:
    """Square root of a metric of mean eigenvalue one, with a little of the identity."""
    if diagonal:
        values = np.diag(M)
        return np.asarray(np.sqrt(values / values.mean() + LEAST))
    values, vectors = np.linalg.eigh(M)
    values = np.maximum(values, 0)
    return np.asarray((vectors * np.sqrt(values / values.mean() + LEAST)) @ vectors.T)


def with_metric(search: Search, plain: Trial) -> Trial:
    """Return the same trial, or a better one with a metric, which is learned from some rows and judged by others."""
    n, d = search.sample.X.shape
    if plain.error < PERFECT or n < _FEWEST or d < 2:
        return plain
    search.screened = min(trial.error for trial in search.tried) > _POOR * search.nothing
    # what few rows do not show at all may still be there
    folds, Z = (
        _folds(n, MOST_LEARNED if search.screened else _FIRST_LEARNED),
        search.moved(plain.coordinates, slice(None)),
    )
    before = best = _held_out(search, plain, plain.kernel, plain.step, [np.ones(d)] * len(folds), folds, Z)
    path: tuple[Any, ...] = ()
    roots: list[np.ndarray] = []
    for start in metric_starts(search, plain):
        moved = Z if start.columns == plain.columns else search.moved(start.coordinates, slice(None))
        found, lengths, learned = _descend(search, start, folds, moved)
        if found is not None and search.clearly_better(found, best) and _errs_less(search, found, before):
            best, path, roots = found, (start.kernel, start.step, *lengths), learned
    if not path:
        return plain
    Z = search.moved(best.coordinates, slice(None))
    for kernel in _relatives(search, best.kernel):
        known: set[float] = set()
        while len(known) < STEPS:
            fresh = [s for s in (best.step, best.step - 1, best.step + 1) if s not in known and s <= LONGEST]
            if not fresh:
                break
            known.add(fresh[0])
            found = _held_out(search, best, kernel, fresh[0], roots, folds, Z)
            best = found if search.clearly_better(found, best, WORTH) else best
    search.with_metric, search.without_metric = best.error, before.error
    if len(folds) == 1:
        best, root = _with_more_rows(search, best, roots[0], folds[0][1], Z)
    else:
        root = _sound_root(search, [_learned_root(search, path, Z), *roots], best, Z)
    coordinates = (best.coordinates or Coordinates()).followed_by(root)
    kernel = at_median(best.kernel, times(Z, root), best.step)
    return best._replace(kernel=kernel, coordinates=coordinates, metric="columns" if root.ndim == 1 else "learned")


def _errs_less(search: Search, found: Trial, plain: Trial) -> bool:
    """Whether a metric has fewer wrong classes, beyond the doubt: squares favour it where it only sharpens the scores."""
    if found.wrong is None or plain.wrong is None:
        return True
    judged, fewer = search.judged.taken(found.rows), plain.wrong - found.wrong
    return bool(judged.mean(fewer) > doubt(len(fewer)) * judged.spread(fewer))


def _with_more_rows(
    search: Search, best: Trial, root: np.ndarray, test: slice, Z: np.ndarray
) -> tuple[Trial, np.ndarray]:
    """One more iterate of a metric, from all the rows before those that judge it."""
    rows = slice(test.start)
    matrix_after = math.inf if root.ndim == 1 else 0.0
    path = iterates(
        best.kernel, best.step, Z[rows], search.judged.taken(rows), start=root, matrix_after=matrix_after,
        intercept=search.intercept, halve=False,
    )  # fmt: skip
    found = [(_scored(search, best, p[1], best.step, [p], [(rows, test)], Z), p[0]) for p in islice(path, 2)]
    return min(found, key=lambda pair: pair[0].error)


def _sound_root(search: Search, roots: list[np.ndarray], best: Trial, Z: np.ndarray) -> np.ndarray:
    """The root learned from all rows, or one of a fold if it lost its way: nobody has judged the former."""
    errors = []
    for root in roots:
        X = times(Z, root)
        fit = GramFit.of(
            at_median(best.kernel, X, best.step)(X),
            search.judged.targets,
            search.judged.weights,
            intercept=search.intercept,
        )
        errors.append(fit.score(search.judged, np.array([best.score.alpha])).error)
    return roots[0] if errors[0] <= _ASTRAY * min(errors) else roots[int(np.argmin(errors))]


def metric_starts(search: Search, plain: Trial) -> list[Trial]:
    """Trials from whose fits a metric is learned: the best one, and the best of Euclidean distance.

    A metric scales columns anew, so that those of the second need not be scaled as those of the first.
    """
    near = [t for t in search.tried if t.map == "exact" and t.metric == "none" and t.kernel.metric == "euclidean"]
    if plain.kernel.metric == "euclidean" or not near:
        return [plain]
    most = max(t.n_rows for t in near)  # errors on fewer rows are larger
    return [plain, min((t for t in near if t.n_rows == most), key=lambda t: t.error)]


def _turns(search: Search, kernel: Kernel, d: int) -> bool:
    """Whether a matrix is learned: not of city-block distances, which turning would change, or of many columns."""
    return "learned" in search.metrics and kernel.metric == "euclidean" and d <= MOST_COLUMNS


def _relatives(search: Search, kernel: Kernel) -> list[Kernel]:
    """The kernel and the other candidates of the same distance."""
    others = [k for k in search.kernels if k.metric == kernel.metric and k != kernel.with_bandwidth(k.bandwidth)]
    return [kernel, *others]


def _descend(
    search: Search, start: Trial, folds: list[Any], Z: np.ndarray
) -> tuple[Trial | None, tuple[int, int], list[np.ndarray]]:
    """Best iterate of a metric by held-out rows, the number of diagonal ones and of all, and its root for each fold.

    Columns are scaled until that lowers the error no more.  Directions are learned from the best of the first scales,
    or else from the last of these: later ones say more about columns, and less about sums and differences of them.
    """
    paths = [_path(search, start.kernel, start.step, math.inf, fold[0], Z) for fold in folds]
    scaled = _iterates(search, start, paths, folds, Z)
    if not scaled:
        return None, (0, 0), []
    place = _lowest(scaled)
    (best, parts), lengths = scaled[place], (place, place)
    early = scaled[: _DIAGONAL + 1]
    for first in dict.fromkeys((_lowest(early), len(early) - 1)):
        if early[first][0].error < PERFECT or not _turns(search, start.kernel, Z.shape[1]):
            break
        pairs = zip(early[first][1], folds, strict=True)
        paths = [_path(search, start.kernel, step, 0.0, fold[0], Z, root) for (root, step), fold in pairs]
        turned = _iterates(search, start, paths, folds, Z)
        place = _lowest(turned)
        if turned[place][0].error < (1 - MATERIAL) * best.error:
            (best, parts), lengths = turned[place], (first, first + place)
            break
    return best, lengths, [root for root, _ in parts]


def _iterates(
    search: Search, start: Trial, paths: list[Any], folds: list[Any], Z: np.ndarray
) -> list[tuple[Trial, list[tuple[np.ndarray, float]]]]:
    """Iterates, each with its root and its step for each fold, until two in a row have no lower error."""
    found: list[tuple[Trial, list[tuple[np.ndarray, float]]]] = []
    for parts in zip(*paths, strict=False):
        step = float(np.median([part[3] for part in parts]))
        trial = _scored(search, start, start.kernel, step, list(parts), folds, Z)
        found.append((trial, [(part[0], part[3]) for part in parts]))
        k = len(found) - 1
        if k - _lowest(found) > 1 or k >= _ITERATIONS or trial.error < PERFECT:
            break
    return found


def _path(
    search: Search,
    kernel: Kernel,
    step: float,
    matrix_after: float,
    rows: Any,
    Z: np.ndarray,
    start: np.ndarray | None = None,
) -> Any:
    """Iterates on some rows; where the first fit explains little they start from the columns that trees use."""
    judged = search.judged.taken(rows)
    if start is None:
        start = screened_root(Z[rows], judged, search.seed) if search.screened else np.ones(Z.shape[1])
    return iterates(kernel, step, Z[rows], judged, start=start, matrix_after=matrix_after, intercept=search.intercept)


def _learned_root(search: Search, path: tuple[Any, ...], Z: np.ndarray) -> np.ndarray:
    """Root of the metric after as many iterates on all rows, where several folds have judged it."""
    kernel, step, scaled, length = path
    found = next(islice(_path(search, kernel, step, scaled, slice(MOST_LEARNED), Z), length, None))
    return np.asarray(found[0])


def _held_out(
    search: Search, like: Trial, kernel: Kernel, step: float, roots: list[np.ndarray], folds: list[Any], Z: np.ndarray
) -> Trial:
    """Error of held-out rows in the metric of each fold."""
    fits = []
    for root, (train, _) in zip(roots, folds, strict=True):
        X, judged = times(Z[train], root), search.judged.taken(train)
        at = at_median(kernel, X, step) if search.bandwidth else kernel
        fit = GramFit.of(at(X), judged.targets, judged.weights, intercept=search.intercept)
        fits.append((root, at, fit, step))
    return _scored(search, like, kernel, step, fits, folds, Z)


def _scored(
    search: Search, like: Trial, kernel: Kernel, step: float, fits: list[Any], folds: list[Any], Z: np.ndarray
) -> Trial:
    """Trial of fits to the folds; alpha is the best one for all of them, in units of the kernel."""
    losses, wrong, index = [], [], []
    for (root, at, fit, _), (train, test) in zip(fits, folds, strict=True):
        judged, alphas = search.judged.taken(test), fit.alphas if search.alphas is None else search.alphas
        predicted = fit.predict(at(times(Z[test], root), times(Z[train], root)), alphas)
        gaps = judged.targets[:, None, :] - predicted
        losses.append(judged.losses(gaps))
        if judged.classes:
            wrong.append(judged.wrong(gaps))
        index.append(np.arange(len(Z))[test])
    rows = np.concatenate(index)
    judged = search.judged.taken(rows)._replace(units=search.judged.units)
    score = Score.best(alphas, np.concatenate(losses), judged)
    metric = (
        "none" if fits[0][0].ndim == 1 and (fits[0][0] == 1).all() else "columns" if fits[0][0].ndim == 1 else "learned"
    )
    erred = np.concatenate(wrong)[:, np.flatnonzero(alphas == score.alpha)[0]] if judged.classes else None
    trial = Trial(
        fits[0][1], like.columns, like.coordinates, metric, step, "exact", len(fits[0][2].roots), len(rows), score, rows,
        erred,
    )  # fmt: skip
    search.tried.append(trial)
    return trial


def _lowest(found: list[tuple[Trial, Any]]) -> int:
    """Place of the last trial whose error is clearly below those before."""
    best = 0
    for k, (trial, _) in enumerate(found):
        best = k if trial.error < (1 - MATERIAL) * found[best][0].error else best
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
