"""Kernel regression on Dask collections."""

from __future__ import annotations

from typing import Any

from .. import learn
from ..learn.base import all_or_nothing
from ._dask import is_dask
from .blocks import Blocks
from .columns import compare_columns, remember_columns
from .fitting import check_streams, learned, n_columns, n_dimensions, numbers
from .lazy import lazily
from .rows import Rows
from .scoring import RegressionScore


class KernelRidge(RegressionScore, learn.KernelRidge):
    """`bochner.learn.KernelRidge` whose methods take Dask arrays and dataframes.

    Notes
    -----
    ``fit`` adds the statistics of all blocks in a tree, and solves once, where it was called: the result is that of one
    machine, to rounding.  What looks at every row again is refused: ``alpha="loo"`` and ``solver="dual"``.

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

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Draw the features and fit.

        Parameters
        ----------
        X : dask array (n, d), dataframe, or what `bochner.learn.KernelRidge.fit` takes
            Data.
        y : dask array, series or dataframe; or an array, where the blocks of X have known lengths
            Targets, (n,) or (n, t).
        sample_weight : like y, (n,), optional
            Weights of the rows.
        """
        if not is_dask(X):
            super().fit(X, y, sample_weight)
            return self
        return self._learn(X, y, sample_weight, first=True)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Take in more rows: the result is that of one fit on all of them, with the features drawn at the first call.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        """
        if not is_dask(X):
            super().partial_fit(X, y, sample_weight)
            return self
        return self._learn(X, y, sample_weight, first=not hasattr(self, "machine_"))

    def predict(self, X: Any) -> Any:
        """Predictions; of a Dask collection a lazy Dask array with its blocks.

        Parameters
        ----------
        X : dask array (n, d), dataframe, array or CSR matrix
        """
        if not is_dask(X):
            return super().predict(X)
        compare_columns(self, X)
        return lazily(self, "predict", X, () if self._single else (self.machine_.n_targets,))

    def _learn(self, X: Any, y: Any, sample_weight: Any, *, first: bool) -> KernelRidge:
        options, single = self._new_machine(), n_dimensions(y) == 1
        check_streams(options)
        blocks = Blocks("KernelRidge", X, y, sample_weight, verbose=self.verbose)
        if first:
            drawn = self._drawn(Rows(blocks), symmetric=options.symmetric)
            machine = learned(options, drawn.features, blocks, numbers)
            remember_columns(self, X)
            self.features_, self.kernel_ = drawn
        else:
            compare_columns(self, X)
            if single != self._one_dimensional:
                raise ValueError(
                    f"KernelRidge: y must have the shape of the first call, got {n_dimensions(y)} dimensions."
                )
            self._go_on(options, n_columns(y))
            machine = learned(options, self.features_, blocks, numbers)
        self.machine_, self._one_dimensional = machine, single
        return self
