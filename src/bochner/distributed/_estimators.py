"""The estimators of `bochner.learn` on Dask collections: the same classes with a different row source."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import dask
import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import learn
from ..learn._estimator import NO_TARGETS
from ..learn._linear.moments import Moments
from ..learn._linear.spectrum import NormalEquations
from ..learn._row_source import Chunk, RowSource
from ._dask_rows import DaskRows


class OnDask:
    """Mixin for estimators whose rows may come from Dask arrays and dataframes."""

    def _rows(self, X: Any, y: Any = NO_TARGETS, sample_weight: Any = None, *, reset: bool = False) -> RowSource:
        """The door for rows: of Dask collections, and otherwise that of `bochner.learn`."""
        if not dask.is_dask_collection(X):
            rows: RowSource = super()._rows(X, y, sample_weight, reset=reset)  # type: ignore[misc]
            return rows
        if not reset:
            check_is_fitted(self)
            _check_stays_lazy(self)
        if y is None:
            raise ValueError("fit requires y to be passed, but the target y is None.")
        targets = None if isinstance(y, str) and y == NO_TARGETS else y
        found = DaskRows(type(self).__name__, X, targets, sample_weight, dtypes=self._dtypes)  # type: ignore[attr-defined]
        columns = X._meta if hasattr(X, "to_dask_array") else np.empty((0, found.shape[1]))
        validate_data(self, columns, skip_check_array=True, reset=reset)
        return found

    def _other_rows(self, X: Any) -> RowSource:
        if not dask.is_dask_collection(X):
            rows: RowSource = super()._other_rows(X)  # type: ignore[misc]
            return rows
        return DaskRows(type(self).__name__, X, dtypes=self._dtypes)  # type: ignore[attr-defined]


def _check_stays_lazy(estimator: Any) -> None:
    """Raise a ValueError for an output container that would gather all features on the client."""
    own: dict[str, str] = getattr(estimator, "_sklearn_output_config", {})
    container = own.get("transform", sklearn.get_config()["transform_output"])
    if hasattr(estimator, "transform") and container != "default":
        raise ValueError(
            f"{type(estimator).__name__}: transform_output={container!r} would gather all rows of a Dask collection; use "
            f"set_output(transform='default'), and convert its blocks to data frames."
        )


class RegressionOnDask(OnDask):
    """Mixin for regression whose scores are added block by block, without gathering rows or predictions."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R^2, averaged over targets.

        Parameters
        ----------
        X : dask array (n, d), dataframe, array or CSR matrix
            Data.
        y : like X, (n,) or (n, t)
            True targets.
        sample_weight : like y, (n,), optional
            Weights of the rows.

        Returns
        -------
        float
        """
        if not dask.is_dask_collection(X):
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        total: Moments = _summed(self, _residuals, X, y, sample_weight)
        squares = np.diag(NormalEquations.of(total, about_mean=False).gram)
        spread = total.target_scatter
        constant = np.where(squares > 0, 0.0, 1.0)  # as scikit-learn has it where there is nothing to explain
        return float(np.where(spread > 0, 1 - squares / np.where(spread > 0, spread, 1), constant).mean())


class ClassificationOnDask(OnDask):
    """Mixin for classification whose scores are added block by block."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the share of rows whose class, or all of whose labels, are correct.

        Parameters
        ----------
        X : dask array (n, d), dataframe, array or CSR matrix
            Data.
        y : like X, (n,) or (n, k)
            True classes or labels.
        sample_weight : like y, (n,), optional
            Weights of the rows.

        Returns
        -------
        float
        """
        if not dask.is_dask_collection(X):
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        right, weight = _summed(self, _right, X, y, sample_weight)
        return float(right / weight)


def _summed(estimator: Any, work: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    rows, width = estimator._rows(X, y, sample_weight), estimator.features_.n_features_out
    work = partial(work, predict=estimator._predictor(), n_targets=rows.n_targets)
    return rows.reduce(work, width=width, verbose=estimator.verbose)


def _residuals(chunks: Iterator[Chunk], *, predict: Any, n_targets: int) -> Moments:
    """Moments with residuals in place of features."""
    parts = []
    for X, y, weights in chunks:
        Y = np.reshape(y, (len(X), n_targets)).astype(np.float64)
        parts.append((Y - np.reshape(predict(X), Y.shape), Y, weights))
    return Moments.collect(parts, n_targets, n_targets)


def _right(chunks: Iterator[Chunk], *, predict: Any, n_targets: int) -> np.ndarray:
    """Weight of the rows that are right, and of all."""
    total = np.zeros(2)
    for X, y, weights in chunks:
        w, predicted = np.ones(len(X)) if weights is None else weights, predict(X)
        same = np.reshape(y, predicted.shape) == predicted
        total += [w[same if same.ndim == 1 else same.all(axis=1)].sum(), w.sum()]
    return total


class RandomFeatures(OnDask, learn.RandomFeatures):
    """`bochner.learn.RandomFeatures` whose `fit` and `transform` accept Dask arrays and dataframes.

    Parameters and attributes are those of `bochner.learn.RandomFeatures`.

    Notes
    -----
    ``gamma="scale"`` is a reduction, and ``"median"`` gathers the 1000 rows that it uses; both give the same result as
    on one machine.  Maps choose constants from at most 10000 rows, which are sampled if there are more.

    Examples
    --------
    >>> import dask.array as da
    >>> from bochner.distributed import RandomFeatures
    >>> X = da.random.default_rng(0).standard_normal((1000, 4), chunks=(250, 4))
    >>> Phi = RandomFeatures(n_components=32, random_state=0).fit_transform(X)
    >>> Phi.shape, Phi.chunks[0]                               # nothing is computed yet
    ((1000, 32), (250, 250, 250, 250))
    """


class RandomProjection(OnDask, learn.RandomProjection):
    """`bochner.learn.RandomProjection` whose methods accept Dask arrays and dataframes.

    Parameters and attributes are those of `bochner.learn.RandomProjection`.

    Notes
    -----
    ``fit`` only uses the number of columns and, for ``n_components="auto"``, the number of rows.

    Examples
    --------
    >>> import dask.array as da
    >>> from bochner.distributed import RandomProjection
    >>> X = da.ones((1000, 40), chunks=(250, 40))
    >>> RandomProjection(8, random_state=0).fit_transform(X).chunks
    ((250, 250, 250, 250), (8,))
    """


class KernelRidge(RegressionOnDask, learn.KernelRidge):
    """`bochner.learn.KernelRidge` whose methods accept Dask arrays and dataframes.

    Parameters and attributes are those of `bochner.learn.KernelRidge`.

    Notes
    -----
    ``fit`` adds the statistics of all blocks in a tree and solves once, on the client: the result is that of one
    machine, up to rounding.  ``alpha="loo"`` makes a second pass over the rows; ``solver="dual"``, which needs all rows
    in one place, is refused.  ``solver="cg"`` makes some tens of passes, each of them a tree reduction: persist the
    rows in the memory of the workers first.  It is never chosen automatically.

    Examples
    --------
    >>> import dask.array as da
    >>> from bochner.distributed import KernelRidge
    >>> X = da.random.default_rng(0).uniform(-3, 3, (2000, 1), chunks=(500, 1))
    >>> y = da.sin(2 * X[:, 0])
    >>> model = KernelRidge(alpha="gcv", n_components=64, random_state=0).fit(X, y)
    >>> bool(abs(model.predict(X) - y).max().compute() < 0.01)
    True
    """


class KernelClassifier(ClassificationOnDask, learn.KernelClassifier):
    """`bochner.learn.KernelClassifier` whose methods accept Dask arrays and dataframes.

    Parameters and attributes are those of `bochner.learn.KernelClassifier`.

    Notes
    -----
    ``fit`` makes a pass over y for the classes and their counts, and one over the data for the statistics; both are
    tree reductions.  The result is that of one machine, up to rounding.

    Examples
    --------
    >>> import dask.array as da
    >>> from bochner.distributed import KernelClassifier
    >>> X = da.random.default_rng(0).standard_normal((1000, 2), chunks=(250, 2))
    >>> y = (X**2).sum(axis=1) < 1.2
    >>> model = KernelClassifier(gamma=1.0, alpha="gcv", n_components=128, random_state=0).fit(X, y)
    >>> bool((model.predict(X) == y).mean().compute() > 0.95)
    True
    """


class GaussianProcess(RegressionOnDask, learn.GaussianProcess):
    """`bochner.learn.GaussianProcess` whose methods accept Dask arrays and dataframes.

    Parameters and attributes are those of `bochner.learn.GaussianProcess`.

    Notes
    -----
    The posterior and the marginal likelihood in noise and amplitude are computed from statistics that a tree reduction
    adds.  The search over lengthscales gathers ``optimize_rows`` rows, the same as on one machine.

    Examples
    --------
    >>> import dask.array as da
    >>> from bochner.distributed import GaussianProcess
    >>> X = da.random.default_rng(0).uniform(-3, 3, (2000, 1), chunks=(500, 1))
    >>> y = da.sin(2 * X[:, 0]) + 0.1 * da.random.default_rng(1).standard_normal(2000, chunks=500)
    >>> gp = GaussianProcess(n_components=64, optimize_rows=500, random_state=0).fit(X, y)
    >>> bool(0.009 < gp.noise_ < 0.011)
    True
    """
