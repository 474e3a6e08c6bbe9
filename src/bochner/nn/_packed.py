"""Packed sequences in the plain engine: where their rows lie, so that each begins at a chunk of its own.

Cumulative lengths are numbers in a tensor, which the host does not read.  So the room for all chunks is the most that as
many sequences of that total length can need, and chunks that none of them needs are empty.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..approximation.log_features import NOTHING, LogFeatures
from ._attention_parts import Part, query_values, signed
from ._attention_plain import by_chunks
from ._chunks import chunk_count, chunk_size, in_pieces

_CHUNK = 64
"""Positions of a chunk where all queries of a sequence see all of its keys: sums of chunks cost as much as features."""


class Packed(NamedTuple):
    """Where the rows of s packed sequences lie in T chunks."""

    rows: Tensor  # (T * c,): row that lies at each place; the number of rows where there is none
    segments: Tensor  # (T,): number of the sequence of each chunk; s for chunks behind all sequences
    places: Tensor  # (length,): place of each row

    @classmethod
    def of(
        cls, borders: Tensor, length: int, chunk: int, *, gap: int = 0, after: int = 0, more: int = 0, aside: int = 0
    ) -> Packed:
        """Place sequences with empty chunks before and after each, and room for ``more`` rows of each.

        All chunks but that many ``aside`` are whole groups, as `running` needs them.
        """
        borders, count = borders.long(), borders.shape[0] - 1
        starts, ends = borders[:-1], borders[1:]
        chunks = (ends - starts + (more + chunk - 1)) // chunk + (gap + after)
        last = chunks.cumsum(0)
        first = last - chunks + gap  # of the chunks with rows
        rows = length + count * (more + chunk - 1 + (gap + after) * chunk)
        whole = chunk_count(rows - aside * chunk, chunk) + aside
        place = torch.arange(whole, device=borders.device)
        segments = torch.searchsorted(last, place, right=True)
        own = segments.clamp(max=count - 1)
        inside = torch.arange(chunk, device=borders.device)
        local = (place - first[own])[:, None] * chunk + inside
        there = (local >= 0) & (local < (ends - starts)[own][:, None]) & (segments < count)[:, None]
        found = torch.where(there, local + starts[own][:, None], length).flatten()
        position = torch.arange(length, device=borders.device)
        owner = segments_of(borders, position)
        return cls(found, segments, first[owner] * chunk + position - starts[owner])

    def laid(self, x: Tensor) -> Tensor:
        """Rows (..., length + 1, width) at their places, of which the last one is where there is none."""
        return x.index_select(-2, self.rows)


def segments_of(borders: Tensor, positions: Tensor) -> Tensor:
    """Number of the sequence that each position is in."""
    return torch.searchsorted(borders[1:], positions.to(borders.dtype), right=True)


def _laid(packed: Packed, x: Tensor, fill: float = 0.0) -> Tensor:
    return packed.laid(pad(x, (0, 0, 0, 1), value=fill))


def packed_causal(queries: LogFeatures, keys: LogFeatures, values: Tensor, borders: Tensor, chunk: int | None) -> Part:
    """What each query sees of the keys up to its own position in its own sequence, as `causal` has it for one."""
    n = keys.log.shape[-2]
    size = chunk_size(chunk, n + 1)
    packed = Packed.of(borders, n, size, gap=1, more=1)
    # queries stand one place behind their keys, where every sequence has room for one more
    moved = packed._replace(rows=packed.rows.roll(1))

    def of_queries(x: Tensor) -> Tensor:
        return in_pieces(_laid(moved, x), size)[..., 1:, :, :]

    def of_keys(x: Tensor, fill: float) -> Tensor:
        return in_pieces(_laid(packed, x, fill), size)

    part, _ = by_chunks(queries, keys, values, (of_queries, of_keys), size, segments=packed.segments)
    places = packed.places + (1 - size)
    return Part(*(x.flatten(-3, -2).index_select(-2, places) for x in part))


def packed_everything(
    queries: LogFeatures, keys: LogFeatures, values: Tensor, borders: tuple[Tensor, Tensor], chunk: int | None
) -> Part:
    """What each query sees of all keys of its own sequence."""
    n, p, count = queries.log.shape[-2], keys.log.shape[-2], borders[0].shape[0] - 1
    size = _CHUNK if chunk is None else chunk
    of_queries, of_keys = (Packed.of(b, length, size) for b, length in zip(borders, (n, p), strict=True))
    k, v = in_pieces(_laid(of_keys, keys.log, 2 * NOTHING), size), in_pieces(_laid(of_keys, values), size)
    shift = maxima(k.detach(), of_keys.segments, count + 1)
    signs = None if keys.mantissa is None else in_pieces(_laid(of_keys, keys.mantissa.expand_as(keys.log)), size)
    columns = signed((k - shift.index_select(-3, of_keys.segments)).exp2_(), signs)
    added = columns.mT @ v
    sums = added.new_zeros(*added.shape[:-3], count + 1, *added.shape[-2:]).index_add(-3, of_keys.segments, added)
    q = in_pieces(_laid(of_queries, queries.log), size) + shift.index_select(-3, of_queries.segments)
    mantissa = queries.mantissa
    if mantissa is not None:
        mantissa = in_pieces(_laid(of_queries, mantissa.expand_as(queries.log)), size)
    rows, scale = query_values(q, mantissa)
    found = rows @ sums.index_select(-3, of_queries.segments)
    part = found, scale.expand(*found.shape[:-1], 1)
    return Part(*(x.flatten(-3, -2).index_select(-2, of_queries.places) for x in part))


def maxima(logs: Tensor, segments: Tensor, count: int) -> Tensor:
    """Largest logarithms (..., count, 1, m) over the chunks (..., b, c, m) of each sequence; `NOTHING` for those without."""
    tops = logs.amax(dim=-2)
    index = segments[:, None].expand_as(tops)
    start = tops.new_full((*tops.shape[:-2], count, tops.shape[-1]), NOTHING)
    return start.scatter_reduce(-2, index, tops, "amax").unsqueeze(-2)
