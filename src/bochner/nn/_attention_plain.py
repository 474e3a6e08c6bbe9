r"""Linear attention in plain torch operations, whose number does not depend on the length.

All chunks of the sequence are computed at once.  A causal query sees the keys before its own chunk through running sums,

    P_b = sum_{j before chunk b} phi_k(y_j) [v_j, 1],

and those of its chunk one by one.  Values carry a column of ones, so that numerator and denominator are one sum.

**The stabiliser.**  Features are powers of two: logarithms in this engine are to base two.  Logarithms of keys are reduced
by a maximum c_m for each feature m, which is added to those of the queries; these are reduced by their own maximum, the
*scale* of the row.  A query must not see the future, not even through c: a later key that is larger by many orders of
magnitude would make everything that an earlier query sees vanish.  So every product has the maxima of keys that all its
queries see:

- Sums over chunks are under running maxima.  The factors that lead from one maximum to a later one are at most one, and
  form a triangular matrix for each feature; in two levels, groups of chunks and chunks of a group, these stay small.
- Within a chunk of c positions, query p sees key j < p.  The highest bit in which p and j differ says which half of
  which block each of them is in: p in the second, j in the first half, so all queries of the second half see all keys of the
  first.  The log2(c) sizes of blocks are an axis of the tensors, and each pair (p, j) is in exactly one of them.

Packed sequences (`bochner.nn._packed`) begin at chunks of their own, behind an empty one, where maxima and sums start anew.

Each part has its own scale for each row, and parts are added after their scales are equal.  Nothing is ever subtracted
from a sum, nothing depends on numbers in tensors, and no tensor is read by the host.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..approximation.log_features import NOTHING, KeySums, LogFeatures
from ._tensor_features import LOG2E, BaseFeatures, HybridTensorFeatures

NONPOSITIVE = ("warn", "raise", "nan")
ENGINES = ("auto", "plain")

_CHUNK = 32
"""Positions of a chunk: with more, products within it cost more; with fewer, the sums of chunks take more memory."""
_GROUP = 16
"""Chunks whose sums are added in one product, at least; the square root of their number where there are many."""

_PRODUCTS = 1 << 19
"""Features of a hybrid that are made at a time: two megabytes, of which both sides of a product stay in the cache."""

_REMEDY = (
    "use a positive map (OptimalPositive, Positive, Hyperbolic with Orthogonal or Simplex rows), "
    "more projections, or smaller queries and keys"
)


class DenominatorWarning(UserWarning):
    """Warning that some rows of attention have a denominator that is not positive: their output is meaningless."""


class Part(NamedTuple):
    """What queries see of some of the keys: numerators and denominators, and the logarithm of the factor they lack."""

    sums: Tensor  # (..., Lq, e + 1): sums of weights times values, and the sums of weights as the last column
    # (..., Lq, 1): logarithm to base two of the factor of each row; below `NOTHING / 2` where a query sees none of
    # these keys
    scale: Tensor


def merged(parts: Sequence[Part]) -> Part:
    """Numerators and denominators over all keys of parts that share no key."""
    if len(parts) == 1:
        return parts[0]
    scales = torch.broadcast_tensors(*(part.scale for part in parts))
    top = torch.stack([scale.detach() for scale in scales]).amax(dim=0)
    sums = parts[0].sums * (parts[0].scale - top).exp2()
    for part in parts[1:]:
        sums = torch.addcmul(sums, part.sums, (part.scale - top).exp2())
    return Part(sums, top)


def with_ones(v: Tensor) -> Tensor:
    """Values and a column of ones, whose sums are the denominators."""
    return pad(v, (0, 1), value=1.0)


def to_base_two(sums: KeySums | None) -> KeySums | None:
    """Sums of a state, whose stabiliser is to base e, as this engine takes them."""
    return None if sums is None else KeySums(sums.values, _rescaled(sums.shift, LOG2E))


def to_base_e(sums: KeySums | None) -> KeySums | None:
    """Sums of this engine as a state holds them."""
    return None if sums is None else KeySums(sums.values, _rescaled(sums.shift, 1 / LOG2E))


def _rescaled(shift: Tensor, factor: float) -> Tensor:
    return torch.where(shift > NOTHING, shift * factor, NOTHING)


def everything(
    queries: LogFeatures, keys: LogFeatures | None, values: Tensor, sums: KeySums | None
) -> tuple[Part, KeySums]:
    """What queries see of all keys, (..., p, e + 1) with ones, and of the sums before them; and the sums of both.

    Without keys there must be sums.
    """
    if keys is not None and keys.log.shape[-2]:
        sums = absorbed(keys, values, sums)
    elif sums is None:
        width = queries.log.shape[-1]
        lead = values.shape[:-2]
        shift = values.new_full((*lead, 1, width), NOTHING)
        sums = KeySums(values.new_zeros(*lead, width, values.shape[-1]), shift)
    rows, scale = query_values(queries.log + sums.shift, queries.mantissa)
    return _part(rows @ sums.values, scale), sums


def everything_by_bases(
    features: HybridTensorFeatures,
    queries: tuple[Tensor, BaseFeatures],
    keys: tuple[Tensor, BaseFeatures],
    root: float | Tensor,
    values: Tensor,
    *,
    tiled: bool,
) -> tuple[Part, KeySums]:
    """What queries see of all keys by features of a hybrid, and the sums, as in `everything`.

    Products with a base share its exponentials, and the maxima of keys and queries: these are computed at the width of the
    bases, a ninth of that of all features for eight signs.

    Parameters
    ----------
    features : HybridTensorFeatures
        The features.
    queries, keys : pairs of Tensor (..., n, d) and BaseFeatures
        Rows, and their features at ``root`` times the rows.
    root : float or Tensor
        Root of the scale.
    values : Tensor (..., p, e + 1)
        Values with ones.
    tiled : bool
        Whether products are made for some rows at a time, which stay in the cache of a processor.
    """
    (q, of_queries), (k, of_keys) = queries, keys
    shifts = [log.detach().amax(dim=-2, keepdim=True).clamp(min=NOTHING) for log in of_keys.logs]
    columns = [x * (log - c).exp2() for x, log, c in zip(*of_keys, shifts, strict=True)]
    room = _PRODUCTS // (features.width * math.prod(k.shape[:-2])) if tiled else 0
    sums = values.new_zeros(())
    for at in _tiles(k.shape[-2], room):
        added = (
            features.products([x[..., at, :] for x in columns], k[..., at, :], root, key=True).mT @ values[..., at, :]
        )
        sums = sums + added
    logs = [log + c for log, c in zip(of_queries.logs, shifts, strict=True)]
    top = torch.cat([log.detach().amax(dim=-1, keepdim=True) for log in logs], dim=-1).amax(dim=-1, keepdim=True)
    rows = [x * (log - top).exp2() for x, log in zip(of_queries.mantissas, logs, strict=True)]
    seen = [
        features.products([x[..., at, :] for x in rows], q[..., at, :], root, key=False) @ sums
        for at in _tiles(q.shape[-2], room)
    ]
    part = _part(torch.cat(seen, dim=-2), top)
    return part, KeySums(sums, features.hybrid.repeated(shifts))


def _tiles(n: int, rows: int) -> list[slice]:
    """Rows in pieces of that many, of 64 at least; all at once where it is none."""
    if not rows:
        return [slice(None)]
    step = max(rows, 64)
    return [slice(start, start + step) for start in range(0, max(n, 1), step)]


def absorbed(keys: LogFeatures, values: Tensor, sums: KeySums | None) -> KeySums:
    """Sums over some keys, (..., p, e + 1) with ones, and over those before them."""
    shift = keys.log.detach().amax(dim=-2, keepdim=True).clamp(min=NOTHING)
    if sums is None:
        return KeySums(signed(keys.log.sub_(shift).exp2_(), keys.mantissa).mT @ values, shift)
    shift = torch.maximum(shift, sums.shift)
    added = signed((keys.log - shift).exp2_(), keys.mantissa).mT @ values
    return KeySums(added + sums.values * (sums.shift - shift).exp2_().mT, shift)


def prefixes(
    queries: LogFeatures,
    keys: LogFeatures,
    values: Tensor,
    lengths: Tensor,
    sums: KeySums | None,
    *,
    chunk: int | None = None,
    keep: bool = False,
) -> tuple[Part, KeySums | None]:
    """What query i sees of the first ``lengths[..., i]`` keys, in any order; and the sums with all keys, if they are kept.

    Queries and keys are put into one sequence, each query behind the keys that it sees, and attention is causal there.
    """
    p, n = keys.log.shape[-2], lengths.shape[-1]
    ordered, order = lengths.sort(dim=-1, stable=True)
    rank = order.argsort(dim=-1)
    places = torch.arange(p, device=lengths.device).expand(*lengths.shape[:-1], p).contiguous()
    of_keys = places + torch.searchsorted(ordered, places.to(ordered.dtype), right=True)
    of_queries = lengths + rank

    def laid_out(x: Tensor, positions: Tensor, fill: float) -> Tensor:
        if positions.ndim > 1:  # a row of positions for each member of the first axis
            x = x.expand(len(positions), *x.shape[1:])
        index = _along(positions, x)
        return x.new_full((*x.shape[:-2], n + p, x.shape[-1]), fill).scatter(-2, index, x)

    mantissas = [None if x.mantissa is None else x.mantissa.expand_as(x.log) for x in (queries, keys)]
    rows = LogFeatures(
        None if mantissas[0] is None else laid_out(mantissas[0], of_queries, 0.0),
        laid_out(queries.log, of_queries, 0.0),
    )
    columns = LogFeatures(
        None if mantissas[1] is None else laid_out(mantissas[1], of_keys, 0.0),
        laid_out(keys.log, of_keys, 2 * NOTHING),
    )
    # a key that stands at position t is seen by the queries behind it: as if t were its own query
    part, sums = causal(rows, columns, laid_out(values, of_keys, 0.0), sums, lag=1, chunk=chunk, keep=keep)
    return Part(*(x.gather(-2, _along(of_queries, x)) for x in part)), sums


def _along(positions: Tensor, x: Tensor) -> Tensor:
    """Positions (n,) or (members, n) as an index of rows of a tensor (..., L, width)."""
    index = positions if positions.ndim == 1 else positions.view(len(positions), *(1,) * (x.ndim - 3), -1)
    return index[..., None].expand(*x.shape[:-2], positions.shape[-1], x.shape[-1])


def causal(
    queries: LogFeatures,
    keys: LogFeatures,
    values: Tensor,
    sums: KeySums | None = None,
    *,
    lag: int = 0,
    group: int = 1,
    chunk: int | None = None,
    keep: bool = False,
) -> tuple[Part, KeySums | None]:
    """What the query of position i sees of keys j up to ``i - lag``, and of the sums before them.

    Parameters
    ----------
    queries, keys : LogFeatures
        Of ``group`` queries of each of n positions, one after the other, and of p keys, at most n, or ``n - lag + 1``.
    values : Tensor (..., p, e + 1)
        Values with a column of ones.
    sums : KeySums, optional
        Over keys that all queries see.
    lag : int
        Distance of the nearest key that is seen.
    group : int
        Queries of each position.
    chunk : int, optional
        Positions of a chunk; the next power of two is taken.
    keep : bool
        Whether to return the sums with all keys.
    """
    n, p = queries.log.shape[-2] // group, keys.log.shape[-2]
    # a query stands behind the keys that it sees, strictly: queries are moved by one, or keys by the rest of the lag
    ahead, behind = (1, 0) if lag == 0 else (0, lag - 1)
    size = chunk_size(chunk, n + ahead)
    count = chunk_count(n + ahead, size, more=1) * size  # with an empty chunk before the first one

    def of_queries(x: Tensor) -> Tensor:
        return pieces(x, ahead * group, (count - ahead - n) * group, size * group)

    def of_keys(x: Tensor, value: float) -> Tensor:
        return pieces(x, size + behind, count - behind - p, size, value)

    part, after = by_chunks(queries, keys, values, (of_queries, of_keys), size, group, sums=sums)
    return Part(*(rows_of(x.flatten(-3, -2), ahead * group, n * group) for x in part)), after if keep else None


def by_chunks(
    queries: LogFeatures,
    keys: LogFeatures,
    values: Tensor,
    laid: tuple[Callable[[Tensor], Tensor], Callable[[Tensor, float], Tensor]],
    size: int,
    group: int = 1,
    *,
    sums: KeySums | None = None,
    segments: Tensor | None = None,
) -> tuple[Part, KeySums]:
    """What queries see of the keys before them, (..., b, group * size, ...), and the sums over all keys.

    Parameters
    ----------
    queries, keys : LogFeatures
    values : Tensor (..., p, e + 1)
    laid : pair of callables
        Rows of queries as b chunks, and those of keys, with a value for places without, as b + 1, the first one empty.
    size, group : int
        Positions of a chunk, queries of each.
    sums : KeySums, optional
        Over keys that all queries see; they take the place of the empty chunk.
    segments : Tensor (b + 1,) of int64, or None
        Number of the sequence that a chunk belongs to, which does not decrease; None where there is only one.
    """
    of_queries, of_keys = laid
    sign_q, sign_k = (None if x.mantissa is None else x.mantissa.expand_as(x.log) for x in (queries, keys))
    sign_q = None if sign_q is None else of_queries(sign_q)
    sign_k = None if sign_k is None else of_keys(sign_k, 0.0)
    k, v = of_keys(keys.log, 2 * NOTHING), of_keys(values, 0.0)
    own_k, own_sign, own_v = (None if x is None else x[..., 1:, :, :] for x in (k, sign_k, v))
    assert own_k is not None and own_v is not None
    if sums is None:
        added, shift, _ = chunk_sums(k, sign_k, v, segments)
    else:
        added, shift, _ = chunk_sums(own_k, own_sign, own_v, sums=sums)
    before = running(added, shift, own=True, segments=segments)
    start = KeySums(before[..., :-1, :, :], shift[..., :-1, :, :])
    part = _with_own_chunk(start, (of_queries(queries.log), sign_q), (own_k, own_sign), own_v, size, group)
    return part, KeySums(before[..., -1, :, :], shift[..., -1, :, :])


def chunk_sums(
    k: Tensor, sign: Tensor | None, v: Tensor, segments: Tensor | None = None, *, sums: KeySums | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over the keys of each chunk, their running maxima, and features of keys under these.

    Parameters
    ----------
    k : Tensor (..., b, c, m)
        Logarithms of keys.
    sign : Tensor (..., b, c, m) or None
        Their signs.
    v : Tensor (..., b, c, e + 1)
        Values with a column of ones.
    segments : Tensor (b,) of int64, or None
        Sequences that the chunks belong to: maxima start anew with each.
    sums : KeySums, optional
        Sums before all of these, which are then the first chunk of the result.

    Returns
    -------
    added, shift, columns : Tensor (..., b, m, e + 1), (..., b, 1, m) and (..., b, c, m)
        With one more chunk in the first two where there are sums.
    """
    tops = k.detach().amax(dim=-2, keepdim=True)
    if sums is None:
        shift = running_maxima(tops, segments)
        columns = signed((k - shift).exp2_(), sign)
        return columns.mT @ v, shift, columns
    lead = torch.broadcast_shapes(k.shape[:-3], v.shape[:-3], sums.values.shape[:-2])
    shift = torch.cat([_as_chunk(sums.shift.detach(), lead), tops.expand(*lead, *tops.shape[-3:])], dim=-3)
    shift = running_maxima(shift)
    columns = signed((k - shift[..., 1:, :, :]).exp2_(), sign)
    return torch.cat([_as_chunk(sums.values, lead), columns.mT @ v], dim=-3), shift, columns


def _as_chunk(x: Tensor, lead: Sequence[int]) -> Tensor:
    return x.unsqueeze(-3).expand(*lead, 1, *x.shape[-2:])


def running_maxima(tops: Tensor, segments: Tensor | None = None) -> Tensor:
    """Maxima over the chunks up to each, (..., b, 1, m), of its own sequence where there are several.

    The bits of a number, those behind the sign turned over where it is negative, are an integer in the same order.  So
    maxima start anew where the number of the sequence, which does not decrease, is in the bits above.
    """
    if segments is None:
        return tops.cummax(dim=-3).values
    above = (segments << 32)[:, None, None]
    # no number may be far above its maximum, as those of keys that are hidden would be after rounding
    bits = _ordered(tops.clamp(min=NOTHING).float().view(torch.int32)).long() + above
    return _ordered((bits.cummax(dim=-3).values - above).int()).view(torch.float32).to(tops.dtype)


def _ordered(bits: Tensor) -> Tensor:
    """Bits of numbers in single precision as integers in the same order, and back."""
    return torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


def is_symbol(length: object) -> bool:
    """Whether a length stands for any, as in graphs that hold for all lengths; torch's annotations call both ``int``."""
    return isinstance(length, torch.SymInt)


def chunk_size(chunk: int | None, length: int) -> int:
    """Positions of a chunk, a power of two, and not far beyond the length where that is known."""
    size = _CHUNK if chunk is None else chunk
    if not is_symbol(length):
        size = min(size, length)
    return 1 << max(int(size) - 1, 1).bit_length()


def padded(x: Tensor, sides: tuple[int, ...], value: float = 0.0) -> Tensor:
    """A tensor with more of this value around it, or itself where there is nothing to add."""
    if not any(is_symbol(side) or side for side in sides):
        return x
    return pad(x, sides, value=value)


def pieces(x: Tensor, before: int, after: int, size: int, value: float = 0.0) -> Tensor:
    """Rows with that many more before and after them, whole pieces (..., pieces, size, width)."""
    return in_pieces(padded(x, (0, 0, before, after), value), size)


def in_pieces(x: Tensor, size: int) -> Tensor:
    """Rows (..., L, width) as pieces, (..., L / size, size, width); by places where a graph holds for any length."""
    if not is_symbol(x.shape[-2]):
        whole: Tensor = x.unflatten(-2, (-1, size))
        return whole
    starts = torch.arange(x.shape[-2] // size, device=x.device)[:, None] * size
    return x[..., starts + torch.arange(size, device=x.device), :]


def rows_of(x: Tensor, start: int, count: int) -> Tensor:
    """Rows of a tensor (..., L, width); graphs for any length have them by places, since slices compare lengths."""
    if is_symbol(count):
        return x.index_select(-2, torch.arange(start, start + count, device=x.device))
    return x[..., start : start + count, :]


def count_of(length: int, size: int) -> int:
    """Number of pieces of a length; in graphs for any length there is one to spare, so that it is never one."""
    return length // size + 2 if is_symbol(length) else -(-length // size)


def chunk_count(length: int, size: int, more: int = 0) -> int:
    """Number of chunks of a length; with that many ``more`` they are whole groups, as `running` needs them."""
    if is_symbol(length):  # at least two groups, since graphs for any length have no axis that may be one
        return (length // (size * _GROUP) + 2) * _GROUP - more
    groups, each = _grouping(count_of(length, size) + more)
    return groups * each - more


def _grouping(chunks: int) -> tuple[int, int]:
    """Number of groups, and of the chunks of each, that hold so many chunks with few to spare."""
    if is_symbol(chunks):
        return chunks // _GROUP, _GROUP
    groups = -(-chunks // max(_GROUP, math.isqrt(chunks)))
    return groups, -(-chunks // groups)


def running(added: Tensor, tops: Tensor, *, own: bool, segments: Tensor | None = None) -> Tensor:
    """Sums (..., b, m, e + 1) over the chunks before each, and over its own where that is asked for, under the same maxima.

    Parameters
    ----------
    added : Tensor (..., b, m, e + 1)
        Sums over the keys of each chunk, under the maxima.
    tops : Tensor (..., b, 1, m)
        Running maxima over the chunks up to each, which have no gradient.
    own : bool
        Whether a chunk is counted in its own sum.
    segments : Tensor (b,) of int64, or None
        Sequences that the chunks belong to: only those of the same one are added.
    """
    b = added.shape[-3]
    groups, size = _grouping(b)
    room = groups * size - b if not is_symbol(b) else 0
    logs = padded(tops.squeeze(-2).mT.contiguous(), (0, room), -NOTHING)[..., None]
    logs = in_pieces(logs, size).squeeze(-1)  # (..., m, groups, size)
    values = in_pieces(padded(added, (0, 0, 0, 0, 0, room)).transpose(-3, -2).contiguous(), size)
    ends = logs[..., -1]
    # factors from chunk j to the later chunk i of a group, and from the end of a group to chunk i of a later one
    inside = logs[..., None, :] - logs[..., :, None]  # (..., m, groups, i, j)
    across = ends[..., None, None, :] - logs[..., None]  # (..., m, groups, i, earlier groups)
    hidden = _not_earlier(groups, added.device)
    if segments is not None:
        of = padded(segments, (0, room), -1).view(groups, size)
        inside = inside.masked_fill(of[:, None, :] != of[:, :, None], -math.inf)
        hidden = hidden | (of[:, -1] != of[..., None])
    within = inside.exp2_().tril(0 if own else -1) @ values
    last = within[..., -1, :] if own else within[..., -1, :] + values[..., -1, :]
    across = across.masked_fill_(hidden, -math.inf).exp2_()
    if is_symbol(b):  # one product of all would ask for the number of groups
        carried = torch.stack([x.contiguous() @ last for x in across.unbind(-2)], dim=-2)
        found = (within + carried).flatten(-3, -2)
    else:
        found = _with_product(within.flatten(-3, -2), across.flatten(-3, -2), last)  # (..., m, groups * i, e + 1)
    return rows_of(found, 0, b).transpose(-3, -2)


def _with_product(added: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """A batched product and what is added to it, in one operation where all leading axes are the same."""
    lead = added.shape[:-2]
    if not lead or any(is_symbol(axis) for axis in lead) or any(z.shape[:-2] != lead for z in (x, y)):
        return added + x @ y
    return torch.baddbmm(*(z.flatten(0, -3) for z in (added, x, y))).view(added.shape)


def _not_earlier(groups: int, device: torch.device) -> Tensor:
    """Whether the second group is not before the first, (groups, 1, groups)."""

    def make() -> tuple[Tensor]:
        place = torch.arange(groups, device=device)
        return (place >= place[:, None, None],)

    return make()[0] if is_symbol(groups) else table(("groups", groups, device), make)[0]


def _with_own_chunk(
    start: KeySums,
    queries: tuple[Tensor, Tensor | None],
    keys: tuple[Tensor, Tensor | None],
    v: Tensor,
    size: int,
    group: int,
) -> Part:
    """What queries see of the chunks before theirs, and of the keys before them in their own chunk."""
    levels, half, rows = size.bit_length() - 1, size // 2, size * group
    places = _places(size, group, v.device)
    (q, sign_q), (k, sign_k) = queries, keys
    k = k.index_select(-2, places.keys)
    tops = [start.shift.expand(*k.shape[:-2], 1, -1)]  # of all keys before, then of each block of keys
    for level in range(levels):
        own = k[..., level * half : (level + 1) * half, :].detach()
        tops.append(own if not level else own.unflatten(-2, (-1, 1 << level)).amax(dim=-2))
    top = torch.cat(tops, dim=-2)
    columns = signed((k - top.index_select(-2, places.key_tops)).exp2_(), _at(sign_k, places.keys))
    features, scale = query_values(
        q.index_select(-2, places.queries) + top.index_select(-2, places.query_tops), _at(sign_q, places.queries)
    )
    by_level = features[..., rows:, :].unflatten(-2, (levels, -1)), columns.unflatten(-2, (levels, -1)).mT
    if is_symbol(k.shape[-3]):  # a product over chunks and levels would ask for the number of chunks
        product = torch.stack([x @ y for x, y in zip(*(z.unbind(-3) for z in by_level), strict=True)], dim=-3)
    else:
        product = by_level[0] @ by_level[1]
    weights = product.flatten(-3).index_select(-1, places.pairs).unflatten(-1, (rows, size))
    scales = scale.squeeze(-1).index_select(-1, places.scales).unflatten(-1, (rows, size + 1)) + places.hidden
    highest = scales.amax(dim=-1, keepdim=True)
    factors = (scales - highest).exp2_()
    far = (features[..., :rows, :] * factors[..., :1]) @ start.values
    return _part(far + (weights * factors[..., 1:]) @ v, highest)


def _at(x: Tensor | None, rows: Tensor) -> Tensor | None:
    return None if x is None else x.index_select(-2, rows)


class _Places(NamedTuple):
    """Where queries and keys of a chunk are found again, level by level, and pairs of them in the product of all levels.

    Queries come first in their order, for the keys before the chunk, and then level by level.
    """

    queries: Tensor
    query_tops: Tensor
    keys: Tensor
    key_tops: Tensor
    pairs: Tensor
    scales: Tensor
    hidden: Tensor


_tables: dict[tuple[object, ...], tuple[Tensor, ...]] = {}


def table(place: tuple[object, ...], make: Callable[[], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Tensors that depend on sizes alone, made once: making them takes as long as other steps, a copy to a device longer."""
    if place in _tables:
        return _tables[place]
    if torch.compiler.is_compiling():
        return make()
    with torch.inference_mode(False):  # later calls may need them for gradients
        made = make()
    if all(type(x) is Tensor for x in made):  # no tensors of a tracer
        _tables[place] = made
    return made


def _places(size: int, group: int, device: torch.device) -> _Places:
    """The places of a chunk."""
    return _Places(*table(("places", size, group, device), lambda: _made_places(size, group, device)))


def _made_places(size: int, group: int, device: torch.device) -> _Places:
    levels, half = size.bit_length() - 1, size // 2
    r, level = torch.arange(half, device=device), torch.arange(levels, device=device)[:, None]
    first = (r >> level << (level + 1)) + (r & ((1 << level) - 1))  # (levels, half): positions in the first halves
    blocks = torch.tensor([1 + sum(half >> k for k in range(level)) for level in range(levels)], device=device)
    tops = (
        blocks[:, None] + (r >> level)
    ).flatten()  # row of the maximum of a block; the first is that before the chunk
    heads, whole = torch.arange(group, device=device), torch.arange(size * group, device=device)
    queries = (first + (1 << level)).flatten()[:, None] * group + heads
    p, j = torch.arange(size, device=device)[:, None], torch.arange(size, device=device)
    seen = j < p
    bit = sum(((p ^ j) >= (1 << k)).long() for k in range(1, levels))  # the highest bit in which they differ
    bit = torch.where(seen, bit, 0)
    row, column = ((x >> (bit + 1) << bit) + (x & ((1 << bit) - 1)) for x in (p, j))
    rows = (bit * half + row)[:, None, :] * group + heads[:, None]  # (size, group, size)
    pairs, hidden = rows * half + column[:, None, :], torch.where(seen, 0.0, -math.inf)[:, None, :]
    rows, pairs = (torch.where(seen[:, None, :], x, 0).flatten(0, 1) for x in (rows, pairs))
    return _Places(
        torch.cat([whole, queries.flatten()]),
        torch.cat([torch.zeros_like(whole), tops.repeat_interleave(group)]),
        first.flatten(),
        tops,
        pairs.flatten(),
        torch.cat([whole[:, None], size * group + rows], dim=1).flatten(),
        pad(hidden.expand(-1, group, -1).flatten(0, 1), (1, 0)),
    )


def query_values(logs: Tensor, mantissa: Tensor | None) -> tuple[Tensor, Tensor]:
    """Features of queries divided by the largest of each row, and its logarithm (..., 1)."""
    top = logs.detach().amax(dim=-1, keepdim=True)
    return signed(logs.sub_(top).exp2_(), mantissa), top


def signed(features: Tensor, mantissa: Tensor | None) -> Tensor:
    """Features with their signs, where they have any."""
    return features if mantissa is None else features * mantissa


def _part(sums: Tensor, scale: Tensor) -> Part:
    """The scales with the leading axes of the sums, which those of the values may have widened."""
    return Part(sums, scale.expand(*sums.shape[:-1], 1))


def divide(part: Part, *, positive: bool, nonpositive: str) -> Tensor:
    """Numerators by denominators, the last column; zero where a query sees no key.

    Denominators of positive features are at least the largest weight of a feature, and are not checked.
    """
    numerator, denominator = part.sums[..., :-1], part.sums[..., -1:]
    if positive:
        # far below every denominator, and far enough from zero that gradients of rows without keys stay finite, times zero
        return numerator / denominator.clamp(min=torch.finfo(denominator.dtype).tiny ** 0.75)
    return numerator / _checked(torch.where(part.scale > NOTHING / 2, denominator, 1.0), nonpositive)


def _checked(denominator: Tensor, nonpositive: str) -> Tensor:
    bad = ~(denominator > 0)
    if nonpositive == "nan":
        return denominator.masked_fill(bad, torch.nan)
    count = int(bad.sum())
    if count:
        sentence = (
            f"linear_attention: {count} of {bad.numel()} rows have a denominator that is not positive, since these "
            f"features are signed and their estimate of the kernel can be negative; {_REMEDY}."
        )
        if nonpositive == "raise":
            raise ArithmeticError(sentence)
        warnings.warn(sentence, DenominatorWarning, stacklevel=levels_to_the_caller())
    return denominator


def levels_to_the_caller() -> int:
    """How far up the code that called the library is, seen from the function that asks."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("bochner", "torch"):
        level, frame = level + 1, frame.f_back
    return level
