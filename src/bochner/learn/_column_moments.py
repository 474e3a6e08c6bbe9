"""Means and variances of the columns of rows, which merge over parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ..kernels._bandwidth import above_rounding


@dataclass(frozen=True)
class ColumnMoments:
    """Weight, means and squares about the means of each column; two parts merge without cancellation.

    Examples
    --------
    >>> import numpy as np
    >>> X = 1e6 + np.random.default_rng(0).standard_normal((100, 2))
    >>> whole, parts = ColumnMoments.of(X), ColumnMoments.of(X[:30]) + ColumnMoments.of(X[30:])
    >>> bool(np.allclose(whole.deviation, parts.deviation)), bool(np.allclose(whole.deviation, X.std(axis=0)))
    (True, True)
    """

    weight: float  # sum of the weights of the rows
    mean: np.ndarray  # (d,): means, and weighted squares about them
    squares: np.ndarray
    sparse: bool = False  # whether the rows come from sparse matrices, which must not be centred

    @classmethod
    def of(cls, X: Any, weights: np.ndarray | None = None) -> ColumnMoments:
        """Moments of rows X (n, d), an array or a CSR matrix, with weights (n,) or each one."""
        n, d = X.shape
        w = np.ones(n) if weights is None else weights.astype(np.float64)
        weight, is_sparse = float(w.sum()), sparse.issparse(X)
        if not weight:
            return cls(0.0, np.zeros(d), np.zeros(d), is_sparse)
        with np.errstate(over="ignore", invalid="ignore"):
            if not is_sparse:
                mean = _sums(X, weights) / weight
                return cls(weight, mean, _sums((X - mean) ** 2, weights))
            stored = sparse.csr_array((w.repeat(np.diff(X.indptr)), X.indices, X.indptr), X.shape)
            values = X.astype(np.float64)
            mean = np.asarray(stored.multiply(values).sum(axis=0)).reshape(-1) / weight
            gaps = values.data - mean[values.indices]
            squares = np.bincount(values.indices, stored.data * gaps**2, d)
            empty = weight - np.bincount(values.indices, stored.data, d)  # weight of the zeros that are not stored
            return cls(weight, mean, squares + np.maximum(empty, 0) * mean**2, True)

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviations (d,): zero within the rounding of the mean of constant numbers, not finite on overflow."""
        deviation = np.sqrt(self.squares / max(self.weight, np.finfo(np.float64).tiny))
        return np.where(deviation <= 10 * np.finfo(np.float64).eps * np.abs(self.mean), 0.0, deviation)

    @property
    def variance(self) -> float:
        """One variance over all entries."""
        if not self.weight:
            return 0.0
        mean = float(self.mean.mean())
        squares = self.squares.mean() / self.weight + ((self.mean - mean) ** 2).mean()
        return above_rounding(float(squares), mean)

    def __add__(self, other: object) -> ColumnMoments:
        if not isinstance(other, ColumnMoments):
            return NotImplemented
        weight, is_sparse = self.weight + other.weight, self.sparse or other.sparse
        if not weight:
            return ColumnMoments(0.0, self.mean, self.squares, is_sparse)
        with np.errstate(over="ignore", invalid="ignore"):
            gap, share = other.mean - self.mean, other.weight / weight
            squares = self.squares + other.squares + gap**2 * self.weight * share
            return ColumnMoments(weight, self.mean + gap * share, squares, is_sparse)


def _sums(X: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Weighted sums of columns in float64, on one thread."""
    if weights is None:
        return np.asarray(X.sum(axis=0, dtype=np.float64))
    return np.asarray((X * weights[:, None]).sum(axis=0, dtype=np.float64))
