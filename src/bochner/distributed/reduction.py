"""Tree reductions: partial sums meet in a tree that the number of blocks alone decides."""

from __future__ import annotations

import functools
import operator
from typing import Any

import dask
from dask.delayed import Delayed

SPLIT_EVERY = 8
"""Parts that one task adds: a tree of 1000 blocks is four levels deep."""


def tree_sum(parts: list[Delayed], split_every: int = SPLIT_EVERY, *, verbose: Any = 0) -> Any:
    """The sum of the parts, computed on the workers; only the total comes here.

    Neighbours in the order of the blocks are added first, so the result does not depend on which worker is quick, nor on
    which one dies.

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
