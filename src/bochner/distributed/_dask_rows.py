"""Rows of Dask arrays and dataframes: blocks, checked where they are computed, with errors that name the block."""

from __future__ import annotations

import copy
import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, TypeVar

import dask
import numpy as np
from dask.delayed import Delayed
from sklearn.utils import check_array

from .._validation import as_host_rows, shown
from ..learn._column_moments import ColumnMoments
from ..learn._row_source import Chunk, check_present, check_sizes, check_some_weight, named, rows_in_memory
from ..linalg.engine import threads

SPLIT_EVERY = 8  # number of parts that one task adds; a tree of 1000 blocks is four levels deep
_GLANCE = 10_000  # largest number of rows from which maps choose their constants
_UNLIMITED = 1 << 62  # more rows than any collection has

T = TypeVar("T")
Relabel = Callable[[Any, Any], tuple[Any, Any]]


class DaskRows:
    """Row source of `bochner.learn` for the blocks of a Dask collection; see `RowSource`.

    Sums are tree reductions whose shape depends only on the number of blocks, `map` is lazy and keeps the blocks of X,
    and only the few rows that rules for bandwidths and maps use are gathered.

    Parameters
    ----------
    owner : str
        Name of the estimator, for error messages.
    X : dask array (n, d) or dataframe
        Data; all columns are merged into one chunk.
    y, weights : dask arrays, series, dataframes, or arrays in memory; optional
        Targets and weights, which are rechunked to the blocks of X.
    dtypes : tuple of types
        Accepted precisions; rows of other types are converted to the first.
    """

    in_memory = False
    blocks: tuple[tuple[int, int], ...] = ()

    def __init__(self, owner: str, X: Any, y: Any = None, weights: Any = None, *, dtypes: tuple[Any, ...]) -> None:
        array = as_dask_array(owner, X)
        self.owner, self._array, self._dtypes = owner, array, dtypes
        self.dtype = np.dtype(array.dtype if array.dtype in dtypes else dtypes[0])
        self.weighted = weights is not None
        sizes = array.chunks[0]
        self._ends = [0, *accumulate(sizes)]  # summed once: there may be many blocks to name
        columns = [array, _aligned(owner, "y", y, array), _aligned(owner, "sample_weight", weights, array)]
        self.target_shape: tuple[int, ...] = () if y is None else tuple(int(size) for size in columns[1].shape[1:])
        self._parts = list(zip(*(_delayed_rows(part, len(sizes)) for part in columns), strict=True))
        self._relabels: tuple[Relabel, ...] = ()

    @property
    def shape(self) -> tuple[Any, int]:
        """Shape (n, d); n is NaN if Dask does not know the lengths of the blocks."""
        return self._ends[-1], self._array.shape[1]

    @property
    def n_targets(self) -> int:
        return self.target_shape[0] if self.target_shape else 1

    def count(self) -> int:
        """Return the number of rows, by a pass over the data if Dask does not know it."""
        return int(self._counts.sum())

    @functools.cached_property
    def _counts(self) -> np.ndarray:
        """Number of rows of positive weight in each block."""
        if not self.weighted and not math.isnan(self._ends[-1]):
            return np.diff(self._ends).astype(int)
        return np.array(dask.compute(*self._tasks(_count)))

    def variance(self, weights: np.ndarray | None = None) -> float:
        return self.column_moments().variance

    def column_moments(self) -> ColumnMoments:
        total: ColumnMoments = tree_sum(self._tasks(_column_moments))
        return total

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return np.asarray(self._drawn(n, rng).X)

    def sample_weighted(self, n: int, rng: np.random.Generator) -> Chunk:
        return self._drawn(n, rng)

    def glance(self) -> Chunk:
        return self._drawn(_GLANCE, np.random.default_rng(0))

    def merged(self) -> DaskRows:
        """Return the same rows: equal ones may be in different blocks."""
        return self

    def gathered(self) -> Chunk:
        return self._drawn(_UNLIMITED, np.random.default_rng(0))._replace(weights=None)

    def _drawn(self, n: int, rng: np.random.Generator) -> Chunk:
        total = self.count()
        wanted = np.sort(rng.choice(total, n, replace=False)) if total > n else np.arange(total)
        starts = np.concatenate([[0], np.cumsum(self._counts)])
        home = np.searchsorted(starts, wanted, side="right") - 1
        tasks = [self._task(i, _take, wanted[home == i] - starts[i]) for i in np.unique(home)]
        if not tasks:
            return Chunk(np.empty((0, self.shape[1]), self.dtype), np.empty((0, *self.target_shape)), None)
        X, *others = zip(*dask.compute(*tasks), strict=True)
        y, weights = (None if part[0] is None else np.concatenate(part) for part in others)
        return Chunk(np.concatenate(X), y, weights)

    def relabelled(self, relabel: Relabel, n_targets: int, *, weighted: bool) -> DaskRows:
        other = copy.copy(self)
        other._relabels, other.target_shape, other.weighted = (*self._relabels, relabel), (n_targets,), weighted
        vars(other).pop("_counts", None)
        return other

    def reduce(self, work: Callable[[Iterator[Chunk]], T], *, width: int, label: str = "", verbose: Any = 0) -> T:
        constant = dask.delayed(work, traverse=False)  # one node, however many blocks
        total: T = tree_sum(self._tasks(_reduced, constant, width), verbose=verbose)
        return total

    def reduce_targets(self, work: Callable[[Any, Any], T]) -> T:
        total: T = tree_sum(self._tasks(_of_targets, dask.delayed(work, traverse=False)))
        return total

    def map(
        self, work: Callable[[np.ndarray], np.ndarray], tail: tuple[int, ...], dtype: Any, *, width: int = 0
    ) -> Any:
        """Apply ``work`` to each block, as a lazy Dask array that keeps the blocks of X."""
        return self._array.map_blocks(
            _mapped,
            dtype=dtype,
            meta=np.empty((0, *tail), dtype),
            chunks=(self._array.chunks[0], *((size,) for size in tail)),
            drop_axis=1 if not tail else None,
            new_axis=list(range(2, len(tail) + 1)) or None,
            work=dask.delayed(work, traverse=False),
            none=np.empty((0, *tail), dtype),
            width=width,
            check=functools.partial(_checked, n_columns=self.shape[1], dtypes=self._dtypes),
            owner=self.owner,
            ends=self._ends,
        )

    def check_weight(self, weight: float) -> None:
        check_some_weight(self, weight)

    def _tasks(self, work: Callable[..., Any], *arguments: Any) -> list[Delayed]:
        return [self._task(i, work, *arguments) for i in range(len(self._parts))]

    def _task(self, i: int, work: Callable[..., Any], *arguments: Any) -> Delayed:
        """``work(X, y, weights, *arguments)`` of a block, checked and relabelled before; not computed."""
        check = functools.partial(_checked, n_columns=self.shape[1], dtypes=self._dtypes)
        run = dask.delayed(_on_block, pure=False)
        return run(work, self._relabels, check, name_of_block(self.owner, i, self._ends), self._parts[i], *arguments)


def name_of_block(owner: str, i: int, ends: Sequence[float]) -> str:
    """Return the name of block i for error messages, with its rows if known; ``ends`` are zero and the end of each block.

    Examples
    --------
    >>> name_of_block("KernelRidge", 1, (0, 100, 150))
    'KernelRidge: block 1 of 2 (rows 100 to 149)'
    """
    start = f"{owner}: block {i} of {len(ends) - 1}"
    first, last = ends[i : i + 2]
    return start if math.isnan(last) else f"{start} (rows {int(first)} to {int(last) - 1})"


def as_dask_array(owner: str, X: Any) -> Any:
    """Return X as a two-dimensional Dask array with blocks of rows and a single block of columns."""
    array = _partitions(X) if hasattr(X, "to_dask_array") else X
    if not hasattr(array, "chunks"):
        raise TypeError(f"{owner}: expected a Dask array or dataframe, got {type(X).__name__}.")
    if array.ndim != 2:
        raise ValueError(f"{owner}: expected a two-dimensional array, got a Dask array of shape {array.shape}.")
    return array.rechunk({1: -1}) if array.numblocks[1] > 1 else array


def _partitions(frame: Any) -> Any:
    """Convert a dataframe or series to an array, partition by partition; extension types become NumPy types."""
    import dask.array as da

    columns = frame.shape[1:]
    dtype = np.asarray(frame._meta).dtype
    to_array = dask.delayed(np.asarray, pure=True)
    parts = [
        da.from_delayed(to_array(part), (np.nan, *columns), meta=np.empty((0, *columns), dtype))
        for part in frame.to_delayed()
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _checked(X: Any, y: Any, weights: Any, *, n_columns: int, dtypes: tuple[Any, ...]) -> tuple[np.ndarray, Any, Any]:
    """Check one block as scikit-learn checks data."""
    X = check_array(X, dtype=list(dtypes), accept_sparse="csr", ensure_min_samples=0, input_name="X")
    if X.shape[1] != n_columns:
        raise ValueError(f"X has {X.shape[1]} columns, and the collection says {n_columns}.")
    if y is not None:
        check_present(y)
        y = check_array(y, dtype=None, ensure_2d=False, ensure_min_samples=0, input_name="y")
        _check_length("y", y, X)
    if weights is not None:
        weights = check_array(weights, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="weights")
        _check_length("sample_weight", weights, X)
        if (weights < 0).any():
            raise ValueError("sample_weight has negative numbers.")
    check_sizes(y, weights)
    return X, y, weights


def _check_length(what: str, values: Any, X: Any) -> None:
    if len(values) != X.shape[0]:
        raise ValueError(f"{what} has {len(values)} rows, and X has {X.shape[0]}.")


def _on_block(work: Any, relabels: Any, check: Any, name: str, part: tuple[Any, Any, Any], *arguments: Any) -> Any:
    """Check and compute on one thread, since Dask processes as many blocks at once as a worker has threads."""
    with threads(1), named(name):
        X, y, weights = check(*part)
        for relabel in relabels:
            y, weights = relabel(y, weights)
        return work(X, y, weights, *arguments)


def _mapped(
    block: Any, *, work: Any, none: np.ndarray, width: int, check: Any, owner: str, ends: Any, block_info: Any = None
) -> Any:
    name = name_of_block(owner, block_info[0]["chunk-location"][0], ends)
    with named(name):
        X = check(block, None, None)[0]
    if not X.shape[0]:
        return none
    with threads(1):
        return rows_in_memory(name, X).map(work, none.shape[1:], none.dtype, width=width)


def _reduced(X: Any, y: Any, weights: Any, work: Any, width: int) -> Any:
    return rows_in_memory("", X, y, weights).reduce(work, width=width)


def _of_targets(X: Any, y: Any, weights: Any, work: Any) -> Any:
    return work(y, weights)


def _count(X: Any, y: Any, weights: Any) -> int:
    return int(X.shape[0] if weights is None else np.count_nonzero(weights))


def _column_moments(X: Any, y: Any, weights: Any) -> ColumnMoments:
    return rows_in_memory("", X, weights=weights).column_moments()


def _take(X: Any, y: Any, weights: Any, which: np.ndarray) -> tuple[np.ndarray, Any, Any]:
    """Rows of these numbers among those of positive weight, with their targets and weights."""
    chosen = which if weights is None else np.flatnonzero(weights > 0)[which]
    rows = X[chosen]
    X = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)
    return X, None if y is None else y[chosen], None if weights is None else weights[chosen]


def _aligned(owner: str, name: str, part: Any, X: Any) -> Any:
    """Return ``part`` as a Dask array in the blocks of X."""
    if part is None:
        return None
    known = not np.isnan(X.chunks[0]).any()
    if not dask.is_dask_collection(part):
        if not known:
            raise TypeError(
                f"{owner}: {name} must be a Dask collection with the partitions of X, whose lengths are not known, got "
                f"{type(part).__name__}."
            )
        import dask.array as da

        if hasattr(part, "tocsr"):
            raise TypeError(f"{owner}: {name} must be dense, got a sparse matrix; pass {name}.toarray().")
        try:
            part = np.asarray(as_host_rows(owner, part))
        except ValueError:  # lists of several lengths
            raise ValueError(
                f"{owner}: {name} must have the same number of entries in each row, got {shown(part)}."
            ) from None
        if not part.ndim:
            raise ValueError(f"{owner}: {name} must have an entry for each row, got {shown(part.item())}.")
        if part.dtype == object and (numbers := np.asarray(part.tolist())).dtype.kind in "fiub":
            part = numbers
        if len(part) != X.shape[0]:
            raise ValueError(f"{owner}: {name} has {len(part)} rows, and X has {X.shape[0]}.")
        return da.from_array(part, chunks=(X.chunks[0], *part.shape[1:]))
    array = _partitions(part) if hasattr(part, "to_dask_array") else part
    if not known or np.isnan(array.chunks[0]).any():
        if array.numblocks[0] != X.numblocks[0]:
            raise ValueError(
                f"{owner}: {name} has {array.numblocks[0]} blocks and X has {X.numblocks[0]}, of lengths that are not "
                f"known; repartition them alike, or call compute_chunk_sizes()."
            )
        return array.rechunk({1: -1}) if array.ndim > 1 else array
    if array.shape[0] != X.shape[0]:
        raise ValueError(f"{owner}: {name} has {array.shape[0]} rows, and X has {X.shape[0]}.")
    return array.rechunk({0: X.chunks[0], **({1: -1} if array.ndim > 1 else {})})


def _delayed_rows(array: Any, n_blocks: int) -> list[Any]:
    return [None] * n_blocks if array is None else list(array.to_delayed().reshape(-1))


def tree_sum(parts: list[Delayed], split_every: int = SPLIT_EVERY, *, verbose: Any = 0) -> Any:
    """Sum the parts on the workers; only the total is transferred.

    Neighbouring blocks are added first, in a fixed order, so the result does not depend on the speed or the failure of
    workers.

    Examples
    --------
    >>> import dask
    >>> tree_sum([dask.delayed([k]) for k in range(20)])[:3]
    [0, 1, 2]
    """
    add = dask.delayed(_add, pure=False)
    while len(parts) > 1:
        parts = [add(parts[i : i + split_every]) for i in range(0, len(parts), split_every)]
    return _computed(parts[0], verbose)


def _add(parts: list[Any]) -> Any:
    return functools.reduce(operator.add, parts)


def _computed(total: Delayed, verbose: Any) -> Any:
    if not verbose:
        return total.compute()
    client = _client()
    if client is None:
        from dask.diagnostics import ProgressBar

        with ProgressBar():
            return total.compute()
    from distributed import progress

    future = client.compute(total)
    progress(future, notebook=False)
    return future.result()


def _client() -> Any:
    """The cluster that computes, if there is one."""
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None
