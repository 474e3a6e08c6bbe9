"""Random features of Dask collections."""

from __future__ import annotations

from typing import Any

from .. import learn
from ..learn.base import all_or_nothing
from ._dask import is_dask
from .blocks import Blocks
from .columns import compare_columns, remember_columns
from .lazy import check_stays_lazy, lazily
from .rows import Rows


class RandomFeatures(learn.RandomFeatures):
    """`bochner.learn.RandomFeatures` whose `fit` and `transform` take Dask arrays and dataframes.

    Notes
    -----
    ``gamma="scale"`` is a reduction, ``"median"`` gathers the 1000 rows that it looks at; both are those of one machine.
    Maps with constants chosen from data look at all rows up to 10000, and at as many drawn ones of more.

    Examples
    --------
    >>> import dask.array as da
    >>> from bochner.distributed import RandomFeatures
    >>> X = da.random.default_rng(0).standard_normal((1000, 4), chunks=(250, 4))
    >>> Phi = RandomFeatures(n_components=32, random_state=0).fit_transform(X)
    >>> Phi.shape, Phi.chunks[0]                               # nothing is computed yet
    ((1000, 32), (250, 250, 250, 250))
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> RandomFeatures:
        """Draw the features for data with the columns of X.

        Parameters
        ----------
        X : dask array (n, d), dataframe, or what `bochner.learn.RandomFeatures.fit` takes
            Looked at by the rules for gamma, and by maps that adapt.
        y : ignored
            For the sake of pipelines.
        """
        if not is_dask(X):
            super().fit(X)
            return self
        drawn = self._drawn(Rows(Blocks("RandomFeatures", X)))
        remember_columns(self, X)
        self.features_, self.kernel_ = drawn
        return self

    def transform(self, X: Any) -> Any:
        """Features of the rows of X; of a Dask collection a lazy Dask array with its blocks.

        Parameters
        ----------
        X : dask array (n, d), dataframe, array or CSR matrix
        """
        if not is_dask(X):
            return super().transform(X)
        check_stays_lazy(self)
        compare_columns(self, X)
        return lazily(self, "transform", X, (self.features_.n_features_out,))
