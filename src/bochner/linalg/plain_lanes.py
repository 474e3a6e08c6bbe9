"""The loops of `bochner.linalg.compiled` on lanes, waves and distances, in NumPy; see there for what each does.

Lanes here are one group of all rows of a tile, a view of them as they lie in memory: BLAS and NumPy's inner loops are
fastest along a row, and nothing is transposed.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import hadamard

from .references import waves_reference

LIMIT32, LIMIT64 = np.float32(np.inf), np.inf  # NumPy's cosines take phases of any size
_BITS = 5
"""Levels of a Walsh-Hadamard transform in one product with a Hadamard matrix: BLAS is faster than passes over memory."""
SMALL, FAR = 32, 64
"""Order of the matrices in which stages that mix neighbours are put together, and of those for the other stages.

A product with matrices of order 32 takes as long as one rotation of all pairs."""
_LONG = 16  # least length of a run that NumPy's inner loops should have; shorter ones are gathered


def room_for(n: int, capacity: int, dtype: Any) -> np.ndarray:
    """Lanes (1, capacity, n) for n rows, which lie in memory row by row."""
    return np.empty((n, capacity), dtype).T[None]


def load(rows: np.ndarray, lanes: np.ndarray, dim: int) -> None:
    """Copy rows into lanes, zeros where there is no data."""
    found, d = lanes[0].T, rows.shape[1]
    found[:, :d] = rows
    found[:, d:dim] = 0


def store_scaled(lanes: np.ndarray, factors: np.ndarray, rows: np.ndarray) -> None:
    """Write the first lines, times factors, into the columns of rows."""
    n, r = rows.shape
    np.multiply(lanes[0].T[:n, :r], factors[:r], out=rows)


def add_to(lanes: np.ndarray, rows: np.ndarray) -> None:
    """Add the first lines to the columns of rows."""
    n, r = rows.shape
    rows += lanes[0].T[:n, :r]


def reflect(pairs: np.ndarray, center: np.ndarray, factor: float) -> None:
    """Replace steps by points, and by the opposite ones where there is room."""
    step = factor * pairs[:, 0]
    pairs[:, -1] = center - step
    pairs[:, 0] = center + step


def walsh_levels(lanes: np.ndarray, dim: int, low: int, high: int, first: int = 0) -> None:
    """Walsh-Hadamard levels, some of them at a time, from one place to another and back."""
    own = lanes[0].T[:, first : first + dim]
    if low < high:
        here = _levels(own, np.empty(own.shape, own.dtype), low, high)
        if here is not own:
            own[...] = here


def signed_walsh(lanes: np.ndarray, factors: np.ndarray, low: int, high: int, back: bool) -> None:
    """Multiply each line by its factor, from one place to another if the levels take an odd number of steps."""
    own = here = lanes[0].T[:, : len(factors)]
    room = np.empty(own.shape, own.dtype)
    if back:
        here = _levels(here, room, low, high)
        np.multiply(here, factors, out=own)
        return
    odd = len(_steps(low, high)) % 2
    there = room if odd else own
    np.multiply(own, factors, out=there)
    _levels(there, own if odd else room, low, high)


def _levels(here: np.ndarray, there: np.ndarray, low: int, high: int) -> np.ndarray:
    """Walsh-Hadamard levels of rows, in one of two places; return the one where they end."""
    for bits in _steps(low, high):
        if low < _BITS:  # within a few neighbours
            matrix = _hadamard(1 << bits, 1 << low, here.dtype.char)
            one, other = (part.reshape(len(here), -1, len(matrix)) for part in (here, there))
            if len(here) > one.shape[1]:  # the same neighbours of all rows at a time: faster than all of them, measured
                one, other = one.swapaxes(0, 1), other.swapaxes(0, 1)
            np.matmul(one, matrix, out=other)
        else:
            runs = (len(here), -1, 1 << bits, 1 << low)
            np.matmul(_hadamard(1 << bits, 1, here.dtype.char), here.reshape(runs), out=there.reshape(runs))
        here, there, low = there, here, low + bits
    return here


def _steps(low: int, high: int) -> list[int]:
    """Numbers of levels that are made at a time."""
    steps = []
    while low < high:
        steps.append(min(_BITS - low, high - low) if low < _BITS else -(-(high - low) // -(-(high - low) // _BITS)))
        low += steps[-1]
    return steps


@lru_cache(maxsize=64)
def _hadamard(size: int, run: int, dtype: str) -> np.ndarray:
    """Hadamard matrix of coordinates that are ``run`` apart."""
    return np.kron(hadamard(size, dtype=np.dtype(dtype)), np.eye(run, dtype=dtype))


def scale_lines(lanes: np.ndarray, signs: np.ndarray, factor: float) -> None:
    """Multiply each line by its sign and the factor."""
    lines = lanes[0].T[:, : len(signs)]
    lines *= (signs * factor).astype(lanes.dtype)


def multiply_blocks(lanes: np.ndarray, matrices: np.ndarray, run: int = 1) -> None:
    """Multiply each few coordinates of a row that are ``run`` apart by their own matrix (groups, size, size), in place."""
    groups, size = matrices.shape[:2]
    lines = lanes[0].T[:, : groups * size * run]
    if run == 1:
        parts = lines.reshape(-1, groups, size).swapaxes(0, 1)
        parts[...] = np.matmul(parts, matrices)
    else:
        several = lines.reshape(-1, groups, size, run)
        several[...] = np.matmul(matrices.swapaxes(1, 2), several)


def givens_level(lanes: np.ndarray, dim: int, half: int, c: np.ndarray, s: np.ndarray, back: bool) -> None:
    """Rotate each pair of lines that are ``half`` apart."""
    lines = lanes[0].T[:, :dim]
    groups, sign = dim // (2 * half), np.array([[1], [-1]] if back else [[-1], [1]], lanes.dtype)
    shape = (groups, 2, half)
    c, s = np.broadcast_to(c[:, None], shape), np.broadcast_to(sign * s[:, None], shape)
    if half < _LONG:
        turned = np.take(lines, np.arange(dim) ^ half, axis=1)
        turned *= s.reshape(dim)
    else:
        turned = (lines.reshape(-1, *shape)[:, :, ::-1] * s).reshape(lines.shape)
    lines *= c.reshape(dim)
    lines += turned


def givens_walk(lanes: np.ndarray, i: np.ndarray, j: np.ndarray, c: np.ndarray, s: np.ndarray, back: bool) -> None:
    """Rotate pairs of lines in order; neighbours in the order that share no line are rotated together.

    The lines of a walk lie in no order, so they are copied to be contiguous: gathering columns of rows takes twice as long.
    """
    lines, steps = np.ascontiguousarray(lanes[0]), _together(i.tobytes(), j.tobytes(), i.dtype.char)
    for which, one, other in reversed(steps) if back else steps:
        a, b, cosine, sine = lines[one], lines[other], c[which, None], (-s if back else s)[which, None]
        turned = cosine * a - sine * b
        lines[other] = sine * a + cosine * b
        lines[one] = turned
    lanes[0] = lines


@lru_cache(maxsize=256)
def _together(i: bytes, j: bytes, dtype: str) -> list[tuple[np.ndarray, Any, Any]]:
    """Rotations of pairs that can be made at a time, and their lines: each after the last one that shares a line with it."""
    first, second = np.frombuffer(i, dtype), np.frombuffer(j, dtype)
    last: dict[int, int] = {}
    when = []
    for a, b in zip(first.tolist(), second.tolist(), strict=True):
        time = max(last.get(a, -1), last.get(b, -1)) + 1
        last[a] = last[b] = time
        when.append(time)
    times = np.array(when)
    steps = [np.flatnonzero(times == time) for time in range(int(times.max(initial=-1)) + 1)]
    return [(which, _lines(first[which]), _lines(second[which])) for which in steps]


def _lines(which: np.ndarray) -> Any:
    """A slice where lines are neighbours, which needs no copy."""
    start, stop = int(which[0]), int(which[-1]) + 1
    return slice(start, stop) if np.array_equal(which, np.arange(start, stop)) else which


def simplex_lines(lanes: np.ndarray, r: int) -> None:
    """Products of the first r - 1 lines with the vertices of a simplex."""
    rows = lanes[0].T
    own = rows[:, : r - 1]
    last = own @ np.full(r - 1, 1 / math.sqrt(r - 1), lanes.dtype)
    own *= math.sqrt(r / (r - 1))
    own -= ((math.sqrt(r) + 1) / (r - 1) * last)[:, None]
    rows[:, r - 1] = last


def simplex_lines_adjoint(lanes: np.ndarray, r: int) -> None:
    """Sums of the vertices of a simplex times r lines."""
    rows = lanes[0].T
    own = rows[:, : r - 1]
    rest = (rows[:, r - 1] - (math.sqrt(r) + 1) / (r - 1) * own.sum(axis=1)) / math.sqrt(r - 1)
    own *= math.sqrt(r / (r - 1))
    own += rest[:, None].astype(lanes.dtype)
    rows[:, r - 1] = 0


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


def row_products(factor: float, first: np.ndarray, second: np.ndarray, out: np.ndarray) -> None:
    """Factor times all products of the entries of a row of two matrices."""
    room = out.reshape(len(out), first.shape[1], -1)  # a view: only the last axis is divided
    np.einsum("ni,nj->nij", factor * first, second, out=room)


_POINTS = 4096  # points whose cells are held at a time: 12 x 12 cells of 4096 points are 5 MB of places


def _corners(
    cells: np.ndarray, widths: np.ndarray, beta: float, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Places in the flat grid (n, k) and weights (n, k) of all cells that points touch."""
    places, weights = np.zeros((len(cells), 1), dtype=np.int64), np.ones((len(cells), 1))
    for axis, width in enumerate(widths):
        first = np.ceil(cells[:, axis] - 0.5 * width) if width > 1 or axis == 2 else np.zeros(len(cells))
        at = first[:, None] + np.arange(width)
        z = (at - cells[:, axis, None]) * 2.0 / width
        window = (
            np.exp(beta * (np.sqrt(np.maximum(1.0 - z * z, 0.0)) - 1.0))
            if width > 1 or axis == 2
            else np.ones(at.shape)
        )
        places = (places[:, :, None] * shape[axis] + at.astype(np.int64)[:, None, :]).reshape(len(cells), -1)
        weights = (weights[:, :, None] * window[:, None, :]).reshape(len(cells), -1)
    return places, weights


def spread(cells: np.ndarray, values: np.ndarray, widths: np.ndarray, beta: float, grid: np.ndarray) -> None:
    """Add values of points to the grid."""
    flat = grid.reshape(-1, grid.shape[-1])
    for start in range(0, len(cells), _POINTS):
        part = slice(start, start + _POINTS)
        places, weights = _corners(cells[part], widths, beta, grid.shape)
        for j in range(flat.shape[1]):
            amounts = (weights * values[part, j, None]).ravel()
            flat[:, j] += np.bincount(places.ravel(), amounts, minlength=len(flat))


def interpolate(cells: np.ndarray, grid: np.ndarray, widths: np.ndarray, beta: float, out: np.ndarray) -> None:
    """Write sums of the grid around points."""
    flat = grid.reshape(-1, grid.shape[-1])
    for start in range(0, len(cells), _POINTS):
        part = slice(start, start + _POINTS)
        places, weights = _corners(cells[part], widths, beta, grid.shape)
        out[part] = np.einsum("nk,nkc->nc", weights, flat[places])
