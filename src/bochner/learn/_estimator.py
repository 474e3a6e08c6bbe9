"""Base classes of the estimators: input of rows, number of threads, and fits that succeed or change nothing."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
import sklearn
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, check_X_y, validate_data

from .._arrays import is_numpy, is_torch
from .._validation import as_host_rows, check_count, check_instance
from ..approximation import Approximation, FeatureMap
from ..kernels import Kernel
from ..linalg.engine import available_threads, threads
from ._cells import Cells
from ._feature_parameters import FeatureParameters, draw_features
from ._row_source import RowSource, check_present, check_sizes, check_some_weight, named, rows_in_memory
from ._state import from_plain, to_plain

FLOATS = (np.float64, np.float32)
NO_TARGETS = "no_validation"  # scikit-learn's marker for rows without targets

Fit = TypeVar("Fit", bound=Callable[..., Any])


def all_or_nothing(fit: Fit) -> Fit:
    """Decorate a fit so that a failure or an interruption at any point leaves the estimator exactly as it was.

    The fit works on a copy, whose attributes become those of the estimator in one assignment.  A Generator or RandomState
    in ``random_state`` is set back.
    """

    @functools.wraps(fit)
    def careful(self: Any, *arguments: Any, **options: Any) -> Any:
        trial = object.__new__(type(self))
        trial.__dict__.update(self.__dict__)
        rewind = _rewinder(getattr(self, "random_state", None))
        try:
            fit(trial, *arguments, **options)
        except BaseException:
            rewind()
            raise
        self.__dict__ = trial.__dict__
        return self

    return cast(Fit, careful)


def _rewinder(source: Any) -> Callable[[], Any]:
    """Return a function that sets a Generator or RandomState back to where it is now."""
    if isinstance(source, np.random.Generator):
        return functools.partial(setattr, source.bit_generator, "state", source.bit_generator.state)
    if isinstance(source, np.random.RandomState):
        return functools.partial(source.set_state, source.get_state(legacy=False))
    return lambda: None


@contextlib.contextmanager
def n_jobs_threads(owner: str, n_jobs: Any) -> Iterator[None]:
    """Use as many threads within the block as ``n_jobs`` says; None means all that the process may use.

    A worker of joblib gets the share that joblib grants it.
    """
    if n_jobs is None:
        n = min(available_threads(), effective_n_jobs(-1))
    elif isinstance(n_jobs, int) and n_jobs < 0:
        n = effective_n_jobs(n_jobs)
    else:
        n = check_count(owner, "n_jobs", n_jobs)
    with threads(n):
        yield


class RowEstimator(BaseEstimator):
    """Base class of all estimators, which checks their input.  An instance has a parameter ``n_jobs``."""

    _dtypes: ClassVar[tuple[Any, ...]] = FLOATS  # accepted precisions; rows of other types are converted to the first
    _target_options: ClassVar[dict[str, Any]] = {}  # options for scikit-learn's check of targets
    _reads_cells: ClassVar[bool] = False  # whether tables may have categories and gaps
    cells_: Cells | None = None  # how the columns of a table with categories or gaps become numbers
    n_jobs: Any

    def _rows(self, X: Any, y: Any = NO_TARGETS, sample_weight: Any = None, *, reset: bool = False) -> RowSource:
        """Return checked rows, with targets and weights if there are any; all data enter here.

        ``reset`` starts a new fit; rows for a fitted estimator must have the columns of its fit.
        """
        if not reset:
            check_is_fitted(self)
        owner = type(self).__name__
        if reset and self._reads_cells:
            self.cells_ = Cells.of(owner, X)
        read: Any = X
        blocks: tuple[tuple[int, int], ...] = ()
        if self.cells_ is not None:
            validate_data(self, X, skip_check_array=True, reset=reset)  # names and number of the columns of the table
            read, blocks = self.cells_.numbers(owner, X), self.cells_.blocks
        (read, origin), (y, _) = _in_numpy(owner, read), _in_numpy(owner, y)
        if getattr(getattr(read, "dtype", None), "kind", "f") in "mM":  # scikit-learn would count seconds or days
            raise TypeError(f"{owner}: X must hold numbers, got {read.dtype}; encode dates as numbers first.")
        if isinstance(y, str) and y == NO_TARGETS:
            return rows_in_memory(owner, self._checked(read, reset=reset), origin=origin, blocks=blocks)
        y = self._dense_targets(y)
        with named(owner):
            check_present([] if y is None else y)
        X, y = self._checked(read, y, reset=reset)
        weights = None
        if sample_weight is not None:
            sample_weight, _ = _in_numpy(owner, sample_weight)
            # private in scikit-learn, and what its own estimators call: shapes and messages are theirs; has no public twin
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        y = self._checked_targets(y)
        with named(owner):
            check_sizes(y, weights)
        rows = rows_in_memory(owner, X, y, weights, origin=origin, blocks=blocks)
        if weights is not None:
            check_some_weight(rows, float(weights.sum()))
        return rows

    def _checked(self, X: Any, y: Any = NO_TARGETS, *, reset: bool) -> Any:
        """Check rows, with targets if there are any; the columns of tables that became numbers are checked already."""
        options: dict[str, Any] = {"accept_sparse": "csr", "dtype": list(self._dtypes)}
        if self.cells_ is None:
            targets = {} if isinstance(y, str) else self._target_options
            return validate_data(self, X, y, **options, **targets, reset=reset)
        if isinstance(y, str):
            return check_array(X, **options)
        return check_X_y(X, y, estimator=self, **options, **self._target_options)

    @property
    def _n_columns(self) -> int:
        """Columns of numbers that rows have, beside `n_features_in_`, those of the table."""
        return int(self.n_features_in_) if self.cells_ is None else self.cells_.n_columns

    def _other_rows(self, X: Any) -> RowSource:
        """Return checked rows whose columns are not those of the fit."""
        X, origin = _in_numpy(type(self).__name__, X)
        X = check_array(X, dtype=list(self._dtypes), accept_sparse="csr")
        return rows_in_memory(type(self).__name__, X, origin=origin)

    def _dense_targets(self, y: Any) -> Any:
        """Targets that the checks of scikit-learn can read."""
        if sparse.issparse(y):
            raise TypeError(f"{type(self).__name__}: y must be dense, got a sparse matrix; pass y.toarray().")
        return y

    def _checked_targets(self, y: np.ndarray) -> np.ndarray:
        """Check targets beyond what scikit-learn checks."""
        if y.dtype.kind not in "fiub":
            raise ValueError(f"{type(self).__name__}: y must hold numbers, got {y.dtype}.")
        return y

    def __getstate__(self) -> dict[str, Any]:
        """Return parameters unchanged and fitted attributes as plain data, without names of private classes."""
        state: dict[str, Any] = super().__getstate__()
        return to_plain(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(from_plain(type(self).__name__, state))

    def _threads(self) -> contextlib.AbstractContextManager[None]:
        return n_jobs_threads(type(self).__name__, self.n_jobs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._reads_cells
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class Compactable(RowEstimator):
    """Base class of fitted machines that can drop what only further fitting needs."""

    def compact(self) -> Self:
        """Drop the statistics, which only further fitting needs, and keep what prediction needs.

        Use it before a model is saved or sent to where it predicts.  Like scikit-learn's ``sparsify``, it changes the
        estimator itself.  Predictions stay the same to the last bit; `partial_fit` and ``statistics_`` raise an error
        from then on, and ``fit`` starts anew.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self._drop_statistics()
        return self

    def _drop_statistics(self) -> None:
        """Forget them, in one assignment; the base class keeps none."""


def _in_numpy(owner: str, X: Any) -> tuple[Any, Any]:
    """Return X for NumPy, and X itself if scikit-learn's ``array_api_dispatch`` asks for results in its library."""
    X = as_host_rows(owner, X)
    foreign = is_torch(X) or (hasattr(X, "__array_namespace__") and not is_numpy(X))
    if not foreign or not sklearn.get_config()["array_api_dispatch"]:
        return X, None
    return np.asarray(X.cpu() if is_torch(X) else X), X


class FeatureEstimator(RowEstimator):
    """Base class of estimators that draw features, with the fields of `FeatureParameters` and ``random_state``.

    Fitting draws features for the data; `predict` or `transform` apply them.
    """

    kernel: Any
    gamma: Any
    map: Any
    projection: Any
    n_components: Any
    random_state: Any
    features_: FeatureMap

    @classmethod
    def from_spec(cls, spec: Approximation, **parameters: Any) -> Self:
        """Return an estimator with the features of a specification, such as one chosen by `bochner.recommend`.

        Parameters
        ----------
        spec : Approximation
            Its kernel, map, projection and width become the parameters of the same names, and its bandwidth stays.
        **parameters
            All other parameters.

        Returns
        -------
        estimator
        """
        check_instance(f"{cls.__name__}.from_spec", "spec", spec, Approximation, "recommend(X).best")
        given = {"gamma": None, "map": spec.map, "projection": spec.projection, "n_components": spec.n_features_out}
        return cls(kernel=spec.kernel, **given | parameters)

    @property
    def kernel_(self) -> Kernel | None:
        """The kernel with its bandwidth, which the features estimate."""
        check_is_fitted(self)
        return self.features_.spec.kernel

    def _parameters(self) -> FeatureParameters:
        return FeatureParameters(self.kernel, self.gamma, self.map, self.projection, self.n_components)

    def _drawn(self, rows: RowSource, rng: Any = None, *, symmetric: bool = True) -> FeatureMap:
        return draw_features(self._parameters(), rows, self.random_state if rng is None else rng, symmetric=symmetric)
