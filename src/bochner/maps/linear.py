"""Numbers, diagonals and matrices as linear transforms of data."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import array_namespace, like


def transform(T: np.ndarray, X: Any) -> Any:
    """Rows of X times a number, a diagonal or a matrix T."""
    if T.ndim == 2:
        return array_namespace(X).matmul(X, like(T.T, X))
    if T.ndim:
        return X * like(T, X)
    return X if T == 1 else X * float(T)


def as_tuple(array: np.ndarray) -> Any:
    """Nested tuples of numbers: a value that can be compared, hashed and printed."""
    return array.item() if not array.ndim else tuple(as_tuple(part) for part in array)
