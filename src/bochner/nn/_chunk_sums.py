"""Sums over the chunks before each, under running maxima of the logarithms of keys; see `bochner.nn._attention_plain`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ..approximation.log_features import NOTHING, KeySums
from ._attention_parts import signed
from ._chunks import grouping, in_pieces, is_symbol, padded, rows_of, table


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
    groups, size = grouping(b)
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
