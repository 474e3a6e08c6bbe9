"""Ridge regression on features, fitted at once or row by row."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from .._validation import check_option
from ..approximation import FeatureMap
from ..linalg.engine import multiply
from .ridge import Dual, Primal, Problem, Spectrum
from .statistics import RegressionStatistics
from .streaming import chunks, dense_rows, features_of, regression_statistics

DEFAULT_ALPHAS = np.logspace(-6, 3, 19)
CRITERIA = ("gcv", "loo")
_SAFE_ALPHA = 1e-3
"""From here on a fixed strength is far above the rounding of products in float32."""
SOLVERS = ("auto", "primal", "dual")


class Solution(NamedTuple):
    """Coefficients (D, t), intercepts (t,), and the strength they were found with."""

    coefficients: np.ndarray
    intercept: np.ndarray
    alpha: Any


@dataclass
class RidgeMachine:
    """Options of a ridge fit, and what was learned.

    Parameters
    ----------
    owner : str
        The estimator, for messages.
    alpha : float, array, "gcv" or "loo"
    alphas : array or None
        Strengths among which the criteria choose.
    intercept : bool
    solver : {"auto", "primal", "dual"}
    """

    owner: str
    alpha: Any = 1.0
    alphas: Any = None
    intercept: bool = True
    solver: str = "auto"
    statistics: RegressionStatistics | None = field(default=None, repr=False)
    _few: tuple[np.ndarray, np.ndarray, np.ndarray] | None = field(default=None, repr=False)
    _solution: Solution | None = field(default=None, repr=False)

    symmetric = True

    def check(self, n_targets: int) -> None:
        """Refuse options that mean nothing."""
        check_option(self.owner, "solver", self.solver, SOLVERS)
        if isinstance(self.alpha, str):
            if self.alpha not in CRITERIA:
                raise ValueError(
                    f"{self.owner}: alpha must be a number, one for each target, 'gcv' or 'loo', got {self.alpha!r}."
                )
            self._grid()
            return
        alpha = _strengths(self.owner, "alpha", self.alpha)
        if alpha.ndim and len(alpha) not in (1, n_targets):
            raise ValueError(
                f"{self.owner}: alpha has {len(alpha)} entries, one for each target, for {n_targets} targets."
            )

    def fit(self, phi: FeatureMap, X: Any, Y: np.ndarray, weights: np.ndarray | None, verbose: Any) -> None:
        """Fit on all rows at once."""
        self.check(Y.shape[1])
        n, D = X.shape[0], phi.n_features_out
        if self.solver == "dual" or (self.solver == "auto" and n < D):
            w = np.ones(n) if weights is None else weights
            self._few = features_of(phi, X), Y, w  # fewer numbers than the statistics, which they become when rows come
            self._solution = self._solve_dual(*self._few)
            return
        self.statistics = regression_statistics(phi, X, Y, weights, exact=self.exact, verbose=verbose)
        problem = Primal.of(self.statistics, intercept=self.intercept)
        means = self.statistics.feature_mean, self.statistics.target_mean
        w = np.ones(n) if weights is None else weights

        def left_out(spectrum: Spectrum, alphas: np.ndarray) -> np.ndarray:
            parts = chunks(n, D, label="leave one out", verbose=verbose)
            return sum(
                spectrum.left_out(alphas, *self._about(means, phi.queries(dense_rows(X, rows)), Y[rows]), w[rows])
                for rows in parts
            )  # type: ignore[return-value]

        self._solution = self._solve(problem, means, left_out)

    def add(self, phi: FeatureMap, X: Any, Y: np.ndarray, weights: np.ndarray | None, verbose: Any) -> None:
        """Take in more rows; the fit is solved when it is next asked for."""
        self.check(Y.shape[1])
        self._solution = None
        more = regression_statistics(phi, X, Y, weights, exact=self.exact, verbose=verbose)
        self.statistics = more if self.statistics is None else self.statistics + more

    @property
    def exact(self) -> bool:
        """Whether products must be taken in float64: criteria and small strengths look below the rounding of float32."""
        return isinstance(self.alpha, str) or bool((np.asarray(self.alpha) < _SAFE_ALPHA).any())

    def go_on_from(self, other: RidgeMachine) -> None:
        """Take over what another one has learned, to be solved with the options of this one."""
        self.statistics = other.statistics if other._few is None else RegressionStatistics.of(*other._few)

    @property
    def n_targets(self) -> int:
        """How many targets it has learned."""
        if self.statistics is not None:
            return self.statistics.n_targets
        return len(self.solution.intercept)

    def for_prediction(self) -> RidgeMachine:
        """One that predicts the same, and has nothing else."""
        return replace(self, statistics=None, _few=None, _solution=self.solution)

    @property
    def solution(self) -> Solution:
        """What was found; solved now, if rows came since."""
        if self._solution is None:
            assert self.statistics is not None
            problem = Primal.of(self.statistics, intercept=self.intercept)
            self._solution = self._solve(problem, (self.statistics.feature_mean, self.statistics.target_mean), None)
        return self._solution

    def predict(self, phi: FeatureMap, X: Any) -> np.ndarray:
        """Predictions (n, t), in the precision of X; features of one chunk at a time."""
        found = self.solution
        B = found.coefficients.astype(X.dtype)
        out = np.empty((X.shape[0], B.shape[1]), X.dtype)
        for rows in chunks(X.shape[0], X.shape[1] + phi.n_features_out):
            multiply(phi.queries(dense_rows(X, rows)), B, out[rows])
        out += found.intercept.astype(X.dtype)
        return out

    def _solve_dual(self, features: np.ndarray, Y: np.ndarray, w: np.ndarray) -> Solution:
        features, Y = features.astype(np.float64), Y.astype(np.float64)
        means = w @ features / w.sum(), w @ Y / w.sum()
        F, Z = self._about(means, features, Y)

        def left_out(spectrum: Spectrum, alphas: np.ndarray) -> np.ndarray:
            return spectrum.left_out(alphas, F, Z, w)

        return self._solve(Dual.of(F, Z, w, intercept=self.intercept), means, left_out)

    def _about(self, means: Any, features: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Features and targets in float64, without their means if there is an intercept."""
        if not self.intercept:
            return features.astype(np.float64), Y.astype(np.float64)
        return features - means[0], Y - means[1]

    def _solve(self, problem: Problem, means: Any, left_out: Any) -> Solution:
        if isinstance(self.alpha, str):
            spectrum, alphas = Spectrum.of(problem), self._grid()
            scores = [spectrum.gcv(a) for a in alphas] if self.alpha == "gcv" else left_out(spectrum, alphas)
            alpha: Any = _best(alphas, np.asarray(scores))
            B = spectrum.coefficients(alpha)
        else:
            alpha = self.alpha
            B = problem.coefficients(alpha)
        intercept = means[1] - means[0] @ B if self.intercept else np.zeros(B.shape[1])
        return Solution(B, intercept, alpha)

    def _grid(self) -> np.ndarray:
        grid = np.atleast_1d(_strengths(self.owner, "alphas", DEFAULT_ALPHAS if self.alphas is None else self.alphas))
        if not (grid > 0).all():
            raise ValueError(f"{self.owner}: alphas must be positive numbers, got {self.alphas!r}.")
        return grid


def _best(alphas: np.ndarray, scores: np.ndarray) -> float:
    """The strength of the lowest score; the largest one, where rounding left none."""
    known = np.isfinite(scores)
    return float(alphas[np.argmin(scores)] if known.any() else alphas.max())


def _strengths(owner: str, name: str, value: Any) -> np.ndarray:
    """One strength or several, none of them negative."""
    sentence = f"{owner}: {name} must be a non-negative number or a list of them, got {value!r}."
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(sentence) from None
    if array.ndim > 1 or not array.size or not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(sentence)
    return array
