"""Gaussian process regression on Dask collections."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import learn
from .._validation import check_count
from ..learn.base import all_or_nothing
from ..learn.specification import as_generator, draw_features
from ._dask import is_dask
from .blocks import Blocks
from .columns import compare_columns, remember_columns
from .fitting import n_dimensions, numbers, summed_statistics
from .lazy import lazily
from .rows import Rows
from .scoring import RegressionScore


class GaussianProcess(RegressionScore, learn.GaussianProcess):
    """`bochner.learn.GaussianProcess` whose methods take Dask arrays and dataframes.

    Notes
    -----
    The posterior and the marginal likelihood in noise and amplitude come from statistics that a tree reduction adds.  The
    search over lengthscales gathers the ``optimize_rows`` rows that it looks at, those of one machine.

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

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> GaussianProcess:
        """Fit.

        Parameters
        ----------
        X : dask array (n, d), dataframe, or what `bochner.learn.GaussianProcess.fit` takes
            Data.
        y : dask array, series or dataframe; or an array, where the blocks of X have known lengths
            Targets, (n,) or (n, t).
        """
        if not is_dask(X):
            super().fit(X, y)
            return self
        return self._start_blocks(X, y)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any) -> GaussianProcess:
        """Add rows, as `bochner.learn.GaussianProcess.partial_fit` does.

        Parameters
        ----------
        X, y
            As in `fit`.
        """
        if not is_dask(X):
            super().partial_fit(X, y)
            return self
        if not hasattr(self, "statistics_"):
            return self._start_blocks(X, y)
        compare_columns(self, X)
        blocks = Blocks("GaussianProcess", X, y, verbose=self.verbose)
        more = summed_statistics(self.features_, blocks, numbers, np.float64)
        if more.n_targets != self.statistics_.n_targets:
            raise ValueError(f"GaussianProcess: expected {self.statistics_.n_targets} targets as in the first call of "
                             f"partial_fit, got {more.n_targets}.")  # fmt: skip
        with self._computing():
            self._finish(self.features_, self.statistics_ + more)
        return self

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Means and standard deviations; of a Dask collection lazy Dask arrays with its blocks.

        Parameters
        ----------
        X : dask array (n, d), dataframe, array or CSR matrix
        return_std : bool
        return_cov : bool
            For rows in memory alone: the covariance of all rows is no matter of blocks.
        """
        if not is_dask(X):
            return super().predict(X, return_std, return_cov)
        compare_columns(self, X)
        if return_cov:
            raise ValueError("GaussianProcess: return_cov=True needs all rows in one place; pass an array of some rows, or "
                             "return_std=True.")  # fmt: skip
        t = self.statistics_.n_targets
        if not return_std:
            return lazily(self, "predict", X, () if self._single_target else (t,), np.float64)
        both = lazily(self, "_mean_and_std", X, (2 * t,), np.float64)
        return (both[:, 0], both[:, 1]) if self._single_target else (both[:, :t], both[:, t:])

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Any:
        """Functions drawn from the posterior; of a Dask collection a lazy Dask array with its blocks.

        Parameters
        ----------
        X : dask array (n, d), dataframe, array or CSR matrix
        n_samples : int
        random_state : int, RandomState, Generator or None
        """
        if not is_dask(X):
            return super().sample_y(X, n_samples, random_state)
        compare_columns(self, X)
        n = check_count("GaussianProcess.sample_y", "n_samples", n_samples)
        if not isinstance(random_state, int | np.integer):  # all blocks must draw the same functions
            random_state = int(as_generator(random_state).integers(2**31))
        tail = (n,) if self._single_target else (self.statistics_.n_targets, n)
        return lazily(self, "sample_y", X, tail, np.float64, n_samples=n, random_state=random_state)

    def _mean_and_std(self, X: Any) -> np.ndarray:
        """Both, side by side, so that features are computed once."""
        return np.column_stack(self.predict(X, return_std=True))

    def _start_blocks(self, X: Any, y: Any) -> GaussianProcess:
        """Draw features, choose their lengthscales on some rows, and fit."""
        self._check_parameters()
        self._single_target = n_dimensions(y) == 1
        rng, blocks = as_generator(self.random_state), Blocks("GaussianProcess", X, y, verbose=self.verbose)
        with self._computing():
            rows: Any = Rows(blocks)
            phi = draw_features("GaussianProcess", self._parameters(), rows, rng, symmetric=True).features
            phi = self._tuned(phi, rows, Rows(blocks, 1), rng)  # type: ignore[arg-type]
        statistics = summed_statistics(phi, blocks, numbers, np.float64)
        remember_columns(self, X)
        with self._computing():
            self._finish(phi, statistics)
        return self
