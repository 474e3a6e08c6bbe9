"""Directions that point at the corners of a regular simplex."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from .._arrays import pad_last
from ..linalg.simplex import simplex_adjoint, simplex_product
from .base import FastGeometry


class Simplex(FastGeometry):
    r"""r unit vectors with pairwise cosine -1/(r - 1), the most negative that r vectors can share (SimRF Eq. 9).

    Products cost O(d).  A cut block of r < d rows is a true r-simplex, whose error is lower than that of r rows of
    the full one (d = 8, r = 3, v = 0.8: scaled error 0.234 against 0.447).  A block of one row is the first axis.
    """

    coupling: ClassVar[Literal["orthogonal", "simplex"] | None] = "simplex"

    def n_coordinates(self, r: int, dim: int) -> int:
        """The vertices live in the first r - 1; a single row is the first axis."""
        return max(r - 1, 1)

    def product(self, x: Any, r: int) -> Any:
        """Products with the r vertices, which live in the first r - 1 coordinates."""
        return x[..., :1] if r == 1 else simplex_product(x[..., : r - 1])

    def adjoint(self, y: Any, dim: int) -> Any:
        """Sum of the vertices times their numbers."""
        return pad_last(y if y.shape[-1] == 1 else simplex_adjoint(y), dim)

    def product_lanes(self, lanes: np.ndarray, r: int) -> None:
        """In O(d), in place."""
        from ..linalg.compiled.simplex import simplex_lines

        if r > 1:
            simplex_lines(lanes, r)

    def adjoint_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        """In O(d), in place."""
        from ..linalg.compiled.simplex import simplex_lines_adjoint

        if r > 1:
            simplex_lines_adjoint(lanes, r)
        lanes[:, r:dim] = 0
