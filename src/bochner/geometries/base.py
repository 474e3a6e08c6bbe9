"""What every geometry S is: how the directions of one block stand to each other before they are rotated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np


class Geometry(ABC):
    """The unit directions of a block: a matrix S of r rows in dimension ``dim``, known by its products.

    ``axes`` says that the directions are coordinate axes: then a rotation with exactly uniform rows makes each of
    them exactly uniform, while other geometries need a rotation that does so for every direction.
    """

    axes: ClassVar[bool] = False

    def rows_per_block(self, dim: int) -> int:
        """How many rows a full block has."""
        return dim

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers that define S: none, unless it is stored."""
        return 0

    @abstractmethod
    def product(self, x: Any, blocks: slice, r: int) -> Any:
        """Products with the r directions of each of several blocks: (..., b, dim) gives (..., b, r)."""

    @abstractmethod
    def adjoint(self, y: Any, blocks: slice, dim: int) -> Any:
        """Sums of the directions times r numbers: (..., b, r) gives (..., b, dim)."""

    @abstractmethod
    def product_lanes(self, lanes: np.ndarray, block: int, r: int) -> None:
        """`product` for one block, in place, on compiled lanes."""

    @abstractmethod
    def adjoint_lanes(self, lanes: np.ndarray, block: int, r: int, dim: int) -> None:
        """`adjoint` for one block, in place, on compiled lanes."""

    def directions(self, blocks: slice, r: int, dim: int) -> np.ndarray:
        """The matrices S themselves, (b or 1, r, dim)."""
        return np.moveaxis(np.asarray(self.product(np.eye(dim)[:, None, :], blocks, r)), 0, -1)
