"""Codes of keys as bits: packing signs, and estimating the scores of a query from the bits that differ.

The readable counterpart is `bochner.nn._key_codes`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .jit import njit

_SINE = tuple(np.float32(c) for c in (1.5707963, -0.64596376, 0.07968993, -0.00467416, 0.00015168))
"""Coefficients of sin(pi u/2) / u in powers of u^2, for u in [-1, 1], to 1e-7: a table of cosines would not vectorise."""


@intrinsic
def popcount(typing_context: Any, x: Any) -> Any:
    """Number of bits that are set in an unsigned integer of 64 bits: one instruction, for eight of them if there is one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = builder.module.declare_intrinsic("llvm.ctpop", (ir.IntType(64),))
        return builder.call(function, arguments)

    return types.uint64(types.uint64), generate


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "reassoc"})
def dot(a: np.ndarray, b: np.ndarray) -> Any:
    """Product of two vectors, which are not empty."""
    total = a[0] * b[0]
    for i in range(1, len(a)):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "reassoc"})
def encode(
    x: np.ndarray, center: np.ndarray, turn: np.ndarray, rows: np.ndarray, words: np.ndarray, inside: np.ndarray
) -> float:
    """Write the code of one point (d,) into its words, and return its length in the frame.

    Parameters
    ----------
    x, center : arrays (d,)
        The point, and the centre of the frame.
    turn : array (d, d)
        Matrix of the frame.
    rows : array (bits, d)
        Projection.
    words : uint64 array (bits / 64,)
        Result: bit r says whether row r has a positive product.
    inside : array (d,)
        Room for the point in the frame.
    """
    d = len(x)
    for j in range(d):
        inside[j] = 0
    for i in range(d):
        offset = x[i] - center[i]
        for j in range(d):
            inside[j] += offset * turn[i, j]
    squares = 0.0
    for j in range(d):
        squares += inside[j] * inside[j]
    for w in range(len(words)):
        word = np.uint64(0)
        for r in range(64 * w, min(64 * w + 64, len(rows))):
            product = rows[r, 0] * inside[0]
            for j in range(1, d):
                product += rows[r, j] * inside[j]
            if product > 0:
                word |= np.uint64(1) << np.uint64(r - 64 * w)
        words[w] = word
    return math.sqrt(squares)


@njit(cache=True, nogil=True)
def append_codes(
    keys: np.ndarray, bias: np.ndarray, start: int, stop: int, scale: float,
    sides: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], coded: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:  # fmt: skip
    """Write the codes of the keys from ``start`` on into the cache.

    Parameters
    ----------
    keys, bias, coded
        As in `decode_coded`.
    start, stop : int
        Places of the keys.
    scale : float
        Factor of the dot products.
    sides : arrays (code heads, d), (code heads, d, d), (bits, d), (code heads, d)
        Centres and matrices of keys, rows, and the centres of queries.
    """
    centers, turns, rows, query_centers = sides
    words, norms, offsets = coded
    group, root, d = words.shape[1] // keys.shape[1], math.sqrt(scale), keys.shape[3]
    y, inside = np.empty(d, dtype=keys.dtype), np.empty(d, dtype=keys.dtype)
    for b in range(len(keys)):
        for c in range(words.shape[1]):
            for j in range(start, stop):
                for i in range(d):
                    y[i] = root * keys[b, c // group, j, i]
                norms[b, c, j] = encode(y, centers[c], turns[c], rows, words[b, c, j], inside)
                offsets[b, c, j] = dot(y, query_centers[c]) + bias[b, j]


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "reassoc"})
def estimate(
    own: np.ndarray, norm: float, bits: int, words: np.ndarray, norms: np.ndarray, offsets: np.ndarray,
    counts: np.ndarray, scores: np.ndarray,
) -> None:  # fmt: skip
    """Estimated scores of a query with this code and length, for keys with these codes.

    Parameters
    ----------
    own : uint64 array (words,)
        Code of the query.
    norm : float
        Its length in the frame.
    bits : int
        Length of a code.
    words, norms, offsets : arrays (n, words), (n,), (n,)
        Codes of keys, their lengths, and what they add to scores.
    counts : int32 array (n,) or longer
        Room.
    scores : float32 array (n,)
        Result.
    """
    n, step, one = len(scores), np.float32(-2 / bits), np.float32(1)
    if len(own) == 1:  # the usual case: neighbours in memory
        first, flat = own[0], words.reshape(-1)
        for j in range(n):
            counts[j] = popcount(first ^ flat[j])
    else:
        for j in range(n):
            counts[j] = popcount(own[0] ^ words[j, 0])
        for w in range(1, len(own)):
            for j in range(n):
                counts[j] += popcount(own[w] ^ words[j, w])
    factor = np.float32(norm)
    a, b, c, d, e = _SINE
    a, b, c, d, e = factor * a, factor * b, factor * c, factor * d, factor * e
    for j in range(n):
        u = one + step * np.float32(counts[j])
        square = u * u
        scores[j] = norms[j] * (u * (a + square * (b + square * (c + square * (d + square * e))))) + offsets[j]
