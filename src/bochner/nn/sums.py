r"""The sums over keys that linear attention keeps, and the two things done with them: absorbing keys, reading queries.

With features :math:`e^{l}` times a mantissa, the sums are :math:`S_m = \sum_j e^{l^k_{jm} - c_m}\,[v_j, 1]`, numerator
and denominator in one matrix.  The stabiliser :math:`c_m` is the largest logarithm of feature m over the keys absorbed;
a query adds it, :math:`e^{l^q_{im} + c_m - a_i}` with :math:`a_i` the largest of these, so that both cancel in the ratio.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

NOTHING = -1e30
"""The stabiliser of a feature that no key has: finite, so that differences are numbers, and below every logarithm."""


class Parts(NamedTuple):
    """Features of some rows: mantissa (None means one) and logarithm, (..., n, M) each."""

    mantissa: Tensor | None
    logarithm: Tensor


class Sums(NamedTuple):
    """Sums over keys, (..., M, e + 1), and their stabiliser, (..., 1, M)."""

    values: Tensor
    shift: Tensor

    def at(self, shift: Tensor) -> Tensor:
        """The sums under another stabiliser, nowhere lower than their own."""
        return self.values * (self.shift - shift).exp_().mT

    @property
    def seen(self) -> Tensor:
        """Whether there is any key in the sums, (..., 1)."""
        return (self.shift > NOTHING).any(dim=-1)


def join(sums: Sums | None, keys: Parts) -> Tensor:
    """The stabiliser of the sums with these keys added, (..., 1, M): no gradient, since it cancels."""
    shift = keys.logarithm.detach().amax(dim=-2, keepdim=True).clamp_(min=NOTHING)
    return shift if sums is None else torch.maximum(shift, sums.shift)


def key_features(keys: Parts, shift: Tensor) -> Tensor:
    """Features of keys under a stabiliser, in place of their logarithms."""
    features = keys.logarithm.sub_(shift).exp_()
    return features if keys.mantissa is None else features * keys.mantissa


def query_features(queries: Parts, shift: Tensor) -> Tensor:
    """Features of queries for sums under that stabiliser, the largest of each row one, in place of their logarithms."""
    logarithm = queries.logarithm.add_(shift)
    top = logarithm.detach().amax(dim=-1, keepdim=True).clamp_(min=2 * NOTHING)
    features = logarithm.sub_(top).exp_()
    return features if queries.mantissa is None else features * queries.mantissa


def read(sums: Sums, queries: Parts) -> Tensor:
    """Numerators and denominators of queries that see all keys of the sums, (..., n, e + 1)."""
    return query_features(queries, sums.shift) @ sums.values


def absorb(sums: Sums | None, keys: Parts, values: Tensor) -> Sums:
    """The sums with keys added; ``values`` (..., n, e + 1) end in a column of ones."""
    shift = join(sums, keys)
    added = key_features(keys, shift).mT @ values
    return Sums(added if sums is None else sums.at(shift) + added, shift)


def attend(sums: Sums | None, queries: Parts, keys: Parts, values: Tensor, visible: Tensor) -> tuple[Tensor, Sums]:
    """Numerators and denominators of queries that see the sums and, as ``visible`` (n, p) says, keys; and the sums with all.

    The stabiliser is that of all the keys here, also of those that a query does not see.  It cancels, but it may hide
    what the query does see below the smallest number: `walk` looks for that and splits the block.
    """
    shift = join(sums, keys)
    features = key_features(keys, shift)
    rows = query_features(queries, shift)
    weights = (rows @ features.mT).mul_(visible.to(rows))
    out, added = weights @ values, features.mT @ values
    if sums is None:
        return out, Sums(added, shift)
    before = sums.at(shift)
    return out + rows @ before, Sums(before + added, shift)
