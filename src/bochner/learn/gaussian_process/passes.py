"""Passes over the features of rows, in chunks of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...approximation import FeatureMap
from ..streaming import chunks, dense_rows
from .laplace import Rows
from .likelihoods import Likelihood

_KEPT_NUMBERS = 1 << 25
"""Features kept between passes, 256 MB; of more rows they are computed again."""


def feature_chunks(phi: FeatureMap, X: Any) -> Iterator[np.ndarray]:
    """Features of rows, one chunk after the other."""
    for rows in chunks(X.shape[0], X.shape[1] + phi.n_features_out):
        yield np.asarray(phi.queries(dense_rows(X, rows)))


def feature_rows(phi: FeatureMap, X: Any, likelihood: Likelihood) -> Rows:
    """Passes over features and likelihoods: kept where the rows are few, and computed again where they are many."""

    def walk() -> Iterator[tuple[np.ndarray, Likelihood]]:
        start = 0
        for Phi in feature_chunks(phi, X):
            yield Phi, likelihood.of_rows(slice(start, start + len(Phi)))
            start += len(Phi)

    if X.shape[0] * phi.n_features_out > _KEPT_NUMBERS:
        return walk
    kept = list(walk())
    return lambda: iter(kept)
