"""Kernel classification on Dask collections."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from .. import learn
from ..learn.base import all_or_nothing
from ..learn.kernel_classifier import _has_probabilities
from ._dask import is_dask
from .blocks import Blocks
from .classes import class_counts, class_targets, reweigh, weights_of_classes
from .columns import compare_columns, remember_columns
from .fitting import check_streams, learned, n_columns
from .lazy import lazily
from .rows import Rows
from .scoring import ClassificationScore


class KernelClassifier(ClassificationScore, learn.KernelClassifier):
    """`bochner.learn.KernelClassifier` whose methods take Dask arrays and dataframes.

    Notes
    -----
    ``fit`` makes a pass over y for the classes and their counts, and one over the data for the statistics; both are tree
    reductions.  The result is that of one machine, to rounding.

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

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelClassifier:
        """Draw the features and fit.

        Parameters
        ----------
        X : dask array (n, d), dataframe, or what `bochner.learn.KernelClassifier.fit` takes
            Data.
        y : dask array, series or dataframe; or an array, where the blocks of X have known lengths
            Classes (n,), or several labels a row, (n, k) zeros and ones.
        sample_weight : like y, (n,), optional
            Weights of the rows.
        """
        if not is_dask(X):
            super().fit(X, y, sample_weight)
            return self
        return self._start(X, y, sample_weight)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> KernelClassifier:
        """Take in more rows: the result is that of one fit on all of them, with the features drawn at the first call.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`; of the classes of the first call.
        classes : array (k,)
            All classes that will come.  Rows in memory need it at the first call; of a Dask collection the classes are those
            of its rows without it.
        """
        if not is_dask(X):
            super().partial_fit(X, y, classes, sample_weight)
            return self
        self._check_class_weight_streams()
        if not hasattr(self, "machine_"):
            return self._start(X, y, sample_weight, classes)
        compare_columns(self, X)
        several = _several(y)
        self._check_goes_on(classes, several)
        machine = self._new_machine()
        check_streams(machine)
        self._go_on(machine, n_columns(y) if several else self.machine_.n_targets)
        blocks = Blocks("KernelClassifier", X, y, sample_weight, verbose=self.verbose)
        blocks = blocks.reweighed(self._reweigh(self.classes_, several, None))
        self.machine_ = learned(machine, self.features_, blocks, self._block_targets(self.classes_, several))
        return self

    def decision_function(self, X: Any) -> Any:
        """Scores; of a Dask collection a lazy Dask array with its blocks.

        Parameters
        ----------
        X : dask array (n, d), dataframe, array or CSR matrix
        """
        if not is_dask(X):
            return super().decision_function(X)
        compare_columns(self, X)
        single = len(self.classes_) == 2 and not self._several
        return lazily(self, "decision_function", X, () if single else (len(self.classes_),))

    def predict(self, X: Any) -> Any:
        """Classes; of a Dask collection a lazy Dask array with its blocks.

        Parameters
        ----------
        X : dask array (n, d), dataframe, array or CSR matrix
        """
        if not is_dask(X):
            return super().predict(X)
        compare_columns(self, X)
        if self._several:
            return lazily(self, "predict", X, (len(self.classes_),), np.dtype(int))
        return lazily(self, "predict", X, (), self.classes_.dtype)

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Shares of the classes; of a Dask collection a lazy Dask array with its blocks.

        Parameters
        ----------
        X : dask array (n, d), dataframe, array or CSR matrix
        """
        if not is_dask(X):
            return super().predict_proba(X)
        compare_columns(self, X)
        return lazily(self, "predict_proba", X, (len(self.classes_),))

    def _start(self, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> KernelClassifier:
        """Draw features and learn the first rows: of these classes, or of those that are there."""
        machine = self._new_machine()
        check_streams(machine)
        blocks = Blocks("KernelClassifier", X, y, sample_weight, verbose=self.verbose)
        known, several, counts = _classes(blocks, y, classes)
        blocks = blocks.reweighed(self._reweigh(known, several, counts))
        drawn = self._drawn(Rows(blocks), symmetric=machine.symmetric)
        self.machine_ = learned(machine, drawn.features, blocks, self._block_targets(known, several))
        remember_columns(self, X)
        (self.features_, self.kernel_), self.classes_, self._several = drawn, known, several
        return self

    def _block_targets(self, classes: np.ndarray, several: bool) -> Any:
        """From y and weights of a block to targets and weights."""
        return partial(class_targets, classes=classes, several=several, method=self.method)

    def _reweigh(self, classes: np.ndarray, several: bool, counts: Any) -> Any:
        """From y and weights of a block to weights that count the classes in; None without class weights."""
        weights = weights_of_classes(self.class_weight, classes, counts, several=several)
        return None if weights is None else partial(reweigh, classes=classes, class_weights=weights)


def _several(y: Any) -> bool:
    return n_columns(y) > 1


def _classes(blocks: Blocks, y: Any, given: Any) -> tuple[np.ndarray, bool, Any]:
    """The classes, whether a row has several labels, and how often each is there, where that was counted."""
    if _several(y):
        return np.arange(n_columns(y)), True, None
    if given is not None:
        return np.unique(given), False, None
    counts = blocks.sum(class_counts)
    classes = np.array(sorted(counts))
    if len(classes) < 2:
        found = f"one class, {classes[0]!r}" if len(classes) else "no rows"
        raise ValueError(f"KernelClassifier: y has {found}, and needs at least two classes.")
    return classes, False, counts
