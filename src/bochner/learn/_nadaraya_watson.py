"""The Nadaraya-Watson estimator on features: sums over keys, for queries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..approximation import FeatureMap
from ..approximation.log_features import KeySums
from ._row_source import Chunk, RowSource


@dataclass(frozen=True)
class TargetSums:
    """Sums of key features by target, and of the targets; those of two sets of rows can be added in any order."""

    keys: KeySums  # in float64: a column for each target, and one for the weights
    totals: np.ndarray  # (t + 1,): sums of weighted targets, and of the weights

    @classmethod
    def of(cls, phi: FeatureMap, X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None) -> TargetSums:
        """Sums over keys X (n, d) and their targets Y (n, t)."""
        values = np.column_stack([Y, np.ones(len(Y))]).astype(np.float64)
        if weights is not None:
            counted = weights > 0  # the others must not determine the stabiliser
            X, values = X[counted], values[counted] * weights[counted, None]
        sums = KeySums.of(phi.log_features(X, key=True), values.astype(X.dtype))
        return cls(_cast(sums, np.float64), values.sum(axis=0))

    def __add__(self, other: TargetSums) -> TargetSums:
        return TargetSums(self.keys + other.keys, self.totals + other.totals)


def _cast(sums: KeySums, dtype: Any) -> KeySums:
    return KeySums(sums.values.astype(dtype), sums.shift.astype(dtype))


@dataclass(frozen=True)
class NadarayaWatson:
    r"""Averages of targets weighted by the kernel, :math:`\sum_i k(x, x_i)y_i / \sum_i k(x, x_i)`, fitted in one pass.

    Notes
    -----
    Used in CRT 5.2 and SimRF 5.3.  If features are not all positive, a denominator can be zero or negative: such rows
    get the mean of the targets, with a warning.
    """

    owner: str

    symmetric = False

    def fit(self, phi: FeatureMap, rows: RowSource, *, verbose: Any = 0) -> KernelAverage:
        """Take in all rows."""
        work = partial(_sums, phi=phi, n_targets=rows.n_targets)
        sums: TargetSums = rows.reduce(work, width=phi.n_features_out, label="fit", verbose=verbose)
        rows.check_weight(float(sums.totals[-1]))
        return KernelAverage(self, sums)

    begin = fit

    def extend(self, model: KernelAverage, phi: FeatureMap, rows: RowSource, *, verbose: Any = 0) -> KernelAverage:
        """The model with more rows."""
        return KernelAverage(self, model.sums + self.fit(phi, rows, verbose=verbose).sums)


@dataclass(frozen=True)
class KernelAverage:
    """The result of fitting `NadarayaWatson`."""

    options: NadarayaWatson
    sums: TargetSums = field(repr=False)

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return len(self.sums.totals) - 1

    def predictor(self, phi: FeatureMap) -> Any:
        """Function of rows X (n, d) that returns averages (n, t)."""
        return partial(_averages, phi=phi, sums=self.sums, owner=self.options.owner)


def _sums(chunks: Iterator[Chunk], *, phi: FeatureMap, n_targets: int) -> TargetSums:
    nothing = TargetSums.of(phi, np.empty((0, phi.n_features_in)), np.empty((0, n_targets)))
    return sum((TargetSums.of(phi, *chunk) for chunk in chunks if len(chunk.X)), nothing)


def _averages(X: np.ndarray, *, phi: FeatureMap, sums: TargetSums, owner: str) -> np.ndarray:
    values: np.ndarray = _cast(sums.keys, X.dtype).read(phi.log_features(X, key=False))
    numerator, denominator = values[:, :-1], values[:, -1:]
    bad = ~(denominator[:, 0] > 0)
    if bad.any():
        warnings.warn(
            f"{owner}: {bad.sum()} of {len(bad)} rows have an estimated sum of weights that is not positive, and "
            f"get the mean of the targets; a positive map such as OptimalPositive() avoids them.",
            UserWarning,
            stacklevel=2,
        )
    mean = (sums.totals[:-1] / sums.totals[-1]).astype(values.dtype)
    return np.asarray(np.where(bad[:, None], mean, numerator / np.where(bad[:, None], 1, denominator)))
