"""Weighted moments of the pairs of queries and keys of an attention, from which frames and constants follow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ._recording import Recorded


class HeadMoments(NamedTuple):
    """Sums over pairs of queries and keys, weighted by exact attention: float64, the heads first."""

    weight: Tensor  # (heads,): sum of the weights
    x: Tensor  # (heads, d): sums of queries and of keys, times the root of the scale
    y: Tensor
    xx: Tensor  # (heads, d, d): sums of their products
    yy: Tensor
    xy: Tensor

    @classmethod
    def of(cls, call: Recorded, window: int = 0, anchors: int = 0) -> HeadMoments:
        """The sums of one call, without padding and without the pairs that are computed exactly."""
        root = torch.as_tensor(call.scale, device=call.q.device).double().sqrt()
        weights, q, k = call.weights(), call.q.double() * root, call.k.double() * root
        if call.key_mask is not None:  # numbers in the padding, even NaN, must not be multiplied by zero
            there = call.key_mask.expand(k.shape[0], k.shape[2])[:, None, :, None]
            k = torch.where(there, k, 0.0)
            if q.shape == k.shape:  # queries in as many places are padded as keys are
                q, weights = torch.where(there, q, 0.0), torch.where(there, weights, 0.0)
        near = call.near(window, anchors)
        if near is not None:
            weights = weights.masked_fill(near, 0.0)
        return cls.weighted(weights, q, k)

    @classmethod
    def weighted(cls, weights: Tensor, q: Tensor, k: Tensor) -> HeadMoments:
        """The sums over pairs with these weights (batch, heads, n, p) of queries and keys times the root of the scale."""
        rows, columns = (weights.sum(dim, dtype=torch.float64)[..., None] for dim in (-1, -2))
        attended = (weights @ k.to(weights)).double()
        x, y = rows * q, columns * k
        products = (x.mT @ q, y.mT @ k, q.mT @ attended)
        return cls(rows.sum((0, 2, 3)), x.sum((0, 2)), y.sum((0, 2)), *(product.sum(0) for product in products))

    def __add__(self, other: HeadMoments) -> HeadMoments:  # type: ignore[override]
        """The sums over both."""
        return HeadMoments(*(one + another for one, another in zip(self, other, strict=True)))

    def heads(self) -> list[tuple[np.ndarray, ...]]:
        """Means a and b, covariances of x and of y, and those of x with y, of each head."""
        weight, *sums = self
        a, b, xx, yy, xy = (part / weight.view(-1, *[1] * (part.ndim - 1)) for part in sums)
        covariances = [xx - _outer(a, a), yy - _outer(b, b), xy - _outer(a, b)]
        return list(zip(*(part.cpu().numpy() for part in (a, b, *covariances)), strict=True))


def _outer(a: Tensor, b: Tensor) -> Tensor:
    return a[:, :, None] * b[:, None, :]
