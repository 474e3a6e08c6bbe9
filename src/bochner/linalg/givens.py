"""Plane rotations, readable: for any array library, and as the oracle of the compiled ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import array_namespace, like


def givens_level(x: Any, half: int, c: np.ndarray, s: np.ndarray) -> Any:
    """Rotate each pair of entries of the last axis that are ``half`` apart within groups of ``2 * half``.

    ``c`` and ``s`` (cosines and sines), of shape (..., groups, half or 1), hold one angle a pair, or one a group.
    A pair (a, b) becomes (c a - s b, s a + c b); with ``-s`` the level is undone.
    """
    xp = array_namespace(x)
    lead, d = tuple(x.shape[:-1]), x.shape[-1]
    pairs = xp.reshape(x, (*lead, d // (2 * half), 2, half))
    a, b = pairs[..., 0, :], pairs[..., 1, :]
    c, s = like(c, x), like(s, x)
    rotated = xp.stack([c * a - s * b, s * a + c * b], axis=-2)
    return xp.reshape(rotated, (*rotated.shape[:-3], d))


def givens_walk(x: Any, i: np.ndarray, j: np.ndarray, c: np.ndarray, s: np.ndarray) -> Any:
    """Rotate entries (i[b, t], j[b, t]) of block b, on the last axis of ``x`` (..., b, d), for all t in order.

    Both entries are read before either is written: a walk that overwrites the first and then uses it is not
    orthogonal.
    """
    xp = array_namespace(x)
    blocks = np.arange(len(i))
    x = 1 * xp.broadcast_to(x, (*x.shape[:-2], len(i), x.shape[-1]))  # a copy, which gradients pass
    c, s = like(c, x), like(s, x)
    for t in range(i.shape[1]):
        a, b = (..., blocks, i[:, t]), (..., blocks, j[:, t])
        u, v = x[a], x[b]
        x[a], x[b] = c[:, t] * u - s[:, t] * v, s[:, t] * u + c[:, t] * v
    return x
