"""What every projection is: a value that says how the rows of W are drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np

from .._facts import Catalogued
from .._random import RNG, streams
from .._validation import check_count, check_instance
from ..geometries import FastGeometry, Geometry
from ..kernels import Kernel
from ..linalg.tiles import single_threaded_blas
from ..rotations import Rotation
from ..rotations.drawn import DenseRotation, DrawnRotation, FastRotation
from .dense import DenseOperator
from .operator import Operator
from .structured import StructuredOperator, groups_of


class Projection(Catalogued, ABC):
    """A law of m rows in d dimensions.

    Subclasses are frozen dataclasses: ``repr`` rebuilds them and ``==`` compares them.  Each declares

    - ``unbiased``: whether averages over the rows (with their weights) have exactly the mean that independent rows
      of the kernel's spectral law have;
    - ``gaussian_rows``: whether each row by itself follows that law exactly (N(0, I) for the Gaussian kernel);
    - ``uniform_directions``: whether each row's direction is exactly uniform, which is all that homogeneous maps need;
    - ``gaussian_lengths``: whether the rows' lengths follow the kernel's law;
    - ``reflected``: whether each row stands for the pair of w and -w;
    - ``has_origin``: whether the rule has a node at zero; ``signed``: whether the weight of that node may be negative;
    - ``coupling``: name of the coupling in closed forms, ``"iid"``, ``"orthogonal"`` or ``"simplex"``, or None;
    - ``scales``: whether it is worth trying above d = 1024;
    - ``name`` and ``references``.

    All of them are known without a draw.
    """

    @property
    @abstractmethod
    def gaussian_rows(self) -> bool:
        """Whether each row follows the kernel's spectral law exactly."""

    @property
    def uniform_directions(self) -> bool:
        """Whether each row's direction is exactly uniform on the sphere, whatever its length."""
        return self.gaussian_rows

    @property
    def unbiased(self) -> bool:
        """Whether weighted averages over the rows are exactly unbiased."""
        return self.gaussian_rows

    @property
    def gaussian_lengths(self) -> bool:
        """Whether lengths are those of the kernel's law, and not fixed ones or those of weighted nodes."""
        return True

    @property
    def reflected(self) -> bool:
        """Whether each row stands for the pair of w and -w, half of the weight each."""
        return False

    @property
    def has_origin(self) -> bool:
        """Whether the rule has a node at zero."""
        return False

    @property
    def signed(self) -> bool:
        """Whether the weight of the node at zero may be negative."""
        return False

    @property
    def scales(self) -> bool:
        """Whether it is worth trying above d = 1024."""
        return True

    @property
    def coupling(self) -> Literal["iid", "orthogonal", "simplex"] | None:
        """Name of the coupling of the rows in closed forms; None where there is none."""
        return None

    def padded(self, d: int) -> int:
        """Dimension in which the rows are drawn."""
        return d

    def rows_per_rule(self, d: int) -> int:
        """Rows of a whole quadrature rule in d dimensions; one where rows are not nodes of a rule."""
        return 1

    def sample(self, d: int, m: int, rng: RNG = None, *, kernel: Kernel | None = None) -> Operator:
        """Draw W.

        Parameters
        ----------
        d : int
            Dimension of the data.
        m : int
            Number of rows; blocks are stacked, and the last one is cut.
        rng : int, numpy.random.Generator or None
            Source of randomness; the same int gives the same W.
        kernel : Kernel, optional
            Rows follow this kernel's spectral law at unit lengthscale (``kernel.scaled(X)`` brings data there);
            Gaussian rows without it.

        Returns
        -------
        Operator
            The drawn W, a linear operator.
        """
        name = repr(self)
        check_count(name, "d", d)
        check_count(name, "m", m)
        if kernel is not None:
            check_instance(name, "kernel", kernel, Kernel, "kernels.Gaussian()")
        with single_threaded_blas:  # the number of threads cannot change a bit of the draw
            return self._draw(name, int(d), int(m), rng, kernel)

    @abstractmethod
    def _draw(self, name: str, d: int, m: int, rng: RNG, kernel: Kernel | None) -> Operator:
        """Draw, with checked arguments."""


def block_sizes(m: int, rows: int) -> tuple[int, ...]:
    """Sizes of blocks of ``rows`` rows that make ``m``, the last one cut."""
    full, rest = divmod(m, rows)
    return (rows,) * full + ((rest,) if rest else ())


def draw_blocks(name: str, d: int, rotation: Rotation, geometry: Geometry, sizes: tuple[int, ...], radii: np.ndarray,
                rng: np.random.Generator, **options: object) -> Operator:  # fmt: skip
    """W = D S R, one independent rotation a block: never formed where both R and S are fast."""
    drawn = _rotations(rotation, d, geometry, sizes, rng)
    if isinstance(drawn, FastRotation) and isinstance(geometry, FastGeometry):
        return StructuredOperator(name, d, drawn, geometry, radii, sizes, **options)
    rows = [_rows_of(drawn, geometry, blocks, r) for blocks, _, r in groups_of(sizes)]
    W = (radii[:, None] * np.concatenate(rows))[:, :d]
    return DenseOperator(name, np.ascontiguousarray(W), drawn.dim, radii, sizes, **options)


def _rotations(
    rotation: Rotation, d: int, geometry: Geometry, sizes: tuple[int, ...], rng: np.random.Generator
) -> DrawnRotation:
    """One for each block; of a single block that is cut, no more rows than it looks at."""
    if len(sizes) > 1:
        return rotation.sample(d, len(sizes), rng)
    return rotation.sample_rows(d, geometry.n_coordinates(sizes[0], rotation.padded(d)), rng)


def _rows_of(rotation: DrawnRotation, geometry: Geometry, blocks: slice, r: int) -> np.ndarray:
    """S R of several blocks, one below the other: by products in O(d) where S has them."""
    if isinstance(rotation, DenseRotation) and isinstance(geometry, FastGeometry):
        columns = rotation.matrices[blocks].transpose(2, 0, 1)  # (dim, b, rows): columns of R
        rows = np.asarray(geometry.product(columns, r)).transpose(1, 2, 0)
    elif isinstance(rotation, DenseRotation):
        rows = geometry.directions(blocks, r, rotation.matrices.shape[1]) @ rotation.matrices[blocks]
    else:
        S = geometry.directions(blocks, r, rotation.dim)
        rows = np.moveaxis(rotation.rows(np.moveaxis(S, 0, 1), blocks, back=True), 0, 1)
    return rows.reshape(-1, rotation.dim)


def scaled_rows(W: np.ndarray, kernel: Kernel | None, rng: np.random.Generator) -> np.ndarray:
    """Gaussian rows W turned into rows of the kernel's scale mixture, by one random scale each."""
    return W if kernel is None else W * kernel.sample_scales((len(W),), rng)[:, None]


def named_streams(rng: RNG) -> tuple[np.random.Generator, np.random.Generator]:
    """The streams of directions and of lengths."""
    directions, lengths = streams(rng, "directions", "lengths")
    return directions, lengths
