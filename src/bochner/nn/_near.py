r"""Exact attention to near keys and to the first ones, in one normalisation with the features of all others.

With a window of w, query i computes the weights :math:`e^{x_i\cdot y_j}` of the keys at distance :math:`|i - j| < w`
exactly, those behind it only where attention is causal, and with anchors those of the first keys that are not masked.
All other weights are estimated by features.  The three kinds of keys are disjoint, so that their sums are added:

    out_i = N_i / D_i,   N_i = sum_{j near or anchor} e^{x_i.y_j} v_j + phi_q(x_i) . sum_{j far} phi_k(y_j) v_j,

and D_i is the same with 1 for v_j.

A key enters the sums of features once it leaves the window, and an anchor never does.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ..approximation.log_features import NOTHING
from ._attention_parts import Part, with_ones
from ._chunks import count_of, is_symbol, pieces, rows_of, table
from ._packed import segments_of
from ._tensor_features import LOG2E

_BLOCKS = 64, 256
"""Queries that are computed with their window at a time, at least and at most; as many as the window needs in between."""


class NearKeys(NamedTuple):
    """Keys of which a state keeps more than their sums: the anchors, then the last ones of the window, in order.

    The shapes are the same from the first call on: A + w - 1 slots for A anchors and a window of w.
    """

    k: Tensor  # (..., slots, d): keys and values; any numbers in empty slots
    v: Tensor
    # (..., slots): what is added to the logarithm of the weight of each key. Minus infinity for empty slots and for
    # padding; in the window also for anchors, which have a slot of their own.
    bias: Tensor

    @property
    def seen(self) -> Tensor:
        """Which slots hold a key, (..., slots) of bool."""
        return self.bias > -torch.inf

    @classmethod
    def empty(cls, k: Tensor, v: Tensor, slots: int) -> NearKeys:
        """Empty slots for keys and values like these."""
        lead = torch.broadcast_shapes(k.shape[:-2], v.shape[:-2])
        bias = k.new_full((*lead, slots), -torch.inf)
        return cls(k.new_zeros(*lead, slots, k.shape[-1]), v.new_zeros(*lead, slots, v.shape[-1]), bias)

    @classmethod
    def of(cls, k: Tensor, v: Tensor, key_bias: Tensor | None) -> NearKeys:
        """Keys that are given, with all leading axes of both."""
        lead = torch.broadcast_shapes(k.shape[:-2], v.shape[:-2])
        bias = (k.new_zeros(k.shape[-2]) if key_bias is None else key_bias).expand(*lead, k.shape[-2])
        return cls(k.expand(*lead, *k.shape[-2:]), v.expand(*lead, *v.shape[-2:]), bias)

    def rows(self, start: int, stop: int | None = None) -> NearKeys:
        """Keys from ``start`` to before ``stop``."""
        return NearKeys(self.k[..., start:stop, :], self.v[..., start:stop, :], self.bias[..., start:stop])

    def then(self, other: NearKeys) -> NearKeys:
        """Return these keys followed by others."""
        if not is_symbol(self.bias.shape[-1]) and not self.bias.shape[-1]:
            return other
        return NearKeys(
            torch.cat([self.k, other.k], dim=-2),
            torch.cat([self.v, other.v], dim=-2),
            torch.cat([self.bias, other.bias], dim=-1),
        )

    def without(self, rows: Tensor) -> NearKeys:
        """Return the keys with some rows, (..., slots) of bool, masked."""
        return self._replace(bias=self.bias.masked_fill(rows, -torch.inf))


class Anchors(NamedTuple):
    """The anchors of a call: those a state holds, and the first keys of the call while slots are empty."""

    keys: NearKeys  # one slot for each anchor
    # (..., anchors): position of each anchor among the keys of the call; -1 for those that were held before
    place: Tensor
    chosen: Tensor  # (..., n): which keys of the call became anchors


def choose_anchors(held: NearKeys, new: NearKeys) -> Anchors:
    """Fill the empty slots among the held anchors with the first keys that are not masked."""
    slots, both = held.seen.shape[-1], held.then(new)
    counts = both.seen.cumsum(dim=-1)
    ranks = torch.arange(1, slots + 1, device=counts.device).expand(*counts.shape[:-1], slots)
    taken = torch.searchsorted(counts, ranks.contiguous()).clamp(max=counts.shape[-1] - 1)
    k, v = (x.gather(-2, taken[..., None].expand(*taken.shape, x.shape[-1])) for x in (both.k, both.v))
    chosen = new.seen & (counts[..., slots:] <= slots)
    bias = both.bias.gather(-1, taken).masked_fill(ranks > counts[..., -1:], -torch.inf)
    return Anchors(NearKeys(k, v, bias), (taken - slots).clamp(min=-1), chosen)


def attend_anchors(x: Tensor, anchors: Anchors, root: float | Tensor, *, causal: bool) -> Part:
    """What queries x, times the root of the scale, see of the anchors: all of them, or those up to their own position."""
    bias = anchors.keys.bias[..., None, :]
    if causal:
        hidden = anchors.place[..., None, :] > torch.arange(x.shape[-2], device=x.device)[:, None]
        bias = bias.masked_fill(hidden, -torch.inf)
    return _exact(x, anchors.keys.k * root, with_ones(anchors.keys.v), bias)


def packed_anchors(
    x: Tensor, keys: NearKeys, root: float | Tensor, anchors: int, borders: tuple[Tensor, Tensor], *, causal: bool
) -> tuple[Part, Tensor]:
    """What queries x, times the root of the scale, see of the anchors of their own sequences; and the bias of other keys.

    ``borders`` are the cumulative lengths of queries and keys of the packed sequences.
    """
    (of_queries, of_keys), (n, p) = borders, (x.shape[-2], keys.k.shape[-2])
    counts = keys.seen.cumsum(dim=-1)
    before = torch.nn.functional.pad(counts, (1, 0)).index_select(-1, of_keys[:-1])  # (..., sequences)
    ranks = before[..., None] + torch.arange(1, anchors + 1, device=x.device)
    place = torch.searchsorted(counts, ranks.flatten(-2)).view_as(ranks)
    place = torch.where(place < of_keys[1:, None], place, p)
    positions = torch.arange(n, device=x.device)
    place = place.index_select(-2, segments_of(of_queries, positions))  # (..., n, anchors)
    hidden = (place > positions[:, None]) if causal else place == p
    taken = place.clamp(max=p - 1).flatten(-2)
    k, v = (y.gather(-2, taken[..., None].expand(*taken.shape, y.shape[-1])) for y in (keys.k, keys.v))
    bias = keys.bias.gather(-1, taken).view_as(place).masked_fill(hidden, -torch.inf)
    k, v = (y.unflatten(-2, (n, anchors)) for y in (k * root, with_ones(v)))
    part = _exact(x[..., None, :], k, v, bias[..., None, :])
    own = segments_of(of_keys, torch.arange(p, device=x.device))
    chosen = keys.seen & (counts - before.index_select(-1, own) <= anchors)
    return Part(*(y.squeeze(-2) for y in part)), keys.bias.masked_fill(chosen, -torch.inf)


def attend_window(x: Tensor, keys: NearKeys, root: float | Tensor, window: int, *, before: int) -> Part:
    """What queries x, times the root of the scale, see of their own key and of the ``window - 1`` before it.

    Parameters
    ----------
    x : Tensor (..., n, d)
        Queries; query t stands at key ``before + t``.
    keys : NearKeys
        ``before + n`` keys.
    root : float or Tensor
        Factor of the keys.
    window : int
        Distance of the first key that is not seen.
    before : int
        Number of keys before the first query: 0, or ``window - 1`` as in a state.
    """
    n, reach, y = x.shape[-2], window - 1, keys.k * root
    if n == 1 and (before or window == 1):  # a step of decoding: all these keys are seen
        return _exact(x, y, with_ones(keys.v), keys.bias[..., None, :])
    block = min(max(1 << reach.bit_length(), _BLOCKS[0]), _BLOCKS[1])
    more = -(-reach // block)  # blocks before that of the queries
    blocks = count_of(n, block)
    sides = reach - before, (blocks + more) * block - n - reach

    def around(z: Tensor, value: float = 0.0) -> Tensor:
        """Rows from the first one that a block sees on, (..., blocks, (more + 1) block, width)."""
        cut = pieces(z, *sides, block, value)
        return torch.cat([cut[..., o : o + blocks, :, :] for o in range(more + 1)], dim=-2)

    bias = around(keys.bias[..., None], -torch.inf).mT + _outside(block, (more + 1) * block, window, x.device)
    part = _exact(pieces(x, 0, blocks * block - n, block), around(y), around(with_ones(keys.v)), bias)
    return Part(*(rows_of(column.flatten(-3, -2), 0, n) for column in part))


def _outside(rows: int, columns: int, window: int, device: torch.device) -> Tensor:
    """Minus infinity where a row does not see the key of a column; the first is ``window - 1`` before the first row."""

    def make() -> tuple[Tensor]:
        distance = torch.arange(rows, device=device)[:, None] - torch.arange(columns, device=device) + (window - 1)
        return (torch.where((distance >= 0) & (distance < window), 0.0, -torch.inf),)

    return table(("near", rows, columns, window, device), make)[0]


def _exact(x: Tensor, y: Tensor, v: Tensor, bias: Tensor) -> Part:
    """Sums of exponentials of products of queries (..., n, d) and keys (..., p, d) with a bias (..., n, p) to base e.

    Values (..., p, e + 1) have a column of ones.
    """
    scores = (x @ y.mT + bias) * LOG2E
    top = scores.detach().amax(dim=-1, keepdim=True).clamp(min=2 * NOTHING)
    sums = (scores - top).exp2_() @ v
    return Part(sums, top.expand(*sums.shape[:-1], 1))
