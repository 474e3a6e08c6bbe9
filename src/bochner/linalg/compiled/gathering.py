"""Softmax attention of one query to keys in some places: scores, exponentials and sums of values, four rows at a time.

Loops over four rows have four products under way, and write a sum of values once where they add four.
"""

from __future__ import annotations

import math

import numpy as np

from .codes import dot
from .jit import njit

_LOG2E, _HIGH, _LOW = 1 / math.log(2), 0.693147180369123816490, 1.90821492927058770002e-10
_TERMS = tuple(1 / math.factorial(n) for n in range(13))
_LEAST = -700.0  # exponents below are taken for it: about the smallest normal number


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "reassoc"})
def scores_at(
    q: np.ndarray, keys: np.ndarray, places: np.ndarray, scale: float, shifts: np.ndarray, scores: np.ndarray
) -> None:
    """Scores of a query (d,) and the keys in some places, each with its shift."""
    n, i, d = len(places), 0, len(q)
    while i + 4 <= n:
        a, b, c, e = keys[places[i]], keys[places[i + 1]], keys[places[i + 2]], keys[places[i + 3]]
        first, second, third, fourth = q[0] * a[0], q[0] * b[0], q[0] * c[0], q[0] * e[0]
        for j in range(1, d):
            first += q[j] * a[j]
            second += q[j] * b[j]
            third += q[j] * c[j]
            fourth += q[j] * e[j]
        scores[i], scores[i + 1] = scale * first + shifts[i], scale * second + shifts[i + 1]
        scores[i + 2], scores[i + 3] = scale * third + shifts[i + 2], scale * fourth + shifts[i + 3]
        i += 4
    for m in range(i, n):
        scores[m] = scale * dot(q, keys[places[m]]) + shifts[m]


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def exponentials(scores: np.ndarray, top: float, bits: np.ndarray) -> None:
    """Exponentials of float64 scores below the top, in place, to about 1e-15: without a call for each, so it vectorises.

    The power of two is written as the bits of a float, for which there is room in an int64 array.
    """
    n = len(scores)
    for i in range(n):
        x = max(scores[i] - top, _LEAST)
        power = math.floor(x * _LOG2E + 0.5)
        bits[i] = (np.int64(power) + 1023) << 52
        r = (x - power * _HIGH) - power * _LOW
        total = _TERMS[12]
        total = total * r + _TERMS[11]
        total = total * r + _TERMS[10]
        total = total * r + _TERMS[9]
        total = total * r + _TERMS[8]
        total = total * r + _TERMS[7]
        total = total * r + _TERMS[6]
        total = total * r + _TERMS[5]
        total = total * r + _TERMS[4]
        total = total * r + _TERMS[3]
        total = total * r + _TERMS[2]
        total = total * r + _TERMS[1]
        scores[i] = total * r + _TERMS[0]
    powers = bits.view(np.float64)
    for i in range(n):
        scores[i] *= powers[i]


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "reassoc"})
def _sum(x: np.ndarray) -> float:
    total = 0.0
    for i in range(len(x)):
        total += x[i]
    return total


@njit(cache=True, nogil=True, fastmath={"nsz", "nnan"})
def _highest(x: np.ndarray) -> float:
    top = -1e300
    for i in range(len(x)):
        top = max(top, x[i])
    return top


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "reassoc"})
def _mix(weights: np.ndarray, values: np.ndarray, places: np.ndarray, total: float, out: np.ndarray) -> None:
    """Sum of the values in some places times their weights over the total."""
    n, i, number = len(places), 0, out.dtype.type
    for j in range(len(out)):
        out[j] = 0
    while i + 4 <= n:
        a, b, c, e = values[places[i]], values[places[i + 1]], values[places[i + 2]], values[places[i + 3]]
        first, second = number(weights[i] / total), number(weights[i + 1] / total)
        third, fourth = number(weights[i + 2] / total), number(weights[i + 3] / total)
        for j in range(len(out)):
            out[j] += first * a[j] + second * b[j] + third * c[j] + fourth * e[j]
        i += 4
    for m in range(i, n):
        weight, row = number(weights[m] / total), values[places[m]]
        for j in range(len(out)):
            out[j] += weight * row[j]


@njit(cache=True, nogil=True)
def attend(
    scores: np.ndarray, values: np.ndarray, places: np.ndarray, bits: np.ndarray, out: np.ndarray, sums: np.ndarray
) -> None:
    """Softmax of scores, applied to the values in these places; zero where there are none.

    Parameters
    ----------
    scores : float64 array (n,)
        Scores, which are changed.
    values, places : arrays (p, e), (n,) of int
        Values, and where to find them.
    bits : int64 array (n,)
        Room.
    out, sums : arrays (e,), (2,)
        Results: the output; the largest score and the sum of exponentials below it.
    """
    top = _highest(scores)
    exponentials(scores, top, bits)
    total = _sum(scores)
    _mix(scores, values, places, total, out)
    sums[0], sums[1] = top, total
