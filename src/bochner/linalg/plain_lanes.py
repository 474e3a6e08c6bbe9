"""The loops of `bochner.linalg.compiled` on lanes, waves and distances, in NumPy; see there for what each does.

Lanes have the shape (groups, capacity, 16), as for the compiled loops, so that their callers need not know which are used.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import hadamard

from .engine import LANES
from .references import waves_reference

LIMIT32, LIMIT64 = np.float32(np.inf), np.inf
"""NumPy's cosines take phases of any size."""
_BITS = 5
"""Levels of a Walsh-Hadamard transform in one product with a Hadamard matrix: BLAS is faster than passes over memory."""


def load(rows: np.ndarray, lanes: np.ndarray, dim: int) -> None:
    """Transpose rows into lanes, zeros where there is no data."""
    (n, d), whole = rows.shape, len(rows) // LANES
    lanes[:whole, :d] = rows[: whole * LANES].reshape(whole, LANES, d).transpose(0, 2, 1)
    if whole < len(lanes):
        rest = n - whole * LANES
        lanes[whole:, :d] = 0
        lanes[whole, :d, :rest] = rows[whole * LANES :].T
    lanes[:, d:dim] = 0


def store_scaled(lanes: np.ndarray, factors: np.ndarray, rows: np.ndarray) -> None:
    """Write the first lines, times factors, into the columns of rows."""
    for found, where in _back(lanes, rows):
        np.multiply(found, factors[: rows.shape[1]], out=where)


def add_to(lanes: np.ndarray, rows: np.ndarray) -> None:
    """Add the first lines to the columns of rows."""
    for found, where in _back(lanes, rows):
        where += found


def _back(lanes: np.ndarray, rows: np.ndarray) -> Any:
    """Pairs of lines and the rows that they belong to, as views: whole groups, and what is left of one."""
    (n, r), whole = rows.shape, len(rows) // LANES
    yield lanes[:whole, :r].transpose(0, 2, 1), rows[: whole * LANES].reshape(whole, LANES, r)
    if n > whole * LANES:
        yield lanes[whole, :r, : n - whole * LANES].T, rows[whole * LANES :]


def reflect(pairs: np.ndarray, center: np.ndarray, factor: float) -> None:
    """Replace steps by points, and by the opposite ones where there is room."""
    step = factor * pairs[:, 0]
    pairs[:, -1] = center - step
    pairs[:, 0] = center + step


def walsh_levels(lanes: np.ndarray, dim: int, low: int, high: int, first: int = 0) -> None:
    """Walsh-Hadamard levels, some of them at a time."""
    lines = lanes[:, first : first + dim]
    while low < high:
        size, run = 1 << min(_BITS, high - low), LANES << low
        parts = lines.reshape(len(lines), -1, size, run)
        parts[...] = np.matmul(_hadamard(size, lanes.dtype.char), parts)
        low += _BITS


@lru_cache(maxsize=16)
def _hadamard(size: int, dtype: str) -> np.ndarray:
    return np.asarray(hadamard(size, dtype=np.dtype(dtype)))


def scale_lines(lanes: np.ndarray, signs: np.ndarray, factor: float) -> None:
    """Multiply each line by its sign and the factor."""
    lanes[:, : len(signs)] *= (signs * factor).astype(lanes.dtype)[:, None]


def givens_level(lanes: np.ndarray, dim: int, half: int, c: np.ndarray, s: np.ndarray, back: bool) -> None:
    """Rotate each pair of lines that are ``half`` apart."""
    pairs = lanes[:, :dim].reshape(len(lanes), dim // (2 * half), 2, half * LANES)
    if c.shape[1] > 1:  # an angle for each number, so that NumPy's inner loops are long
        c, s = np.repeat(c, LANES, axis=1), np.repeat(s, LANES, axis=1)
    _rotate(pairs[:, :, 0], pairs[:, :, 1], c, -s if back else s)


def _rotate(a: np.ndarray, b: np.ndarray, c: np.ndarray, s: np.ndarray) -> None:
    turned = c * a - s * b
    b[...] = s * a + c * b
    a[...] = turned


def givens_walk(lanes: np.ndarray, i: np.ndarray, j: np.ndarray, c: np.ndarray, s: np.ndarray, back: bool) -> None:
    """Rotate pairs of lines in order; neighbours in the order that share no line are rotated together."""
    steps = _together(i.tobytes(), j.tobytes(), i.dtype.char)
    for which in reversed(steps) if back else steps:
        a, b = lanes[:, i[which]], lanes[:, j[which]]
        _rotate(a, b, c[which, None], -s[which, None] if back else s[which, None])
        lanes[:, i[which]], lanes[:, j[which]] = a, b


@lru_cache(maxsize=256)
def _together(i: bytes, j: bytes, dtype: str) -> list[np.ndarray]:
    """Rotations of pairs that can be made at a time: each after the last one that shares a line with it."""
    pairs = np.stack([np.frombuffer(i, dtype), np.frombuffer(j, dtype)], axis=1).tolist()
    last: dict[int, int] = {}
    when = []
    for a, b in pairs:
        time = max(last.get(a, -1), last.get(b, -1)) + 1
        last[a] = last[b] = time
        when.append(time)
    times = np.array(when)
    return [np.flatnonzero(times == time) for time in range(int(times.max(initial=-1)) + 1)]


def simplex_lines(lanes: np.ndarray, r: int) -> None:
    """Products of the first r - 1 lines with the vertices of a simplex."""
    own = lanes[:, : r - 1]
    last = own.sum(axis=1) / lanes.dtype.type(math.sqrt(r - 1))
    own *= math.sqrt(r / (r - 1))
    own -= ((math.sqrt(r) + 1) / (r - 1) * last)[:, None]
    lanes[:, r - 1] = last


def simplex_lines_adjoint(lanes: np.ndarray, r: int) -> None:
    """Sums of the vertices of a simplex times r lines."""
    own = lanes[:, : r - 1]
    rest = (lanes[:, r - 1] - (math.sqrt(r) + 1) / (r - 1) * own.sum(axis=1)) / math.sqrt(r - 1)
    own *= math.sqrt(r / (r - 1))
    own += rest[:, None].astype(lanes.dtype)
    lanes[:, r - 1] = 0


def waves32(
    phases: np.ndarray,
    bits: np.ndarray,
    limit: Any,
    frequency: Any,
    amplitudes: np.ndarray,
    out: np.ndarray,
    sines: int,
    start: int,
) -> None:
    """Cosines and sines, by NumPy."""
    waves_reference(phases, frequency, amplitudes, out, sines, start)


waves64 = waves32


def manhattan(rows: np.ndarray, points: np.ndarray, inverse: np.ndarray, out: np.ndarray) -> None:
    """Sums of absolute scaled differences, column by column."""
    out[:] = 0
    gap = np.empty_like(out)
    for k in range(len(points)):
        np.subtract(rows[:, k, None], points[k], out=gap)
        np.abs(gap, out=gap)
        gap *= inverse[k]
        out += gap


def squared(rows: np.ndarray, points: np.ndarray, inverse: np.ndarray, out: np.ndarray) -> None:
    """Sums of squared scaled differences, column by column."""
    out[:] = 0
    gap = np.empty_like(out)
    for k in range(len(points)):
        np.subtract(rows[:, k, None], points[k], out=gap)
        gap *= inverse[k]
        gap *= gap
        out += gap


def signed_sums(rows: np.ndarray, points: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Sums over points of weights times signs of differences, column by column."""
    for k in range(len(points)):
        out[:, k] = np.einsum("np,np->n", weights, np.sign(rows[:, k, None] - points[k]))
