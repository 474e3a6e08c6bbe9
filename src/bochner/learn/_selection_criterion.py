"""Leave-one-out errors of rows, for many regularisation strengths at once or for one after another.

One criterion for every choice of the automatic mode.  Unlike generalised cross-validation it uses the leverage of each row:
an outlier that decides its own fit counts with the error that it would have if it were new.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from ..linalg.cholesky import Cholesky
from ..linalg.engine import blas_for
from ._linear.criteria import LEAST_NEW
from ._linear.moments import Moments, left_out_of
from ._linear.spectrum import Equations, NormalEquations, RowEquations, plus

STEP = math.sqrt(10)
"""Ratio of neighbouring strengths."""
LEAST, MOST = 1e-9, 1e4
"""Bounds of the strengths, in units of the mean square of the features of a row."""
_EPS = float(np.finfo(np.float64).eps)
_TIES = 0.1
"""Weight of squared errors beside wrong classes."""
_TIE = 0.01
"""Share of the standard error within which errors are as good as equal."""
_ONE = 1 - 1e-10
"""A leverage above it leaves no error to know."""


class Judged(NamedTuple):
    """Rows on which fits are judged.

    Attributes
    ----------
    features, targets : arrays (n, D) and (n, t)
        About the means of the fit.
    weights : array (n,) or None
    units : array (t,)
        Units of the errors: an error of one is that of predicting the mean.
    whole : bool
        Whether a row is left out whole; otherwise whole numbers are repetitions, of which one is left out.
    class_means : array (t,) or None
        Means that were taken from targets that are signs of classes; None for targets that are numbers.
    """

    features: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    units: np.ndarray
    whole: bool = False
    class_means: np.ndarray | None = None

    def losses(self, gaps: np.ndarray) -> np.ndarray:
        """Losses of rows (n,) by their errors (n, t): squares, after wrong classes where there are classes."""
        squares = np.asarray(((gaps / self.units) ** 2).mean(axis=1))
        if self.class_means is None:
            return squares
        actual = self.targets + self.class_means
        return wrong_classes(actual, actual - gaps) + _TIES * squares

    def taken(self, which: Any) -> Judged:
        """The rows of a slice or of a mask."""
        weights = None if self.weights is None else self.weights[which]
        return self._replace(features=self.features[which], targets=self.targets[which], weights=weights)

    def new_to(self, phi: Any, X: Any) -> Judged:
        """Without the rows that are landmarks, if others are left.

        A row that is left out of the fit remains a landmark, and nothing then holds the coefficient of its own feature: its
        error is not that of a new row.  Where all rows are landmarks the fit is one of the kernel itself, and it is.
        """
        new = ~phi.features.at_points(phi.at_unit_scale(X))
        return self if np.count_nonzero(new) < min(LEAST_NEW, len(new)) else self.taken(new)


class Score(NamedTuple):
    """Leave-one-out error of one strength: mean, standard error, and the loss of each row (n,).

    Losses are squared errors in units of the variance of the targets, so that predictions of the mean have one; for
    classes they are the wrong ones, and a tenth of the squares, which tells rules apart that err as often.
    """

    alpha: float
    error: float
    standard_error: float
    losses: np.ndarray

    @classmethod
    def of(cls, alpha: float, gaps: np.ndarray | None, judged: Judged) -> Score:
        """From errors (n, t) of rows that were left out; infinite where there is none to know."""
        if gaps is None or not np.isfinite(gaps).all():
            return cls(alpha, np.inf, np.inf, np.full(len(judged.targets), np.inf))
        losses = judged.losses(gaps)
        w = np.ones(len(losses)) if judged.weights is None else judged.weights
        mean = float(w @ losses / w.sum())
        spread = math.sqrt(float(w**2 @ (losses - mean) ** 2)) / float(w.sum())
        return cls(alpha, mean, spread, losses)


def wrong_classes(actual: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Which rows get a wrong class (n,), by signs (n, t); for rows with several labels, the share of wrong ones.

    Examples
    --------
    >>> import numpy as np
    >>> wrong_classes(np.array([[1, -1, -1], [-1, 1, -1]]), np.array([[-0.1, -0.2, -0.3], [0.1, 0.2, 0.3]]))
    array([0., 1.])
    """
    positive = actual > 0
    if actual.shape[1] > 1 and (positive.sum(axis=1) == 1).all():
        return np.asarray(positive.argmax(axis=1) != found.argmax(axis=1)).astype(np.float64)
    return np.asarray((positive != (found > 0)).mean(axis=1))


def fitted(
    F: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None,
    units: np.ndarray,
    *,
    intercept: bool,
    whole: bool,
    classes: bool,
) -> tuple[Equations, Judged]:
    """Equations of a fit to all rows, and the same rows about its means, to judge it by."""
    w = np.ones(len(F)) if weights is None else weights
    F, Y, mean = F.astype(np.float64), Y.astype(np.float64), np.zeros(Y.shape[1])
    if intercept:
        mean = w @ Y / w.sum()
        F, Y = F - w @ F / w.sum(), Y - mean
    judged = Judged(F, Y, weights, units, whole, mean if classes else None)
    if len(F) < F.shape[1]:
        return RowEquations.of(F, Y, weights, about_mean=intercept, rounding=_EPS), judged
    return NormalEquations.of(Moments.of(F, Y, weights), about_mean=intercept), judged


def units_of(Y: np.ndarray, weights: np.ndarray | None, *, alike: bool) -> np.ndarray:
    """Standard deviations of targets (t,); with ``alike`` the same for all, as for classes."""
    w = np.ones(len(Y)) if weights is None else weights
    Y = Y.astype(np.float64)
    mean = w @ Y / w.sum()
    variance = w @ (Y - mean) ** 2 / w.sum()
    variance = np.full_like(variance, variance.mean()) if alike else variance
    return np.sqrt(np.where(variance > (10 * _EPS * mean) ** 2, variance, 1.0))


def best_of_many(equations: Equations, judged: Judged, alphas: np.ndarray) -> tuple[Score, np.ndarray]:
    """Best score among strengths, by one decomposition, and the eigenvalues in descending order."""
    spectrum = equations.spectrum()
    with blas_for(equations.order):
        P = judged.features @ spectrum.vectors
        squares, best = P**2, None
        for alpha in np.sort(alphas):
            shifted = spectrum.values + alpha
            leverage = squares @ ((spectrum.values > 0) / shifted)
            gaps = _left_out(equations, judged, leverage, judged.targets - P @ (spectrum.z / shifted[:, None]))
            score = Score.of(float(alpha), gaps, judged)
            best = score if best is None or _better(score, best) else best
    assert best is not None
    return best, spectrum.values[::-1]


def score_of(equations: NormalEquations, judged: Judged, alpha: float) -> Score:
    """Score of one strength, by a Cholesky factor: cheaper than a decomposition where few strengths are asked for."""
    with blas_for(equations.order):
        try:
            factor = Cholesky.of(plus(equations.gram, alpha), overwrite=True)
        except LinAlgError:  # within rounding
            return Score.of(alpha, None, judged)
        B, half = factor.solve(equations.cross), factor.solve_lower(judged.features.T)
        leverage = np.einsum("dn,dn->n", half, half)
        return Score.of(alpha, _left_out(equations, judged, leverage, judged.targets - judged.features @ B), judged)


def _left_out(equations: Equations, judged: Judged, leverage: np.ndarray, gaps: np.ndarray) -> np.ndarray | None:
    """Errors of rows that are left out, each from its own fit."""
    w = np.ones(len(gaps)) if judged.weights is None else judged.weights
    left = w if judged.whole else left_out_of(w)
    leverage = left * (leverage + equations.n_means / equations.weight)
    return None if leverage.max(initial=0.0) > _ONE else gaps / (1 - leverage)[:, None]


def strengths(equations: Equations) -> np.ndarray:
    """Strengths to choose among, ascending: half decades in units of the mean square of the features of a row."""
    square = max(equations.trace / max(equations.units, 1.0), np.finfo(np.float64).tiny)
    unit = 10.0 ** round(math.log10(square))
    return unit * np.logspace(math.log10(LEAST), math.log10(MOST), 1 + round(math.log(MOST / LEAST, STEP)))


def walk(score: Callable[[float], Score], grid: np.ndarray, start: float, longest: int = 8) -> Score:
    """Best score from a strength downhill along the grid, until both neighbours are worse or ``longest`` are known."""
    best = int(np.abs(np.log(grid / start)).argmin())
    known = {best: score(float(grid[best]))}
    while len(known) < longest:
        fresh = [k for k in (best - 1, best + 1) if k not in known and 0 <= k < len(grid)]
        if not fresh:
            break
        known[fresh[0]] = score(float(grid[fresh[0]]))
        best = fresh[0] if _better(known[fresh[0]], known[best]) else best
    return known[best]


def _better(one: Score, other: Score) -> bool:
    """Whether the error is lower; of errors that are as good as equal, that of the larger strength is."""
    if not np.isfinite(other.error):
        return bool(np.isfinite(one.error)) or one.alpha > other.alpha
    tie = _TIE * other.standard_error
    return one.error < other.error + (tie if one.alpha > other.alpha else -tie)


def weighted_median_distance(X: np.ndarray, weights: np.ndarray | None, metric: str) -> float:
    """Median distance between rows, where a whole number counts as repetitions of a row; one on constant data.

    Examples
    --------
    >>> import numpy as np
    >>> weighted_median_distance(np.array([[0.0], [1.0], [3.0]]), None, "euclidean")
    2.0
    """
    from scipy.spatial.distance import pdist

    X = X.astype(np.float64)
    size = float(2.0 ** min(int(np.frexp(np.abs(X).max(initial=0.0))[1]), 1023))  # squares would overflow
    distances = pdist(X / size, metric)
    if not distances.any():
        return 1.0
    w = np.ones(len(X)) if weights is None else weights
    i, j = np.triu_indices(len(X), 1)
    pairs, same = w[i] * w[j], float((w * (w - left_out_of(w))).sum()) / 2
    order = np.argsort(distances, kind="stable")
    reached = same + np.cumsum(pairs[order])
    median = float(distances[order[np.searchsorted(reached, reached[-1] / 2)]])
    return (median or float(distances[distances > 0].min())) * size
