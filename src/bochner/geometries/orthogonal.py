"""Orthogonal directions."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .._arrays import pad_last
from .base import Geometry


class Orthogonal(Geometry):
    """The coordinate axes: S is the identity, cut to r rows."""

    axes: ClassVar[bool] = True

    def product(self, x: Any, blocks: slice, r: int) -> Any:
        """Keep the first r coordinates."""
        return x[..., :r]

    def adjoint(self, y: Any, blocks: slice, dim: int) -> Any:
        """Put zeros after them."""
        return pad_last(y, dim)

    def product_lanes(self, lanes: np.ndarray, block: int, r: int) -> None:
        """Nothing to do: the first r lines are the products."""

    def adjoint_lanes(self, lanes: np.ndarray, block: int, r: int, dim: int) -> None:
        """Zeros after the first r lines."""
        lanes[:, r:dim] = 0
