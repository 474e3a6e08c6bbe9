"""Row sources: the protocol through which every estimator reads its data, and its implementations for data in memory.

`bochner.distributed` adds an implementation for rows on a cluster.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy import sparse

from .._progress import progress
from ..kernels._bandwidth import variance_of
from ._column_moments import ColumnMoments
from ._equal_rows import equal_rows, row_keys

_CHUNK_NUMBERS = 1 << 23  # features held at a time: 32 MB in float32
_CHUNK_ROWS = 1 << 16  # rows of a chunk at most, however narrow: what is done per row in Python stays bounded
_DENSE_NUMBERS = 1 << 24
"""Largest part of a sparse matrix that is made dense for maps that choose constants from data: 128 MB."""
_LEAST_GLANCE = 64  # rows that maps see of sparse data however wide: fewer could not choose constants

T = TypeVar("T")


class SparseChunk(sparse.csr_array):
    """Rows in CSR format, whose length is their number, as for an array."""

    def __len__(self) -> int:
        return int(self.shape[0])


class Chunk(NamedTuple):
    """Some rows: X (n, d) as an array or a `SparseChunk`, their targets (n, t), and their weights (n,) or None."""

    X: Any
    targets: Any
    weights: np.ndarray | None

    def taken(self, which: Any) -> Chunk:
        """The rows of a slice, or of these numbers."""
        targets, weights = (None if part is None else part[which] for part in self[1:])
        return Chunk(self.X[which], targets, weights)


class RowSource(Protocol):
    """Rows of data, with optional targets and weights, in memory or elsewhere.

    Rows of weight zero are ignored by all rules that depend on data.
    """

    owner: str  # the estimator, for messages
    dtype: np.dtype  # float32 or float64
    in_memory: bool  # whether all rows are here, so that they can be held at once
    weighted: bool  # whether rows have weights
    target_shape: tuple[int, ...]  # shape of the target of one row: () for a number or a class
    blocks: tuple[tuple[int, int], ...]  # first columns, and ends, of what shares a scale: the levels of a category

    @property
    def shape(self) -> tuple[Any, int]:
        """Shape (n, d); n is NaN if the number of rows is not known."""

    @property
    def n_targets(self) -> int:
        """Number of columns of the targets; one for a number or a class."""

    def count(self) -> int:
        """Return the number of rows, counting them if necessary."""

    def variance(self, weights: np.ndarray | None = None) -> float:
        """Variance over all entries, with these weights or those of the rows."""

    def column_moments(self) -> ColumnMoments:
        """Means and variances of the columns."""

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return at most ``n`` rows, sampled without replacement and in their order, as a dense array."""

    def sample_weighted(self, n: int, rng: np.random.Generator) -> Chunk:
        """Return some of the rows, as `sample` does, with their targets and weights."""

    def glance(self) -> Chunk:
        """Return rows with weights from which maps choose their constants: all, or as many as memory allows."""

    def merged(self) -> RowSource:
        """Return rows of which no two are equal, where they are in memory; the same rows elsewhere."""

    def gathered(self) -> Chunk:
        """Return all rows; for rows in memory."""

    def relabelled(
        self, relabel: Callable[[Any, Any], tuple[Any, Any]], n_targets: int, *, weighted: bool
    ) -> RowSource:
        """Return the same rows with targets and weights ``relabel(targets, weights)``; ``weighted`` if it adds weights.

        Rows in memory are left out if their weight is zero.
        """

    def reduce(self, work: Callable[[Iterator[Chunk]], T], *, width: int, label: str = "", verbose: Any = 0) -> T:
        """Sum ``work`` over parts of the rows, each given as chunks whose features of that width fit in memory."""

    def reduce_targets(self, work: Callable[[Any, Any], T]) -> T:
        """Sum ``work(targets, weights)`` over parts of the rows, without reading X."""

    def map(
        self, work: Callable[[np.ndarray], np.ndarray], tail: tuple[int, ...], dtype: Any, *, width: int = 0
    ) -> Any:
        """Apply ``work`` to all rows, (n, *tail), in chunks; ``width``: numbers per row that it holds in addition."""

    def check_weight(self, weight: float) -> None:
        """Raise a ValueError for a fit without rows."""


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """Prefix the message of an error with the name."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"{name}: {error}") from None


def check_present(y: Any) -> None:
    """Raise a ValueError for a missing target: None, NaN or a missing value of pandas in an array of objects.

    scikit-learn looks for NaN only, and converts None to it afterwards.
    """
    values = np.asarray(y)
    if values.dtype != object:
        return
    missing = [i for i, value in enumerate(values.reshape(len(values), -1)) if any(map(is_missing, value))]
    if missing:
        raise ValueError(
            f"y has no value in row {missing[0]}, and {len(missing)} of {len(values)} rows have none; leave those rows out."
        )


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, or a missing value of pandas."""
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def check_sizes(y: Any, weights: Any) -> None:
    """Raise a ValueError for numbers whose squares would overflow or vanish in sums: targets (n,) or (n, t), and weights."""
    for name, values, power in (("y", y, 120), ("sample_weight", weights, 60)):
        array = np.asarray([] if values is None else values)
        if array.dtype.kind not in "fiu" or not array.size:
            continue
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite numbers, got {array[~np.isfinite(array)][0]}.")
        largest = float(np.abs(array).max())
        if largest and not 10.0**-power < largest < 10.0**power:
            what = "overflow" if largest > 1 else "vanish"
            raise ValueError(
                f"{name} has numbers of at most {largest:.1e} in size, whose squares would {what}; it must be between "
                f"1e-{power} and 1e{power}. Multiply it by a constant."
            )


def check_finite(owner: str, values: np.ndarray) -> np.ndarray:
    """Return what was computed from the features of rows, or raise a ValueError where it is not finite.

    Finite rows can have features that are not: their product with the frequencies overflows, and its cosine is NaN.
    """
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise ValueError(
            f"{owner}: the features of row {row} are not finite: its numbers are too large for the bandwidth of the kernel. "
            f"Rescale the columns, or leave such rows out."
        )
    return values


def check_some_weight(rows: RowSource, weight: float) -> None:
    """Raise a ValueError for a fit without rows."""
    if not weight > 0:
        why = "sample_weight is zero in every row" if rows.weighted else "Found array with 0 sample(s)"
        raise ValueError(f"{rows.owner}: {why} while a minimum of 1 is required.")


class _RowsInMemory(ABC):
    """What arrays and sparse matrices share.

    Parameters
    ----------
    owner : str
    X : array or CSR matrix (n, d)
        Checked.
    targets : array (n,) or (n, t), optional
    weights : array (n,), optional
    origin : array, optional
        The rows as they were given, if in another array library: results are converted to it, and to its device.
    """

    in_memory = True
    blocks: tuple[tuple[int, int], ...] = ()

    def __init__(
        self, owner: str, X: Any, targets: Any = None, weights: np.ndarray | None = None, *, origin: Any = None
    ) -> None:
        self.owner, self.X, self.targets, self.weights, self.origin = owner, X, targets, weights, origin
        self.dtype, self.weighted = X.dtype, weights is not None
        self.target_shape: tuple[int, ...] = () if targets is None else targets.shape[1:]

    @property
    def shape(self) -> tuple[Any, int]:
        """(n, d)."""
        return self.X.shape  # type: ignore[no-any-return]

    @property
    def n_targets(self) -> int:
        """Columns of the targets."""
        return self.target_shape[0] if self.target_shape else 1

    def count(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @abstractmethod
    def dense(self, rows: Any) -> np.ndarray:
        """Rows of a slice or of these numbers, as an array."""

    @abstractmethod
    def part(self, rows: slice) -> Any:
        """Rows of a slice as they are kept."""

    def variance(self, weights: np.ndarray | None = None) -> float:
        """One variance over all entries."""
        return variance_of(self.X, self.weights if weights is None else weights)

    @abstractmethod
    def column_moments(self) -> ColumnMoments:
        """Means and variances of the columns."""

    @abstractmethod
    def glance(self) -> Chunk:
        """Rows that maps choose their constants from, with their weights."""

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn without replacement."""
        return self.dense(self._drawn(n, rng))

    def sample_weighted(self, n: int, rng: np.random.Generator) -> Chunk:
        """Return what `sample` returns, with targets and weights."""
        chosen = self._drawn(n, rng)
        weights = None if self.weights is None else self.weights[chosen]
        return Chunk(self.dense(chosen), self.targets[chosen], weights)

    def _drawn(self, n: int, rng: np.random.Generator) -> np.ndarray:
        counted = np.arange(self.count()) if self.weights is None else np.flatnonzero(self.weights > 0)
        if len(counted) <= n:
            return counted
        chosen: np.ndarray = counted[np.sort(rng.choice(len(counted), n, replace=False))]
        return chosen

    def merged(self) -> RowSource:
        """Rows of which no two are equal: equal ones become one, with the mean of their targets and the sum of weights.

        Least squares on them have the same solution, and a row that is left out has no twin that stays.
        """
        first, home = equal_rows(self.X)
        if len(first) == self.count() or self.targets is None:
            return self
        w = np.ones(len(home)) if self.weights is None else self.weights
        weights = np.bincount(home, w)
        shares = w / np.where(weights > 0, weights, 1.0)[home]
        Y = np.asarray(self.targets, dtype=np.float64).reshape(len(home), -1)
        means = np.column_stack([np.bincount(home, shares * column) for column in Y.T])
        return self._like(self.X[first], means.reshape(-1, *self.target_shape), weights)

    def _like(self, X: Any, targets: Any, weights: Any) -> RowSource:
        """Other rows with the same columns."""
        return rows_in_memory(self.owner, X, targets, weights, origin=self.origin, blocks=self.blocks)

    def some(self, n: int, rng: np.random.Generator) -> Chunk:
        """Return at most ``n`` rows with targets and weights; sparse ones stay sparse."""
        chosen = self._drawn(n, rng)
        X = sparse.csr_array(self.X[chosen]) if sparse.issparse(self.X) else np.asarray(self.X[chosen])
        return Chunk(X, self.targets[chosen], None if self.weights is None else self.weights[chosen])

    def places_of(self, X: Any) -> np.ndarray:
        """Numbers of rows that equal rows X."""
        keys = row_keys(self.X)
        order = np.argsort(keys)
        return np.asarray(order[np.searchsorted(keys[order], row_keys(X))])

    def targets_of(self, X: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets and weights of the rows that equal rows X, where no two are equal."""
        place = self.places_of(X)
        return self.targets[place], None if self.weights is None else self.weights[place]

    def gathered(self) -> Chunk:
        """Return all rows."""
        return Chunk(self.dense(slice(None)), self.targets, self.weights)

    def relabelled(
        self, relabel: Callable[[Any, Any], tuple[Any, Any]], n_targets: int, *, weighted: bool
    ) -> RowSource:
        """Return the rows with other targets and weights, without those of weight zero."""
        with named(self.owner):
            targets, weights = relabel(self.targets, self.weights)
        X = self.X
        if weights is not None and weights.any() and not weights.all():  # rows of weight zero are as good as absent
            X, targets, weights = (part[weights > 0] for part in (X, targets, weights))
        return self._like(X, targets, weights)

    def reduce(self, work: Callable[[Iterator[Chunk]], T], *, width: int, label: str = "", verbose: Any = 0) -> T:
        """``work`` of all chunks: here one part is all there is."""
        return work(self.chunks(width, label=label, verbose=verbose))

    def reduce_targets(self, work: Callable[[Any, Any], T]) -> T:
        """``work`` of all targets."""
        return work(self.targets, self.weights)

    def chunks(self, width: int, *, label: str = "", verbose: Any = 0) -> Iterator[Chunk]:
        """Rows whose features of that width fit the memory set for them, with a progress bar if asked."""
        for rows in self._slices(self._stored() + width, label=label, verbose=verbose):
            weights = None if self.weights is None else self.weights[rows]
            yield Chunk(self.part(rows), None if self.targets is None else self.targets[rows], weights)

    def map(
        self, work: Callable[[np.ndarray], np.ndarray], tail: tuple[int, ...], dtype: Any, *, width: int = 0
    ) -> Any:
        """Apply ``work`` to all rows, at once where it needs no further memory."""
        slices = list(self._slices(width and width + self._stored()))
        if len(slices) == 1:
            return self._returned(work(self.part(slices[0])))
        out = np.empty((self.count(), *tail), dtype)
        for rows in slices:
            out[rows] = work(self.part(rows))
        return self._returned(out)

    def _returned(self, values: np.ndarray) -> Any:
        """Convert values to the library of the rows, if it supports them."""
        if self.origin is None or values.dtype.kind not in "biuf":
            return values
        import array_api_compat

        xp = array_api_compat.array_namespace(self.origin)
        return xp.asarray(values, device=array_api_compat.device(self.origin))

    @abstractmethod
    def _stored(self) -> int:
        """Numbers per row of X."""

    def _slices(self, numbers: int, *, label: str = "", verbose: Any = 0) -> Iterator[slice]:
        n = self.count()
        step = n if not numbers else max(1, min(_CHUNK_NUMBERS // numbers, _CHUNK_ROWS))
        slices = (slice(i, min(i + step, n)) for i in range(0, n, max(step, 1)))
        yield from progress(slices, total=-(-n // max(step, 1)), label=label, shown=bool(verbose))

    def check_weight(self, weight: float) -> None:
        """Refuse a fit on no rows."""
        check_some_weight(self, weight)


class ArrayRows(_RowsInMemory):
    """Rows of an array."""

    def dense(self, rows: Any) -> np.ndarray:
        """Views of slices, copies of chosen rows."""
        return np.asarray(self.X[rows])

    def part(self, rows: slice) -> np.ndarray:
        """A view."""
        return self.dense(rows)

    def column_moments(self) -> ColumnMoments:
        """Moments of chunks, which are converted to float64."""
        nothing = ColumnMoments.of(np.empty((0, self.shape[1])))
        return sum((ColumnMoments.of(X, weights) for X, _, weights in self.chunks(0)), nothing)

    def glance(self) -> Chunk:
        """Return all rows."""
        return Chunk(self.X, None, self.weights)

    def _stored(self) -> int:
        return self.shape[1]


class SparseRows(_RowsInMemory):
    """Rows of a CSR matrix, which is never made dense as a whole."""

    def dense(self, rows: Any) -> np.ndarray:
        """Some rows, as an array."""
        return np.asarray(self.X[rows].toarray())

    def part(self, rows: slice) -> SparseChunk:
        """Some rows, which stay sparse."""
        return SparseChunk(self.X[rows])

    def column_moments(self) -> ColumnMoments:
        """Moments of the entries that are stored."""
        return ColumnMoments.of(self.X, self.weights)

    def glance(self) -> Chunk:
        """Return all rows, or as many random ones as fit into the memory set for them."""
        chosen = self._drawn(max(_DENSE_NUMBERS // self.shape[1], _LEAST_GLANCE), np.random.default_rng(0))
        return Chunk(self.dense(chosen), None, None if self.weights is None else self.weights[chosen])

    def _stored(self) -> int:
        return int(-(-self.X.nnz // max(self.count(), 1)))


def rows_in_memory(
    owner: str,
    X: Any,
    targets: Any = None,
    weights: np.ndarray | None = None,
    *,
    origin: Any = None,
    blocks: tuple[tuple[int, int], ...] = (),
) -> RowSource:
    """The rows of a checked array or CSR matrix."""
    rows = (SparseRows if sparse.issparse(X) else ArrayRows)(owner, X, targets, weights, origin=origin)
    rows.blocks = blocks
    return rows
