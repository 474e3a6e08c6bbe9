"""Ridge regression: which method fits the rows, and what a fit has learned, from moments or from a few rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgWarning

from ..._validation import check_option, shown
from ...approximation import FeatureMap
from ...linalg.engine import blas_for, multiply, single_threaded_blas
from .._row_source import RowSource, check_finite
from .conjugate_gradients import direct_cost, iterated_ridge
from .feature_moments import collect_moments, first_factor
from .leave_one_out import about, gaps_of_rows, grid_of, of_new_rows, squares_of_chunks
from .moments import Moments
from .spectrum import Equations, NormalEquations, RowEquations, Solved, Spectrum, best_alpha, gcv

CRITERIA = ("gcv", "loo")
SOLVERS = ("auto", "primal", "dual", "cg")
SAFE_ALPHA = 1e-3  # from here on a fixed alpha is far above the rounding of products in float32
_SAMPLE_NUMBERS, _SAMPLE_ROWS = 1 << 25, 2048
"""Features on which a criterion chooses alpha for conjugate gradients, 256 MB in float64, and most rows of them."""
_NOTHING_KEPT = (
    "a fit by conjugate gradients keeps no statistics to which rows could be added, nor does one with another loss than "
    "squares, and compact() drops them; call fit, with solver='primal' if rows are to be added."
)


class Solution(NamedTuple):
    """Coefficients (D, t), intercepts (t,), and the alpha they were found with."""

    coefficients: np.ndarray
    intercept: np.ndarray
    alpha: Any


class FewRows(NamedTuple):
    """Features (n, D), targets (n, t) and weights (n,) or None of rows fewer than features."""

    features: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None


@dataclass(frozen=True)
class Ridge:
    """Options of a ridge fit."""

    owner: str  # the estimator, for messages
    alpha: Any = 1.0
    alphas: Any = None  # values among which the criteria choose
    intercept: bool = True
    solver: str = "auto"  # see `KernelRidge`
    # whether products are taken in float64; None decides by alpha, for features of about unit size
    exact_products: bool | None = None

    symmetric = True

    def check(self, n_targets: int, *, in_memory: bool) -> None:
        """Refuse options that mean nothing, or need rows that are elsewhere."""
        check_option(self.owner, "solver", self.solver, SOLVERS)
        if self.solver == "dual" and not in_memory:
            raise ValueError(
                f"{self.owner}: solver='dual' needs all rows in one place; on Dask collections use 'auto'."
            )
        if isinstance(self.alpha, str):
            if self.alpha not in CRITERIA:
                raise ValueError(
                    f"{self.owner}: alpha must be 'auto', a number, one for each target, 'loo' or 'gcv', got "
                    f"{shown(self.alpha)}."
                )
            self.grid()
            return
        alpha = _alphas_of(self.owner, "alpha", self.alpha)
        if alpha.ndim and len(alpha) not in (1, n_targets):
            raise ValueError(
                f"{self.owner}: alpha has {len(alpha)} entries, one for each target, for {n_targets} targets."
            )
        if self.solver == "cg" and not (alpha > 0).all():
            raise ValueError(
                f"{self.owner}: alpha must be positive for solver='cg', got {shown(self.alpha)}; use 'primal' or 'dual', "
                f"which find the shortest fit."
            )

    def grid(self, equations: Equations | None = None) -> np.ndarray:
        """The values of alpha to choose among: those that are given, or the default ones for these equations."""
        if self.alphas is None:
            return np.ones(1) if equations is None else grid_of(equations)
        grid = np.atleast_1d(_alphas_of(self.owner, "alphas", self.alphas))
        if not (grid > 0).all():
            raise ValueError(f"{self.owner}: alphas must be positive numbers, got {shown(self.alphas)}.")
        return grid

    @property
    def exact(self) -> bool:
        """Whether products must be taken in float64: criteria and small alphas look below the rounding of float32."""
        if self.exact_products is not None:
            return self.exact_products
        return isinstance(self.alpha, str) or bool((np.asarray(self.alpha) < SAFE_ALPHA).any())

    def fit(self, phi: FeatureMap, rows: RowSource, *, verbose: Any = 0) -> RidgeModel:
        """Fit features and targets of all rows at once."""
        self.check(rows.n_targets, in_memory=rows.in_memory)
        return self.iterated(phi, rows, verbose=verbose) or self.direct(phi, rows, verbose=verbose)

    def direct(self, phi: FeatureMap, rows: RowSource, *, verbose: Any = 0) -> RidgeModel:
        """A fit by moments, or by the rows themselves where they are fewer than features."""
        model = self.collected(phi, rows, verbose=verbose)
        by_rows = isinstance(self.alpha, str) and self.alpha == "loo" and isinstance(model.data, Moments)
        return (replace(model, alpha=self._by_leaving_out(model, phi, rows, verbose)) if by_rows else model).solved()

    def collected(self, phi: FeatureMap, rows: RowSource, *, verbose: Any = 0) -> RidgeModel:
        """What a fit is solved from."""
        few = rows.in_memory and (
            self.solver == "dual" or (self.solver == "auto" and rows.shape[0] < phi.n_features_out)
        )
        if few:  # fewer numbers than the moments, which they become when more rows come
            X, Y, weights = rows.gathered()
            return RidgeModel(self, FewRows(check_finite(self.owner, phi.queries(X)), Y, weights))
        return self._summed(phi, rows, verbose)

    def extend(self, model: RidgeModel, phi: FeatureMap, rows: RowSource, *, verbose: Any = 0) -> RidgeModel:
        """The model with more rows; it is solved when it is next asked for."""
        self.check(rows.n_targets, in_memory=rows.in_memory)
        if model.data is None:
            raise ValueError(f"{self.owner}: {_NOTHING_KEPT}")
        more = self._summed(phi, rows, verbose)
        return replace(more, data=model.moments + more.moments)

    def begin(self, phi: FeatureMap, rows: RowSource, *, verbose: Any = 0) -> RidgeModel:
        """A model of the first of several parts of the rows."""
        self.check(rows.n_targets, in_memory=rows.in_memory)
        return self._summed(phi, rows, verbose)

    def _summed(self, phi: FeatureMap, rows: RowSource, verbose: Any) -> RidgeModel:
        least = 0.0 if isinstance(self.alpha, str) else float(np.min(self.alpha))
        return RidgeModel(self, collect_moments(phi, rows, exact=self.exact, least_alpha=least, verbose=verbose))

    def iterated(self, phi: FeatureMap, rows: RowSource, *, verbose: Any = 0) -> RidgeModel | None:
        """A fit by conjugate gradients, if it was asked for, or if it is expected to take less than half of the time."""
        alpha, at_most = self.alpha, np.inf
        if self.solver != "cg":
            fixed = not isinstance(alpha, str) and bool((np.asarray(alpha) > 0).all())
            if self.solver != "auto" or not fixed or not rows.in_memory or not phi.spec.map.uses_rows:
                return None
            at_most = direct_cost(rows.count(), phi.n_features_out) / 2
        if isinstance(alpha, str):
            alpha = self._by_sample(phi, rows)
        exact = replace(self, alpha=alpha).exact
        found = iterated_ridge(
            phi, rows, alpha, intercept=self.intercept, exact=exact, at_most=at_most, verbose=verbose
        )
        if found is None:
            return None
        intercept = found.target_mean - found.feature_mean @ found.coefficients
        return RidgeModel(self, None, found=Solution(found.coefficients, intercept, alpha))

    def _by_sample(self, phi: FeatureMap, rows: RowSource) -> float:
        """Alpha that the criterion chooses on a sample of the rows."""
        size = int(np.clip(_SAMPLE_NUMBERS // phi.n_features_out, 256, _SAMPLE_ROWS))
        X, Y, weights = rows.sample_weighted(size, np.random.default_rng(0))
        return float(RidgeModel(self, FewRows(phi.queries(X), Y, weights)).solution.alpha)

    def _by_leaving_out(self, model: RidgeModel, phi: FeatureMap, rows: RowSource, verbose: Any) -> float:
        """Alpha of the least leave-one-out error: one more pass over the rows."""
        spectrum = model.equations.spectrum()
        alphas = self.grid(spectrum.equations)
        work = partial(squares_of_chunks, phi=phi, spectrum=spectrum, alphas=alphas, means=model.means)
        sums = rows.reduce(work, width=phi.n_features_out, label="leave one out", verbose=verbose)
        return best_alpha(alphas, of_new_rows(sums))


@dataclass(frozen=True)
class RidgeModel:
    """What a ridge fit has learned: a value, from which another is made when more rows come."""

    options: Ridge
    data: Moments | FewRows | None = field(repr=False)  # None if nothing but the solution is kept
    alpha: Any = None  # alpha that a second pass over the rows has chosen
    # what was found by conjugate gradients, or before the model was saved or its data were dropped
    found: Solution | None = field(default=None, repr=False)

    @property
    def moments(self) -> Moments:
        """Moments of all rows seen so far."""
        kept = self.kept
        return kept if isinstance(kept, Moments) else Moments.of(*kept)

    @property
    def kept(self) -> Moments | FewRows:
        """What it keeps of the rows."""
        if self.data is None:
            raise AttributeError(f"{self.options.owner}: {_NOTHING_KEPT}")
        return self.data

    @property
    def n_targets(self) -> int:
        """How many targets it has learned."""
        if self.data is None:
            return len(self.solution.intercept)
        return self.data.n_targets if isinstance(self.data, Moments) else self.data.targets.shape[1]

    @cached_property
    def solution(self) -> Solution:
        """What was found; solved when it is first asked for, after rows came in parts."""
        if self.found is not None:
            return self.found
        size = self.kept.n_features if isinstance(self.kept, Moments) else len(self.kept.targets)
        with blas_for(size):
            return self._solve()

    def _solve(self) -> Solution:
        options, equations = self.options, self.equations
        if isinstance(options.alpha, str) and self.alpha is None:
            spectrum, alphas = equations.spectrum(), options.grid(equations)
            scores = [gcv(spectrum, a) for a in alphas] if options.alpha == "gcv" else self._leave_one_out(spectrum)
            alpha: Any = best_alpha(alphas, np.asarray(scores))
            solved = Solved(spectrum.coefficients(alpha))
        else:
            alpha = options.alpha if self.alpha is None else self.alpha
            solved = equations.solve(alpha)
        if solved.lost:
            warnings.warn(
                f"{options.owner}: alpha={alpha} is below the rounding of the features, which leave {solved.lost} "
                f"directions undetermined; the shortest fit was taken. Raise alpha, or lower n_components.",
                LinAlgWarning,
                stacklevel=3,
            )
        B, (phi, y) = solved.coefficients, self.means
        return Solution(B, y - phi @ B if options.intercept else np.zeros(B.shape[1]), alpha)

    def remembered(self) -> RidgeModel:
        """A model that holds its solution, if there is one already, and need not be solved again."""
        return replace(self, found=vars(self).get("solution", self.found))

    def compact(self) -> RidgeModel:
        """The solution alone."""
        return replace(self, data=None, found=self.solution)

    def solved(self, *, quiet: bool = False) -> RidgeModel:
        """Itself, once its solution is known; ``quiet`` without a warning of an alpha that the user has not chosen."""
        with warnings.catch_warnings():
            if quiet:
                warnings.simplefilter("ignore", LinAlgWarning)
            self.solution  # noqa: B018
        return self

    @cached_property
    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Means of features and targets."""
        kept = self.kept
        if isinstance(kept, Moments):
            return kept.feature_mean, kept.target_mean
        features, Y, weights = kept
        w = np.ones(len(Y)) if weights is None else weights
        return w @ features.astype(np.float64) / w.sum(), w @ Y.astype(np.float64) / w.sum()

    @property
    def equations(self) -> Equations:
        """Moments of features and targets about their means, if there is an intercept."""
        centred, kept = self.options.intercept, self.kept
        if isinstance(kept, Moments):
            return NormalEquations.of(kept, about_mean=centred)
        F, Z = about(self.means if centred else None, kept.features, kept.targets)
        rounding = float(np.finfo(kept.features.dtype).eps)
        return RowEquations.of(F, Z, kept.weights, about_mean=centred, rounding=rounding)

    def _leave_one_out(self, spectrum: Spectrum) -> np.ndarray:
        """Errors of the rows that are at hand."""
        kept = self.kept
        if isinstance(kept, Moments):
            raise ValueError(f"{self.options.owner}: alpha='loo' needs all rows again, and none were kept; call fit.")
        means, (features, Y, weights) = self.means if self.options.intercept else None, kept
        alphas, (F, Z) = self.options.grid(spectrum.equations), about(means, features, Y)
        w = np.ones(len(F)) if weights is None else weights
        return np.asarray(w @ (gaps_of_rows(spectrum, alphas, F, Z, weights) ** 2).sum(axis=2))

    def predictor(self, phi: FeatureMap) -> Any:
        """Function of rows X (n, d) that returns predictions (n, t), and holds no more than it needs."""
        factors, B = phi.features.factored(stable=False), self.solution.coefficients
        if factors is not None:
            with single_threaded_blas:
                B = factors.matrix @ B
        return partial(
            _predict,
            phi=phi,
            coefficients=B,
            intercept=self.solution.intercept,
            factored=factors is not None,
            owner=self.options.owner,
        )


def _predict(
    X: np.ndarray, *, phi: FeatureMap, coefficients: np.ndarray, intercept: np.ndarray, factored: bool, owner: str
) -> np.ndarray:
    features = first_factor(phi, X) if factored else phi.queries(X)
    found = np.empty((len(X), len(intercept)), features.dtype)
    multiply(features, coefficients.astype(features.dtype), found)
    found += intercept.astype(features.dtype)
    return check_finite(owner, found).astype(X.dtype, copy=False)


def _alphas_of(owner: str, name: str, value: Any) -> np.ndarray:
    """One alpha or several, none of them negative."""
    sentence = f"{owner}: {name} must be a non-negative number or a list of them, got {shown(value)}."
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(sentence) from None
    if array.ndim > 1 or not array.size or not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(sentence)
    return array
