"""Orthogonal directions."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from .._arrays import pad_last
from .base import FastGeometry


class Orthogonal(FastGeometry):
    """The coordinate axes: S is the identity, cut to r rows."""

    axes: ClassVar[bool] = True
    coupling: ClassVar[Literal["orthogonal", "simplex"] | None] = "orthogonal"

    def n_coordinates(self, r: int, dim: int) -> int:
        """The first r."""
        return r

    def product(self, x: Any, r: int) -> Any:
        """Keep the first r coordinates."""
        return x[..., :r]

    def adjoint(self, y: Any, dim: int) -> Any:
        """Put zeros after them."""
        return pad_last(y, dim)

    def product_lanes(self, lanes: np.ndarray, r: int) -> None:
        """Nothing to do: the first r lines are the products."""

    def adjoint_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        """Zeros after the first r lines."""
        lanes[:, r:dim] = 0
