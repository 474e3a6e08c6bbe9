"""Uncertainty of the kernel machines from rows that were left out: class probabilities, and prediction intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, softmax

from ..linalg.cholesky import Cholesky
from ..linalg.engine import blas_for
from ._linear.leave_one_out import about, gaps_of_one, gaps_of_rows, new_to
from ._linear.ridge import RidgeModel
from ._linear.spectrum import Equations, NormalEquations, plus

KEPT_ROWS = 2048
"""Rows whose left-out errors give probabilities and intervals."""
_SLOPES = (1e-3, 1e3)
"""Bounds of the slopes from scores to logarithms of probabilities."""
_BLOCK = 1 << 22
"""Numbers of a block of predictions without each of the kept rows: 32 MB."""


class KeptRows(NamedTuple):
    """Some rows of a fit.

    Attributes
    ----------
    X, targets, own : array or CSR matrix (n, d), arrays (n, t) and (n,) or None
        Rows, their targets and their weights.
    merged, weights : arrays (n, t), and (n,) or None
        Targets and weights of the rows into which they were merged with their equals.
    """

    X: Any
    targets: np.ndarray
    own: np.ndarray | None
    merged: np.ndarray
    weights: np.ndarray | None


def left_out_gaps(model: RidgeModel, phi: Any, kept: KeptRows) -> tuple[np.ndarray, np.ndarray]:
    """Errors (n, t) of merged rows, each left out of a fit with all its equals, and their features about the mean."""
    equations, alpha = model.equations, float(np.median(np.asarray(model.solution.alpha)))
    F, Z = about(model.means if model.options.intercept else None, phi.queries(kept.X), kept.merged)
    gaps = None
    if isinstance(equations, NormalEquations) and alpha > equations.floor:
        gaps = gaps_of_one(equations, F, Z, kept.weights, alpha)
    if gaps is None:
        gaps = gaps_of_rows(equations.spectrum(), np.array([alpha]), F, Z, kept.weights)[:, 0]
    return gaps, F


class Calibration(NamedTuple):
    """Slopes from scores to the logarithms of probabilities, which keep the winner: for scores below zero and above it.

    With three classes or more there is one slope for all; with several labels per row a pair for each.
    """

    below: np.ndarray
    above: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, signs: np.ndarray, weights: np.ndarray | None, *, several: bool) -> Calibration:
        """Slopes of the highest likelihood of classes, given as signs (n, t), by scores of rows that were left out."""
        w = np.ones(len(scores)) if weights is None else weights
        if signs.shape[1] == 1 or several:
            pairs = [_two_slopes(s, c > 0, w) for s, c in zip(scores.T, signs.T, strict=True)]
            return cls(np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs]))
        slope = _one_slope(scores, signs > 0, w)
        return cls(np.array([slope]), np.array([slope]))

    def probabilities(self, scores: np.ndarray, *, several: bool) -> np.ndarray:
        """Return probabilities (n, k) for scores (n, t)."""
        logits = np.where(scores > 0, self.above, self.below) * scores
        if scores.shape[1] > 1 and not several:
            return np.asarray(softmax(logits, axis=1))
        positive = expit(logits)
        return positive if several else np.hstack([1 - positive, positive])


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


class Intervals:
    r"""Jackknife+ intervals of a ridge fit, without fitting again.

    Without row i the prediction at x is :math:`f_{-i}(x) = f(x) - w_ig(x, x_i)e_i/(1-h_i)`, with
    :math:`g(x, x_i) = \phi(x)^T(S+\alpha)^{-1}\phi(x_i)`, and the interval has as bounds the quantiles of
    :math:`f_{-i}(x) \mp |R_i|` with the errors :math:`R_i` of rows that were left out (Barber, Candes, Ramdas
    and Tibshirani 2021).
    """

    def __init__(self, model: RidgeModel, phi: Any, kept: KeptRows, level: float) -> None:
        gaps, F = left_out_gaps(model, phi, kept)
        new = new_to(phi, kept.X)
        known = np.isfinite(gaps).all(axis=1) & new
        w = np.ones(len(gaps)) if kept.weights is None else kept.weights
        self.phi, self.model, self.level = phi, model, level
        self.residuals = np.abs(kept.targets - kept.merged + gaps)[known]
        self.moves = (w[:, None] * gaps)[known]
        alpha = float(np.median(np.asarray(model.solution.alpha)))
        self.equations: Equations = model.equations
        self.influence = _solved(self.equations, F[known], alpha)
        self.predict = model.predictor(phi)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return predictions, lower and upper bounds side by side, (n, 3 t)."""
        step = max(_BLOCK // max(len(self.residuals), 1), 1)
        return np.vstack([self._block(X[i : i + step]) for i in range(0, max(len(X), 1), step)])

    def _block(self, X: np.ndarray) -> np.ndarray:
        f, means = self.predict(X), self.model.means if self.model.options.intercept else None
        F = self.phi.queries(X) if means is None else self.phi.queries(X) - means[0]
        with blas_for(self.equations.order):
            g = F.astype(np.float64) @ self.influence + self.equations.n_means / self.equations.weight
        n = len(self.residuals)
        rank = int(np.ceil(self.level * (n + 1)))
        if rank > n:  # fewer rows than the level asks for
            bounds = np.full((2, *f.shape), np.inf) * np.array([-1, 1])[:, None, None]
            return np.hstack([f, *bounds])
        low, high = np.empty(f.shape), np.empty(f.shape)
        for t in range(f.shape[1]):
            without = f[:, t, None] - g * self.moves[:, t]
            low[:, t] = np.partition(without - self.residuals[:, t], n - rank, axis=1)[:, n - rank]
            high[:, t] = np.partition(without + self.residuals[:, t], rank - 1, axis=1)[:, rank - 1]
        return np.hstack([f, low, high])


def _solved(equations: Equations, F: np.ndarray, alpha: float) -> np.ndarray:
    """Return (S + alpha)^-1 F^T."""
    if isinstance(equations, NormalEquations) and alpha > equations.floor:
        return Cholesky.of(plus(equations.gram, alpha), overwrite=True).solve(F.T)
    spectrum = equations.spectrum()
    return np.asarray(spectrum.vectors @ ((spectrum.vectors.T @ F.T) / (spectrum.values + alpha)[:, None]))
