"""Moving rows into lanes and back: transposition, in squares of one vector's width."""

from __future__ import annotations

import numpy as np
from numba import njit

from ..lanes import LANES
from .vectors import VECTOR_BYTES, transpose_scaled, transpose_square


@njit(cache=True, nogil=True)
def load(rows: np.ndarray, lanes: np.ndarray, dim: int) -> None:
    """Transpose ``rows`` (n, d) into ``lanes`` (groups, capacity, 16), zeros where there is no data up to ``dim``.

    The last axis of ``rows`` is contiguous.
    """
    n, d = rows.shape
    capacity = lanes.shape[1]
    width = VECTOR_BYTES // lanes.itemsize
    stride = rows.strides[0] // rows.itemsize
    whole = d // width * width
    for g in range(lanes.shape[0]):
        valid = min(n - g * LANES, LANES)
        first = g * LANES * stride
        base = g * capacity * LANES
        if valid == LANES:
            for i in range(0, whole, width):
                for l in range(0, LANES, width):
                    transpose_square(rows, first + l * stride + i, stride, lanes, base + i * LANES + l, LANES)
        start = whole if valid == LANES else 0
        for i in range(start, d):
            for l in range(valid):
                lanes[g, i, l] = rows[g * LANES + l, i]
            for l in range(valid, LANES):
                lanes[g, i, l] = 0
        lanes[g, d:dim] = 0


@njit(cache=True, nogil=True)
def store_scaled(lanes: np.ndarray, factors: np.ndarray, rows: np.ndarray) -> None:
    """Write the first lines of ``lanes``, line i times ``factors[i]``, into the columns of ``rows`` (n, r).

    The last axis of ``rows`` is contiguous.
    """
    n, r = rows.shape
    capacity = lanes.shape[1]
    width = VECTOR_BYTES // lanes.itemsize
    stride = rows.strides[0] // rows.itemsize
    whole = r // width * width
    for g in range(lanes.shape[0]):
        valid = min(n - g * LANES, LANES)
        first = g * LANES * stride
        base = g * capacity * LANES
        if valid == LANES:
            for i in range(0, whole, width):
                for l in range(0, LANES, width):
                    at, to = base + i * LANES + l, first + l * stride + i
                    transpose_scaled(lanes, at, LANES, rows, to, stride, factors, i)
        start = whole if valid == LANES else 0
        for l in range(valid):
            for i in range(start, r):
                rows[g * LANES + l, i] = lanes[g, i, l] * factors[i]


@njit(cache=True, nogil=True)
def add_to(lanes: np.ndarray, rows: np.ndarray) -> None:
    """Add the first lines of ``lanes`` to the columns of ``rows`` (n, d)."""
    n, d = rows.shape
    for g in range(lanes.shape[0]):
        valid = min(n - g * LANES, LANES)
        for i0 in range(0, d, LANES):
            i1 = min(i0 + LANES, d)
            for l in range(valid):
                for i in range(i0, i1):
                    rows[g * LANES + l, i] += lanes[g, i, l]
