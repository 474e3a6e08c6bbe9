"""The simplex product on lanes, in place and in O(d)."""

from __future__ import annotations

import numpy as np
from numba import njit

from .vectors import VECTOR_BYTES, add_vector, scale_and_add_vector

_CHAINS = 4
"""Partial sums kept apart, so that additions do not wait for each other."""


@njit(cache=True, nogil=True)
def _sum_of_lines(flat: np.ndarray, start: int, count: int, width: int, sums: np.ndarray) -> None:
    """Sum of ``count`` lines from offset ``start`` into the first ``width`` entries of ``sums`` (4 * width,)."""
    step = VECTOR_BYTES // flat.itemsize
    sums[:] = 0
    for i in range(count):
        slot = i % _CHAINS * width
        for lane in range(0, width, step):
            add_vector(sums, slot + lane, flat, start + i * width + lane)
    for l in range(width):
        sums[l] = (sums[l] + sums[width + l]) + (sums[2 * width + l] + sums[3 * width + l])


@njit(cache=True, nogil=True)
def _scale_and_add(flat: np.ndarray, start: int, count: int, width: int, factor: float, line: np.ndarray) -> None:
    """Each of ``count`` lines times ``factor`` plus ``line``."""
    step = VECTOR_BYTES // flat.itemsize
    by = flat.dtype.type(factor)
    for i in range(count):
        for lane in range(0, width, step):
            scale_and_add_vector(flat, start + i * width + lane, by, line, lane)


@njit(cache=True, nogil=True)
def simplex_lines(lanes: np.ndarray, r: int) -> None:
    """Lines 0..r-1 become the products of the first r - 1 lines with the r vertices of a simplex."""
    flat = lanes.reshape(-1)
    capacity, width = lanes.shape[1], lanes.shape[2]
    sums = np.empty(_CHAINS * width, lanes.dtype)
    for g in range(lanes.shape[0]):
        start = g * capacity * width
        _sum_of_lines(flat, start, r - 1, width, sums)
        for l in range(width):
            last = sums[l] / np.sqrt(r - 1.0)
            lanes[g, r - 1, l] = last
            sums[l] = -(np.sqrt(float(r)) + 1.0) / (r - 1.0) * last
        _scale_and_add(flat, start, r - 1, width, np.sqrt(r / (r - 1.0)), sums)


@njit(cache=True, nogil=True)
def simplex_lines_adjoint(lanes: np.ndarray, r: int) -> None:
    """Lines 0..r-2 become the sum over the r vertices, times the r lines; line r - 1 becomes zero."""
    flat = lanes.reshape(-1)
    capacity, width = lanes.shape[1], lanes.shape[2]
    sums = np.empty(_CHAINS * width, lanes.dtype)
    for g in range(lanes.shape[0]):
        start = g * capacity * width
        _sum_of_lines(flat, start, r - 1, width, sums)
        for l in range(width):
            sums[l] = (lanes[g, r - 1, l] - (np.sqrt(float(r)) + 1.0) / (r - 1.0) * sums[l]) / np.sqrt(r - 1.0)
            lanes[g, r - 1, l] = 0
        _scale_and_add(flat, start, r - 1, width, np.sqrt(r / (r - 1.0)), sums)
