"""Geometries S: how the directions of one block relate to each other before they are rotated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from .._arrays import pad_last
from .._facts import Catalogued
from ..linalg.references import simplex_adjoint, simplex_product, simplex_vertices

Coupling = Literal["orthogonal", "simplex"]


class Geometry(Catalogued, ABC):
    """Base class of geometries, the unit directions of a block: a matrix S of r rows in dimension ``dim``.

    To add your own geometry, write a frozen dataclass that derives from `Geometry` and implements `directions`, or from
    `FastGeometry` and implements products without forming S.  Each class declares

    - ``axes``: whether the directions are coordinate axes.  Then a rotation with exactly uniform rows makes each of them
      exactly uniform, while other geometries need a rotation that does so for every direction;
    - ``coupling``: its name in the closed forms of `bochner.theory`, or None;
    - ``name`` and ``references``, like every class in `bochner.catalogue`.

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
        """Number of rows of a full block."""
        return dim

    def n_coordinates(self, r: int, dim: int) -> int:
        """Number of leading coordinates that the directions of a block of r rows use.

        If it is less than ``dim``, the methods of the geometry may be called with that number as ``dim``.
        """
        return dim

    @abstractmethod
    def directions(self, radii: np.ndarray, dim: int) -> np.ndarray:
        """Return the matrices S of b blocks whose rows have the lengths ``radii`` (b, r).

        Parameters
        ----------
        radii : array (b, r)
            Lengths of the rows, for geometries that depend on them.
        dim : int
            Dimension of the directions.

        Returns
        -------
        array (b, r, dim), or (1, r, dim) if all blocks have the same directions
        """


class FastGeometry(Geometry):
    """Base class of geometries with products in O(d) that are the same for all blocks, so S is never formed.

    A subclass implements `product` and `adjoint` for any array library.  The base class derives versions for compiled
    lanes, which may be overridden by faster ones.
    """

    @abstractmethod
    def product(self, x: Any, r: int) -> Any:
        """Multiply the last axis (``dim`` numbers) by the r directions of a block."""

    @abstractmethod
    def adjoint(self, y: Any, dim: int) -> Any:
        """Sum the directions, multiplied by the r numbers of the last axis: ``dim`` coordinates."""

    def product_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        """Apply `product` in place to lanes (groups, capacity, 16), from the first ``dim`` lines into the first r."""
        lanes[:, :r] = self.product(lanes[:, :dim].swapaxes(1, 2), r).swapaxes(1, 2)

    def adjoint_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        """Apply `adjoint` in place to compiled lanes, from the first r lines into the first ``dim``."""
        lanes[:, :dim] = self.adjoint(lanes[:, :r].swapaxes(1, 2), dim).swapaxes(1, 2)

    def directions(self, radii: np.ndarray, dim: int) -> np.ndarray:
        return np.asarray(self.product(np.eye(dim), radii.shape[1])).T[None]


@dataclass(frozen=True)
class Orthogonal(FastGeometry):
    """The coordinate axes: S is the identity, or its first r rows."""

    name: ClassVar[str] = "orthogonal"
    references: ClassVar[tuple[str, ...]] = ("yu2016",)
    axes: ClassVar[bool] = True
    coupling: ClassVar[Coupling | None] = "orthogonal"

    def n_coordinates(self, r: int, dim: int) -> int:
        return r

    def product(self, x: Any, r: int) -> Any:
        return x[..., :r]

    def adjoint(self, y: Any, dim: int) -> Any:
        return pad_last(y, dim)

    def product_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        """Do nothing: the first r lines are the products."""

    def adjoint_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        lanes[:, r:dim] = 0


@dataclass(frozen=True)
class Simplex(FastGeometry):
    r"""r unit vectors with pairwise cosine -1/(r - 1), the most negative that r vectors can share (SimRF Eq. 9).

    Products cost O(d).  A smaller block of r < d rows is a true r-simplex, whose error is lower than that of r rows of
    the full one (d = 8, r = 3, v = 0.8: scaled error 0.234 against 0.447).  A block of one row is the first axis.
    """

    name: ClassVar[str] = "simplex"
    references: ClassVar[tuple[str, ...]] = ("simrf",)
    coupling: ClassVar[Coupling | None] = "simplex"

    def n_coordinates(self, r: int, dim: int) -> int:
        return max(r - 1, 1)

    def product(self, x: Any, r: int) -> Any:
        return x[..., :1] if r == 1 else simplex_product(x[..., : r - 1])

    def adjoint(self, y: Any, dim: int) -> Any:
        return pad_last(y if y.shape[-1] == 1 else simplex_adjoint(y), dim)

    def product_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        from ..linalg.loops import simplex_lines

        if r > 1:
            simplex_lines(lanes, r)

    def adjoint_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        from ..linalg.loops import simplex_lines_adjoint

        if r > 1:
            simplex_lines_adjoint(lanes, r)
        lanes[:, r:dim] = 0


@dataclass(frozen=True)
class SimplexVertices(FastGeometry):
    """d + 1 unit vectors with pairwise cosine -1/d, the vertices of spherical-radial quadrature rules (QBF Section 2).

    A smaller block keeps the first r of them.  The orthoplex of d pairs of opposite axes needs no separate class: the
    rules reflect every vertex, so its vertices are the axes of `Orthogonal`.
    """

    name: ClassVar[str] = "simplex-vertices"
    references: ClassVar[tuple[str, ...]] = ("qbf",)

    def rows_per_block(self, dim: int) -> int:
        return dim + 1

    def product(self, x: Any, r: int) -> Any:
        return simplex_product(x)[..., :r]

    def adjoint(self, y: Any, dim: int) -> Any:
        return simplex_adjoint(pad_last(y, dim + 1))

    def product_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        from ..linalg.loops import simplex_lines

        simplex_lines(lanes, dim + 1)

    def adjoint_lanes(self, lanes: np.ndarray, r: int, dim: int) -> None:
        from ..linalg.loops import simplex_lines_adjoint

        lanes[:, r : dim + 1] = 0
        simplex_lines_adjoint(lanes, dim + 1)


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
