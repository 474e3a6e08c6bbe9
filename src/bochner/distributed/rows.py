"""What drawing features asks of data, answered by reductions and by small samples: rows that are never gathered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels._bandwidth import above_rounding
from ..learn.gaussian_process.targets import columns
from .blocks import Blocks

_SAMPLE = 10_000
"""Rows that maps with constants chosen from data look at, if there are more."""


class Rows:
    """X (or y) of blocks, in the place of an array, for the rules that look at data.

    It has a shape, a type and a variance, and gives rows by their numbers.  Rows of weight zero count nowhere.  As an array
    it is a sample of at most 10000 rows.

    Parameters
    ----------
    blocks : Blocks
    column : {0, 1}
        X, or y as a matrix of numbers.
    """

    def __init__(self, blocks: Blocks, column: int = 0) -> None:
        self.blocks, self.column, self.dtype = blocks, column, blocks.dtype
        self._counts: np.ndarray | None = None

    @property
    def shape(self) -> Any:
        """(n, d); counting rows of unknown number is a pass, made when the first entry is asked for."""
        return _Shape(self)

    def __len__(self) -> int:
        return int(self.counts.sum())

    @property
    def counts(self) -> np.ndarray:
        """Rows of each block, without those of weight zero."""
        if self._counts is None:
            if self.blocks.sizes is not None and not self.blocks.weighted:
                self._counts = np.array(self.blocks.sizes)
            else:
                self._counts = np.array(self.blocks.compute(_count, list(range(len(self.blocks)))))
        return self._counts

    def variance(self, weights: Any = None) -> float:
        """Variance of all entries, weighted where rows have weights of their own."""
        return self.blocks.sum(_spread).variance  # type: ignore[no-any-return]

    def __getitem__(self, index: Any) -> np.ndarray:
        """Rows of these numbers, in ascending order, and of nothing else."""
        n = len(self)
        wanted = np.arange(n)[index] if isinstance(index, slice) else np.asarray(index)
        starts = np.concatenate([[0], np.cumsum(self.counts)])
        home = np.searchsorted(starts, wanted, side="right") - 1
        which = np.unique(home).tolist()
        local = [wanted[home == i] - starts[i] for i in which]
        found = self.blocks.compute(_take, which, local, [self.column] * len(which))
        return np.concatenate(found) if found else np.empty((0, self.blocks.width))

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """At most n rows, in their order."""
        count = len(self)
        return self[np.sort(rng.choice(count, n, replace=False))] if count > n else self[:]

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        n = len(self)
        rows = self[:] if n <= _SAMPLE else self[np.sort(np.random.default_rng(0).choice(n, _SAMPLE, replace=False))]
        return rows if dtype is None else rows.astype(dtype)


class _Shape:
    """The shape of rows, counted when it is asked for."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def __getitem__(self, axis: int) -> int:
        return self.rows.blocks.width if axis == 1 else len(self.rows)


@dataclass(frozen=True)
class Spread:
    """Weight, mean and weighted squares about it, of numbers; two parts add without cancellation."""

    weight: float
    mean: float
    squares: float

    @property
    def variance(self) -> float:
        """Squares over weight."""
        return above_rounding(self.squares / self.weight, self.mean) if self.weight else 0.0

    def __add__(self, other: Spread) -> Spread:
        weight = self.weight + other.weight
        if not weight:
            return self
        gap = other.mean - self.mean
        mean = self.mean + gap * other.weight / weight
        return Spread(weight, mean, self.squares + other.squares + gap**2 * self.weight * (other.weight / weight))


def _spread(X: Any, y: Any, weights: Any) -> Spread:
    X = _dense(X).astype(np.float64)
    w = np.ones(len(X)) if weights is None else weights
    total = float(w.sum()) * X.shape[1]
    if not total:
        return Spread(0.0, 0.0, 0.0)
    mean = float((w @ X).sum()) / total
    return Spread(total, mean, float((w @ (X - mean) ** 2).sum()))


def _count(X: Any, y: Any, weights: Any) -> int:
    return int(X.shape[0] if weights is None else np.count_nonzero(weights))


def _take(X: Any, y: Any, weights: Any, local: np.ndarray, column: int) -> np.ndarray:
    values = columns(y) if column else _dense(X)
    taken: np.ndarray = (values if weights is None else values[weights > 0])[local]
    return taken


def _dense(X: Any) -> np.ndarray:
    rows: np.ndarray = X.toarray() if hasattr(X, "toarray") else X
    return rows
