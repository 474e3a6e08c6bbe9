"""All operations on lanes: moving rows in and out, Walsh-Hadamard levels, plane rotations, the simplex product.

Rows that have left the lanes become pairs of opposite points in `reflect`.

Rows are transposed in squares of one vector's width.  The Walsh-Hadamard transform of n lines is done radix eight
(three levels to a pass over memory) and depth first: once a part of the data fits the first-level cache, all its
remaining levels are done there.  All transforms work in place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine import LANES
from .jit import njit
from .vectors import (
    VECTOR_BYTES,
    add_vector,
    rotate_vectors,
    scale_and_add_vector,
    scale_vector,
    transpose_scaled,
    transpose_square,
    walsh2,
    walsh4,
    walsh8,
)

_CACHED_BYTES = 16384  # part of the data whose remaining levels are done together: half a first-level cache

_CHAINS = 4  # partial sums kept apart, so that additions do not wait for each other


def room_for(n: int, capacity: int, dtype: Any) -> np.ndarray:
    """Lanes (groups, capacity, 16) for n rows, sixteen of them side by side."""
    return np.empty((-(-n // LANES), capacity, LANES), dtype)


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
def reflect(pairs: np.ndarray, center: np.ndarray, factor: float) -> None:
    """Replace steps w = ``pairs[:, 0]`` (n, d) by ``center + factor * w``, and ``pairs[:, 1]``, if any, by the opposite."""
    n, signs, d = pairs.shape
    for k in range(n):
        plus, minus = pairs[k, 0], pairs[k, signs - 1]
        for i in range(d):
            step = factor * plus[i]
            minus[i] = center[i] - step  # overwritten by the next line if there is no opposite point
            plus[i] = center[i] + step


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


@njit(cache=True, nogil=True)
def _pass8(flat: np.ndarray, start: int, count: int, stride: int, step: int) -> None:
    for block in range(start, start + count, 8 * stride):
        for at in range(block, block + stride, step):
            walsh8(flat, at, stride)


@njit(cache=True, nogil=True)
def _pass4(flat: np.ndarray, start: int, count: int, stride: int, step: int) -> None:
    for block in range(start, start + count, 4 * stride):
        for at in range(block, block + stride, step):
            walsh4(flat, at, stride)


@njit(cache=True, nogil=True)
def _pass2(flat: np.ndarray, start: int, count: int, stride: int, step: int) -> None:
    for block in range(start, start + count, 2 * stride):
        for at in range(block, block + stride, step):
            walsh2(flat, at, stride)


@njit(cache=True, nogil=True)
def _transform(flat: np.ndarray, start: int, count: int, run: int, step: int) -> None:
    """Apply all levels to the ``count`` elements at ``start``, whose lines are ``run`` elements long."""
    if count > 8 * run and count * flat.itemsize > _CACHED_BYTES:
        part = count // 8
        _pass8(flat, start, count, part, step)
        for first in range(start, start + count, part):
            _transform(flat, first, part, run, step)
        return
    stride = count
    while stride >= 8 * run:
        stride //= 8
        _pass8(flat, start, count, stride, step)
    if stride == 4 * run:
        _pass4(flat, start, count, run, step)
    elif stride == 2 * run:
        _pass2(flat, start, count, run, step)


@njit(cache=True, nogil=True)
def walsh_levels(lanes: np.ndarray, dim: int, low: int, high: int, first: int = 0) -> None:
    """Unnormalised Walsh-Hadamard transform over index bits ``low`` to ``high - 1`` of ``dim`` lines from ``first`` on."""
    flat = lanes.reshape(-1)
    capacity, width = lanes.shape[1], lanes.shape[2]
    step = VECTOR_BYTES // flat.itemsize
    run, count = width << low, width << high
    for g in range(lanes.shape[0]):
        group = (g * capacity + first) * width
        for start in range(group, group + dim * width, count):
            _transform(flat, start, count, run, step)


@njit(cache=True, nogil=True)
def scale_lines(lanes: np.ndarray, signs: np.ndarray, factor: float) -> None:
    """Multiply line i by ``signs[i] * factor``."""
    flat = lanes.reshape(-1)
    capacity, width = lanes.shape[1], lanes.shape[2]
    step = VECTOR_BYTES // flat.itemsize
    for g in range(lanes.shape[0]):
        for i in range(signs.shape[0]):
            start = (g * capacity + i) * width
            by = flat.dtype.type(signs[i] * factor)
            for at in range(start, start + width, step):
                scale_vector(flat, at, by)


@njit(cache=True, nogil=True)
def signed_walsh(lanes: np.ndarray, factors: np.ndarray, low: int, high: int, back: bool) -> None:
    """Multiply each line by its factor and transform them, or if ``back`` the other way round."""
    if back:
        walsh_levels(lanes, len(factors), low, high)
    scale_lines(lanes, factors, 1.0)
    if not back:
        walsh_levels(lanes, len(factors), low, high)


@njit(cache=True, nogil=True)
def givens_level(lanes: np.ndarray, dim: int, half: int, c: np.ndarray, s: np.ndarray, back: bool) -> None:
    """Rotate each pair of lines ``half`` apart; row u of ``c``, ``s``: the angles of group u, or the one it shares."""
    flat = lanes.reshape(-1)
    capacity, width = lanes.shape[1], lanes.shape[2]
    step = VECTOR_BYTES // flat.itemsize
    for g in range(lanes.shape[0]):
        for block in range(dim // (2 * half)):
            for t in range(half):
                angle = t if c.shape[1] > 1 else 0
                sine = -s[block, angle] if back else s[block, angle]
                a = (g * capacity + 2 * half * block + t) * width
                b = a + half * width
                for lane in range(0, width, step):
                    rotate_vectors(flat, a + lane, b + lane, c[block, angle], sine)


@njit(cache=True, nogil=True)
def givens_walk(lanes: np.ndarray, i: np.ndarray, j: np.ndarray, c: np.ndarray, s: np.ndarray, back: bool) -> None:
    """Rotate lines (i[t], j[t]) by angle t, for all t in order, or undo it in the reverse order."""
    flat = lanes.reshape(-1)
    capacity, width = lanes.shape[1], lanes.shape[2]
    step = VECTOR_BYTES // flat.itemsize
    count = i.shape[0]
    for g in range(lanes.shape[0]):
        group = g * capacity * width
        for t in range(count):
            k = count - 1 - t if back else t
            sine = -s[k] if back else s[k]
            a, b = group + i[k] * width, group + j[k] * width
            for lane in range(0, width, step):
                rotate_vectors(flat, a + lane, b + lane, c[k], sine)


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
    """Multiply each of ``count`` lines by ``factor`` and add ``line``."""
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
