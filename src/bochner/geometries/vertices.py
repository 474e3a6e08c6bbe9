"""The d + 1 vertices of a simplex in d dimensions, as spherical-radial quadrature uses them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._arrays import pad_last
from ..linalg.simplex import simplex_adjoint, simplex_product
from .base import FastGeometry


class SimplexVertices(FastGeometry):
    """d + 1 unit vectors with pairwise cosine -1/d (QBF Section 2; the paper gives no coordinates).

    A cut block keeps the first r of them.  The orthoplex of d pairs of opposite axes needs no class of its own: up to
    the reflection that every rule makes anyway, its vertices are the axes of `Orthogonal`.
    """

    def rows_per_block(self, dim: int) -> int:
        """One more than the dimension."""
        return dim + 1

    def product(self, x: Any, r: int) -> Any:
        """Products with the first r vertices."""
        return simplex_product(x)[..., :r]

    def adjoint(self, y: Any, dim: int) -> Any:
        """Sum of the vertices times their numbers."""
        return simplex_adjoint(pad_last(y, dim + 1))

    def product_lanes(self, lanes: np.ndarray, r: int) -> None:
        """In O(d), in place; the lanes have room for one line more than the dimension."""
        from ..linalg.compiled.simplex import simplex_lines

        simplex_lines(lanes, lanes.shape[1])

    def adjoint_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        """In O(d), in place."""
        from ..linalg.compiled.simplex import simplex_lines_adjoint

        lanes[:, r:] = 0
        simplex_lines_adjoint(lanes, dim + 1)
