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
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..approximation.log_features import NOTHING, KeySums, LogFeatures
from ._attention_parts import Part, as_part, query_values, signed
from ._chunk_sums import chunk_sums, running
from ._chunks import chunk_count, chunk_size, is_symbol, pieces, rows_of, table


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
    return as_part(far + (weights * factors[..., 1:]) @ v, highest)


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
