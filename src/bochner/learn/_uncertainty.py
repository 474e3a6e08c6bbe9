"""Uncertainty of the kernel machines from rows that were left out: class probabilities, prediction sets and intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, softmax

from ..linalg.cholesky import Cholesky
from ..linalg.engine import blas_for
from ._equal_rows import equal_rows
from ._linear.leave_one_out import LEAST_NEW, GramFit, Judged, about, gaps_of_one, gaps_of_rows, new_to
from ._linear.ridge import RidgeModel
from ._linear.spectrum import Equations, NormalEquations, plus

KEPT_ROWS = 2048  # rows whose left-out errors give probabilities and intervals
_SLOPES = (1e-3, 1e3)  # bounds of the slopes from scores to logarithms of probabilities
_SPREAD_ROWS = 1024  # rows from whose errors the local size of errors is learned: a decomposition of half a second
_CLEARLY = 3.0  # standard errors by which the size of errors must be better predicted than by a constant
_LEAST_SIZE = 0.1  # share of the median error below which errors count as equal: logarithms of tiny ones say nothing
_BLOCK = 1 << 22  # numbers of a block of predictions without each of the kept rows: 32 MB


class KeptRows(NamedTuple):
    """Some rows of a fit."""

    X: Any  # (n, d): rows, their targets and their weights
    targets: np.ndarray
    own: np.ndarray | None
    merged: np.ndarray  # (n, t): targets and weights of the rows into which they were merged with their equals
    weights: np.ndarray | None
    # (n, t): their errors, each left out of the fit with all its equals, where the fit has told them
    gaps: np.ndarray | None = None


def left_out_gaps(model: RidgeModel, phi: Any, kept: KeptRows) -> tuple[np.ndarray, np.ndarray]:
    """Errors (n, t) of merged rows, each left out of a fit with all its equals, and their features about the mean."""
    if kept.gaps is not None:
        return kept.gaps, np.empty((len(kept.gaps), 0))
    equations, alpha = model.equations, float(np.median(np.asarray(model.solution.alpha)))
    F, Z = about(model.means if model.options.intercept else None, phi.queries(kept.X), kept.merged)
    gaps = None
    if isinstance(equations, NormalEquations) and alpha > equations.floor:
        single = model.options.exact_products is False  # the equations themselves are those of float32
        gaps = gaps_of_one(equations, F, Z, kept.weights, alpha, single=single)
    if gaps is None:
        gaps = gaps_of_rows(equations.spectrum(), np.array([alpha]), F, Z, kept.weights)[:, 0]
    return gaps, F


class Calibration(NamedTuple):
    """Slopes from scores to the logarithms of probabilities, which keep the winner: for scores below zero and above it.

    With three classes or more there is one slope for all; with several labels per row a pair for each.
    """

    below: np.ndarray  # (t,): the slopes
    above: np.ndarray
    # (n,): probabilities that rows which were left out give to their own classes, in ascending order; None with
    # several labels per row
    own: np.ndarray | None = None

    @classmethod
    def of(cls, scores: np.ndarray, signs: np.ndarray, weights: np.ndarray | None, *, several: bool) -> Calibration:
        """Slopes of the highest likelihood of classes, given as signs (n, t), by scores of rows that were left out."""
        w = np.ones(len(scores)) if weights is None else weights
        if signs.shape[1] == 1 or several:
            pairs = [_two_slopes(s, c > 0, w) for s, c in zip(scores.T, signs.T, strict=True)]
            found = cls(np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs]))
        else:
            slope = _one_slope(scores, signs > 0, w)
            found = cls(np.array([slope]), np.array([slope]))
        if several:
            return found
        home = (signs[:, 0] > 0).astype(int) if signs.shape[1] == 1 else signs.argmax(axis=1)
        shares = found.probabilities(scores, several=False)
        return found._replace(own=np.sort(np.take_along_axis(shares, home[:, None], axis=1)[:, 0]))

    def probabilities(self, scores: np.ndarray, *, several: bool) -> np.ndarray:
        """Return probabilities (n, k) for scores (n, t)."""
        logits = np.where(scores > 0, self.above, self.below) * scores
        if scores.shape[1] > 1 and not several:
            return np.asarray(softmax(logits, axis=1))
        positive = expit(logits)
        return positive if several else np.hstack([1 - positive, positive])

    def sets(self, scores: np.ndarray, *, coverage: float) -> np.ndarray:
        """Return which classes (n, k) are as probable as the own classes of a share ``coverage`` of the left-out rows.

        The most probable class is always among them.
        """
        assert self.own is not None
        shares, n = self.probabilities(scores, several=False), len(self.own)
        rank = int(np.ceil(coverage * (n + 1)))
        least = self.own[n - rank] if rank <= n else 0.0
        return np.asarray((shares >= least) | (shares == shares.max(axis=1, keepdims=True)))


def _smoothed(member: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Probabilities to aim at, (n, k), a little away from zero and one, as Platt takes them: scores may separate classes."""
    counts, k = weights @ member, member.shape[1]
    own, rest = (counts + 1) / (counts + k), 1 / (counts + k)
    home = member.argmax(axis=1)
    return np.asarray(np.where(member, own[home][:, None], rest[home][:, None]))


def _one_slope(scores: np.ndarray, member: np.ndarray, weights: np.ndarray) -> float:
    aim = _smoothed(member, weights)
    return _root(lambda slope: float(weights @ ((softmax(slope * scores, axis=1) - aim) * scores).sum(axis=1)))


def _two_slopes(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    aim = _smoothed(np.column_stack([~positive, positive]), weights)[:, 1]

    def slope_of(rows: np.ndarray) -> float:
        s, target, w = scores[rows], aim[rows], weights[rows]
        return _root(lambda slope: float(w @ ((expit(slope * s) - target) * s)))

    return slope_of(scores <= 0), slope_of(scores > 0)


def _root(derivative: Callable[[float], float]) -> float:
    """Minimum of a convex function of a slope, by the root of its derivative, within bounds."""
    low, high = _SLOPES
    if not derivative(low) < 0:
        return low
    return high if derivative(high) < 0 else float(brentq(derivative, low, high, xtol=1e-13, rtol=1e-14))


class Spread(NamedTuple):
    """Local size of errors: a ridge fit of their logarithms to the features, where it explains them."""

    coefficients: np.ndarray  # (D,): of the logarithm
    offset: float

    @classmethod
    def of(cls, F: np.ndarray, errors: np.ndarray) -> tuple[Spread | None, np.ndarray]:
        """Fit to errors (n,) of rows with features F about the mean, and sizes (n,) without each row's own error.

        There is none, and sizes are one, unless rows that are left out are clearly better predicted than by a constant.
        """
        n, ones = min(len(F), _SPREAD_ROWS), np.ones(len(F))
        middle = float(np.median(errors)) if len(errors) else 0.0
        if n < LEAST_NEW or not middle > 0 or not F.shape[1]:
            return None, ones
        logs = np.log(np.maximum(errors, _LEAST_SIZE * middle))[:, None]
        judged = Judged.of(logs[:n], None, classes=False)
        with blas_for(n):
            fit = GramFit.of(F[:n] @ F[:n].T, logs[:n], None, intercept=True)
        score = fit.score(judged)
        constant = judged.losses((logs[:n] - logs[:n].mean()) * n / (n - 1))
        gain = constant - score.losses
        if not float(gain.mean()) > _CLEARLY * float(judged.spread(gain)):
            return None, ones
        c = fit.coefficients(score.alpha)
        found = cls((F[:n].T @ c)[:, 0], float(fit.mean[0] - fit.column_mean @ c[:, 0]))
        left_out = found.size(F)
        shrunk = fit.values / (fit.values + score.alpha)
        leverage = fit.vectors**2 @ shrunk + 1 / n
        inside = logs[:n, 0] - np.log(left_out[:n])
        left_out[:n] = np.exp(logs[:n, 0] - inside / np.maximum(1 - leverage, 1e-10))
        return found, left_out

    def size(self, F: np.ndarray) -> np.ndarray:
        """Sizes (n,) at rows with these features."""
        return np.asarray(np.exp(F @ self.coefficients + self.offset))


class Intervals:
    r"""Jackknife+ intervals of a ridge fit, without fitting again.

    Without row i the prediction at x is :math:`f_{-i}(x) = f(x) - w_ig(x, x_i)e_i/(1-h_i)`, with
    :math:`g(x, x_i) = \phi(x)^T(S+\alpha)^{-1}\phi(x_i)`, and the interval has as bounds the quantiles of
    :math:`f_{-i}(x) \mp |R_i|s(x)/s_{-i}(x_i)` with the errors :math:`R_i` of rows that were left out (Barber, Candes,
    Ramdas and Tibshirani 2021) and their local size s, see `Spread`, which is one where it is the same everywhere.  With
    an exact kernel of many rows, which hardly changes without one of them, :math:`f_{-i}` is f, and s is one.

    Left-out errors that have also chosen p parameters are a little too small: as with Akaike's criterion their squares
    lack a share of about 2 p / n, by which they are raised.

    Parameters
    ----------
    model : RidgeModel
    phi : FeatureMap
    kept : KeptRows
    level : float
        Share of new targets that the intervals should contain.
    n_chosen, n_rows : int
        p, and the number n of different rows that the fit has seen.
    """

    def __init__(
        self, model: RidgeModel, phi: Any, kept: KeptRows, level: float, *, n_chosen: int, n_rows: int
    ) -> None:
        gaps, F = left_out_gaps(model, phi, kept)
        new = new_to(phi, kept.X)
        known = np.isfinite(gaps).all(axis=1) & new
        w = np.ones(len(gaps)) if kept.weights is None else kept.weights
        self.phi, self.model, self.level = phi, model, level
        self.residuals = np.abs(kept.targets - kept.merged + gaps)[known]
        self.moves = (w[:, None] * gaps)[known]
        self.spreads: list[Spread | None] = []
        first, home = equal_rows(kept.X[known])  # equal rows are left out together here as well
        counts = np.bincount(home)
        for t in range(gaps.shape[1]):
            mean = np.bincount(home, self.residuals[:, t]) / counts
            spread, sizes = Spread.of(F[known][first], mean)
            self.residuals[:, t] *= np.sqrt(1 + 2 * n_chosen / max(n_rows, 1)) / sizes[home]
            self.spreads.append(spread)
        self.n_different = len(first)
        alpha = float(np.median(np.asarray(model.solution.alpha)))
        self.equations: Equations | None = None if model.data is None else model.equations
        self.influence = None if self.equations is None else _solved(self.equations, F[known], alpha)
        self.predict = model.predictor(phi)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return predictions, lower and upper bounds side by side, (n, 3 t)."""
        step = max(_BLOCK // max(len(self.residuals), 1), 1)
        return np.vstack([self._block(X[i : i + step]) for i in range(0, max(len(X), 1), step)])

    def _block(self, X: np.ndarray) -> np.ndarray:
        f, F, g = self.predict(X), np.empty((len(X), 0)), np.zeros((len(X), 1))
        if self.equations is not None and self.influence is not None:
            means = self.model.means[0] if self.model.options.intercept else 0.0
            F = (self.phi.queries(X) - means).astype(np.float64)
            with blas_for(self.equations.order):
                g = F @ self.influence + self.equations.n_means / self.equations.weight
        n = len(self.residuals)
        rank = int(np.ceil(self.level * n * (1 + 1 / max(self.n_different, 1))))
        if rank > n or not n:  # fewer rows than the level asks for
            bounds = np.full((2, *f.shape), np.inf) * np.array([-1, 1])[:, None, None]
            return np.hstack([f, *bounds])
        low, high = np.empty(f.shape), np.empty(f.shape)
        for t, spread in enumerate(self.spreads):
            without = f[:, t, None] - g * self.moves[:, t]
            reach = self.residuals[:, t] * (np.ones((len(F), 1)) if spread is None else spread.size(F)[:, None])
            low[:, t] = np.partition(without - reach, n - rank, axis=1)[:, n - rank]
            high[:, t] = np.partition(without + reach, rank - 1, axis=1)[:, rank - 1]
        return np.hstack([f, low, high])


def _solved(equations: Equations, F: np.ndarray, alpha: float) -> np.ndarray:
    """Return (S + alpha)^-1 F^T."""
    if isinstance(equations, NormalEquations) and alpha > equations.floor:
        return Cholesky.of(plus(equations.gram, alpha), overwrite=True).solve(F.T)
    spectrum = equations.spectrum()
    return np.asarray(spectrum.vectors @ ((spectrum.vectors.T @ F.T) / (spectrum.values + alpha)[:, None]))
