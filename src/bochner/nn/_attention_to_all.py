"""Plain attention to all keys, whose features are summed first; logarithms are to base two."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..approximation.log_features import NOTHING, KeySums, LogFeatures
from ._attention_parts import Part, as_part, query_values, signed
from ._tensor_features import BaseFeatures, HybridTensorFeatures

_PRODUCTS = 1 << 19
"""Features of a hybrid that are made at a time: two megabytes, of which both sides of a product stay in the cache."""


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
    return as_part(rows @ sums.values, scale), sums


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
    part = as_part(torch.cat(seen, dim=-2), top)
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
