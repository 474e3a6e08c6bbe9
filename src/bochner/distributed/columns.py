"""Columns of Dask collections, as scikit-learn keeps and compares them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from .blocks import as_dask_array


def remember_columns(estimator: Any, X: Any) -> None:
    """Keep the number and the names of the columns."""
    validate_data(estimator, _sample(estimator, X), skip_check_array=True, reset=True)


def compare_columns(estimator: Any, X: Any) -> None:
    """Refuse other columns than those of the fit, and an estimator that was not fitted."""
    check_is_fitted(estimator)
    validate_data(estimator, _sample(estimator, X), skip_check_array=True, reset=False)


def _sample(estimator: Any, X: Any) -> Any:
    """No rows of X, with its columns."""
    if hasattr(X, "to_dask_array"):
        return X._meta
    return np.empty((0, as_dask_array(type(estimator).__name__, X).shape[1]))
