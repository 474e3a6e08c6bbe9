r"""Linear attention in plain torch operations, whose number does not depend on the length.

All chunks of the sequence are computed at once.  A causal query sees the keys before its own chunk through running sums,

    P_b = sum_{j before chunk b} phi_k(y_j) [v_j, 1],

and those of its chunk one by one.  Values carry a column of ones, so that numerator and denominator are one sum.

**The stabiliser.**  Features are exponentials of logarithms.  Logarithms of keys are reduced by a maximum c_m for each
feature m, which is added to those of the queries; these are reduced by their own maximum, the *scale* of the row.  A query
must not see the future, not even through c: a later key that is larger by many orders of magnitude would make everything
that an earlier query sees vanish.  So every product has the maxima of keys that all its queries see:

- Sums over chunks are under running maxima.  The factors that lead from one maximum to a later one are at most one, and
  form a triangular matrix for each feature; in two levels, 16 chunks at a time, these matrices stay small.
- Within a chunk of c positions, query p sees key j < p.  The highest bit in which p and j differ says which half of
  which block each of them is in: p in the second, j in the first half, so all queries of the second half see all keys of the
  first.  The log2(c) sizes of blocks are an axis of the tensors, and each pair (p, j) is in exactly one of them.

Each part has its own scale for each row, and parts are added after their scales are equal.  Nothing is ever subtracted
from a sum, nothing depends on numbers in tensors, and no tensor is read by the host.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..approximation.log_features import NOTHING, KeySums, LogFeatures, key_values, scaled_query_values, stabiliser

LOG2E = math.log2(math.e)
NONPOSITIVE = ("warn", "raise", "nan")
ENGINES = ("auto", "plain")

_CHUNK = 32
"""Positions of a chunk: with more, products within it cost more; with fewer, the sums of chunks take more memory."""
_GROUP = 16
"""Chunks whose sums are added in one product; the second level is then linear up to about a million positions."""

_REMEDY = (
    "use a positive map (OptimalPositive, Positive, Hyperbolic with Orthogonal or Simplex rows), "
    "more projections, or smaller queries and keys"
)


class DenominatorWarning(UserWarning):
    """Warning that some rows of attention have a denominator that is not positive, and a meaningless estimate."""


class Part(NamedTuple):
    """What queries see of some of the keys: numerators and denominators, and the logarithm of the factor they lack.

    Attributes
    ----------
    sums : Tensor (..., Lq, e + 1)
        Sums of weights times values, and the sums of weights as the last column.
    scale : Tensor (..., Lq, 1)
        Logarithm of the factor of each row; `NOTHING` or less where a query sees none of these keys.
    """

    sums: Tensor
    scale: Tensor


def merged(parts: Sequence[Part]) -> Part:
    """Numerators and denominators over all keys of parts that share no key."""
    if len(parts) == 1:
        return parts[0]
    scales = torch.broadcast_tensors(*(part.scale for part in parts))
    top = torch.stack([scale.detach() for scale in scales]).amax(dim=0)
    sums = parts[0].sums * (parts[0].scale - top).exp()
    for part in parts[1:]:
        sums = sums + part.sums * (part.scale - top).exp()
    return Part(sums, top)


def with_ones(v: Tensor) -> Tensor:
    """Values and a column of ones, whose sums are the denominators."""
    return pad(v, (0, 1), value=1.0)


def everything(
    queries: LogFeatures, keys: LogFeatures | None, values: Tensor, sums: KeySums | None
) -> tuple[Part, KeySums]:
    """What queries see of all keys, (..., p, e + 1) with ones, and of the sums before them; and the sums of both.

    Without keys there must be sums.
    """
    if keys is not None and keys.log.shape[-2]:
        sums = KeySums.of(keys, values) if sums is None else sums.absorb(keys, values)
    elif sums is None:
        width = queries.log.shape[-1]
        lead = values.shape[:-2]
        shift = values.new_full((*lead, 1, width), NOTHING)
        sums = KeySums(values.new_zeros(*lead, width, values.shape[-1]), shift)
    rows, scale = scaled_query_values(queries, sums.shift)
    return _part(rows @ sums.values, scale), sums


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
        laid_out(keys.log, of_keys, -math.inf),
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
    size = _chunk_size(chunk, n + ahead)
    count = count_of(n + ahead, size)
    total = count * size

    def chunks(x: Tensor, before: int, rows: int, each: int = 1, value: float = 0.0) -> Tensor:
        return pieces(x, before * each, (total - before - rows) * each, size * each, value)

    q, k = chunks(queries.log, ahead, n, group), chunks(keys.log, behind, p, value=-math.inf)
    v = chunks(values, behind, p)
    signs = [None if x.mantissa is None else x.mantissa.expand_as(x.log) for x in (queries, keys)]
    sign_q = None if signs[0] is None else chunks(signs[0], ahead, n, group)
    sign_k = None if signs[1] is None else chunks(signs[1], behind, p)
    top = k.detach().amax(dim=-2, keepdim=True).clamp(min=NOTHING)
    before = _running(_signed((k - top).exp(), sign_k).mT @ v, top, sums)
    start = KeySums(before.values[..., :count, :, :], before.shift[..., :count, :, :])
    rows, scale = _query_values(q + start.shift, sign_q)
    far = Part(rows @ start.values, scale)
    parts = _with_own_chunk(far, (q, sign_q), (k, sign_k), v, size, group)
    out = (rows_of(x.flatten(-3, -2), ahead * group, n * group) for x in parts)
    after = KeySums(*(x[..., count, :, :] for x in before)) if keep else None
    return Part(*out), after


def is_symbol(length: object) -> bool:
    """Whether a length stands for any, as in graphs that hold for all lengths; torch's annotations call both ``int``."""
    return isinstance(length, torch.SymInt)


def _chunk_size(chunk: int | None, length: int) -> int:
    """Positions of a chunk, a power of two, and not far beyond the length where that is known."""
    size = _CHUNK if chunk is None else chunk
    if not is_symbol(length):
        size = min(size, length)
    return 1 << max(int(size) - 1, 1).bit_length()


def pieces(x: Tensor, before: int, after: int, size: int, value: float = 0.0) -> Tensor:
    """Rows with that many more before and after them, whole pieces (..., pieces, size, width)."""
    return _in_pieces(pad(x, (0, 0, before, after), value=value), size)


def _in_pieces(x: Tensor, size: int) -> Tensor:
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


def _running(added: Tensor, shift: Tensor, sums: KeySums | None) -> KeySums:
    """Sums (..., b + 1, m, e + 1) before each of b chunks and after the last, under their running maxima (..., b + 1, 1, m).

    Parameters
    ----------
    added : Tensor (..., b, m, e + 1)
        Sums over the keys of each chunk.
    shift : Tensor (..., b, 1, m)
        Their stabilisers, which have no gradient.
    sums : KeySums or None
        Sums to begin with.
    """
    b = added.shape[-3]
    groups = count_of(b + 1, _GROUP)
    room = groups * _GROUP - b
    if sums is None:
        values, each = pad(added, (0, 0, 0, 0, 1, room - 1)), pad(shift, (0, 0, 0, 0, 1, room - 1), value=NOTHING)
    else:
        lead = torch.broadcast_shapes(added.shape[:-3], sums.values.shape[:-2])
        first = [x.unsqueeze(-3).expand(*lead, 1, *x.shape[-2:]) for x in (sums.values, sums.shift.detach())]
        values = pad(torch.cat([first[0], added.expand(*lead, *added.shape[-3:])], dim=-3), (0, 0, 0, 0, 0, room - 1))
        each = torch.cat([first[1], shift.expand(*lead, *shift.shape[-3:])], dim=-3)
        each = pad(each, (0, 0, 0, 0, 0, room - 1), value=NOTHING)
    logs = each.squeeze(-2).mT  # (..., m, chunks)
    highest = logs.cummax(dim=-1).values
    values = _in_pieces(values.transpose(-3, -2), _GROUP)  # (..., m, groups, 16, e + 1)
    logs, tops = (_in_pieces(x[..., None], _GROUP).squeeze(-1) for x in (logs, highest))
    within = _decayed(logs, tops, 0) @ values
    ends = tops[..., -1]
    starts = pad(ends[..., :-1], (1, 0), value=NOTHING)
    carried = _decayed(ends, starts, -1) @ within[..., -1, :]  # (..., m, groups, e + 1)
    found = within + (starts[..., None] - tops).exp()[..., None] * carried[..., None, :]
    found = found.flatten(-3, -2)[..., : b + 1, :].transpose(-3, -2)
    return KeySums(found, highest[..., : b + 1].mT.unsqueeze(-2))


def _decayed(logs: Tensor, tops: Tensor, diagonal: int) -> Tensor:
    """Factors (..., i, j) from the stabiliser of the sum j to the maximum of all that are counted at i, zero for others."""
    return (logs[..., None, :] - tops[..., :, None]).exp().tril(diagonal)


def _with_own_chunk(
    far: Part,
    queries: tuple[Tensor, Tensor | None],
    keys: tuple[Tensor, Tensor | None],
    v: Tensor,
    size: int,
    group: int,
) -> Part:
    """What queries see of the chunks before theirs, and of the keys before them in their own chunk."""
    levels, half, device = size.bit_length() - 1, size // 2, v.device
    places = _places(size, group, device)
    (q, sign_q), (k, sign_k) = queries, keys
    k = k.index_select(-2, places.keys).unflatten(-2, (levels, half))
    tops = [
        k[..., level, :, :].detach().unflatten(-2, (-1, 1 << level)).amax(dim=-2, keepdim=True).expand(
            *k.shape[:-3], half >> level, 1 << level, k.shape[-1]
        ).flatten(-3, -2)
        for level in range(levels)
    ]  # fmt: skip
    top = torch.stack(tops, dim=-3).clamp_(min=NOTHING)  # (..., levels, half, m): one row for all keys of a block
    columns = (k - top).exp()
    if sign_k is not None:
        columns = columns * sign_k.index_select(-2, places.keys).unflatten(-2, (levels, half))
    top = top if group == 1 else top.repeat_interleave(group, dim=-2)
    q = q.index_select(-2, places.queries).unflatten(-2, (levels, half * group)) + top
    if sign_q is not None:
        sign_q = sign_q.index_select(-2, places.queries).unflatten(-2, (levels, half * group))
    rows, scale = _query_values(q, sign_q)
    weights = (rows @ columns.mT).flatten(-3).index_select(-1, places.pairs).unflatten(-1, (size * group, size))
    scales = scale.flatten(-3).index_select(-1, places.scales).unflatten(-1, (size * group, size)) + places.hidden
    highest = torch.maximum(scales.amax(dim=-1, keepdim=True), far.scale)
    near = (weights * (scales - highest).exp()) @ v
    return _part(near + far.sums * (far.scale - highest).exp(), highest)


class _Places(NamedTuple):
    """Where queries and keys of a chunk are found again, level by level, and pairs of them in the product of all levels."""

    queries: Tensor
    keys: Tensor
    pairs: Tensor
    scales: Tensor
    hidden: Tensor


_known: dict[tuple[int, int, torch.device], _Places] = {}


def _places(size: int, group: int, device: torch.device) -> _Places:
    """The places of a chunk; made once for each size and device, since a copy to a device takes as long as other steps."""
    known = _known.get((size, group, device))
    if known is not None:
        return known
    made = _made_places(size, group, device)
    if type(made.hidden) is Tensor and not torch.compiler.is_compiling():  # no tensor of a tracer
        _known[size, group, device] = made
    return made


def _made_places(size: int, group: int, device: torch.device) -> _Places:
    levels, half = size.bit_length() - 1, size // 2
    r, level = torch.arange(half, device=device), torch.arange(levels, device=device)[:, None]
    first = (r >> level << (level + 1)) + (r & ((1 << level) - 1))  # (levels, half): positions in the first halves
    heads = torch.arange(group, device=device)
    queries = (first + (1 << level)).flatten()[:, None] * group + heads
    p, j = torch.arange(size, device=device)[:, None], torch.arange(size, device=device)
    seen = j < p
    bit = sum(((p ^ j) >= (1 << k)).long() for k in range(1, levels))  # the highest bit in which they differ
    bit = torch.where(seen, bit, 0)
    row, column = ((x >> (bit + 1) << bit) + (x & ((1 << bit) - 1)) for x in (p, j))
    rows = (bit * half + row)[:, None, :] * group + heads[:, None]  # (size, group, size)
    pairs, hidden = rows * half + column[:, None, :], torch.where(seen, 0.0, -math.inf)[:, None, :]
    rows, pairs = (torch.where(seen[:, None, :], x, 0).flatten() for x in (rows, pairs))
    return _Places(queries.flatten(), first.flatten(), pairs, rows, hidden.expand(-1, group, -1).flatten(0, 1))


def _query_values(logs: Tensor, mantissa: Tensor | None) -> tuple[Tensor, Tensor]:
    """Features of queries divided by the largest of each row, and its logarithm (..., 1)."""
    top = logs.detach().amax(dim=-1, keepdim=True).clamp(min=2 * NOTHING)
    return _signed((logs - top).exp(), mantissa), top


def _signed(features: Tensor, mantissa: Tensor | None) -> Tensor:
    return features if mantissa is None else features * mantissa


def _part(sums: Tensor, scale: Tensor) -> Part:
    """The scales with the leading axes of the sums, which those of the values may have widened."""
    return Part(sums, scale.expand(*sums.shape[:-1], 1))


def two_sided(
    queries: LogFeatures,
    keys: LogFeatures,
    values: Tensor,
    window: int,
    x: Tensor,
    y: Tensor,
    bias: Tensor,
) -> Part:
    """What query i sees of all n keys: those at a distance below the window exactly, all others by features.

    Parameters
    ----------
    queries, keys : LogFeatures
        Of as many queries as keys.
    values : Tensor (..., n, e + 1)
        Values with a column of ones.
    window : int
        Distance of the first key that is met by features.
    x, y : Tensor (..., n, d)
        Queries and keys times the root of the scale.
    bias : Tensor (..., n)
        What is added to the logarithm of each key; minus infinity for those that are masked.

    Notes
    -----
    Every query sees every key, so one stabiliser serves all.  The chunks before and behind the neighbouring ones are met
    through sums from either end, which are added and never subtracted; all pairs of neighbouring chunks are one product for
    features and one for exact scores, of which each pair takes one.
    """
    n = x.shape[-2]
    # measured with 64 features on a CPU: chunks of 16 take three quarters of the time of 32; wide features have larger sums
    least = 4 if queries.log.shape[-1] <= 128 else 5
    size = 1 << min(max((window - 1).bit_length(), least), 7)
    reach = -(-(window - 1) // size)
    count = count_of(n, size)
    shift = stabiliser(keys)
    columns, (rows, scale) = key_values(keys, shift), scaled_query_values(queries, shift)

    def chunks(z: Tensor, around: int = 0, value: float = 0.0) -> Tensor:
        return pieces(z, around * size, count * size - n + around * size, size, value)

    def beside(z: Tensor) -> Tensor:
        """The chunks around each, one after the other, (..., count, (2 reach + 1) size, width)."""
        return torch.cat([z[..., o : o + count, :, :] for o in range(2 * reach + 1)], dim=-2)

    rows, scale, columns, v = chunks(rows), chunks(scale), chunks(columns, reach), chunks(values, reach)
    own = slice(reach, reach + count)
    sums = columns[..., own, :, :].mT @ v[..., own, :, :]
    first, last = sums.cumsum(dim=-3), sums.flip(-3).cumsum(dim=-3).flip(-3)
    gone = reach + 1  # a chunk meets the sums up to the one that is this far away, from either side
    first = pad(first, (0, 0, 0, 0, gone, 0))[..., :count, :, :]
    last = pad(last, (0, 0, 0, 0, 0, gone))[..., gone : gone + count, :, :]
    estimated = torch.cat([rows @ columns[..., o : o + count, :, :].mT for o in range(2 * reach + 1)], dim=-1)
    place = torch.arange(size, device=x.device)[:, None] + reach * size
    distance = place - torch.arange((2 * reach + 1) * size, device=x.device)
    far = distance.abs() >= window
    added = beside(chunks(bias[..., None], reach, -math.inf)).mT
    scores = (chunks(x) @ beside(chunks(y, reach)).mT + added).masked_fill(far, -math.inf)
    top = torch.maximum(scores.detach().amax(dim=-1, keepdim=True), scale)
    # powers of two are faster on CPUs than exponentials, three times where they vanish, as those of far keys do
    weights = ((scores - top) * LOG2E).exp2() + estimated * far * (scale - top).exp()
    found = weights @ beside(v) + (rows @ (first + last)) * (scale - top).exp()
    return Part(*(rows_of(z.flatten(-3, -2), 0, n) for z in (found, top.expand(*found.shape[:-1], 1))))


def divide(part: Part, *, positive: bool, nonpositive: str) -> Tensor:
    """Numerators by denominators, the last column; zero where a query sees no key.

    Denominators of positive features are at least the smallest weight, and are not checked.
    """
    numerator, denominator = part.sums[..., :-1], part.sums[..., -1:]
    denominator = torch.where(part.scale > NOTHING / 2, denominator, 1.0)
    if not positive:
        denominator = _checked(denominator, nonpositive)
    return numerator / denominator


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
