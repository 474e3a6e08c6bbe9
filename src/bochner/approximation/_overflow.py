"""Overflow of features: noticed at no cost on ordinary rows, and refused with a sentence.

The product of a huge row with W overflows, the cosine of infinity is NaN, and a model that reads NaN predicts nonsense.
To test all features would cost as much as to compute some of them.  Two things are free instead: the flags that NumPy
reads after each of its functions, and the length of the rows, from which overflow in compiled code can be excluded.
Only if one of them is suspicious are the features looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .._arrays import is_numpy, is_sparse

_Result = TypeVar("_Result")
_SAFE = {np.dtype(kind): float(np.finfo(kind).max) ** 0.4 for kind in (np.float32, np.float64)}
"""Lengths below which nothing overflows: their squares, times the constants of a map, are still finite."""


def noticing(compute: Callable[[], _Result], rows: Any, longest: float) -> tuple[_Result, bool]:
    """Return the result of a computation on rows, and whether anything may have overflowed in it.

    Parameters
    ----------
    compute : function without arguments
        The computation; tiles on other threads are noticed as well.
    rows : array or sparse matrix
        The rows of the user.
    longest : float
        Length of the longest vector that they are multiplied with.

    Returns
    -------
    result, suspicious
        Without a suspicion, all results on these rows are finite, or computed by functions that raise no flags for rows
        of such a length.
    """
    seen: list[str] = []
    with np.errstate(over="call", divide="call", invalid="call", call=lambda kind, flag: seen.append(kind)):
        result = compute()
        return result, _may_overflow(rows, longest) or bool(seen)


def _may_overflow(rows: Any, longest: float) -> bool:
    """Whether products of rows with vectors of that length, or their squares, may overflow the type of the rows."""
    numbers = rows.data if is_sparse(rows) else rows
    if not is_numpy(numbers):
        return False
    if numbers.dtype.itemsize < 4:
        numbers = numbers.astype(np.float32)
    flat = numbers.reshape(-1)
    return not float(np.dot(flat, flat)) ** 0.5 * max(longest, 1.0) < _SAFE[flat.dtype]  # NaN is suspicious too


def check_overflow(owner: str, found: Any, rows: Any, kernel: Any, *, accepted: tuple[float, ...] = ()) -> None:
    """Raise a ValueError if features contain NaN, or an infinity that is not accepted.

    Parameters
    ----------
    owner : str
        The method to name.
    found : array
        The features, their logarithms or their products.
    rows : array or sparse matrix
        The rows of the user.
    kernel : Kernel or None
        The kernel to name.
    accepted : tuple of float
        Infinities that are right: a logarithm of zero is minus infinity, and products may be as large as their kernel.
    """
    values = np.asarray(found)
    if np.all(np.isfinite(values) | np.isin(values, accepted)):
        return
    numbers = rows.data if is_sparse(rows) else rows
    largest = float(np.abs(numbers).max()) if numbers.size else 0.0
    name = "the random features" if kernel is None else f"the features of {kernel!r}"
    remedy = "rescale the data or choose a larger bandwidth"
    if not np.isnan(values).any():
        remedy += ", or use log_queries and log_keys or gram(normalize=True), which work with logarithms"
    raise ValueError(
        f"{owner}: {name} leave the range of {values.dtype} on these rows, whose largest number is {largest:.3g}; {remedy}."
    )
