"""The largest of many scores, and draws in proportion to them: loops of one query over all keys, without branches.

Which of 64 scores reach a bound is one word of bits, so that the few that do are found without a look at the others.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .jit import njit

_SAMPLED = 2048  # scores from which a bound comes from some of them
_SAMPLE = 1024  # about as many
_PIECE = 64  # scores of a word of bits
_STRIP = 16  # keys whose chances are summed at once, so that a draw looks into few of them
_HALVINGS = 48  # of the range of scores, until no float32 lies between


@intrinsic
def _reached(typing_context: Any, scores: Any, start: Any, bound: Any) -> Any:
    """Word of 64 bits: which of the 64 scores from a place on are at least the bound; all of them must exist."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        many, number = ir.VectorType(ir.FloatType(), _PIECE), ir.IntType(32)
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), many.as_pointer())
        nothing = ir.Constant(many, ir.Undefined)
        one = builder.insert_element(nothing, arguments[2], ir.Constant(number, 0))
        bounds = builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(number, _PIECE), [0] * _PIECE))
        found = builder.fcmp_ordered(">=", builder.load(place, align=4), bounds)
        return builder.bitcast(found, ir.IntType(_PIECE))

    return types.uint64(scores, types.int64, types.float32), generate


@intrinsic
def _lowest(typing_context: Any, x: Any) -> Any:
    """Place of the lowest bit that is set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def bounds_of(scores: np.ndarray) -> tuple[Any, Any]:
    """The least and the largest score that are not minus infinity, in a loop without branches."""
    low, high = np.float32(np.inf), np.float32(-np.inf)
    for j in range(len(scores)):
        score = scores[j]
        low = min(low, score if score > -np.inf else np.float32(np.inf))
        high = max(high, score)
    return low, high


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc"})
def _number(scores: np.ndarray, bound: Any) -> Any:
    """How many scores reach a bound; counted in float32, which vectorises and is exact below 2^24."""
    count = np.float32(0)
    for j in range(len(scores)):
        count += np.float32(1) if scores[j] >= bound else np.float32(0)
    return count


@njit(cache=True, nogil=True)
def _bound(scores: np.ndarray, count: int) -> Any:
    """The largest number that ``count`` scores reach, more only where some are equal; minus infinity if there are fewer."""
    low, high = bounds_of(scores)
    if not high > -np.inf or _number(scores, low) < count:
        return np.float32(-np.inf)
    for _ in range(_HALVINGS):
        middle = np.float32(low + np.float32(0.5) * (high - low))
        if middle <= low or middle > high:
            break
        found = _number(scores, middle)
        if found >= count:
            low = middle
            if found == count:
                return low
        else:
            high = middle
    return high if _number(scores, high) >= count else low


@njit(cache=True, nogil=True)
def _collect(scores: np.ndarray, bound: Any, places: np.ndarray) -> int:
    """Write the places of the scores that reach a bound, in order; return how many there are."""
    found, whole = 0, len(scores) // _PIECE * _PIECE
    for start in range(0, whole, _PIECE):
        word = _reached(scores, start, bound)
        while word:
            places[found] = start + _lowest(word)
            word &= word - np.uint64(1)
            found += 1
    for j in range(whole, len(scores)):
        if scores[j] >= bound:
            places[found] = j
            found += 1
    return found


@njit(cache=True, nogil=True)
def largest(scores: np.ndarray, count: int, places: np.ndarray, room: np.ndarray) -> int:
    """Write the places of the largest scores that are not minus infinity, in order; return how many there are.

    Of equal scores at the end, the first ones are taken.

    Parameters
    ----------
    scores : float32 array (n,), contiguous
        Scores.
    count : int
        How many to find.
    places : int array (n,)
        Result.
    room : float32 array (n,) or longer
        Room.
    """
    n, least = len(scores), np.float32(-3.4e38)
    if not count or not n:
        return 0
    if n <= _SAMPLED or 4 * count >= n:
        found = _collect(scores, max(_bound(scores, count), least), places)
    else:  # a bound from a sample, which somewhat more scores reach than are wanted
        step = n // _SAMPLE
        sample = room[: (n + step - 1) // step]
        for i in range(len(sample)):
            sample[i] = scores[i * step]
        expected = count / step
        found = _collect(scores, max(_bound(sample, int(expected + 2.5 * math.sqrt(expected) + 2)), least), places)
        if found < count:  # the sample misled, or there are not so many
            found = _collect(scores, max(_bound(scores, count), least), places)
    if found <= count:
        return int(found)
    own = room[:found]
    for i in range(found):
        own[i] = scores[places[i]]
    bound = _bound(own, count)
    surplus, kept = int(_number(own, bound)) - count, 0
    for i in range(found - 1, -1, -1):  # the last ones of those that equal the bound are left out
        if surplus and own[i] == bound:
            own[i] = -np.inf
            surplus -= 1
    for i in range(found):
        places[kept] = places[i]
        if own[i] >= bound:
            kept += 1
    return kept


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def _chances(scores: np.ndarray, high: Any, bits: np.ndarray) -> None:
    """Chances of keys, up to a factor, as the bits of floats.

    See `bochner.nn._coded_remainder`: a line between powers of two in place of the exponential, which needs no branch.
    """
    half, one, most = np.float32(0.5 / math.log(2)), np.float32(1 << 23), np.float32(126)
    for j in range(len(scores)):
        power = max((scores[j] - high) * half, -most)
        chance = np.int32((power + (most + np.float32(1))) * one)
        bits[j] = chance if scores[j] > -np.inf else np.int32(0)


@njit(cache=True, nogil=True, fastmath={"nsz", "reassoc"})
def _sums(chances: np.ndarray, sums: np.ndarray) -> float:
    """Sums over strips, of which only the last one may be shorter; return the sum of all."""
    whole, total = len(chances) // _STRIP, 0.0
    for i in range(whole):
        part = np.float32(0)
        for j in range(_STRIP):
            part += chances[i * _STRIP + j]
        sums[i] = part
    if whole < len(sums):
        sums[whole] = 0.0
        for j in range(whole * _STRIP, len(chances)):
            sums[whole] += chances[j]
    for i in range(len(sums)):
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
    high = bounds_of(scores)[1] if n else np.float32(-np.inf)
    if not high > -np.inf:
        return 0
    bits, sums = np.empty(n, dtype=np.int32), np.empty(-(-n // _STRIP), dtype=np.float64)
    chances = bits.view(np.float32)
    _chances(scores, high, bits)
    step = _sums(chances, sums) / count
    found, before, goal = 0, 0.0, phase * step
    for i in range(len(sums)):
        until = before + sums[i]
        if until > goal:
            for j in range(i * _STRIP, min((i + 1) * _STRIP, n)):
                before += chances[j]
                # a step that rounding moves beyond its strip is taken by the next key that has a chance
                while before > goal and chances[j] > 0 and found < count:
                    places[found], shifts[found] = j, math.log(step / chances[j])
                    found += 1
                    goal = (phase + found) * step
        before = until
    last = n - 1
    while chances[last] == 0:
        last -= 1
    while found < count:  # the last step, lost to rounding
        places[found], shifts[found] = last, math.log(step / chances[last])
        found += 1
    return found
