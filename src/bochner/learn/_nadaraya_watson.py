"""The Nadaraya-Watson estimator on features: sums over keys, for queries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..approximation import FeatureMap
from ..maps._features import parts_of
from ._rows import Chunk, RowSource


@dataclass(frozen=True)
class KernelSums:
    r"""Sums of key features, by target, scaled so that they do not overflow.

    Notes
    -----
    :math:`M_{jt} = e^{-c_j}\sum_i w_i\phi_j(x_i)y_{it}` and :math:`n_j = e^{-c_j}\sum_i w_i\phi_j(x_i)`, with :math:`c_j`
    the largest logarithm of feature j so far.  Two parts of the rows add (``a + b``) after both are brought to the larger
    shift, in any order.

    Attributes
    ----------
    shift : float64 array (D,)
        c.
    sums : float64 array (D, t + 1)
        M, and n as the last column.
    target_sums : float64 array (t + 1,)
        Sums of weighted targets, and of the weights.
    """

    shift: np.ndarray
    sums: np.ndarray
    target_sums: np.ndarray

    @classmethod
    def empty(cls, n_features: int, n_targets: int) -> KernelSums:
        """Of no rows."""
        return cls(np.full(n_features, -np.inf), np.zeros((n_features, n_targets + 1)), np.zeros(n_targets + 1))

    @classmethod
    def of(cls, phi: FeatureMap, X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None = None) -> KernelSums:
        """Of keys X (n, d) and their targets Y (n, t)."""
        mantissa, logarithm = _parts(phi, X, key=True)
        counted = logarithm if weights is None else logarithm[weights > 0]  # the others must not set the scale
        shift = counted.max(axis=0, initial=-np.inf)
        targets = np.column_stack([Y, np.ones(len(Y))]).astype(np.float64)
        if weights is not None:
            targets *= weights[:, None]
        values = mantissa * np.exp(np.minimum(logarithm - _finite(shift), 0))
        return cls(
            shift.astype(np.float64), (values.T @ targets.astype(X.dtype)).astype(np.float64), targets.sum(axis=0)
        )

    def __add__(self, other: KernelSums) -> KernelSums:
        shift = np.maximum(self.shift, other.shift)
        sums = sum(part.sums * np.exp(part.shift - _finite(shift))[:, None] for part in (self, other))
        return KernelSums(shift, np.asarray(sums), self.target_sums + other.target_sums)

    def evaluate(self, phi: FeatureMap, X: np.ndarray) -> np.ndarray:
        """Numerators and, last, denominators of queries X: (n, t + 1), each row up to a positive factor."""
        mantissa, logarithm = _parts(phi, X, key=False)
        logarithm = logarithm + self.shift.astype(X.dtype)  # minus infinity where no key has the feature
        largest = logarithm.max(axis=1, keepdims=True)  # a factor of the row: it cancels in the ratio
        return np.asarray((mantissa * np.exp(logarithm - _finite(largest))) @ self.sums.astype(X.dtype))


def _parts(phi: FeatureMap, X: np.ndarray, *, key: bool) -> tuple[np.ndarray, np.ndarray]:
    mantissa, logarithm = parts_of(phi.features, phi.spec.at_unit_scale(X), key=key)
    return mantissa, np.where(mantissa == 0, -np.inf, logarithm)


def _finite(logarithm: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(logarithm), logarithm, 0)


@dataclass(frozen=True)
class NadarayaWatson:
    r"""Averages of targets weighted by the kernel, :math:`\sum_i k(x, x_i)y_i / \sum_i k(x, x_i)`, fitted in one pass.

    Notes
    -----
    Of CRT 5.2 and SimRF 5.3.  An estimate that is not positive can have a denominator of zero or below: such rows get the
    mean of the targets, and a warning counts them.
    """

    owner: str

    symmetric = False

    def fit(self, phi: FeatureMap, rows: RowSource, *, verbose: Any = 0) -> KernelAverage:
        """Take in all rows."""
        work = partial(_sums, phi=phi, n_targets=rows.n_targets)
        sums: KernelSums = rows.reduce(work, width=phi.n_features_out, label="fit", verbose=verbose)
        rows.check_weight(float(sums.target_sums[-1]))
        return KernelAverage(self, sums)

    begin = fit

    def extend(self, model: KernelAverage, phi: FeatureMap, rows: RowSource, *, verbose: Any = 0) -> KernelAverage:
        """The model with more rows."""
        return KernelAverage(self, model.sums + self.fit(phi, rows, verbose=verbose).sums)


@dataclass(frozen=True)
class KernelAverage:
    """What the averages have learned."""

    options: NadarayaWatson
    sums: KernelSums = field(repr=False)

    @property
    def n_targets(self) -> int:
        """How many targets it has learned."""
        return len(self.sums.target_sums) - 1

    def predictor(self, phi: FeatureMap) -> Any:
        """From rows X (n, d) to averages (n, t)."""
        return partial(_averages, phi=phi, sums=self.sums, owner=self.options.owner)


def _sums(chunks: Iterator[Chunk], *, phi: FeatureMap, n_targets: int) -> KernelSums:
    parts = (KernelSums.of(phi, *chunk) for chunk in chunks if len(chunk.X))
    return sum(parts, KernelSums.empty(phi.n_features_out, n_targets))


def _averages(X: np.ndarray, *, phi: FeatureMap, sums: KernelSums, owner: str) -> np.ndarray:
    values = sums.evaluate(phi, X)
    numerator, denominator = values[:, :-1], values[:, -1:]
    bad = ~(denominator[:, 0] > 0)
    if bad.any():
        warnings.warn(
            f"{owner}: {bad.sum()} of {len(bad)} rows have an estimated sum of weights that is not positive, and "
            f"get the mean of the targets; a positive map such as OptimalPositive() has none.",
            UserWarning,
            stacklevel=2,
        )
    mean = (sums.target_sums[:-1] / sums.target_sums[-1]).astype(values.dtype)
    return np.where(bad[:, None], mean, numerator / np.where(bad[:, None], 1, denominator))
