"""What every geometry S is: how the directions of one block relate to each other before they are rotated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from .._arrays import pad_last
from .._facts import Catalogued
from ..linalg.references import simplex_adjoint, simplex_product

Coupling = Literal["orthogonal", "simplex"]


class Geometry(Catalogued, ABC):
    """The unit directions of a block: a matrix S of r rows in dimension ``dim``.

    A geometry of one's own is a frozen dataclass that inherits from `Geometry` and writes `directions`, or from
    `FastGeometry` and writes products that never form S.  Each class declares

    - ``axes``: whether the directions are coordinate axes.  Then a rotation with exactly uniform rows makes each of them
      exactly uniform, while other geometries need a rotation that does so for every direction;
    - ``coupling``: its name in the closed forms of `bochner.theory`, or None;
    - ``name`` and ``references``, as everything in `bochner.catalogue`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from bochner import geometries, projections
    >>> @dataclass(frozen=True)
    ... class Fan(geometries.Geometry):
    ...     def directions(self, radii, dim):
    ...         angles = np.linspace(0, np.pi / 2, radii.shape[1])
    ...         S = np.zeros((1, len(angles), dim))
    ...         S[0, :, 0], S[0, :, 1] = np.cos(angles), np.sin(angles)
    ...         return S
    >>> projections.Blocks(geometry=Fan()).unbiased
    True
    """

    axes: ClassVar[bool] = False
    coupling: ClassVar[Coupling | None] = None

    def rows_per_block(self, dim: int) -> int:
        """How many rows a full block has."""
        return dim

    def n_coordinates(self, r: int, dim: int) -> int:
        """How many coordinates the directions of a block of r rows live in: the first ones.

        Where it is less than ``dim``, the methods of the geometry may be called with that many coordinates as ``dim``.
        """
        return dim

    @abstractmethod
    def directions(self, radii: np.ndarray, dim: int) -> np.ndarray:
        """The matrices S of b blocks whose rows have the lengths ``radii`` (b, r): (b, r, dim), or (1, r, dim) if alike."""


class FastGeometry(Geometry):
    """A geometry with products in O(d), the same for all blocks: S is never formed, except to look at it.

    `product` and `adjoint` are written for any array library.  The versions on compiled lanes follow from them, and may be
    written too where they can be faster.
    """

    @abstractmethod
    def product(self, x: Any, r: int) -> Any:
        """Products of the last axis (``dim`` numbers) with the r directions of a block."""

    @abstractmethod
    def adjoint(self, y: Any, dim: int) -> Any:
        """Sum of the directions times the last axis (r numbers): ``dim`` coordinates."""

    def product_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        """`product`, in place, on compiled lanes (groups, capacity, 16): of the first ``dim`` lines, into the first r."""
        lanes[:, :r] = self.product(lanes[:, :dim].swapaxes(1, 2), r).swapaxes(1, 2)

    def adjoint_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        """`adjoint`, in place, on compiled lanes: of the first r lines, into the first ``dim``."""
        lanes[:, :dim] = self.adjoint(lanes[:, :r].swapaxes(1, 2), dim).swapaxes(1, 2)

    def directions(self, radii: np.ndarray, dim: int) -> np.ndarray:
        """The matrix S itself, the same for all blocks, (1, r, dim)."""
        return np.asarray(self.product(np.eye(dim), radii.shape[1])).T[None]


@dataclass(frozen=True)
class Orthogonal(FastGeometry):
    """The coordinate axes: S is the identity, cut to r rows."""

    name: ClassVar[str] = "orthogonal"
    references: ClassVar[tuple[str, ...]] = ("yu2016",)
    axes: ClassVar[bool] = True
    coupling: ClassVar[Coupling | None] = "orthogonal"

    def n_coordinates(self, r: int, dim: int) -> int:
        """The first r."""
        return r

    def product(self, x: Any, r: int) -> Any:
        """Keep the first r coordinates."""
        return x[..., :r]

    def adjoint(self, y: Any, dim: int) -> Any:
        """Put zeros after them."""
        return pad_last(y, dim)

    def product_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        """Nothing to do: the first r lines are the products."""

    def adjoint_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        """Zeros after the first r lines."""
        lanes[:, r:dim] = 0


@dataclass(frozen=True)
class Simplex(FastGeometry):
    r"""r unit vectors with pairwise cosine -1/(r - 1), the most negative that r vectors can share (SimRF Eq. 9).

    Products cost O(d).  A cut block of r < d rows is a true r-simplex, whose error is lower than that of r rows of
    the full one (d = 8, r = 3, v = 0.8: scaled error 0.234 against 0.447).  A block of one row is the first axis.
    """

    name: ClassVar[str] = "simplex"
    references: ClassVar[tuple[str, ...]] = ("simrf",)
    coupling: ClassVar[Coupling | None] = "simplex"

    def n_coordinates(self, r: int, dim: int) -> int:
        """The vertices live in the first r - 1; a single row is the first axis."""
        return max(r - 1, 1)

    def product(self, x: Any, r: int) -> Any:
        """Products with the r vertices, which live in the first r - 1 coordinates."""
        return x[..., :1] if r == 1 else simplex_product(x[..., : r - 1])

    def adjoint(self, y: Any, dim: int) -> Any:
        """Sum of the vertices times their numbers."""
        return pad_last(y if y.shape[-1] == 1 else simplex_adjoint(y), dim)

    def product_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        """In O(d), in place."""
        from ..linalg.compiled.lanes import simplex_lines

        if r > 1:
            simplex_lines(lanes, r)

    def adjoint_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        """In O(d), in place."""
        from ..linalg.compiled.lanes import simplex_lines_adjoint

        if r > 1:
            simplex_lines_adjoint(lanes, r)
        lanes[:, r:dim] = 0


@dataclass(frozen=True)
class SimplexVertices(FastGeometry):
    """d + 1 unit vectors with pairwise cosine -1/d, as spherical-radial quadrature uses them (QBF Section 2).

    The paper gives no coordinates.  A cut block keeps the first r of them.  The orthoplex of d pairs of opposite axes needs
    no class of its own: up to the reflection that every rule makes anyway, its vertices are the axes of `Orthogonal`.
    """

    name: ClassVar[str] = "simplex-vertices"
    references: ClassVar[tuple[str, ...]] = ("qbf",)

    def rows_per_block(self, dim: int) -> int:
        """One more than the dimension."""
        return dim + 1

    def product(self, x: Any, r: int) -> Any:
        """Products with the first r vertices."""
        return simplex_product(x)[..., :r]

    def adjoint(self, y: Any, dim: int) -> Any:
        """Sum of the vertices times their numbers."""
        return simplex_adjoint(pad_last(y, dim + 1))

    def product_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        """In O(d), in place; the lanes have room for one line more than the dimension."""
        from ..linalg.compiled.lanes import simplex_lines

        simplex_lines(lanes, dim + 1)

    def adjoint_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        """In O(d), in place."""
        from ..linalg.compiled.lanes import simplex_lines_adjoint

        lanes[:, r : dim + 1] = 0
        simplex_lines_adjoint(lanes, dim + 1)
