"""Rows that are changed chunk by chunk on their way to an estimator, wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from ._column_moments import ColumnMoments
from ._coordinates import Coordinates
from ._row_source import Chunk, RowSource, SparseChunk

T = TypeVar("T")
Change = Callable[[Chunk], Chunk]


class ChangedRows:
    """A `RowSource` whose chunks pass through a function.

    Parameters
    ----------
    rows : RowSource
    change : callable
        From a chunk to another with as many rows; picklable, and able to change X without targets and weights.
    n_columns : int
        Columns of the changed rows.
    weighted : bool, optional
        Whether the changed rows have weights; None if that does not change.
    """

    def __init__(self, rows: RowSource, change: Change, n_columns: int, *, weighted: bool | None = None) -> None:
        self.rows, self.change, self.n_columns = rows, change, n_columns
        self.owner, self.dtype, self.in_memory = rows.owner, rows.dtype, rows.in_memory
        self.target_shape, self.weighted = rows.target_shape, rows.weighted if weighted is None else weighted
        self.blocks: tuple[tuple[int, int], ...] = ()  # changed columns stand for themselves

    @property
    def shape(self) -> tuple[Any, int]:
        """Shape (n, d) of the changed rows."""
        return self.rows.shape[0], self.n_columns

    @property
    def n_targets(self) -> int:
        """Number of columns of the targets."""
        return self.rows.n_targets

    def count(self) -> int:
        """Return the number of rows."""
        return self.rows.count()

    def check_weight(self, weight: float) -> None:
        """Raise a ValueError for a fit without rows."""
        self.rows.check_weight(weight)

    def variance(self, weights: np.ndarray | None = None) -> float:
        """Variance over all entries, by a pass over the rows; other weights are not supported."""
        assert weights is None
        return self.column_moments().variance

    def column_moments(self) -> ColumnMoments:
        """Means and variances of the changed columns."""
        return self.reduce(partial(_moments, self.n_columns), width=0)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return at most ``n`` rows."""
        return np.asarray(self.change(Chunk(self.rows.sample(n, rng), None, None)).X)

    def sample_weighted(self, n: int, rng: np.random.Generator) -> Chunk:
        """Return at most ``n`` rows with targets and weights."""
        return self.change(self.rows.sample_weighted(n, rng))

    def glance(self) -> Chunk:
        """Return rows with weights from which maps choose their constants."""
        return self.change(self.rows.glance())

    def merged(self) -> ChangedRows:
        """Return the same rows: they are read as they come, and equal ones are not looked for."""
        return self

    def gathered(self) -> Chunk:
        """Return all rows."""
        return self.change(self.rows.gathered())

    def relabelled(
        self, relabel: Callable[[Any, Any], tuple[Any, Any]], n_targets: int, *, weighted: bool
    ) -> ChangedRows:
        """Return the same rows with other targets and weights."""
        inner = self.rows.relabelled(relabel, n_targets, weighted=weighted)
        return ChangedRows(inner, self.change, self.n_columns)

    def reduce(self, work: Callable[[Iterator[Chunk]], T], *, width: int, label: str = "", verbose: Any = 0) -> T:
        """Sum ``work`` over parts of the rows."""
        changed = partial(_on_changed, work=work, change=self.change)
        return self.rows.reduce(changed, width=width + self.n_columns, label=label, verbose=verbose)

    def reduce_targets(self, work: Callable[[Any, Any], T]) -> T:
        """Sum ``work(targets, weights)`` over parts of the rows, with the weights that the rows came with."""
        return self.rows.reduce_targets(work)

    def map(
        self, work: Callable[[np.ndarray], np.ndarray], tail: tuple[int, ...], dtype: Any, *, width: int = 0
    ) -> Any:
        """Apply ``work`` to all changed rows."""
        return self.rows.map(partial(_of_changed, work=work, change=self.change), tail, dtype, width=width)


def in_coordinates(coordinates: Coordinates | None, rows: RowSource) -> RowSource:
    """Return the rows in these coordinates."""
    if coordinates is None:
        return rows
    return ChangedRows(rows, partial(_moved, coordinates=coordinates), coordinates.n_columns(rows.shape[1]))


def _moved(chunk: Chunk, *, coordinates: Coordinates) -> Chunk:
    X = coordinates(chunk.X)
    return chunk._replace(X=SparseChunk(X) if sparse.issparse(X) else X)


def _on_changed(chunks: Iterator[Chunk], *, work: Callable[[Iterator[Chunk]], T], change: Change) -> T:
    return work(change(chunk) for chunk in chunks)


def _of_changed(X: Any, *, work: Callable[[Any], np.ndarray], change: Change) -> np.ndarray:
    return work(change(Chunk(X, None, None)).X)


def _moments(d: int, chunks: Iterator[Chunk]) -> ColumnMoments:
    nothing = ColumnMoments.of(np.empty((0, d)))
    return sum((ColumnMoments.of(X, weights) for X, _, weights in chunks), nothing)
