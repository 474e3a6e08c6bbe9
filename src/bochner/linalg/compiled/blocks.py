"""Keys that blocks of queries share, found by codes.

The readable counterpart is `bochner.nn._coded_blocks`, against which it is tested.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .codes import estimate
from .jit import njit
from .selecting import bounds_of, draw_keys, largest


@njit(cache=True, nogil=True)
def select_for_blocks(
    judges: np.ndarray, lengths: np.ndarray, bits: int, words: np.ndarray, norms: np.ndarray, offsets: np.ndarray,
    ranges: np.ndarray, first: np.ndarray, count: int, places: np.ndarray, phases: np.ndarray, drawn: np.ndarray,
    shifts: np.ndarray,
) -> None:  # fmt: skip
    """Keys for each block of queries of one head: those of the largest score below the best one of some query.

    Of all others some are drawn.

    Parameters
    ----------
    judges : uint64 array (blocks, queries, words)
        Codes of the queries that choose.
    lengths : array (blocks, queries)
        Their lengths in the frame.
    bits : int
        Length of a code.
    words, norms, offsets : arrays (p, words), (p,), (p,)
        Codes of keys.
    ranges : array (blocks, 3) of int
        The first and the last near key of each block, which are not chosen, and the number of keys that it sees.
    first : bool array (p,)
        Keys that are not chosen either.
    count : int
        Keys to choose.
    places : array (blocks, count) of int
        Result; p where there are fewer.
    phases : array (blocks,)
        As in `draw_keys`.
    drawn, shifts : arrays (blocks, draws)
        Results: keys that are drawn, p where there is none, and as in `draw_keys`.
    """
    p = len(norms)
    scores, best, room = np.empty(p, np.float32), np.empty(p, np.float32), np.empty(p, np.float32)
    counts, found = np.empty(p, np.int32), np.empty(p, np.int64)
    for b in range(len(judges)):
        low, high, seen = ranges[b]
        for i in range(judges.shape[1]):
            own, norm = judges[b, i], lengths[b, i]
            estimate(own, norm, bits, words[:seen], norms[:seen], offsets[:seen], counts, scores[:seen])
            top = bounds_of(scores[:seen])[1]
            _raise(best[:seen], scores[:seen], top, i == 0)
        for j in range(max(low, 0), min(high + 1, seen)):
            best[j] = -np.inf
        for j in range(seen):
            if first[j]:
                best[j] = -np.inf
        number = largest(best[:seen], count, found, room)
        for j in range(number):
            places[b, j] = found[j]
            best[found[j]] = -np.inf
        for j in range(number, count):
            places[b, j] = p
        if drawn.shape[1] and not draw_keys(best[:seen], drawn.shape[1], phases[b], drawn[b], shifts[b]):
            drawn[b], shifts[b] = p, 0.0


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def _raise(best: np.ndarray, scores: np.ndarray, top: Any, anew: bool) -> None:
    """The larger of what is held and of scores below the top, in place."""
    if anew:
        for j in range(len(best)):
            best[j] = scores[j] - top
    else:
        for j in range(len(best)):
            best[j] = max(best[j], scores[j] - top)
