"""Plane rotations on lanes: the levels of a butterfly, and Kac's walk."""

from __future__ import annotations

import numpy as np
from numba import njit

from .vectors import VECTOR_BYTES, rotate_vectors


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
