"""Walsh-Hadamard levels on lanes.

The transform of n lines is done radix eight (three levels to a pass over memory) and depth first: once a part of the
data fits the first-level cache, all its remaining levels are done there.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .vectors import VECTOR_BYTES, scale_vector, walsh2, walsh4, walsh8

_CACHED_BYTES = 16384
"""Part of the data whose remaining levels are done together: half a first-level cache."""


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
    """All levels of the ``count`` elements at ``start``, whose lines are ``run`` elements long."""
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
def walsh_levels(lanes: np.ndarray, dim: int, low: int, high: int) -> None:
    """Unnormalised Walsh-Hadamard transform over index bits ``low`` to ``high - 1`` of the first ``dim`` lines."""
    flat = lanes.reshape(-1)
    capacity, width = lanes.shape[1], lanes.shape[2]
    step = VECTOR_BYTES // flat.itemsize
    run, count = width << low, width << high
    for g in range(lanes.shape[0]):
        group = g * capacity * width
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
