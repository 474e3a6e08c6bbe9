"""Scores of Dask collections, added block by block: neither rows nor predictions are gathered."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..learn.gaussian_process.targets import columns
from ..learn.statistics import RegressionStatistics
from ._dask import is_dask
from .blocks import Blocks
from .columns import compare_columns
from .lazy import frozen


class RegressionScore:
    """`score` of regression."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2, averaged over targets.

        Parameters
        ----------
        X : dask array (n, d), dataframe, array or CSR matrix
        y : like X, (n,) or (n, t)
        sample_weight : like y, (n,), optional
        """
        if not is_dask(X):
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        total: RegressionStatistics = _blocks(self, X, y, sample_weight).sum(_residuals, frozen(self))
        squares = np.diag(total.moments(centred=False)[0])
        spread = total.target_scatter
        constant = np.where(squares > 0, 0.0, 1.0)  # as scikit-learn has it where there is nothing to explain
        return float(np.where(spread > 0, 1 - squares / np.where(spread > 0, spread, 1), constant).mean())


class ClassificationScore:
    """`score` of classification."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows whose class, or all of whose labels, are right.

        Parameters
        ----------
        X : dask array (n, d), dataframe, array or CSR matrix
        y : like X, (n,) or (n, k)
        sample_weight : like y, (n,), optional
        """
        if not is_dask(X):
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        right, weight = _blocks(self, X, y, sample_weight).sum(_right, frozen(self))
        return float(right / weight)


def _blocks(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Blocks:
    compare_columns(estimator, X)
    return Blocks(type(estimator).__name__, X, y, sample_weight, verbose=estimator.verbose)


def _residuals(X: Any, y: Any, weights: Any, estimator: Any) -> RegressionStatistics:
    """Statistics with residuals in the place of features."""
    Y = columns(y)
    gap = Y - columns(estimator.predict(X)) if len(Y) else Y
    return RegressionStatistics.of(gap, Y, weights)


def _right(X: Any, y: Any, weights: Any, estimator: Any) -> np.ndarray:
    """Weight of the rows that are right, and of all."""
    w = np.ones(len(y)) if weights is None else weights
    if not len(y):
        return np.zeros(2)
    predicted = estimator.predict(X)
    same = np.reshape(y, predicted.shape) == predicted
    return np.array([w[same if same.ndim == 1 else same.all(axis=1)].sum(), w.sum()])
