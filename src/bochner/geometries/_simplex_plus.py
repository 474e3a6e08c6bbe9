"""Directions that are fitted to the lengths, so that the weighted vectors sum to zero (SimRF+)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._arrays import pad_last
from ..linalg.references import simplex_vertices
from ._geometry import Geometry


@dataclass(frozen=True)
class SimplexPlus(Geometry):
    """Unit directions that depend on the lengths of the block, computed by `balance`; one full matrix per block."""

    name: ClassVar[str] = "simplex+"
    references: ClassVar[tuple[str, ...]] = ("simrf",)

    def n_coordinates(self, r: int, dim: int) -> int:
        return max(r - 1, 1)

    def directions(self, radii: np.ndarray, dim: int) -> np.ndarray:
        return pad_last(balance(radii), dim)  # type: ignore[no-any-return]


def balance(lengths: np.ndarray, *, tolerance: float = 1e-6, max_sweeps: int = 200) -> np.ndarray:
    r"""Compute unit directions that minimise :math:`|\sum_i \ell_i u_i|` in every block.

    Parameters
    ----------
    lengths : array (blocks, r)
        Lengths of the vectors.
    tolerance : float
        Distance from the minimum at which a block is finished, in units of its mean length.
    max_sweeps : int
        Bound on the number of sweeps, for nearly degenerate blocks.

    Returns
    -------
    array (blocks, r, max(r - 1, 1))

    Notes
    -----
    Sequential sweeps (SimRF Eq. 16-17, which have the vector :math:`w_i` in place of its norm): each vector in turn is
    directed against the sum t of the others, :math:`w_i \leftarrow -\ell_i\, t/|t|`, in O(r) per vector by means of a
    running total.  Updating all vectors at once does not converge.  The minimum is zero, or the excess of the longest
    vector over the sum of the others.  All unfinished blocks are processed together.  The directions depend on the
    lengths only, so a Haar rotation of them is exactly unbiased even if the sweeps stop early.  Three vectors form a
    triangle, which is solved in closed form, since sweeps are slow if it is nearly flat.
    """
    r = lengths.shape[1]
    if r == 3:
        return _triangles(lengths)
    vectors = lengths[:, :, None] * simplex_vertices(r, max(r - 1, 1))
    minimum = np.maximum(2 * lengths.max(axis=1) - lengths.sum(axis=1), 0)
    goal = minimum + tolerance * lengths.mean(axis=1)
    active = np.flatnonzero(np.linalg.norm(vectors.sum(axis=1), axis=-1) > goal)
    for _ in range(max_sweeps):
        if not len(active):
            break
        swept = _sweep(vectors[active], lengths[active])
        vectors[active] = swept
        active = active[np.linalg.norm(swept.sum(axis=1), axis=-1) > goal[active]]
    directions: np.ndarray = vectors / lengths[:, :, None]
    return directions


def _triangles(lengths: np.ndarray) -> np.ndarray:
    """Three directions in the plane whose weighted sum is as short as possible."""
    a, b, c = lengths.T
    # |w_a + w_b| = c, or as near to it as the triangle inequality allows
    cosine = np.clip((c**2 - a**2 - b**2) / (2 * a * b), -1, 1)
    directions = np.zeros((len(lengths), 3, 2))
    directions[:, 0, 0] = 1
    directions[:, 1] = np.stack([cosine, np.sqrt(1 - cosine**2)], axis=-1)
    others = a[:, None] * directions[:, 0] + b[:, None] * directions[:, 1]
    norm = np.linalg.norm(others, axis=-1, keepdims=True)
    directions[:, 2] = np.where(norm > 0, -others / np.where(norm > 0, norm, 1), directions[:, 0])
    return directions


def _sweep(vectors: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Turn each vector of each block once, in order."""
    total = vectors.sum(axis=1)
    for i in range(vectors.shape[1]):
        others = total - vectors[:, i]
        norm = np.linalg.norm(others, axis=-1, keepdims=True)
        turned = -lengths[:, i, None] * others / np.where(norm > 0, norm, 1)
        vectors[:, i] = np.where(norm > 0, turned, vectors[:, i])  # nothing to turn against: stay
        total = others + vectors[:, i]
    return vectors
