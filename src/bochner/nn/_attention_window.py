r"""Linear attention beside a window, in plain torch operations: exact weights of near keys, features of all others.

Chunks are no longer than the window.  Those of keys end where the window of the first query of a chunk begins, so only
one of them has near and far keys, for any window.  All queries of a chunk see all of its keys, so that the maxima are a
stabiliser that never sees the future.  Logarithms are to base two.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..approximation.log_features import NOTHING, KeySums, LogFeatures
from ._attention_parts import Part, query_values, signed
from ._chunk_sums import chunk_sums, running
from ._chunks import chunk_count, count_of, in_pieces, is_symbol, pieces, rows_of, table
from ._packed import Packed, maxima
from ._tensor_features import LOG2E, Extended, QuadraticFeatures, TensorFeatures

SHORTEST = 12
"""Window from which on `behind` is faster than general causal features (1024 positions, 256 features, on a CPU)."""
_LONGEST = 128  # positions of a chunk at most: with more, products of pairs within it cost more than they save
_EXTRA = 4  # columns between keys and values of extended rows: balance, squared norm, bias and one
_HIDDEN = 2 * NOTHING  # bias of keys that are not there: finite, since gradients multiply it by zero


def chunk_of(window: int) -> int:
    """Positions of a chunk for `behind`: no more than the window, which whole chunks fit with hardly any to spare."""
    return -(-window // -(-window // _LONGEST))


class NearCall(NamedTuple):
    """Queries, keys and values of a call with a window, and the features of far keys."""

    features: TensorFeatures
    q: Tensor  # (..., n, d)
    k: Tensor
    v: Tensor
    # (..., before + n): what is added to the logarithm of each key, to base e; minus infinity for those that are
    # masked
    bias: Tensor | None
    root: float | Tensor  # factor of queries and keys
    alone: bool = False  # whether no other keys are added to the result, so that a factor per row may be missing


def behind(
    call: NearCall,
    window: int,
    *,
    before: int = 0,
    sums: KeySums | None = None,
    keep: bool = False,
    borders: Tensor | None = None,
) -> tuple[Part, KeySums | None]:
    """What query t sees of its own key and of those behind it: ``window`` of them exactly, all others by features.

    Parameters
    ----------
    call : NearCall
    window : int
        Distance of the first key that is met by features.
    before : int
        Keys before that of the first query: 0, or ``window - 1`` as in a state.
    sums : KeySums or None
        Sums over keys before all of these.
    keep : bool
        Whether to return the sums over all keys that features estimate: the first n.
    borders : Tensor (s + 1,) of integers, optional
        Cumulative lengths of s packed sequences.
    """
    rows = _Rows.of(call)
    n, d, chunk = call.q.shape[-2], call.k.shape[-1], chunk_of(window)
    reach = -(-window // chunk)
    nothing = rows.hidden(d)
    segments = None
    if borders is None:
        front = window - before  # chunks of keys end where the window of the first query of a chunk does
        count = chunk_count(n + front if keep else n, chunk, more=int(sums is not None))
        total = (count + reach) * chunk
        keys = _between(nothing, front, rows.keys, total - front - before - n)
        queries = pieces(rows.queries, 0, count * chunk - n, chunk)
    else:
        packed = Packed.of(borders, n, chunk, gap=reach, aside=reach)
        moved = packed._replace(rows=packed.rows.roll(window - reach * chunk))
        keys = moved.laid(_between(nothing, 0, rows.keys, 1))
        queries = in_pieces(packed.laid(pad(rows.queries, (0, 0, 0, 1))), chunk)[..., reach:, :, :]
        count, segments = queries.shape[-3], packed.segments[: queries.shape[-3]]
    cut = in_pieces(keys, chunk)
    near = torch.cat([cut[..., o : o + count, :, :] for o in range(reach + 1)], dim=-2)
    far = near[..., :chunk, :]
    if keep:  # the keys that are still in the window of the last query are in no sum yet
        far = in_pieces(_between(nothing, 0, rows_of(keys, 0, front + n), count * chunk - front - n), chunk)
    u = far[..., d + _EXTRA :]
    logs = rows.log_keys(far)
    added, shift, columns = chunk_sums(logs.log, logs.mantissa, u, segments, sums=sums)
    earlier = running(added, shift, own=False, segments=segments)
    if sums is not None:
        added, shift, earlier = (z[..., 1:, :, :] for z in (added, shift, earlier))
    outside, farther = _tables(window, chunk, reach, call.q)
    scores = _products(outside, queries[..., : d + _EXTRA], near[..., : d + _EXTRA], rows.factor)
    logs = rows.log_queries(queries, shift)
    both = torch.cat(_alike(scores, logs.log), dim=-1)
    top = both.detach().amax(dim=-1, keepdim=True)
    weights, features = both.sub_(top).exp2_().split([near.shape[-2], logs.log.shape[-1]], dim=-1)
    features = features if logs.mantissa is None else features * logs.mantissa
    found = _sum_of_products(
        (weights, near[..., d + _EXTRA :]), (features, earlier), ((features @ columns.mT) * farther, u)
    )
    scale = rows.scale(top, queries, call)
    part = Part(*(z.flatten(-3, -2) for z in (found, scale.expand(*found.shape[:-1], 1))))
    if borders is not None:
        places = packed.places - reach * chunk
        return Part(*(z.index_select(-2, places) for z in part)), None
    after = KeySums((earlier + added)[..., -1, :, :], shift[..., -1, :, :]) if keep else None
    return Part(*(rows_of(z, 0, n) for z in part)), after


class _Rows(NamedTuple):
    """Queries and keys extended by the columns of `Extended`, keys also by their values and a column of ones."""

    features: TensorFeatures
    sides: tuple[Extended, Extended] | None  # of queries and of keys, where features are quadratic
    queries: Tensor  # (..., n, d + 4)
    keys: Tensor
    root: float  # of queries and keys, and of their products to base two
    factor: float

    @classmethod
    def of(cls, call: NearCall) -> _Rows:
        features, q, k, v, bias, root, _ = call
        if isinstance(root, Tensor):
            q, k, root = q * root, k * root, 1.0
        sides, norms, balance = None, (_constant((0.0,), q),) * 2, 0.0
        if isinstance(features, QuadraticFeatures):
            sides = features.extended(root, q, key=False), features.extended(root, q, key=True)
            norms, balance = (sides[0].norms(q), sides[1].norms(k)), sides[1].balance
        columns = [k, _constant((balance,), k), norms[1]]
        if bias is None:
            columns += [_constant((0.0, 1.0), k), v, _constant((1.0,), k)]
        else:
            there = (bias > -torch.inf).to(k.dtype)[..., None]
            added = (bias / root**2).clamp(min=_HIDDEN)[..., None]
            columns += [added, _constant((1.0,), k), v, there]
        queries = _beside([q, norms[0], _constant((0.0, 1.0, 0.0), q)])
        return cls(features, sides, queries, _beside(columns), root, LOG2E * root**2)

    def scale(self, top: Tensor, queries: Tensor, call: NearCall) -> Tensor:
        """Logarithms of the factors of rows, (..., 1), with the squared norms of the queries where other keys are added."""
        if call.alone or self.sides is None:
            return top
        norms, c = queries[..., call.q.shape[-1] : call.q.shape[-1] + 1], self.sides[0].balance * self.factor
        return torch.where(top > NOTHING, top - c * norms, top)

    def hidden(self, d: int) -> Tensor:
        """A row in place of a key that is not there."""
        width = self.keys.shape[-1]
        return _constant((0.0,) * (d + 2) + (_HIDDEN,) + (0.0,) * (width - d - 3), self.keys)

    def log_keys(self, rows: Tensor) -> LogFeatures:
        """Logarithms of features of extended keys (..., chunks, c, width), with their bias."""
        d = self.features.d
        if self.sides is None:
            found = self._by_map(rows, True)
            return found._replace(log=found.log + rows[..., d + 2 : d + 3] * self.factor)
        log = _product(rows[..., : d + _EXTRA], self.sides[1].matrix)
        signs = self.features.signs if isinstance(self.features, QuadraticFeatures) else None
        return LogFeatures(None if signs is None else _for_chunks(signs.to(log)), log)

    def log_queries(self, rows: Tensor, shift: Tensor) -> LogFeatures:
        """Logarithms of features of extended queries (..., chunks, c, width) and of a stabiliser (..., chunks, 1, m)."""
        if self.sides is None:
            found = self._by_map(rows, False)
            return found._replace(log=found.log + shift)
        matrix = self.sides[0].matrix
        if matrix.ndim == 2:
            return LogFeatures(None, _products(shift, rows, matrix.mT, 1.0))
        return LogFeatures(None, _product(rows, matrix) + shift)

    def _by_map(self, rows: Tensor, key: bool) -> LogFeatures:
        """Features of maps, which may have an axis for heads before that of rows."""
        c = rows.shape[-2]
        found = self.features.log2(rows[..., : self.features.d].flatten(-3, -2), self.root, key=key)
        mantissa = None if found.mantissa is None else in_pieces(found.mantissa.expand_as(found.log), c)
        return LogFeatures(mantissa, in_pieces(found.log, c))


def _for_chunks(x: Tensor) -> Tensor:
    """A tensor (..., 1, m) with leading axes of heads, with an axis for chunks behind them."""
    return x if x.ndim < 3 else x.unsqueeze(-3)


def _beside(columns: list[Tensor]) -> Tensor:
    """Columns (..., n, width) side by side, with the leading axes of all; constants (width) for all rows."""
    lead = torch.broadcast_shapes(*(x.shape[:-1] for x in columns))
    return torch.cat([x.expand(*lead, x.shape[-1] if x.ndim else 1) for x in columns], dim=-1)


def _between(row: Tensor, front: int, x: Tensor, after: int) -> Tensor:
    """Rows of a tensor between copies of one; by places where a graph holds for any length."""
    if is_symbol(x.shape[-2]):
        n = x.shape[-2]
        place = torch.arange(-front, n + after, device=x.device)
        place = torch.where((place < 0) | (place >= n), n, place)
        return torch.cat([x, row.expand(*x.shape[:-2], 1, x.shape[-1])], dim=-2).index_select(-2, place)
    before, behind = (row.expand(*x.shape[:-2], count, x.shape[-1]) for count in (front, after))
    return torch.cat([before, x, behind], dim=-2)


def _product(rows: Tensor, matrix: Tensor) -> Tensor:
    """Rows (..., b, c, d) times a matrix (d, m), or one for each head (..., d, m)."""
    if matrix.ndim > 2:
        return rows @ _for_chunks(matrix)
    if is_symbol(rows.shape[-3]):
        return rows @ matrix.expand(*rows.shape[:-2], *matrix.shape)
    flat = rows.flatten(0, -3)  # a product with one matrix would copy rows that are parts of others
    return torch.bmm(flat, matrix.expand(flat.shape[0], *matrix.shape)).view(*rows.shape[:-1], matrix.shape[-1])


def _products(added: Tensor, x: Tensor, y: Tensor, factor: float) -> Tensor:
    """Products (..., c, p) of rows times a factor, and what is added to them, in one operation where axes allow it."""
    lead = x.shape[:-2]
    if is_symbol(lead[-1]) or any(z.ndim > 2 and z.shape[:-2] != lead for z in (added, y)):
        y = y.expand(*lead, *y.shape) if y.ndim == 2 else y
        return torch.add(added, x @ y.mT, alpha=factor)
    x, y, added = (z if z.ndim == 2 else z.flatten(0, -3) for z in (x, y, added))
    y = y.expand(x.shape[0], *y.shape) if y.ndim == 2 else y
    found = torch.baddbmm(added, x, y.mT, alpha=factor)
    return found.view(*lead, *found.shape[-2:])


def _sum_of_products(*pairs: tuple[Tensor, Tensor]) -> Tensor:
    """Sum of batched products, each added to those before where all leading axes are the same."""
    lead = pairs[0][0].shape[:-2]
    if is_symbol(lead[-1]) or any(x.shape[:-2] != lead for pair in pairs for x in pair):
        found = pairs[0][0] @ pairs[0][1]
        for x, y in pairs[1:]:
            found = found + x @ y
        return found
    flat = [tuple(x.flatten(0, -3) for x in pair) for pair in pairs]
    found = torch.bmm(*flat[0])
    for x, y in flat[1:]:
        found = torch.baddbmm(found, x, y)
    return found.view(*lead, *found.shape[-2:])


def _alike(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors with the leading axes of both."""
    lead = torch.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    return x.expand(*lead, x.shape[-1]), y.expand(*lead, y.shape[-1])


def _constant(numbers: tuple[float, ...], like: Tensor) -> Tensor:
    dtype, device = like.dtype, like.device
    return table((numbers, device, dtype), lambda: (torch.tensor(numbers, device=device, dtype=dtype),))[0]


def _tables(window: int, chunk: int, reach: int, like: Tensor, *, both_sides: bool = False) -> tuple[Tensor, Tensor]:
    """Minus infinity where a query does not see a key of the chunks around it as near, and which keys of these are far.

    With one side, far keys are in the first chunk only.
    """

    def make() -> tuple[Tensor, Tensor]:
        at = torch.arange(chunk, device=like.device)[:, None] + (reach * chunk if both_sides else window)
        distance = at - torch.arange(((1 + both_sides) * reach + 1) * chunk, device=like.device)
        far = distance.abs() >= window if both_sides else distance >= window
        outside = torch.zeros(distance.shape, dtype=like.dtype, device=like.device)
        outside = outside.masked_fill(far if both_sides else far | (distance < 0), -math.inf)
        return outside, (far if both_sides else far[:, :chunk]).to(like.dtype)

    outside, far = table(("window", window, chunk, both_sides, like.device, like.dtype), make)
    return outside, far


def two_sided(call: NearCall, window: int, borders: Tensor | None = None) -> Part:
    """What query i sees of all n keys: those at a distance below the window exactly, all others by features.

    Parameters
    ----------
    call : NearCall
        With as many queries as keys.
    window : int
        Distance of the first key that is met by features.
    borders : Tensor (s + 1,) of integers, optional
        Cumulative lengths of s packed sequences.

    Notes
    -----
    Every query sees every key of its sequence, so one stabiliser serves all.  The chunks before and behind the neighbouring
    ones are met through sums from either end, which are added and never subtracted; all pairs of neighbouring chunks are one
    product for features and one for exact scores, of which each pair takes one.
    """
    rows = _Rows.of(call)
    n, d = call.q.shape[-2], call.k.shape[-1]
    # measured with 64 features on a CPU: chunks of 16 take three quarters of the time of 32; wide features have larger sums
    least = 4 if call.features.width <= 128 else 5
    size = 1 << min(max((window - 1).bit_length(), least), 7)
    reach = -(-(window - 1) // size)
    gap = reach + 1  # a chunk reads the sums up to the one that is this far away, from either side
    nothing, segments = rows.hidden(d), None
    if borders is None:
        count = count_of(n, size)
        keys = _between(nothing, reach * size, rows.keys, (count + reach) * size - n)
        cut, queries = in_pieces(keys, size), pieces(rows.queries, 0, count * size - n, size)
    else:
        packed = Packed.of(borders, n, size, gap=gap, after=gap, aside=2 * reach)
        keys = packed.laid(_between(nothing, 0, rows.keys, 1))
        cut = in_pieces(keys, size)
        queries = in_pieces(packed.laid(pad(rows.queries, (0, 0, 0, 1))), size)[..., reach : -reach or None, :, :]
        count = queries.shape[-3]
        segments = packed.segments[reach : reach + count]
    own = slice(reach, reach + count)

    def beside(z: Tensor) -> Tensor:
        """The chunks around each, one after the other, (..., count, (2 reach + 1) size, width)."""
        return torch.cat([z[..., o : o + count, :, :] for o in range(2 * reach + 1)], dim=-2)

    near, logs = beside(cut), rows.log_keys(cut)
    if borders is None:
        shift = logs.log.detach().amax(dim=(-3, -2), keepdim=True)
        of_queries = shift
    else:
        shift = maxima(logs.log.detach(), packed.segments, borders.shape[0]).index_select(-3, packed.segments)
        of_queries = shift[..., own, :, :]
    columns = signed((logs.log - shift).exp2_(), logs.mantissa)
    found = rows.log_queries(queries, of_queries)
    features, scale = query_values(found.log, found.mantissa)
    v = cut[..., d + _EXTRA :]
    sums = columns[..., own, :, :].mT @ v[..., own, :, :]
    if segments is None:
        first, last = sums.cumsum(dim=-3), sums.flip(-3).cumsum(dim=-3).flip(-3)
    else:
        flat = torch.zeros_like(sums[..., :1]).mT
        first = running(sums, flat, own=True, segments=segments)
        last = running(sums.flip(-3), flat, own=True, segments=segments.flip(0)).flip(-3)
    first = pad(first, (0, 0, 0, 0, gap, 0))[..., :count, :, :]
    last = pad(last, (0, 0, 0, 0, 0, gap))[..., gap : gap + count, :, :]
    estimated = torch.cat([features @ columns[..., o : o + count, :, :].mT for o in range(2 * reach + 1)], dim=-1)
    outside, far = _tables(window, size, reach, v, both_sides=True)
    scores = _products(outside, queries, near[..., : d + _EXTRA], rows.factor)
    top = torch.maximum(scores.detach().amax(dim=-1, keepdim=True), scale)
    rest = (scale - top).exp2_()
    weights = scores.sub_(top).exp2_() + estimated * far * rest
    sums = weights @ near[..., d + _EXTRA :] + (features @ (first + last)) * rest
    scale = rows.scale(top, queries, call)
    part = Part(*(z.flatten(-3, -2) for z in (sums, scale.expand(*sums.shape[:-1], 1))))
    if segments is not None:
        places = packed.places - reach * size
        return Part(*(z.index_select(-2, places) for z in part))
    return Part(*(rows_of(z, 0, n) for z in part))
