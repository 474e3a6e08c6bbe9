"""What every geometry S is: how the directions of one block stand to each other before they are rotated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np


class Geometry(ABC):
    """The unit directions of a block: a matrix S of r rows in dimension ``dim``.

    ``axes`` says that the directions are coordinate axes: then a rotation with exactly uniform rows makes each of
    them exactly uniform, while other geometries need a rotation that does so for every direction.  ``coupling`` is its name in the closed
    forms.
    """

    axes: ClassVar[bool] = False
    coupling: ClassVar[Literal["orthogonal", "simplex"] | None] = None

    def rows_per_block(self, dim: int) -> int:
        """How many rows a full block has."""
        return dim

    def n_coordinates(self, r: int, dim: int) -> int:
        """How many coordinates the directions of a block of r rows live in: the first ones."""
        return dim

    @abstractmethod
    def directions(self, blocks: slice, r: int, dim: int) -> np.ndarray:
        """The matrices S of several blocks of r rows, (b or 1, r, dim)."""


class FastGeometry(Geometry):
    """A geometry with products in O(d): S is never formed, except to look at it."""

    @abstractmethod
    def product(self, x: Any, r: int) -> Any:
        """Products of the last axis (``dim`` numbers) with the r directions of a block."""

    @abstractmethod
    def adjoint(self, y: Any, dim: int) -> Any:
        """Sum of the directions times the last axis (r numbers): ``dim`` coordinates."""

    @abstractmethod
    def product_lanes(self, lanes: np.ndarray, r: int) -> None:
        """`product`, in place, on compiled lanes."""

    @abstractmethod
    def adjoint_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        """`adjoint`, in place, on compiled lanes."""

    def directions(self, blocks: slice, r: int, dim: int) -> np.ndarray:
        """The matrix S itself, the same for all blocks, (1, r, dim)."""
        return np.asarray(self.product(np.eye(dim), r)).T[None]
