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
from torch.nn.functional import pad

from ..approximation.log_features import NOTHING
from ._walk import Part

_BLOCKS = 64, 256
"""Queries that meet their window at a time, at least and at most; as many as the window is wide in between."""


class NearKeys(NamedTuple):
    """Keys of which a state keeps more than their sums: the anchors, then the last ones of the window, in order.

    The shapes are the same from the first call on: A + w - 1 slots for A anchors and a window of w.

    Attributes
    ----------
    k, v : Tensor (..., slots, d), (..., slots, e)
        Keys and values; any numbers in empty slots.
    bias : Tensor (..., slots)
        What is added to the logarithm of the weight of each key.  Minus infinity for empty slots and for padding; in the
        window also for anchors, which have a slot of their own.
    """

    k: Tensor
    v: Tensor
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
        """These keys and others after them."""
        return NearKeys(
            torch.cat([self.k, other.k], dim=-2),
            torch.cat([self.v, other.v], dim=-2),
            torch.cat([self.bias, other.bias], dim=-1),
        )

    def without(self, rows: Tensor) -> NearKeys:
        """The same keys with some rows, (..., slots) of bool, masked."""
        return self._replace(bias=self.bias.masked_fill(rows, -torch.inf))

    def flip(self) -> NearKeys:
        """The keys in the opposite order."""
        return NearKeys(self.k.flip(-2), self.v.flip(-2), self.bias.flip(-1))


class Anchors(NamedTuple):
    """The anchors of a call: those a state holds, and the first keys of the call while slots are empty.

    Attributes
    ----------
    keys : NearKeys
        One slot for each anchor.
    place : Tensor (..., anchors)
        Position of each anchor among the keys of the call; -1 for those that were held before.
    chosen : Tensor (..., n) of bool
        Which keys of the call became anchors.
    """

    keys: NearKeys
    place: Tensor
    chosen: Tensor


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
    return _exact(x, anchors.keys.k * root, anchors.keys.v, bias)


def attend_window(x: Tensor, keys: NearKeys, root: float | Tensor, window: int, *, before: int, causal: bool) -> Part:
    """What queries x, times the root of the scale, see of the keys around them.

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
    causal : bool
        Whether keys behind a query are seen only.
    """
    n, reach, symbolic = x.shape[-2], window - 1, isinstance(x.shape[-2], torch.SymInt)
    block = 1 if before and n == 1 else min(max(window, _BLOCKS[0]), _BLOCKS[1])
    width = block + (reach if causal else 2 * reach)
    # a graph for any length has blocks to spare: it would hold for one alone, or for more, but not for both
    blocks = n // block + 2 if symbolic else -(-n // block)
    end = 2 * block if symbolic else blocks * block - n
    sides = (reach - before, end + (0 if causal else reach))
    starts = block * torch.arange(blocks, device=x.device)
    k, v = (_windows(pad(part, (0, 0, *sides)), starts, width, -2) for part in (keys.k * root, keys.v))
    bias = _windows(pad(keys.bias, sides, value=-torch.inf), starts, width, -1)
    rows, columns = torch.arange(block, device=x.device)[:, None], torch.arange(width, device=x.device)
    distance = rows - (columns - reach)
    outside = (distance >= window) | (distance < 0 if causal else distance <= -window)
    queries = _windows(pad(x, (0, 0, 0, end)), starts, block, -2)
    part = _exact(queries, k, v, bias[..., None, :].masked_fill(outside, -torch.inf))
    if not symbolic:
        return Part(*(column.flatten(-3, -2)[..., :n, :] for column in part))
    places = torch.arange(n, device=x.device)
    return Part(*(column.flatten(-3, -2).index_select(-2, places) for column in part))


def _windows(x: Tensor, starts: Tensor, width: int, dim: int) -> Tensor:
    """Overlapping pieces of an axis, (..., pieces, width, ...); of no fixed number, so that graphs hold for any length."""
    places = starts[:, None] + torch.arange(width, device=x.device)
    if isinstance(x.shape[dim], torch.SymInt):  # the length of all pieces together is not known to be a multiple
        return x[..., places] if dim == -1 else x[..., places, :]
    return x.index_select(dim, places.flatten()).unflatten(dim, places.shape)


def _exact(x: Tensor, y: Tensor, v: Tensor, bias: Tensor) -> Part:
    """Sums of exponentials of products of queries (..., n, d) and keys (..., p, d) with a bias (..., n, p)."""
    scores = x @ y.mT + bias
    top = scores.detach().amax(dim=-1, keepdim=True).clamp(min=2 * NOTHING)
    weights = (scores - top).exp()
    sums = torch.cat([weights @ v, weights.sum(dim=-1, keepdim=True)], dim=-1)
    return Part(sums, top.expand(*sums.shape[:-1], 1))
