"""Dask collections as lists of blocks of rows, checked where they are computed, with errors that name the block."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed
from sklearn.utils import check_array

from ..learn.base import FLOATS
from ..linalg.engine import threads
from ._dask import is_dask
from .reduction import tree_sum


class Blocks:
    """Rows of X, with y and weights where there are any, as blocks that live wherever Dask keeps them.

    Parameters
    ----------
    owner : str
        The estimator, for messages.
    X : dask array (n, d) or dataframe
        Columns are brought into one chunk.
    y, weights : dask arrays, series, dataframes, or arrays in memory; optional
        Brought to the blocks of X.
    verbose : int
        Above zero, reductions show their progress.
    """

    def __init__(self, owner: str, X: Any, y: Any = None, weights: Any = None, *, verbose: Any = 0) -> None:
        array = as_dask_array(owner, X)
        self.owner, self.verbose = owner, verbose
        self.width, self.dtype = array.shape[1], working_dtype(array.dtype)
        self.weighted = weights is not None
        self._weigh: Callable[[Any, Any], Any] | None = None
        sizes = array.chunks[0]
        self._ends = [0, *accumulate(sizes)]  # summed once: there may be many blocks to name
        self.sizes = None if np.isnan(sizes).any() else [int(size) for size in sizes]
        columns = [
            array,
            *(_aligned(owner, name, part, array) for name, part in (("y", y), ("sample_weight", weights))),
        ]
        self._parts = list(zip(*(_delayed_rows(part, len(sizes)) for part in columns), strict=True))

    def reweighed(self, weigh: Callable[[Any, Any], Any] | None) -> Blocks:
        """The same rows with weights ``weigh(y, weights)``, computed in each block; None leaves them."""
        other = copy.copy(self)
        if weigh is not None:
            other._weigh, other.weighted = weigh, True
        return other

    def __len__(self) -> int:
        return len(self._parts)

    def map(self, work: Callable[..., Any], *shared: Any) -> list[Delayed]:
        """``work(X, y, weights, *shared)`` of each block, checked before; not computed."""
        return [self._task(i, work, *shared) for i in range(len(self))]

    def sum(self, work: Callable[..., Any], *shared: Any) -> Any:
        """The sum of ``work`` over all blocks, by a tree whose shape is that of the block numbers."""
        constants = [dask.delayed(value, traverse=False) for value in shared]  # one node each, however many blocks
        return tree_sum(self.map(work, *constants), verbose=self.verbose)

    def compute(self, work: Callable[..., Any], which: list[int], *shared: list[Any]) -> list[Any]:
        """``work`` of some blocks, each with its own entries of ``shared``; for results that are small."""
        tasks = [self._task(i, work, *(values[k] for values in shared)) for k, i in enumerate(which)]
        return list(dask.compute(*tasks))

    def _task(self, i: int, work: Callable[..., Any], *shared: Any) -> Delayed:
        run = dask.delayed(_on_block, pure=False)
        return run(work, self._weigh, self.name_of(i), self.width, self._parts[i], *shared)

    def name_of(self, i: int) -> str:
        """How messages name block i."""
        return name_of_block(self.owner, i, self._ends)


def name_of_block(owner: str, i: int, ends: Sequence[float]) -> str:
    """How messages name block i, with its rows where they are known; ``ends`` are zero and where each block ends.

    Examples
    --------
    >>> name_of_block("KernelRidge", 1, (0, 100, 150))
    'KernelRidge: block 1 of 2 (rows 100 to 149)'
    """
    start = f"{owner}: block {i} of {len(ends) - 1}"
    first, last = ends[i : i + 2]
    return start if math.isnan(last) else f"{start} (rows {int(first)} to {int(last) - 1})"


def as_dask_array(owner: str, X: Any) -> Any:
    """X as a Dask array of two dimensions whose rows are in blocks and whose columns are in one."""
    array = _partitions(X) if hasattr(X, "to_dask_array") else X
    if not hasattr(array, "chunks"):
        raise TypeError(f"{owner}: expected a Dask array or dataframe, got {type(X).__name__}.")
    if array.ndim != 2:
        raise ValueError(f"{owner}: expected rows of two dimensions, got a Dask array of shape {array.shape}.")
    return array.rechunk({1: -1}) if array.numblocks[1] > 1 else array


def _partitions(frame: Any) -> Any:
    """A dataframe or series as an array of unknown lengths, partition by partition; extension types become NumPy's."""
    import dask.array as da

    columns = frame.shape[1:]
    dtype = np.asarray(frame._meta).dtype
    to_array = dask.delayed(np.asarray, pure=True)
    parts = [
        da.from_delayed(to_array(part), (np.nan, *columns), meta=np.empty((0, *columns), dtype))
        for part in frame.to_delayed()
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def working_dtype(dtype: Any) -> np.dtype:
    """float32 stays, all else is computed in float64, as scikit-learn's check has it."""
    return np.dtype(np.float32) if dtype == np.float32 else np.dtype(np.float64)


def check_block(name: str, width: int, X: Any, y: Any, weights: Any) -> tuple[np.ndarray, Any, Any]:
    """One block as scikit-learn checks data, with its name in front of what is wrong."""
    with named(name):
        X = check_array(X, dtype=FLOATS, accept_sparse="csr", ensure_min_samples=0, input_name="X")
        if X.shape[1] != width:
            raise ValueError(f"X has {X.shape[1]} columns, and the collection says {width}.")
        if y is not None:
            y = check_array(y, dtype=None, ensure_2d=False, ensure_min_samples=0, input_name="y")
            _check_length("y", y, X)
        if weights is not None:
            weights = check_array(
                weights, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="weights"
            )
            _check_length("sample_weight", weights, X)
            if (weights < 0).any():
                raise ValueError("sample_weight has negative numbers.")
    return X, y, weights


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """Put the name in front of what an error says."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"{name}: {error}") from None


def _check_length(what: str, values: Any, X: Any) -> None:
    if len(values) != X.shape[0]:
        raise ValueError(f"{what} has {len(values)} rows, and X has {X.shape[0]}.")


def _on_block(work: Any, weigh: Any, name: str, width: int, part: tuple[Any, Any, Any], *shared: Any) -> Any:
    """Check and compute, with one thread: Dask runs as many blocks at once as a worker has threads."""
    X, y, weights = check_block(name, width, *part)
    with threads(1), named(name):
        return work(X, y, weights if weigh is None else weigh(y, weights), *shared)


def _aligned(owner: str, name: str, part: Any, X: Any) -> Any:
    """``part`` as a Dask array in the blocks of X."""
    if part is None:
        return None
    known = not np.isnan(X.chunks[0]).any()
    if not is_dask(part):
        if not known:
            raise TypeError(f"{owner}: {name} must be a Dask collection with the partitions of X, whose lengths are not "
                            f"known, got {type(part).__name__}.")  # fmt: skip
        import dask.array as da

        part = np.asarray(part)
        if not part.ndim:
            raise ValueError(f"{owner}: {name} must have an entry for each row, got {part}.")
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
