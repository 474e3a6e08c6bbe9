"""What both Gaussian processes share."""

from __future__ import annotations

import contextlib
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ..._validation import check_count, check_flag, check_positive
from ...approximation import FeatureMap
from ..base import FeatureEstimator
from .computing import computing
from .hyperparameters import free_names, n_free_scales

ROWS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64}
"""Rows are taken in float64: a marginal likelihood weighs eigenvalues that rounding to float32 would drown."""


class GaussianEstimator(FeatureEstimator):
    """Base of the Gaussian processes: a subclass names the hyperparameters that it may optimise."""

    known: ClassVar[tuple[str, ...]]
    amplitude: Any
    optimize: Any
    ard: Any
    n_restarts: Any
    optimize_rows: Any

    def _validated(self, X: Any, *, reset: bool = False) -> Any:
        if not reset:
            check_is_fitted(self)
        return validate_data(self, X, **ROWS, reset=reset)

    def _computing(self) -> contextlib.AbstractContextManager[None]:
        owner = type(self).__name__
        return computing(owner, self.n_jobs, check_count(owner, "n_components", self.n_components))

    def _free(self) -> frozenset[str]:
        return free_names(type(self).__name__, self.optimize, self.known)

    def _n_free_scales(self, phi: FeatureMap, d: int) -> int:
        """How many lengthscales move."""
        if "lengthscale" not in self._free():
            return 0
        return n_free_scales(type(self).__name__, phi.spec, self.optimize, self.ard, d)

    def _check_parameters(self) -> None:
        owner = type(self).__name__
        self._free()
        check_positive(owner, "amplitude", self.amplitude)
        check_flag(owner, "ard", self.ard)
        check_count(owner, "n_restarts", self.n_restarts, 0)
        check_count(owner, "optimize_rows", self.optimize_rows, 2)
