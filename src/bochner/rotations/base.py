"""What every rotation R is: a value that says how random orthogonal matrices are drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np

from .._facts import Catalogued
from .._random import RNG, streams
from .._validation import check_count
from .drawn import DrawnRotation, FastRotation
from .stages import SignedWalsh

Directions = Literal["all", "axes", "none"]


class Rotation(Catalogued, ABC):
    """A law of random orthogonal matrices.

    Subclasses are frozen dataclasses: ``repr`` rebuilds them and ``==`` compares them.  Each declares

    - ``uniform_directions``: for which unit vectors s the direction :math:`R^T s` is exactly uniform on the sphere:
      ``"all"`` of them (Haar), the coordinate ``"axes"`` (each row of R is uniform, which is all that an orthogonal
      coupling needs), or ``"none"`` (approximate);
    - ``isotropy``: ``"exact"`` or ``"approximate"``, whether each row of R is exactly uniform;
    - ``powers_of_two``: whether other dimensions are padded with zeros;
    - ``name`` and ``references``.
    """

    powers_of_two: ClassVar[bool] = True

    @property
    @abstractmethod
    def uniform_directions(self) -> Directions:
        """Which directions come out exactly uniform."""

    @property
    def isotropy(self) -> Literal["exact", "approximate"]:
        """Whether each row is exactly uniform on the sphere."""
        return "approximate" if self.uniform_directions == "none" else "exact"

    def padded(self, d: int) -> int:
        """The dimension in which data of dimension ``d`` is rotated: ``d``, or the next power of two."""
        return 1 << (d - 1).bit_length() if self.powers_of_two else d

    def sample(self, d: int, n_blocks: int = 1, rng: RNG = None) -> DrawnRotation:
        """Draw ``n_blocks`` independent rotations of dimension ``padded(d)``.

        Parameters
        ----------
        d : int
            Dimension of the data.
        n_blocks : int
            How many matrices.
        rng : int, numpy.random.Generator or None
            Source of randomness.
        """
        name = repr(self)
        dim = self.padded(check_count(name, "d", d))
        check_count(name, "n_blocks", n_blocks)
        (stream,) = streams(rng, "directions")
        if dim == 1:  # the orthogonal matrices of size one are +1 and -1: every law here is a fair coin
            return FastRotation(name, n_blocks, 1, [SignedWalsh(rademacher(stream, n_blocks, 1), 0, 0)])
        return self._draw(name, dim, n_blocks, stream)

    def sample_rows(self, d: int, n_rows: int, rng: RNG = None) -> DrawnRotation:
        """Draw one rotation of which only the first ``n_rows`` rows are looked at: a law may draw no others.

        Parameters
        ----------
        d : int
            Dimension of the data.
        n_rows : int
            How many rows, at most ``padded(d)``.
        rng : int, numpy.random.Generator or None
            Source of randomness.
        """
        return self.sample(d, 1, rng)

    @abstractmethod
    def _draw(self, name: str, dim: int, n_blocks: int, rng: np.random.Generator) -> DrawnRotation:
        """Draw in dimension ``dim`` of at least two."""


def rademacher(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Fair random signs, int8."""
    return (2 * rng.integers(0, 2, size=shape, dtype=np.int8) - 1).astype(np.int8)


def levels_of(dim: int) -> int:
    """L with 2^L = dim."""
    return int(dim).bit_length() - 1


def hd_block(rng: np.random.Generator, n_blocks: int, dim: int) -> SignedWalsh:
    """One H D factor: random signs, then the normalised Hadamard matrix."""
    return SignedWalsh(rademacher(rng, n_blocks, dim), 0, levels_of(dim))
