"""One step of decoding with positive exponential features, for all heads of one attention.

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
def _read(log: np.ndarray, values: np.ndarray, shift: np.ndarray, sums: np.ndarray, out: np.ndarray) -> None:
    """What a query with these logarithms sees; zero if there is no key."""
    e = len(out)
    top = log[0] + shift[0]
    for f in range(1, len(log)):
        top = max(top, log[f] + shift[f])
    for i in range(e + 1):
        sums[i] = 0
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
            _read(log, values[b, h], shift[b, h, 0], sums, out[b, h, 0])
