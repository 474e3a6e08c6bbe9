"""What estimators on random features share."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from .specification import Drawn, FeatureParameters, draw_features
from .streaming import n_jobs_threads

FLOATS = [np.float64, np.float32]

Fit = TypeVar("Fit", bound=Callable[..., Any])


def all_or_nothing(fit: Fit) -> Fit:
    """Decorate a fit so that a failure or an interruption at any point leaves the estimator exactly as it was.

    The fit works on a copy, whose attributes become those of the estimator in one assignment.
    """

    @functools.wraps(fit)
    def careful(self: Any, *arguments: Any, **options: Any) -> Any:
        trial = object.__new__(type(self))
        trial.__dict__.update(self.__dict__)
        fit(trial, *arguments, **options)
        self.__dict__ = trial.__dict__
        return self

    return cast(Fit, careful)


class FeatureEstimator(BaseEstimator):
    """Base of the estimators that draw features: an instance has the fields of `FeatureParameters` and two more.

    Those are ``random_state`` and ``n_jobs``.  Fitting draws features of the data, `predict` or `transform` apply them.
    """

    kernel: Any
    gamma: Any
    map: Any
    projection: Any
    n_components: Any
    random_state: Any
    n_jobs: Any

    def _parameters(self) -> FeatureParameters:
        return FeatureParameters(self.kernel, self.gamma, self.map, self.projection, self.n_components)

    def _drawn(self, X: Any, weights: np.ndarray | None = None, *, symmetric: bool = True) -> Drawn:
        owner = type(self).__name__
        return draw_features(owner, self._parameters(), X, self.random_state, symmetric=symmetric, weights=weights)

    def _threads(self) -> contextlib.AbstractContextManager[None]:
        return n_jobs_threads(type(self).__name__, self.n_jobs)

    def _validated(self, X: Any, *, reset: bool = False) -> Any:
        """X as scikit-learn checks it; of a fitted estimator, unless ``reset``."""
        if not reset:
            check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
