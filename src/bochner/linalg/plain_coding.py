"""The loops of `bochner.linalg.compiled` that decode attention, in NumPy; see there for what each does and its arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .engine import CACHE_BYTES, rows_per_tile


def append_codes(
    keys: np.ndarray, bias: np.ndarray, start: int, stop: int, scale: float, sides: Any, coded: Any
) -> None:
    """Write the codes of keys into the cache."""
    centers, turns, rows, query_centers = sides
    words, norms, offsets = coded
    y = np.repeat(math.sqrt(scale) * keys[:, :, start:stop], words.shape[1] // keys.shape[1], axis=1)
    inside = (y - centers[:, None]) @ turns  # (batch, code heads, n, d)
    norms[:, :, start:stop] = np.sqrt((inside**2).sum(axis=-1))
    words[:, :, start:stop] = _packed(inside @ rows.T > 0, words.shape[3])
    offsets[:, :, start:stop] = (y * query_centers[:, None]).sum(axis=-1) + bias[:, None, start:stop]


def _packed(signs: np.ndarray, n_words: int) -> np.ndarray:
    """Signs (..., bits) as words of 64 bits."""
    padded = np.zeros((*signs.shape[:-1], 64 * n_words), bool)
    padded[..., : signs.shape[-1]] = signs
    return np.packbits(padded, axis=-1, bitorder="little").view("<u8").astype(np.uint64)


def _estimated(own: np.ndarray, norm: np.ndarray, bits: int, coded: Any) -> np.ndarray:
    """Estimated scores (q, n) of queries with these codes (q, words) and lengths (q,)."""
    words, norms, offsets = coded
    cosines = np.sin(math.pi / 2 * (1 - 2 / bits * np.arange(bits + 1))).astype(np.float32)
    different = np.bitwise_count(own[:, None, 0] ^ words[:, 0])  # one word is the usual case
    if words.shape[1] > 1:
        different = np.bitwise_count(own[:, None] ^ words).sum(axis=-1)
    scores = cosines[different]
    scores *= norm[:, None]
    scores *= norms
    scores += offsets
    return np.asarray(scores, dtype=np.float32)


def _largest(scores: np.ndarray, count: int) -> np.ndarray:
    """Places (q, count) of the largest scores (q, n) of each query, or of all if there are no more."""
    n = scores.shape[1] if count else 0
    if n > count:
        return np.argpartition(scores, -count, axis=1)[:, -count:]
    return np.broadcast_to(np.arange(n), (len(scores), n))


def draw_keys(scores: np.ndarray, count: int, phase: float, places: np.ndarray, shifts: np.ndarray) -> int:
    """Draw keys in proportion to the root of the exponential of their scores."""
    there = scores > -np.inf
    if not there.any():
        return 0
    power = np.maximum((scores - scores.max()) * np.float32(0.5 / math.log(2)), np.float32(-126))
    power = np.where(there, power, np.float32(-126))  # so that no infinity is cast
    chances = np.where(there, ((power + np.float32(127)) * np.float32(1 << 23)).astype(np.int32), 0).view(np.float32)
    sums = np.cumsum(chances, dtype=np.float64)
    step = sums[-1] / count
    last = int(np.flatnonzero(chances > 0)[-1])
    found = np.minimum(np.searchsorted(sums, (phase + np.arange(count)) * step, side="right"), last)
    places[:count], shifts[:count] = found, np.log(step / chances[found])
    return count


def _choose(
    q: np.ndarray, keys: np.ndarray, estimates: np.ndarray, numbers: tuple[int, int, int], phases: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the keys that queries keep, and those that they draw: places, and what is added to their scores."""
    candidates, kept, sampled = numbers
    found = _largest(estimates, candidates)
    shifts = np.take_along_axis(estimates, found, axis=1)
    if found.shape[1] > kept:
        exact = np.matmul(keys[found], q[:, :, None])[..., 0]
        best = _largest(np.where(shifts > -np.inf, exact, -np.inf), kept)
        found, shifts = np.take_along_axis(found, best, axis=1), np.take_along_axis(shifts, best, axis=1)
    shifts = np.where(shifts > -np.inf, 0.0, -np.inf)
    if not sampled:
        return found, shifts
    np.put_along_axis(estimates, found, -np.inf, axis=1)
    drawn, added = np.zeros((len(q), sampled), np.int64), np.full((len(q), sampled), -np.inf)
    for i, scores in enumerate(estimates):
        draw_keys(scores, sampled, phases[i], drawn[i], added[i])
    return np.concatenate([found, drawn], axis=1), np.concatenate([shifts, added], axis=1)


def attend_coded(
    x: np.ndarray, y: np.ndarray, v: np.ndarray, there: np.ndarray, span: tuple[int, bool, bool], bits: int,
    own: Any, coded: Any, near: Any, numbers: tuple[int, int, int], phases: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Attention of all queries of one head of a sequence, each to its own keys; some queries at a time."""
    (offset, causal, windowed), (window, first), p = span, near, len(y)
    reach = np.arange(1 - window, 1 if causal else window) if windowed else np.arange(0)
    step = rows_per_tile(4 * max(p, (sum(numbers) + len(reach)) * x.shape[1]), CACHE_BYTES)
    for start in range(0, len(x) if p else 0, step):
        some, at = slice(start, start + step), offset + np.arange(start, min(start + step, len(x)))[:, None]
        far = (first <= at) | (not causal)
        if windowed:
            far &= (first <= at - window) | (first >= at + (1 if causal else window))
        places = np.concatenate([at + reach, np.where(far, first, p)], axis=1)  # p, or beyond the ends, where none is
        beside = (places >= 0) & (places < p)
        places = np.where(beside, places, 0)
        shifts = np.where(beside & there[places], 0.0, -np.inf)
        if numbers[0] + numbers[2]:
            seen = int(at[-1, 0]) + 1 if causal else p  # by the last of these queries
            scores = _estimated(own[0][some], own[1][some], bits, tuple(part[:seen] for part in coded))
            if causal:
                scores[np.arange(seen) > at] = -np.inf
            scores[np.nonzero(beside)[0], places[beside]] = -np.inf
            chosen, added = _choose(x[some], y, scores, numbers, phases[some])
            places, shifts = np.concatenate([places, chosen], axis=1), np.concatenate([shifts, added], axis=1)
        _attend(np.matmul(y[places], x[some, :, None])[..., 0] + shifts, v[places], out[some])


def decode_coded(
    q: np.ndarray, keys: np.ndarray, values: np.ndarray, bias: np.ndarray, n: int, heads: tuple[int, int], sides: Any,
    coded: Any, near: Any, counts: Any, phases: np.ndarray, scale: float, out: np.ndarray, sums: np.ndarray,
    used: np.ndarray,
) -> None:  # fmt: skip
    """Attention of one query per sequence and head to the keys of a cache."""
    (batch, H, _), (window, first), (candidates, kept, sampled) = q.shape, near, counts
    centers, turns, rows = sides
    words, norms, offsets = coded
    group, code_group, low = H // keys.shape[1], H // words.shape[1], max(n - window, 0)
    for b in range(batch):
        anchors = first[b][first[b] < low]
        close = low + np.flatnonzero(bias[b, low:n] == 0)
        for h in range(*heads):
            g, c = h // group, h // code_group
            places = np.concatenate([close, anchors])
            shifts = np.zeros(len(places))
            if candidates[h] + sampled[h] and low:
                inside = (math.sqrt(scale) * q[b, h] - centers[h]) @ turns[h]
                own = _packed(rows @ inside > 0, words.shape[3])
                held = words[b, c, :low], norms[b, c, :low], offsets[b, c, :low]
                estimates = _estimated(own[None], np.sqrt((inside**2).sum(keepdims=True)), len(rows), held)
                estimates[:, anchors] = -np.inf
                numbers = int(candidates[h]), int(kept[h]), int(sampled[h])
                chosen, added = _choose(q[b, h, None], keys[b, g], estimates, numbers, phases[b, h, None])
                there = added[0] > -np.inf
                places = np.concatenate([places, chosen[0, there]])
                shifts = np.concatenate([shifts, added[0, there]])
            used[b, h, : len(places)], used[b, h, len(places) :] = places, n
            scores = scale * (keys[b, g, places] @ q[b, h]) + shifts
            sums[b, h] = np.array(_attend(scores[None], values[b, g, places][None], out[b, h, None]))[:, 0]


def _attend(scores: np.ndarray, values: np.ndarray, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Softmax attention of queries (q,) with these scores (q, n) to their own values (q, n, e); zero where there are none.

    Returns the largest scores, and the sums of exponentials below them.
    """
    scores = scores.astype(np.float64)
    top = scores.max(axis=1, initial=-1e300)
    weights = np.exp(scores - top[:, None])
    total = weights.sum(axis=1)
    sums = np.matmul(weights[:, None].astype(values.dtype), values)[:, 0]
    out[:] = sums / np.where(total > 0, total, 1)[:, None]
    return top, total


def select_for_blocks(
    judges: np.ndarray, lengths: np.ndarray, bits: int, words: np.ndarray, norms: np.ndarray, offsets: np.ndarray,
    ranges: np.ndarray, first: np.ndarray, count: int, places: np.ndarray, phases: np.ndarray, drawn: np.ndarray,
    shifts: np.ndarray,
) -> None:  # fmt: skip
    """Keys for each block of queries of one head."""
    for b, (low, high, seen) in enumerate(ranges):
        held = words[:seen], norms[:seen], offsets[:seen]
        scores = _estimated(judges[b], lengths[b], bits, held)
        with np.errstate(invalid="ignore"):  # where no key is seen, none is chosen
            best = (scores - scores.max(axis=1, initial=-np.inf, keepdims=True)).max(axis=0, initial=-np.inf)
        best[max(low, 0) : min(high + 1, seen)] = -np.inf
        best[first[:seen]] = -np.inf
        found = _largest(best[None], count)[0]
        found = found[best[found] > -np.inf]
        places[b, : len(found)], places[b, len(found) :] = found, len(norms)
        best[found] = -np.inf
        if drawn.shape[1] and not draw_keys(best, drawn.shape[1], phases[b], drawn[b], shifts[b]):
            drawn[b], shifts[b] = len(norms), 0.0


def decode(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, there: np.ndarray, queries: Any, keys: Any, frame: Any, c: float,
    values: np.ndarray, shift: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Add keys to the sums, and write what queries see of them."""
    (batch, heads, _, _), nothing = q.shape, np.empty(0, q.dtype)
    group, added = heads // k.shape[1], k.shape[2] > 0
    for b in range(batch):
        for h in range(heads):
            if added and there[b]:
                key, value = k[b, h // group, 0], v[b, h // group, 0]
                _absorb(_logs(key, keys, frame, h, c), 0, value, values[b, h], shift[b, h, 0])
            log = queries[1][h, 0] + q[b, h, 0] @ queries[0][h]
            _read(nothing, v[b, h // group, :0], log, values[b, h], shift[b, h, 0], out[b, h, 0])


def _logs(x: np.ndarray, side: Any, frame: Any, h: int, c: float) -> np.ndarray:
    """Logarithms of the features of x, with the squared norm."""
    z = frame[1][h, 0] + x @ frame[0][h]
    return np.asarray(side[1][h, 0] + x @ side[0][h] + (z @ z) * z.dtype.type(c))


def _absorb(log: np.ndarray, norm: Any, v: np.ndarray, values: np.ndarray, shift: np.ndarray) -> None:
    """Add a key to the sums (m, e + 1) under their stabilisers (m,)."""
    log = log + norm
    largest = np.maximum(shift, log)
    with np.errstate(invalid="ignore"):
        values *= np.where(log > shift, np.exp(shift - largest), 1)[:, None]
    weight = np.exp(log - largest)
    shift[:] = largest
    values[:, :-1] += weight[:, None] * v
    values[:, -1] += weight


def _read(
    scores: np.ndarray, near_v: np.ndarray, log: np.ndarray, values: np.ndarray, shift: np.ndarray, out: np.ndarray
) -> None:
    """What a query sees of near keys and of the sums; zero if there is no key."""
    log = log + shift
    top = max(log.max(), scores.max(initial=-np.inf))
    with np.errstate(invalid="ignore"):
        near, far = np.exp(scores - top), np.exp(log - top)
    sums = far @ values
    sums[:-1] += near @ near_v
    sums[-1] += near.sum()
    out[:] = sums[:-1] / sums[-1] if sums[-1] > 0 else 0


def decode_near(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, there: np.ndarray, sides: Any, frames: Any, c: float, scale: float,
    near: tuple[int, int], values: np.ndarray, shift: np.ndarray, near_k: np.ndarray, near_v: np.ndarray,
    bias: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Decode with exact weights for a window and the first keys."""
    batch, heads, slots = bias.shape
    group, (window, anchors), last = heads // k.shape[1], near, slots - 1

    def leave(place: int, b: int, h: int) -> None:
        """Add the key of a slot, if there is one, to the sums, and empty the slot."""
        if bias[b, h, place] > -np.inf:
            log = _logs(near_k[b, h, place], sides[1], frames[1], h, c)
            _absorb(log, bias[b, h, place], near_v[b, h, place], values[b, h], shift[b, h, 0])
            bias[b, h, place] = -np.inf

    for b in range(batch):
        for h in range(heads):
            keys, held, added, x = near_k[b, h], near_v[b, h], bias[b, h], q[b, h, 0]
            place = last
            if there[b]:
                empty = np.flatnonzero(added[:anchors] == -np.inf)
                place = int(empty[0]) if len(empty) else last
                keys[place], held[place], added[place] = k[b, h // group, 0], v[b, h // group, 0], 0
            if place != last or not there[b]:
                added[last] = -np.inf  # nothing new in the window
            if not window:
                leave(last, b, h)
            scores = np.where(added > -np.inf, q.dtype.type(scale) * (keys @ x) + added, -np.inf).astype(q.dtype)
            _read(scores, held, _logs(x, sides[0], frames[0], h, c), values[b, h], shift[b, h, 0], out[b, h, 0])
            if window:
                leave(anchors, b, h)
                for part in (keys, held, added):
                    part[anchors:last] = part[anchors + 1 : last + 1].copy()
                added[last] = -np.inf
