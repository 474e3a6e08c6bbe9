"""One step of decoding with positive exponential features, for all heads of one attention, with or without near keys.

The readable counterpart is `bochner.nn._decoding_step`, against which it is tested.  A step touches each number once, so
its time is that of reading matrices and sums, and not of calling twenty operations on them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .jit import njit


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def _projected(x: np.ndarray, matrix: np.ndarray, constants: np.ndarray, result: np.ndarray) -> None:
    """``constants + x @ matrix``."""
    for f in range(len(result)):
        result[f] = constants[f]
    for j in range(len(x)):
        for f in range(len(result)):
            result[f] += x[j] * matrix[j, f]


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def _absorb(log: np.ndarray, norm: Any, v: np.ndarray, values: np.ndarray, shift: np.ndarray) -> None:
    """Add a key with these logarithms, up to its norm, to the sums (m, e + 1) under their stabilisers (m,)."""
    e = len(v)
    for f in range(len(log)):
        l, row = log[f] + norm, values[f]
        if l > shift[f]:
            kept, weight = math.exp(shift[f] - l), log.dtype.type(1)
            shift[f] = l
            for i in range(e + 1):
                row[i] *= kept
        else:
            weight = math.exp(l - shift[f])
        for i in range(e):
            row[i] += weight * v[i]
        row[e] += weight


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def _read(
    scores: np.ndarray,
    near_v: np.ndarray,
    log: np.ndarray,
    values: np.ndarray,
    shift: np.ndarray,
    sums: np.ndarray,
    out: np.ndarray,
) -> None:
    """What a query sees of near keys with these scores, if any, and of the sums; zero if there is no key."""
    e = len(out)
    top = log[0] + shift[0]
    for f in range(1, len(log)):
        top = max(top, log[f] + shift[f])
    for j in range(len(scores)):
        top = max(top, scores[j])
    for i in range(e + 1):
        sums[i] = 0
    for j in range(len(scores)):
        weight = math.exp(scores[j] - top)
        for i in range(e):
            sums[i] += weight * near_v[j, i]
        sums[e] += weight
    for f in range(len(log)):
        weight = math.exp(log[f] + shift[f] - top)
        row = values[f]
        for i in range(e + 1):
            sums[i] += weight * row[i]
    for i in range(e):
        out[i] = sums[i] / sums[e] if sums[e] > 0 else 0


@njit(cache=True, nogil=True)
def decode(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    there: np.ndarray,
    queries: tuple[np.ndarray, np.ndarray],
    keys: tuple[np.ndarray, np.ndarray],
    frame: tuple[np.ndarray, np.ndarray],
    c: float,
    values: np.ndarray,
    shift: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add keys to the sums, and write what queries see of them.

    Parameters
    ----------
    q : array (batch, heads, 1, d)
        A query of each sequence.
    k, v : array (batch, key heads, 1, d), (batch, key heads, 1, e)
        A key and its value, each for as many neighbouring heads; without any, sums are only read.
    there : array (batch,) of bool
        Where there is a key.
    queries, keys : pairs of arrays (heads, d, m), (heads, 1, m)
        Matrices and constants of the logarithms.
    frame : pair of arrays (heads, d, d), (heads, 1, d)
        Matrix and constants of z, whose squared norm times c is added to the logarithms of keys.
    c : float
        Coefficient of the squared norms.
    values, shift : array (batch, heads, m, e + 1), (batch, heads, 1, m)
        Sums and stabilisers, which are changed.
    out : array (batch, heads, 1, e)
        Written.
    """
    batch, heads, _, d = q.shape
    group, added = heads // k.shape[1], k.shape[2] > 0
    log, z, sums = np.empty_like(shift[0, 0, 0]), np.empty_like(q[0, 0, 0]), np.empty_like(values[0, 0, 0])
    for b in range(batch):
        for h in range(heads):
            g = h // group
            if added and there[b]:
                _projected(k[b, g, 0], frame[0][h], frame[1][h, 0], z)
                norm = z.dtype.type(0)
                for j in range(d):
                    norm += z[j] * z[j]
                _projected(k[b, g, 0], keys[0][h], keys[1][h, 0], log)
                _absorb(log, norm * z.dtype.type(c), v[b, g, 0], values[b, h], shift[b, h, 0])
            _projected(q[b, h, 0], queries[0][h], queries[1][h, 0], log)
            _read(log[:0], v[b, g, :0], log, values[b, h], shift[b, h, 0], sums, out[b, h, 0])


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def _dot(x: np.ndarray, y: np.ndarray) -> Any:
    total = x.dtype.type(0)
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def _logs(x: np.ndarray, side: Any, frame: Any, h: int, c: float, z: np.ndarray, log: np.ndarray) -> None:
    """Logarithms of the features of x, with the squared norm."""
    _projected(x, frame[0][h], frame[1][h, 0], z)
    norm = _dot(z, z) * z.dtype.type(c)
    _projected(x, side[0][h], side[1][h, 0], log)
    for f in range(len(log)):
        log[f] += norm


@njit(cache=True, nogil=True)
def _keep(k: np.ndarray, v: np.ndarray, place: int, key: np.ndarray, value: np.ndarray) -> None:
    """Write a key and its value into a slot."""
    for j in range(len(key)):
        k[place, j] = key[j]
    for i in range(len(value)):
        v[place, i] = value[i]


@njit(cache=True, nogil=True)
def _first_empty(bias: np.ndarray, count: int) -> int:
    """The first of ``count`` slots that is empty; -1 if none is."""
    for place in range(count):
        if bias[place] == -np.inf:
            return place
    return -1


@njit(cache=True, nogil=True)
def _leave(
    place: int,
    keys: np.ndarray,
    held: np.ndarray,
    added: np.ndarray,
    side: Any,
    frame: Any,
    h: int,
    c: float,
    z: np.ndarray,
    log: np.ndarray,
    values: np.ndarray,
    shift: np.ndarray,
) -> None:
    """Add the key of a slot, if there is one, to the sums, and empty the slot."""
    if added[place] > -np.inf:
        _logs(keys[place], side, frame, h, c, z, log)
        _absorb(log, added[place], held[place], values, shift)
        added[place] = -np.inf


@njit(cache=True, nogil=True)
def decode_near(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    there: np.ndarray,
    sides: tuple[Any, Any],
    frames: tuple[Any, Any],
    c: float,
    scale: float,
    near: tuple[int, int],
    values: np.ndarray,
    shift: np.ndarray,
    near_k: np.ndarray,
    near_v: np.ndarray,
    bias: np.ndarray,
    out: np.ndarray,
) -> None:
    """Decode with exact weights for a window and the first keys; a key enters the sums when it leaves the window.

    Parameters
    ----------
    q, k, v, there, c, values, shift, out
        As in `decode`, with a key in each sequence.
    sides, frames : pairs of pairs of arrays
        Matrices and constants of queries and of keys: those of the logarithms, and those of z.
    scale : float
        Factor of the dot products.
    near : pair of int
        Window and anchors.
    near_k, near_v, bias : array (batch, heads, slots, d), (batch, heads, slots, e), (batch, heads, slots)
        The anchors, the window but for its newest key, and one slot for that; they are changed.
    """
    batch, heads, slots = bias.shape
    group, (window, anchors) = heads // k.shape[1], near
    last, number = slots - 1, q.dtype.type
    log, z = np.empty_like(shift[0, 0, 0]), np.empty_like(q[0, 0, 0])
    sums, scores = np.empty_like(values[0, 0, 0]), np.empty_like(bias[0, 0])
    for b in range(batch):
        for h in range(heads):
            keys, held, added, x = near_k[b, h], near_v[b, h], bias[b, h], q[b, h, 0]
            place = _first_empty(added, anchors) if there[b] else last
            if there[b]:
                place = place if place >= 0 else last
                _keep(keys, held, place, k[b, h // group, 0], v[b, h // group, 0])
                added[place] = 0
            if place != last or not there[b]:
                added[last] = -np.inf  # nothing new in the window
            if not window:
                _leave(last, keys, held, added, sides[1], frames[1], h, c, z, log, values[b, h], shift[b, h, 0])
            for j in range(slots):
                scores[j] = number(scale) * _dot(x, keys[j]) + added[j] if added[j] > -np.inf else number(-np.inf)
            _logs(x, sides[0], frames[0], h, c, z, log)
            _read(scores, held, log, values[b, h], shift[b, h, 0], sums, out[b, h, 0])
            if window:
                _leave(anchors, keys, held, added, sides[1], frames[1], h, c, z, log, values[b, h], shift[b, h, 0])
                for j in range(anchors, last):
                    _keep(keys, held, j, keys[j + 1], held[j + 1])
                    added[j] = added[j + 1]
                added[last] = -np.inf
