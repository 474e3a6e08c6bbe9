"""Random projections of Dask collections."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import learn
from ..learn.base import all_or_nothing
from ._dask import is_dask
from .blocks import Blocks, as_dask_array
from .columns import compare_columns, remember_columns
from .lazy import check_stays_lazy, lazily
from .rows import Rows


class RandomProjection(learn.RandomProjection):
    """`bochner.learn.RandomProjection` whose methods take Dask arrays and dataframes.

    Notes
    -----
    ``fit`` looks at the number of columns, and at that of the rows for ``n_components="auto"``; at no data.

    Examples
    --------
    >>> import dask.array as da
    >>> from bochner.distributed import RandomProjection
    >>> X = da.ones((1000, 40), chunks=(250, 40))
    >>> RandomProjection(8, random_state=0).fit_transform(X).chunks
    ((250, 250, 250, 250), (8,))
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> RandomProjection:
        """Draw the projection for data with the shape of X.

        Parameters
        ----------
        X : dask array (n, d), dataframe, or what `bochner.learn.RandomProjection.fit` takes
        y : ignored
            For the sake of pipelines.
        """
        self._n_rows = None
        if not is_dask(X):
            super().fit(X)
            return self
        blocks = Blocks("RandomProjection", X)
        if self.n_components == "auto":
            self._n_rows = len(Rows(blocks))
        super().fit(np.zeros((1, blocks.width), blocks.dtype))
        remember_columns(self, X)
        return self

    def transform(self, X: Any) -> Any:
        """Projections of the rows of X; of a Dask collection a lazy Dask array with its blocks.

        Parameters
        ----------
        X : dask array (n, d), dataframe, array or CSR matrix
        """
        if not is_dask(X):
            return super().transform(X)
        check_stays_lazy(self)
        compare_columns(self, X)
        return lazily(self, "transform", X, (self.n_components_,))

    def inverse_transform(self, X: Any) -> Any:
        """The shortest rows whose projections are X; of a Dask collection a lazy Dask array with its blocks.

        Parameters
        ----------
        X : dask array, dataframe, array or CSR matrix
            Of ``n_components_`` columns.
        """
        if not is_dask(X):
            return super().inverse_transform(X)
        check_is_fitted(self)
        width = as_dask_array("RandomProjection", X).shape[1]
        if width != self.n_components_:
            raise ValueError(
                f"RandomProjection: inverse_transform expects {self.n_components_} columns, those of transform, got {width}."
            )
        return lazily(self, "inverse_transform", X, (self.n_features_in_,))

    def _width(self, n: int, d: int) -> int:
        """For the number of rows of the collection: `fit` of one machine sees a single one."""
        return super()._width(n if self._n_rows is None else self._n_rows, d)
