"""Loops over pairs of rows and points, products of rows, and loops over points and the cells of a grid around them."""

from __future__ import annotations

import math

import numpy as np

from .jit import njit


@njit(cache=True, nogil=True)
def manhattan(rows: np.ndarray, points: np.ndarray, inverse: np.ndarray, out: np.ndarray) -> None:
    """Write sums of absolute scaled differences of rows (n, d) and points (d, p), one column each, to ``out`` (n, p)."""
    for i in range(len(rows)):
        sums = out[i]
        sums[:] = 0
        for k in range(len(points)):
            x, s, y = rows[i, k], inverse[k], points[k]
            for j in range(len(sums)):
                sums[j] += abs(x - y[j]) * s


@njit(cache=True, nogil=True)
def squared(rows: np.ndarray, points: np.ndarray, inverse: np.ndarray, out: np.ndarray) -> None:
    """Write sums of squared scaled differences of rows (n, d) and points (d, p), one column each, to ``out`` (n, p)."""
    for i in range(len(rows)):
        sums = out[i]
        sums[:] = 0
        for k in range(len(points)):
            x, s, y = rows[i, k], inverse[k], points[k]
            for j in range(len(sums)):
                z = (x - y[j]) * s
                sums[j] += z * z


@njit(cache=True, nogil=True)
def signed_sums(rows: np.ndarray, points: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Write sums over points (d, p) of weights (n, p) times the signs of differences of rows (n, d) to ``out`` (n, d)."""
    for i in range(len(rows)):
        w = weights[i]
        for k in range(len(points)):
            x, y, total = rows[i, k], points[k], 0.0
            for j in range(len(w)):
                total += w[j] if x > y[j] else (-w[j] if x < y[j] else 0.0)
            out[i, k] = total


@njit(cache=True, nogil=True)
def row_products(factor: float, first: np.ndarray, second: np.ndarray, out: np.ndarray) -> None:
    """Write ``factor`` times all products of the entries of rows (n, a) and (n, b) to ``out`` (n, a b)."""
    width = second.shape[1]
    for i in range(len(out)):
        row, into = second[i], out[i]
        for j in range(first.shape[1]):
            x, to = factor * first[i, j], j * width
            for k in range(width):
                into[to + k] = x * row[k]


@njit(cache=True, nogil=True, fastmath=True)
def _window(x: float, width: int, beta: float, out: np.ndarray) -> int:
    """Write the window exp(beta (sqrt(1 - z^2) - 1)) at the cells around x, in cells; return the first of them."""
    first = math.ceil(x - 0.5 * width)
    for k in range(width):
        z = (first + k - x) * 2.0 / width
        out[k] = math.exp(beta * (math.sqrt(max(1.0 - z * z, 0.0)) - 1.0))
    return first


@njit(cache=True, nogil=True, fastmath=True)
def spread(cells: np.ndarray, values: np.ndarray, widths: np.ndarray, beta: float, grid: np.ndarray) -> None:
    """Add ``values`` (n, c) of points, in cells (n, 3), to ``grid`` (p, q, r, c), whose axes have room at both ends."""
    a, b, e = np.ones(widths[0]), np.ones(widths[1]), np.ones(widths[2])
    c = values.shape[1]
    line = np.empty(widths[2] * c)
    flat = grid.reshape(grid.shape[0], grid.shape[1], grid.shape[2] * c)
    for i in range(len(cells)):
        p = _window(cells[i, 0], widths[0], beta, a) if widths[0] > 1 else 0
        q = _window(cells[i, 1], widths[1], beta, b) if widths[1] > 1 else 0
        r = _window(cells[i, 2], widths[2], beta, e) * c
        for k in range(widths[2]):
            for j in range(c):
                line[k * c + j] = e[k] * values[i, j]
        for k in range(widths[0]):
            for m in range(widths[1]):
                s, out = a[k] * b[m], flat[p + k, q + m, r : r + line.size]
                for j in range(line.size):
                    out[j] += s * line[j]


@njit(cache=True, nogil=True, fastmath=True)
def interpolate(cells: np.ndarray, grid: np.ndarray, widths: np.ndarray, beta: float, out: np.ndarray) -> None:
    """Write sums of ``grid`` (p, q, r, c) around points, in cells (n, 3), to ``out`` (n, c): the adjoint of `spread`."""
    a, b, e = np.ones(widths[0]), np.ones(widths[1]), np.ones(widths[2])
    c = out.shape[1]
    line = np.empty(widths[2] * c)
    flat = grid.reshape(grid.shape[0], grid.shape[1], grid.shape[2] * c)
    for i in range(len(cells)):
        p = _window(cells[i, 0], widths[0], beta, a) if widths[0] > 1 else 0
        q = _window(cells[i, 1], widths[1], beta, b) if widths[1] > 1 else 0
        r = _window(cells[i, 2], widths[2], beta, e) * c
        line[:] = 0.0
        for k in range(widths[0]):
            for m in range(widths[1]):
                s, part = a[k] * b[m], flat[p + k, q + m, r : r + line.size]
                for j in range(line.size):
                    line[j] += s * part[j]
        for j in range(c):
            total = 0.0
            for k in range(widths[2]):
                total += e[k] * line[k * c + j]
            out[i, j] = total
