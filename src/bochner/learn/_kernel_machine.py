"""The base class of kernel regression and classification: features, and a method that learns targets from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._validation import check_flag, check_option
from ..kernels import Gaussian
from ..linalg.engine import single_threaded_blas
from ..maps import OptimalPositive
from ._changed_rows import in_coordinates
from ._chooser import choose, fit_chosen, is_auto, leaves_open
from ._coordinates import Coordinates, moved_features
from ._estimator import Compactable, FeatureEstimator
from ._exact_kernel import EXACT, check_exact, fit_exact, is_exact
from ._feature_parameters import FeatureParameters, draw_features
from ._linear.moments import Moments
from ._linear.ridge import Ridge, RidgeModel
from ._metric import given_root
from ._nadaraya_watson import KernelAverage, NadarayaWatson
from ._row_source import Chunk, RowSource
from ._selection import Selection
from ._uncertainty import KEPT_ROWS, KeptRows

METHODS = ("ridge", "nadaraya-watson")
GAUSSIAN_NAMES = ("gaussian", "rbf")
AVERAGE_WIDTH = 1024  # width of weighted averages, which have no error to choose it by


def streams(machine: Any) -> bool:
    """Whether `partial_fit` is available; leave-one-out selection and conjugate gradients need all rows again."""
    if machine.solver == "cg" and machine.method == "ridge":
        raise AttributeError(
            f"{type(machine).__name__}: solver='cg' needs all rows again, and partial_fit keeps none; use "
            f"solver='primal'."
        )
    if isinstance(machine.alpha, str) and machine.alpha == "loo" and machine.method == "ridge":
        raise AttributeError(
            f"{type(machine).__name__}: alpha='loo' needs all rows again, and partial_fit keeps none; use alpha='auto'."
        )
    if isinstance(machine.map, str) and machine.map == EXACT:
        raise AttributeError(
            f"{type(machine).__name__}: map='exact' needs all rows at once, and partial_fit keeps none; use map='auto'."
        )
    if getattr(machine, "loss", "squared") != "squared":
        raise AttributeError(
            f"{type(machine).__name__}: loss={machine.loss!r} needs all rows again, and partial_fit keeps none; use "
            f"loss='squared'."
        )
    return True


def _then(
    X: np.ndarray, *, first: Callable[[np.ndarray], np.ndarray], second: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """One function of rows after another."""
    return second(first(X))


def kept_rows(every: Any, merged: Any, n: int = KEPT_ROWS) -> KeptRows:
    """Some rows, from whose left-out errors uncertainty is told."""
    X, Y, weights = every.some(n, np.random.default_rng(0))
    means, sums = (Y, weights) if merged is every else merged.targets_of(X)
    return KeptRows(X, np.asarray(Y, dtype=np.float64), weights, np.asarray(means, dtype=np.float64), sums)


def _sampled_rows(sample: Chunk | None) -> KeptRows | None:
    """The rows that have chosen alpha, where all are elsewhere."""
    if sample is None:
        return None
    Y = np.asarray(sample.targets, dtype=np.float64)
    return KeptRows(sample.X, Y, sample.weights, Y, sample.weights)


class KernelMachine(Compactable, FeatureEstimator, ABC):
    """Base class of regression and classification; a subclass converts its y to a matrix of targets and back."""

    method: str
    alpha: Any
    alphas: Any
    fit_intercept: bool
    solver: str
    verbose: Any

    model_: RidgeModel | KernelAverage
    standardize: Any = "auto"
    metric: Any = "auto"
    coordinates_: Coordinates | None = None
    selection_: Selection | None = None
    _kept: KeptRows | None = None
    _n_different: int = 0
    _classes_alike: ClassVar[bool] = False
    _reads_cells: ClassVar[bool] = True

    @property
    def coef_(self) -> np.ndarray:
        """Coefficients of the features: (t, n_components), or (n_components,) for a single one-dimensional target."""
        B = self._ridge().solution.coefficients
        return B[:, 0] if self._single else B.T

    @property
    def intercept_(self) -> Any:
        """Intercepts (t,), or a number for a single one-dimensional target."""
        intercept = self._ridge().solution.intercept
        return float(intercept[0]) if self._single else intercept

    @property
    def alpha_(self) -> Any:
        """The regularisation that was used."""
        return self._ridge().solution.alpha

    @property
    def statistics_(self) -> Moments:
        """Moments of features and targets of all rows seen; those of two estimators with the same features can be added."""
        return self._ridge().moments

    def _ridge(self) -> RidgeModel:
        check_is_fitted(self, "model_")
        if not isinstance(self.model_, RidgeModel):
            raise AttributeError(
                f"{type(self).__name__}: coefficients exist with method='ridge' only, got {self.method!r}."
            )
        return self.model_

    def _method(self) -> Ridge | NadarayaWatson:
        owner = type(self).__name__
        self._check_method()
        if self.method == "nadaraya-watson":
            return NadarayaWatson(owner)
        alpha = self.selection_.alpha if is_auto(self.alpha) and self.selection_ is not None else self.alpha
        return Ridge(owner, alpha, self.alphas, self.fit_intercept, self.solver)

    def _check_method(self) -> None:
        owner = type(self).__name__
        check_option(owner, "method", self.method, METHODS)
        check_flag(owner, "fit_intercept", self.fit_intercept)
        if is_exact(self.map) and self.method != "ridge":
            raise ValueError(f"{owner}: map='exact' needs method='ridge', got {self.method!r}.")

    def _fit_rows(self, rows: RowSource, *, begin: bool = False) -> None:
        """Choose what is left to choose, draw features and learn all rows, or only the first of them if ``begin``."""
        self._check_method()
        if is_exact(self.map):
            check_exact(self, rows, begin=begin)
        self.selection_, sample = None, None
        with self._threads():
            if self.method == "nadaraya-watson":  # an average has nothing to judge: rules, not a search
                self.coordinates_, parameters = self._average_coordinates(rows), self._average_parameters()
            else:
                every, n = rows, rows.shape[0]
                rows = rows.merged() if leaves_open(self) and not begin else rows
                with single_threaded_blas:  # the bits of a choice depend on no number of threads
                    parameters, self.coordinates_, self.selection_, sample = choose(
                        self, rows, classes=self._classes_alike, begin=begin
                    )
                if self.selection_ is not None and rows.in_memory and rows.shape[0] < n:
                    said = f"{n - rows.shape[0]} of {n} rows repeat others, and equal rows are left out together; "
                    self.selection_ = replace(self.selection_, reason=said + self.selection_.reason)
                self._kept = kept_rows(every, rows) if rows.in_memory else _sampled_rows(sample)
                self._n_different = rows.shape[0] if rows.in_memory else 0
                if is_exact(self.map):
                    self.features_, self.model_, self.selection_, self._kept = fit_exact(
                        self, parameters, self.coordinates_, self.selection_, rows, self._kept,
                        classes=self._classes_alike,
                    )  # fmt: skip
                    self._announced()
                    return
            method = self._method()
            moved = in_coordinates(self.coordinates_, rows)
            self.features_ = draw_features(parameters, moved, self.random_state, symmetric=method.symmetric)
            phi, verbose = self._moved_features(), self.verbose
            if isinstance(method, Ridge):
                self.model_, self.selection_ = fit_chosen(
                    method,
                    phi,
                    rows,
                    self.selection_,
                    sample,
                    begin=begin,
                    classes=self._classes_alike,
                    verbose=verbose,
                )
            else:
                self.model_ = (method.begin if begin else method.fit)(phi, rows, verbose=verbose)
        self._announced()

    def _announced(self) -> None:
        if self.selection_ is not None:
            self.selection_.announce(type(self).__name__)

    def _add_rows(self, rows: RowSource) -> None:
        """Learn more rows; features are drawn at the first call."""
        if not hasattr(self, "model_"):
            self._fit_rows(rows, begin=True)
            return
        method: Any = self._method()
        self._check_goes_on_from(method, rows.n_targets)
        with self._threads():
            self.model_ = method.extend(self.model_, self._moved_features(), rows, verbose=self.verbose)

    def _average_parameters(self) -> FeatureParameters:
        """Parameters of weighted averages, with a positive default map if there is one."""
        parameters = self._parameters()
        if is_auto(self.kernel):
            parameters = parameters._replace(kernel="gaussian")
        if is_auto(self.n_components):
            parameters = parameters._replace(n_components=AVERAGE_WIDTH)
        named = parameters.kernel
        gaussian = isinstance(named, Gaussian) or (isinstance(named, str) and named in GAUSSIAN_NAMES)
        if self.map is None or is_auto(self.map):
            parameters = parameters._replace(map=OptimalPositive() if gaussian else None)
        return parameters._replace(gamma=None) if is_auto(self.gamma) else parameters

    def _average_coordinates(self, rows: RowSource) -> Coordinates | None:
        """Standardised columns and a metric, as far as they are given."""
        owner = type(self).__name__
        if not is_auto(self.standardize):
            check_flag(owner, "standardize", self.standardize)
        if isinstance(self.metric, str) and not is_auto(self.metric):
            raise ValueError(f"{owner}: a metric is learned with method='ridge', got 'nadaraya-watson'; pass a matrix.")
        found = Coordinates.standard(rows) if self.standardize is True else None
        if self.metric is None or is_auto(self.metric):
            return found
        return (found or Coordinates()).followed_by(given_root(owner, self.metric, rows.shape[1]))

    def _moved_features(self) -> Any:
        """The features of rows as they were given."""
        return moved_features(self.coordinates_, self.features_, self._n_columns)

    def _drop_statistics(self) -> None:
        """The sums of a weighted average are what it predicts with, and stay."""
        if isinstance(self.model_, RidgeModel):
            self.model_, self._kept = self.model_.compact(), None

    def _check_goes_on_from(self, method: Any, n_targets: int) -> None:
        """Raise a ValueError for another method, or another number of targets, than were learned."""
        owner, known = type(self).__name__, self.model_
        if type(method) is not type(known.options):
            raise ValueError(f"{owner}: method={self.method!r} cannot continue a fit by another method; call fit.")
        if n_targets != known.n_targets:
            s = "s" if known.n_targets > 1 else ""
            raise ValueError(f"{owner}: expected {known.n_targets} target{s} as in the first call, got {n_targets}.")

    def _after(self, finish: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
        """Return a picklable function from rows X (n, d) to ``finish`` of the predicted targets (n, t)."""
        return partial(_then, first=self.model_.predictor(self._moved_features()), second=finish)

    def _each(self, X: Any, work: Callable[[np.ndarray], np.ndarray], tail: tuple[int, ...], dtype: Any = None) -> Any:
        """``work`` of all rows: (n, *tail), in the precision of X or in ``dtype``."""
        rows = self._rows(X)
        with self._threads():
            return rows.map(
                work, tail, rows.dtype if dtype is None else np.dtype(dtype), width=self.features_.n_features_out
            )

    @property
    @abstractmethod
    def _single(self) -> bool:
        """Whether predictions have one number per row."""
