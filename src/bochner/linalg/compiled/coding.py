"""Codes of keys as bits: packing signs, and one step of decoding that scans codes and reads few keys.

The readable counterpart is `bochner.nn._coded_attention`, against which it is tested.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .jit import njit

_BINS = 256  # bins of the histogram by which the largest of many scores are found
_SAMPLED = 4096  # scores from which the histogram is that of some of them
_PIECE = 64  # keys whose chances are summed at once, so that a draw looks into few of them


@intrinsic
def popcount(typing_context: Any, x: Any) -> Any:
    """Number of bits that are set in an unsigned integer of 64 bits: one instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = builder.module.declare_intrinsic("llvm.ctpop", (ir.IntType(64),))
        return builder.call(function, arguments)

    return types.uint64(types.uint64), generate


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
def estimate(
    own: np.ndarray, norm: Any, cosines: np.ndarray, words: np.ndarray, norms: np.ndarray, offsets: np.ndarray,
    scores: np.ndarray,
) -> None:  # fmt: skip
    """Estimated scores (n,) of a query with this code and length, for keys with these codes."""
    if len(own) == 1:  # the usual case, which vectorises
        first = own[0]
        for j in range(len(scores)):
            scores[j] = norm * norms[j] * cosines[popcount(first ^ words[j, 0])] + offsets[j]
        return
    for j in range(len(scores)):
        count = np.uint64(0)
        for w in range(len(own)):
            count += popcount(own[w] ^ words[j, w])
        scores[j] = norm * norms[j] * cosines[count] + offsets[j]


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def _bounds(scores: np.ndarray) -> tuple[Any, Any]:
    """The least and the largest score that are not minus infinity, in a loop without branches."""
    low, high = np.float32(np.inf), np.float32(-np.inf)
    for j in range(len(scores)):
        score = scores[j]
        low = min(low, score if score > -np.inf else np.float32(np.inf))
        high = max(high, score)
    return low, high


@njit(cache=True, nogil=True)
def _bound(scores: np.ndarray, step: int, count: int, low: float, high: float) -> Any:
    """A number that ``count`` of every ``step``-th scores, or a few more, are not below."""
    bins = np.zeros(_BINS, dtype=np.int64)
    factor = np.float32((_BINS - 1) / max(high - low, 1e-30))
    for j in range(0, len(scores), step):
        if scores[j] > -np.inf:
            bins[int((scores[j] - low) * factor)] += 1
    cut, above = _BINS, 0
    while above < count and cut:
        cut -= 1
        above += bins[cut]
    return low + cut / factor


@njit(cache=True, nogil=True)
def largest(scores: np.ndarray, count: int, places: np.ndarray, at_least: bool) -> Any:
    """Write the places of the largest scores that are not minus infinity, in any order; return how many there are.

    A histogram of some scores gives a bound that few exceed; those are sorted, unless a few more than ``count`` will do
    as well, ``at_least``.
    """
    n, found = len(scores), 0
    low, high = _bounds(scores)
    if not high > -np.inf:
        return 0
    step = max(n // (32 * count), 1) if n > _SAMPLED else 1
    bound = _bound(scores, step, count if step == 1 else (count + count // 8) // step + 8, low, high)
    for j in range(n):
        if scores[j] >= bound:
            places[found] = j
            found += 1
    if found < count and bound > low:  # the sample misled, or there are not so many
        return largest_of_all(scores, count, places)
    if found <= count or (at_least and n > _SAMPLED):
        return found
    chosen = places[:found][np.argsort(-scores[places[:found]])[:count]]
    for i in range(count):
        places[i] = chosen[i]
    return count


@njit(cache=True, nogil=True)
def largest_of_all(scores: np.ndarray, count: int, places: np.ndarray) -> int:
    """Find the places of the largest scores by a sort."""
    order, found = np.argsort(-scores), 0
    for i in range(min(count, len(scores))):
        if scores[order[i]] > -np.inf:
            places[found] = order[i]
            found += 1
    return found


@njit(cache=True, nogil=True, fastmath={"nsz", "reassoc"})
def _chances(scores: np.ndarray, high: Any, bits: np.ndarray, chances: np.ndarray, sums: np.ndarray) -> float:
    """Chances of keys, up to a factor, as the bits of floats; sums over pieces; return the sum of all.

    See `bochner.nn._coded_remainder`: a line between powers of two in place of the exponential, which needs no branch.
    """
    half, one, most = np.float32(0.5 / math.log(2)), np.float32(1 << 23), np.float32(126)
    total = 0.0
    for i in range(len(sums)):
        stop = min((i + 1) * _PIECE, len(scores))
        for j in range(i * _PIECE, stop):
            power = max((scores[j] - high) * half, -most)
            bits[j] = np.int32((power + (most + np.float32(1))) * one) if scores[j] > -np.inf else np.int32(0)
        part = np.float32(0)
        for j in range(i * _PIECE, stop):
            part += chances[j]
        sums[i] = part
        total += sums[i]
    return total


@njit(cache=True, nogil=True)
def draw_keys(scores: np.ndarray, count: int, phase: float, places: np.ndarray, shifts: np.ndarray) -> int:
    """Draw keys in proportion to the root of the exponential of their scores, by one pass with equal steps.

    Parameters
    ----------
    scores : float32 array (n,)
        Scores; keys with minus infinity are not drawn.
    count : int
        Number of draws; a key can be drawn more than once.
    phase : float
        Where the first step is, in [0, 1): uniformly distributed if the draw is to be unbiased.
    places, shifts : arrays (count,)
        Results: keys, and minus the logarithm of the expected number of times that each is drawn.

    Returns
    -------
    int
        ``count``, or 0 where there is no key.
    """
    n = len(scores)
    high = _bounds(scores)[1] if n else np.float32(-np.inf)
    if not high > -np.inf:
        return 0
    bits, sums = np.empty(n, dtype=np.int32), np.empty(-(-n // _PIECE), dtype=np.float64)
    chances = bits.view(np.float32)
    step = _chances(scores, high, bits, chances, sums) / count
    found, before = 0, 0.0
    for i in range(len(sums)):
        until = before + sums[i]
        if until > (phase + found) * step:
            for j in range(i * _PIECE, min((i + 1) * _PIECE, n)):
                before += chances[j]
                # a step that rounding moves beyond its piece is taken by the next key that has a chance
                while chances[j] > 0 and found < count and before > (phase + found) * step:
                    places[found], shifts[found] = j, math.log(step / chances[j])
                    found += 1
        before = until
    last = n - 1
    while chances[last] == 0:
        last -= 1
    while found < count:  # the last step, lost to rounding
        places[found], shifts[found] = last, math.log(step / chances[last])
        found += 1
    return found


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "reassoc"})
def _dot(a: np.ndarray, b: np.ndarray) -> Any:
    total = a[0] * b[0]
    for i in range(1, len(a)):
        total += a[i] * b[i]
    return total


@njit(cache=True, nogil=True)
def _choose(
    q: np.ndarray, keys: np.ndarray, estimates: np.ndarray, numbers: tuple[int, int, int], phase: float,
    room: np.ndarray, places: np.ndarray, shifts: np.ndarray, count: int,
) -> int:  # fmt: skip
    """Add the keys that one query keeps, and those that it draws, to the places in use; return how many these are then.

    Parameters
    ----------
    q, keys : arrays (d,), (n, d)
        Query and keys.
    estimates : float32 array (n,)
        Estimated scores, minus infinity where a key cannot be chosen; changed.
    numbers : int, int, int
        Candidates, kept keys and draws.
    phase : float
        As in `draw_keys`.
    room : array (2, n) of int
        Room for places.
    places, shifts : arrays
        Places in use, and what is added to their scores.
    count : int
        Number of places that are in use already.
    """
    candidates, kept, sampled = numbers
    proposed, order = room[0], room[1]
    found = largest(estimates, candidates, proposed, True) if candidates else 0
    before = count
    if found > kept:
        exact = np.empty(found, dtype=np.float32)
        for i in range(found):
            exact[i] = _dot(q, keys[proposed[i]])
        for i in range(largest(exact, kept, order, False)):
            places[count] = proposed[order[i]]
            count += 1
    else:
        for i in range(found):
            places[count] = proposed[i]
            count += 1
    shifts[:count] = 0.0
    if sampled:
        for i in range(before, count):
            estimates[places[i]] = -np.inf
        count += draw_keys(estimates, sampled, phase, places[count:], shifts[count:])
    return count


@njit(cache=True, nogil=True)
def attend_coded(
    x: np.ndarray, y: np.ndarray, v: np.ndarray, there: np.ndarray, span: tuple[int, bool, bool], cosines: np.ndarray,
    own: tuple[np.ndarray, np.ndarray], coded: tuple[np.ndarray, np.ndarray, np.ndarray], near: tuple[int, np.ndarray],
    numbers: tuple[int, int, int], phases: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Attention of all queries of one head of a sequence, each to its own keys: `decode_coded` for whole sequences.

    Parameters
    ----------
    x, y, v : arrays (n, d), (p, d), (p, e)
        Queries, keys, values; scores are products.
    there : bool array (p,)
        Which keys there are.
    span : int, bool, bool
        Key that the first query stands at, whether later keys are hidden, and whether there is a window.
    cosines : array (bits + 1,)
        Cosine for each number of different bits.
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
    places, shifts, sums = np.empty(width, dtype=np.int64), np.empty(width, dtype=np.float64), np.empty(2)
    estimates, room = np.empty(p, dtype=np.float32), np.empty((2, max(p, 1)), dtype=np.int64)
    for i in range(n):
        at = offset + i
        seen = at + 1 if causal else p
        low, high = (max(at - window + 1, 0), min(at + (1 if causal else window), p)) if windowed else (0, 0)
        count = 0
        for j in range(low, high):
            if there[j]:
                places[count] = j
                count += 1
        scores = estimates[:seen]
        if numbers[0] + numbers[2]:
            estimate(own[0][i], own[1][i], cosines, words[:seen], norms[:seen], offsets[:seen], scores)
            scores[low:high] = -np.inf
        for a in range(len(first)):
            if first[a] < seen and not low <= first[a] < high:
                places[count] = first[a]
                count += 1
                scores[first[a]] = -np.inf
        shifts[:count] = 0.0
        if numbers[0] + numbers[2]:
            count = _choose(x[i], y, scores, numbers, phases[i], room, places, shifts, count)
        _attend(x[i], y, v, places[:count], shifts, 1.0, out[i], sums)


@njit(cache=True, nogil=True)
def decode_coded(
    q: np.ndarray, keys: np.ndarray, values: np.ndarray, bias: np.ndarray, n: int, heads: tuple[int, int],
    sides: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], coded: tuple[np.ndarray, np.ndarray, np.ndarray],
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
    sides : arrays (H, d), (H, d, d), (bits, d), (bits + 1,)
        Centres and matrices of queries, rows, and the cosine for each number of different bits.
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
    centers, turns, rows, cosines = sides
    words, norms, offsets = coded
    group, code_group = H // keys.shape[1], H // words.shape[1]
    root = math.sqrt(scale)
    low = max(n - window, 0)
    own, inside, x = np.empty(words.shape[3], dtype=np.uint64), np.empty(d, dtype=q.dtype), np.empty(d, dtype=q.dtype)
    estimates, room = np.empty(low, dtype=np.float32), np.empty((2, max(low, 1)), dtype=np.int64)
    shifts = np.empty(used.shape[2], dtype=np.float64)
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
            if candidates[h] + sampled[h] and low:
                norm = encode(x, centers[h], turns[h], rows, own, inside)
                estimate(own, norm, cosines, words[b, c, :low], norms[b, c, :low], offsets[b, c, :low], estimates)
                for a in range(first.shape[1]):
                    if first[b, a] < low:
                        estimates[first[b, a]] = -np.inf
                numbers = candidates[h], kept[h], sampled[h]
                count = _choose(q[b, h], keys[b, g], estimates, numbers, phases[b, h], room, places, shifts, count)
            else:
                shifts[:count] = 0.0
            for i in range(count, len(places)):
                places[i] = n
            _attend(q[b, h], keys[b, g], values[b, g], places[:count], shifts, scale, out[b, h], sums[b, h])


@njit(cache=True, nogil=True, fastmath={"contract", "nsz", "reassoc"})
def _attend(
    q: np.ndarray, keys: np.ndarray, values: np.ndarray, places: np.ndarray, shifts: np.ndarray, scale: float,
    out: np.ndarray, sums: np.ndarray,
) -> None:  # fmt: skip
    """Softmax attention of one query to the keys in some places, with shifts of scores; zero where there are none."""
    scores = np.empty(len(places), dtype=np.float64)
    top = -1e300
    for i in range(len(places)):
        scores[i] = scale * _dot(q, keys[places[i]]) + shifts[i]
        top = max(top, scores[i])
    total = 0.0
    for j in range(len(out)):
        out[j] = 0
    for i in range(len(places)):
        weight = math.exp(scores[i] - top)
        total += weight
        row = values[places[i]]
        for j in range(len(out)):
            out[j] += weight * row[j]
    if len(places):
        for j in range(len(out)):
            out[j] /= total
    sums[0], sums[1] = top, total


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
                offsets[b, c, j] = _dot(y, query_centers[c]) + bias[b, j]


@njit(cache=True, nogil=True)
def select_for_blocks(
    judges: np.ndarray, lengths: np.ndarray, cosines: np.ndarray, words: np.ndarray, norms: np.ndarray,
    offsets: np.ndarray, ranges: np.ndarray, first: np.ndarray, count: int, places: np.ndarray, phases: np.ndarray,
    drawn: np.ndarray, shifts: np.ndarray,
) -> None:  # fmt: skip
    """Keys for each block of queries of one head: those of the largest score below the best one of some query.

    Of all others some are drawn.

    Parameters
    ----------
    judges : uint64 array (blocks, queries, words)
        Codes of the queries that choose.
    lengths : array (blocks, queries)
        Their lengths in the frame.
    cosines : array (bits + 1,)
        Cosine for each number of different bits.
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
    scores, best, found = np.empty(p, dtype=np.float32), np.empty(p, dtype=np.float32), np.empty(p, dtype=np.int64)
    for b in range(len(judges)):
        low, high, seen = ranges[b]
        for i in range(judges.shape[1]):
            estimate(judges[b, i], lengths[b, i], cosines, words[:seen], norms[:seen], offsets[:seen], scores[:seen])
            top = _bounds(scores[:seen])[1]
            _raise(best[:seen], scores[:seen], top, i == 0)
        for j in range(max(low, 0), min(high + 1, seen)):
            best[j] = -np.inf
        for j in range(seen):
            if first[j]:
                best[j] = -np.inf
        number = largest(best[:seen], count, found, False) if count else 0
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
