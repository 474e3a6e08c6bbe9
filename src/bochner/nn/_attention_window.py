r"""Linear attention beside a window, in plain torch operations: exact weights of near keys, features of all others.

Chunks are no longer than the window, so that all keys of a query's own chunk before it are near: every product of
features has keys of earlier chunks only, which all queries of the chunk see, and their maxima are a stabiliser that never
sees the future.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..approximation.log_features import KeySums, LogFeatures, key_values, scaled_query_values, stabiliser
from ._attention_plain import LOG2E, Part, chunk_sums, count_of, is_symbol, pieces, rows_of, running

_CHUNKS = 16, 128, 256
"""Positions of a chunk: at least, since sums of chunks take memory; preferably at most; and at most."""


def chunk_of(window: int, width: int) -> int | None:
    """Positions of a chunk for `behind`; None where no number fits this window and that many features.

    It divides the window or the number of keys before a query, so that only one chunk has near keys and others.
    """
    least, usual, most = _CHUNKS
    sizes = [c for c in range(least if width <= 128 else 2 * least, most + 1) if 0 in (window % c, (window - 1) % c)]
    fitting = [c for c in sizes if c <= usual]
    return fitting[-1] if fitting else sizes[0] if sizes else None


def behind(
    queries: LogFeatures,
    keys: LogFeatures,
    values: Tensor,
    near: tuple[Tensor, Tensor, Tensor, Tensor | None],
    window: int,
    chunk: int,
    *,
    before: int,
    sums: KeySums | None,
    keep: bool,
) -> tuple[Part, KeySums | None]:
    """What query t sees of its own key and of those behind it: ``window`` of them exactly, all others by features.

    Parameters
    ----------
    queries, keys : LogFeatures
        Of n queries, and of the keys that can be far from one, from the first on.
    values : Tensor (..., p, e + 1)
        Values with a column of ones of these keys.
    near : tuple of Tensors (..., n, d), (..., before + n, d), (..., before + n, e + 1), and (..., before + n) or None
        Queries and keys times the root of the scale, values, and what is added to the logarithm of each key.
    window : int
        Distance of the first key that is met by features.
    chunk : int
        Positions of a chunk, from `chunk_of`.
    before : int
        Keys before that of the first query: 0, or ``window - 1`` as in a state.
    sums : KeySums or None
        Sums over keys before all of these.
    keep : bool
        Whether to return the sums with all keys that features meet.
    """
    x, y, v, bias = near
    n, reach = x.shape[-2], -(-(window - 1) // chunk)
    count, front = count_of(n, chunk), reach * chunk - before
    rest = count * chunk - n
    p = keys.log.shape[-2]
    total = count  # chunks of keys that are summed
    if is_symbol(n):
        total = count + reach
    elif keep:
        total = max(count, count_of(front + p, chunk))

    def of_keys(z: Tensor, value: float = 0.0) -> Tensor:
        return pieces(z, front, total * chunk - front - p, chunk, value)

    def around(z: Tensor, value: float = 0.0) -> Tensor:
        """Rows of the chunks that a chunk of queries sees, (..., count, (reach + 1) chunk, width)."""
        cut = pieces(z, front, rest, chunk, value)
        return torch.cat([cut[..., o : o + count, :, :] for o in range(reach + 1)], dim=-2)

    k, u = of_keys(keys.log, -math.inf), of_keys(values)
    sign = None if keys.mantissa is None else of_keys(keys.mantissa.expand_as(keys.log))
    added, shift, columns = chunk_sums(k, sign, u, sums)
    earlier = running(added, shift, own=False)
    if sums is not None:
        added, shift, earlier = (z[..., 1:, :, :] for z in (added, shift, earlier))
    start = slice(0, count)
    outside, far = _tables(window, chunk, reach, x)
    hidden = outside if bias is None else outside + around(bias[..., None], -math.inf).mT
    scores = _products(pieces(x, 0, rest, chunk), around(y), hidden)
    logs = pieces(queries.log, 0, rest, chunk) + shift[..., start, :, :]
    scores, logs = _alike(scores, logs)
    both = torch.cat([scores, logs], dim=-1)
    top = both.detach().amax(dim=-1, keepdim=True)
    weights, rows = (both - top).exp().split([(reach + 1) * chunk, logs.shape[-1]], dim=-1)
    if queries.mantissa is not None:
        rows = rows * pieces(queries.mantissa.expand_as(queries.log), 0, rest, chunk)
    found = weights @ around(v) + rows @ earlier[..., start, :, :]
    found = found + ((rows @ columns[..., start, :, :].mT) * far) @ u[..., start, :, :]
    after = None
    if keep:
        after = KeySums((earlier + added)[..., -1, :, :], shift[..., -1, :, :])
    return Part(*(rows_of(z.flatten(-3, -2), 0, n) for z in (found, top.expand(*found.shape[:-1], 1)))), after


def _products(x: Tensor, y: Tensor, added: Tensor) -> Tensor:
    """Products (..., c, p) of rows, and what is added to them, in one operation where their leading axes are the same."""
    if x.shape[:-2] != y.shape[:-2]:
        return x @ y.mT + added
    shape = (*x.shape[:-1], y.shape[-2])
    added = added.expand(*x.shape[:-2], *added.shape[-2:]).flatten(0, -3) if added.ndim > 2 else added[None]
    return torch.baddbmm(added, x.flatten(0, -3), y.flatten(0, -3).mT).view(shape)


def _alike(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors with the leading axes of both."""
    lead = torch.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    return x.expand(*lead, x.shape[-1]), y.expand(*lead, y.shape[-1])


_known: dict[tuple[int, int, torch.device, torch.dtype], tuple[Tensor, Tensor]] = {}


def _tables(window: int, chunk: int, reach: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Minus infinity where a query does not see a key of its chunks as near, and which keys of the first chunk are far."""
    place = window, chunk, like.device, like.dtype
    if place in _known:
        return _known[place]
    at = torch.arange(chunk, device=like.device)[:, None] + reach * chunk
    distance = at - torch.arange((reach + 1) * chunk, device=like.device)
    outside = torch.zeros(distance.shape, dtype=like.dtype, device=like.device)
    outside = outside.masked_fill((distance < 0) | (distance >= window), -math.inf)
    made = outside, (distance[:, :chunk] >= window).to(like.dtype)
    if type(outside) is Tensor and not torch.compiler.is_compiling():  # no tensor of a tracer
        _known[place] = made
    return made


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
