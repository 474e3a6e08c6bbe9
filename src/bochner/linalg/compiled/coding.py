"""Attention in which each query has its own keys, found by codes: of whole sequences, and of one step of decoding.

The readable counterpart is `bochner.nn._coded_attention`, against which it is tested.  A query reads the codes of all keys
that it may see, 16 bytes of each with 64 bits, and the rows of those that it keeps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .codes import encode, estimate
from .gathering import attend, scores_at
from .jit import njit
from .selecting import draw_keys, largest


@njit(cache=True, nogil=True)
def _room(n: int, width: int) -> Any:
    """Room for one query with n far keys of which it uses up to ``width``."""
    estimates, sample, counts = np.empty(n, np.float32), np.empty(n, np.float32), np.empty(n, np.int32)
    proposed, order = np.empty(n, np.int64), np.empty(n, np.int64)
    scores, shifts, bits = np.empty(width), np.empty(width), np.empty(width, np.int64)
    return estimates, sample, counts, proposed, order, scores, shifts, bits


@njit(cache=True, nogil=True)
def _choose(
    q: np.ndarray, keys: np.ndarray, numbers: tuple[int, int, int], phase: float, scale: float, room: Any, n: int,
    places: np.ndarray, count: int,
) -> int:  # fmt: skip
    """Add the keys that one query keeps, and those that it draws, to the places in use; return how many these are then.

    Parameters
    ----------
    q, keys : arrays (d,), (p, d)
        Query and keys.
    numbers : int, int, int
        Candidates, kept keys and draws.
    phase : float
        As in `draw_keys`.
    scale : float
        Factor of the dot products.
    room : tuple
        As `_room` gives it, with estimated scores of the first n keys, minus infinity where a key cannot be chosen.
    n : int
        Number of far keys.
    places : array
        Places in use.
    count : int
        Their number; their shifts are zero.
    """
    candidates, kept, sampled = numbers
    estimates, sample, _, proposed, order, _, shifts, _ = room
    estimates, before = estimates[:n], count
    found = largest(estimates, candidates, proposed, sample)
    if found > kept:
        exact, nothing = np.empty(found, np.float32), np.zeros(found, np.float32)
        scores_at(q, keys, proposed[:found], scale, nothing, exact)
        for i in range(largest(exact, kept, order, sample)):
            places[count] = proposed[order[i]]
            count += 1
    else:
        for i in range(found):
            places[count] = proposed[i]
            count += 1
    shifts[before:count] = 0.0
    if sampled:
        for i in range(before, count):
            estimates[places[i]] = -np.inf
        count += draw_keys(estimates, sampled, phase, places[count:], shifts[count:])
    return count


@njit(cache=True, nogil=True)
def attend_coded(
    x: np.ndarray, y: np.ndarray, v: np.ndarray, there: np.ndarray, span: tuple[int, bool, bool], bits: int,
    own: tuple[np.ndarray, np.ndarray], coded: tuple[np.ndarray, np.ndarray, np.ndarray], near: tuple[int, np.ndarray],
    numbers: tuple[int, int, int], phases: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Attention of queries of one head of a sequence, each to its own keys: `decode_coded` for whole sequences.

    Parameters
    ----------
    x, y, v : arrays (n, d), (p, d), (p, e)
        Queries, keys, values; scores are products.
    there : bool array (p,)
        Which keys there are.
    span : int, bool, bool
        Key that the first query stands at, whether later keys are hidden, and whether there is a window.
    bits : int
        Length of a code.
    own : arrays (n, words), (n,)
        Codes of queries, and their lengths in the frame.
    coded : arrays (p, words), (p,), (p,)
        Codes of keys, their lengths, and what they add to scores.
    near : int and array (anchors,)
        Window, and places of the first keys; p where there are fewer.
    numbers : int, int, int
        Candidates, kept keys and draws.
    phases : array (n,)
        As in `draw_keys`.
    out : array (n, e)
        Result.
    """
    n, p = len(x), len(y)
    offset, causal, windowed = span
    window, first = near
    words, norms, offsets = coded
    width = 2 * window + len(first) + numbers[1] + numbers[2]
    places, sums, room = np.empty(width, np.int64), np.empty(2), _room(p, width)
    estimates, counts, shifts = room[0], room[2], room[6]
    searches = numbers[0] + numbers[2] > 0
    for i in range(n):
        at = offset + i
        seen = at + 1 if causal else p
        low, high = (max(at - window + 1, 0), min(at + (1 if causal else window), p)) if windowed else (0, 0)
        far = low if causal and windowed else seen  # keys from here on are near or not seen
        count = 0
        for j in range(low, high):
            if there[j]:
                places[count] = j
                count += 1
        if searches:
            estimate(own[0][i], own[1][i], bits, words[:far], norms[:far], offsets[:far], counts, estimates[:far])
            estimates[low : min(high, far)] = -np.inf
        for a in range(len(first)):
            if first[a] < seen and not low <= first[a] < high:
                places[count] = first[a]
                count += 1
                estimates[first[a]] = -np.inf
        shifts[:count] = 0.0
        if searches:
            count = _choose(x[i], y, numbers, phases[i], 1.0, room, far, places, count)
        scores_at(x[i], y, places[:count], 1.0, shifts, room[5])
        attend(room[5][:count], v, places[:count], room[7], out[i], sums)


@njit(cache=True, nogil=True)
def decode_coded(
    q: np.ndarray, keys: np.ndarray, values: np.ndarray, bias: np.ndarray, n: int, heads: tuple[int, int],
    sides: tuple[np.ndarray, np.ndarray, np.ndarray], coded: tuple[np.ndarray, np.ndarray, np.ndarray],
    near: tuple[int, np.ndarray], counts: tuple[np.ndarray, np.ndarray, np.ndarray], phases: np.ndarray, scale: float,
    out: np.ndarray, sums: np.ndarray, used: np.ndarray,
) -> None:  # fmt: skip
    """Attention of one query per sequence and head to the keys of a cache.

    Parameters
    ----------
    q : array (batch, H, d)
        Queries.
    keys, values : arrays (batch, key heads, capacity, d or e)
        Of which the first n are held.
    bias : array (batch, capacity)
        Zero, or minus infinity where there is no key.
    n : int
        Number of keys.
    heads : pair of int
        The first head of queries to compute, and the one after the last, so that threads can share the work.
    sides : arrays (H, d), (H, d, d), (bits, d)
        Centres and matrices of queries, and rows.
    coded : arrays (batch, code heads, capacity, words), (batch, code heads, capacity) twice
        Codes of keys, their lengths in the frame, and what they add to scores.
    near : int and array (batch, anchors)
        Window, and places of the first keys; n where there are fewer.
    counts : arrays (H,)
        Candidates, kept keys and draws of each head.
    phases : array (batch, H)
        As in `draw_keys`.
    scale : float
        Factor of the dot products.
    out, sums, used : arrays (batch, H, e), (batch, H, 2), (batch, H, places)
        Results: outputs; the largest score and the sum of exponentials below it; the places that were used, then n.
    """
    batch, H, d = q.shape
    window, first = near
    candidates, kept, sampled = counts
    centers, turns, rows = sides
    words, norms, offsets = coded
    group, code_group = H // keys.shape[1], H // words.shape[1]
    root, low = math.sqrt(scale), max(n - window, 0)
    own, inside, x = np.empty(words.shape[3], dtype=np.uint64), np.empty(d, dtype=q.dtype), np.empty(d, dtype=q.dtype)
    room = _room(low, used.shape[2])
    estimates, shifts = room[0], room[6]
    for b in range(batch):
        for h in range(heads[0], heads[1]):
            g, c = h // group, h // code_group
            for j in range(d):
                x[j] = root * q[b, h, j]
            count = 0
            places = used[b, h]
            for j in range(low, n):
                if bias[b, j] == 0:
                    places[count] = j
                    count += 1
            for a in range(first.shape[1]):
                if first[b, a] < low:
                    places[count] = first[b, a]
                    count += 1
            shifts[:count] = 0.0
            if candidates[h] + sampled[h] and low:
                norm = encode(x, centers[h], turns[h], rows, own, inside)
                estimate(
                    own, norm, len(rows), words[b, c, :low], norms[b, c, :low], offsets[b, c, :low], room[2], estimates
                )
                for a in range(first.shape[1]):
                    if first[b, a] < low:
                        estimates[first[b, a]] = -np.inf
                numbers = candidates[h], kept[h], sampled[h]
                count = _choose(q[b, h], keys[b, g], numbers, phases[b, h], scale, room, low, places, count)
            for i in range(count, len(places)):
                places[i] = n
            scores_at(q[b, h], keys[b, g], places[:count], scale, shifts, room[5])
            attend(room[5][:count], values[b, g], places[:count], room[7], out[b, h], sums[b, h])
