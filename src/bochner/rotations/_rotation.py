"""Base classes of rotations R: laws of random orthogonal matrices, dense ones and fast chains of stages."""

from __future__ import annotations

import copy
import numbers
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from .._facts import Catalogued
from .._random import RNG, streams
from .._validation import check_count, check_memory, shown, stored_array
from ._drawn_rotation import DrawnMatrices, DrawnRotation, DrawnStages
from ._stages import SignedWalsh, Stage, rademacher

Directions = Literal["all", "axes", "none"]

_MOST_FACTORS = 100  # three are usual: many more is a slip, and would take time
_REMEDY = "use fewer rows or dimensions"


class Rotation(Catalogued, ABC):
    r"""Base class of rotations, laws of random orthogonal matrices.

    To add your own rotation, write a frozen dataclass that derives from `FastRotation` and returns its stages, or from
    `DenseRotation` and returns its matrices.  Each class declares

    - ``uniform_directions``: for which unit vectors s the direction :math:`R^T s` is exactly uniform on the sphere:
      ``"all"`` of them (Haar), the coordinate ``"axes"`` (each row of R is uniform, which is sufficient for an
      orthogonal coupling), or ``"none"`` (approximate);
    - ``powers_of_two``: whether other dimensions are padded with zeros;
    - ``exchangeable``: whether any order of the rows has the same law.  Blocks of other rotations that are cut keep random
      rows (OMC Eq. 6), since the first rows of a structured matrix can repeat each other;
    - ``safe``: whether it is proved that random rows of length :math:`\sqrt d` never have a larger error of the dot product
      than independent Gaussian rows, for all inputs and every number of rows;
    - ``name`` and ``references``, like every class in `bochner.catalogue`.
    """

    powers_of_two: ClassVar[bool] = False
    exchangeable: ClassVar[bool] = False

    @property
    def sign_rows(self) -> bool:
        """Whether rows are vectors of signs, coupled as those of HMD: then errors of cosines are known."""
        return False

    @property
    def safe(self) -> bool:
        """Whether random rows never have a larger error of the dot product than independent rows: uniform rows do not."""
        return self.uniform_directions != "none"

    def fourth_moment_share(self, dim: int) -> float | None:
        r"""Share :math:`\theta` of an input's own fourth moment that the rotation leaves, or None if it is not known.

        :math:`E\sum_i(Rx)_i^2(Ry)_i^2 = T^* + \theta\,(\sum_i x_i^2y_i^2 - T^*)` with :math:`T^*` of a Haar matrix, from
        which the error of dot products follows (OMC Theorems 5.1 and 5.2).  Uniform rows leave nothing.
        """
        return None if self.uniform_directions == "none" else 0.0

    @property
    @abstractmethod
    def uniform_directions(self) -> Directions:
        """The unit vectors that are rotated to exactly uniform directions: "all", coordinate "axes", or "none"."""

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
            Number of matrices.
        rng : int, numpy.random.Generator or None
            Source of randomness.

        Returns
        -------
        DrawnRotation
        """
        name = repr(self)
        dim = self.padded(check_count(name, "d", d))
        n_blocks = check_count(name, "n_blocks", n_blocks)
        check_memory(name, n_blocks * self.block_bytes(dim), _REMEDY)
        (stream,) = streams(rng, "directions")
        return self._draw(dim, n_blocks, stream)

    def sample_rows(self, d: int, n_rows: int, rng: RNG = None) -> DrawnRotation:
        """Draw one rotation of which only ``n_rows`` rows are used: the first ones, if any order of rows has the same law.

        Rows that are not needed are then not drawn.

        Parameters
        ----------
        d : int
            Dimension of the data.
        n_rows : int
            Number of rows, at most ``padded(d)``.
        rng : int, numpy.random.Generator or None
            Source of randomness.

        Returns
        -------
        DrawnRotation
        """
        name = repr(self)
        d, n_rows = check_count(name, "d", d), check_count(name, "n_rows", n_rows)
        if n_rows > self.padded(d):
            raise ValueError(f"{name}: n_rows must be at most {self.padded(d)}, the dimension, got {n_rows}.")
        return self._draw_rows(d, n_rows, rng)

    def _draw_rows(self, d: int, n_rows: int, rng: RNG) -> DrawnRotation:
        """Draw, with checked arguments."""
        return self.sample(d, 1, rng)

    @abstractmethod
    def flops(self, d: int) -> int:
        """Additions and multiplications of the product of one drawn matrix with one vector.

        Parameters
        ----------
        d : int
            Dimension of the data; the count is that of the padded dimension.

        Returns
        -------
        int
            Exact count for the reference implementation, which neither moves of numbers nor the random draw add to.

        Examples
        --------
        >>> from bochner.rotations import Haar, Hadamard, StructuredGivens
        >>> [R.flops(16) for R in (Haar(), Hadamard(1), StructuredGivens(mix=False))]
        [496, 80, 192]
        """

    @abstractmethod
    def block_bytes(self, dim: int) -> float:
        """Approximate size of one drawn matrix in bytes."""

    @abstractmethod
    def _draw(self, dim: int, n_blocks: int, rng: np.random.Generator) -> DrawnRotation:
        """Draw, with checked arguments."""


class DenseRotation(Rotation):
    """Base class of rotations whose matrices are stored in full.

    A subclass implements `matrices`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from bochner.rotations import DenseRotation
    >>> @dataclass(frozen=True)
    ... class SignedPermutation(DenseRotation):
    ...     uniform_directions = "none"
    ...     def matrices(self, dim, n_blocks, rng):
    ...         order = rng.permuted(np.tile(np.arange(dim), (n_blocks, 1)), axis=1)
    ...         return np.eye(dim)[order] * rng.choice((-1.0, 1.0), (n_blocks, 1, dim))
    >>> SignedPermutation().sample(5, rng=0).to_dense().shape
    (1, 5, 5)
    """

    @abstractmethod
    def matrices(self, dim: int, n_blocks: int, rng: np.random.Generator) -> np.ndarray:
        """Draw independent orthogonal matrices in dimension ``dim`` >= 2: a float64 array (n_blocks, dim, dim)."""

    def flops(self, d: int) -> int:
        """Number of operations of a product with a square matrix."""
        dim = self.padded(check_count(repr(self), "d", d))
        return dim * (2 * dim - 1)

    def block_bytes(self, dim: int) -> float:
        return 8.0 * dim**2

    def _draw(self, dim: int, n_blocks: int, rng: np.random.Generator) -> DrawnMatrices:
        if dim == 1:  # the orthogonal matrices of size one are +1 and -1: every law is a random sign
            return DrawnMatrices(repr(self), rademacher(rng, n_blocks, 1)[..., None].astype(np.float64))
        drawn = np.asarray(self.matrices(dim, n_blocks, rng), np.float64)
        if drawn.shape != (n_blocks, dim, dim):
            raise ValueError(f"{self!r}: matrices must have shape {(n_blocks, dim, dim)}, got {drawn.shape}.")
        return DrawnMatrices(repr(self), drawn)


class FastRotation(Rotation):
    """Base class of rotations that are chains of stages, with O(d) or O(d log d) stored numbers in place of d x d.

    A subclass implements `stages`.  The base class provides padding, adjoints, both precisions, tensors of other
    libraries and the compiled path.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from bochner.rotations import FastRotation, hd_block
    >>> @dataclass(frozen=True)
    ... class TwoBlocks(FastRotation):
    ...     uniform_directions = "none"
    ...     def stages(self, dim, n_blocks, rng):
    ...         return [hd_block(rng, n_blocks, dim) for _ in range(2)]
    >>> TwoBlocks().sample(100, rng=0).dim
    128
    """

    powers_of_two: ClassVar[bool] = True

    @abstractmethod
    def stages(self, dim: int, n_blocks: int, rng: np.random.Generator) -> Sequence[Stage]:
        """Draw the orthogonal factors in dimension ``dim`` >= 2, in the order in which they are applied."""

    def flops(self, d: int) -> int:
        """Number of operations of all stages, which a draw that is not kept lists."""
        drawn = self._draw(self.padded(check_count(repr(self), "d", d)), 1, np.random.default_rng(0))
        return sum(stage.flops(drawn.dim) for stage in drawn.stages)

    def block_bytes(self, dim: int) -> float:
        return 8.0 * dim * max(dim.bit_length() - 1, 1)

    def restored(self, dim: int, n_blocks: int, arrays: Mapping[str, Any]) -> DrawnStages:
        """Rebuild a drawn rotation from ``arrays``, named as by `DrawnStages.to_arrays`.

        A temporary draw determines the stages, and the shapes and types of their arrays.
        """
        chain = []
        for k, stage in enumerate(self._draw(dim, n_blocks, np.random.default_rng(0)).stages):
            stored = copy.copy(stage)
            for name, array in stage.to_arrays().items():
                key = f"stages.{k}.{name}"
                setattr(stored, name, stored_array(repr(self), arrays, key, array.shape, array.dtype))
            if not stored.valid(dim):
                raise ValueError(
                    f"{self!r}: the stored arrays of stage {k}, {type(stage).__name__}, are not orthogonal."
                )
            chain.append(stored)
        return DrawnStages(repr(self), n_blocks, dim, chain)

    def _draw(self, dim: int, n_blocks: int, rng: np.random.Generator) -> DrawnStages:
        if dim == 1:  # as for dense matrices: a random sign
            return DrawnStages(repr(self), n_blocks, 1, [SignedWalsh(rademacher(rng, n_blocks, 1), 0, 0)])
        stages = self.stages(dim, n_blocks, rng)
        for k, stage in enumerate(stages):
            if not stage.valid(dim) or any(len(array) != n_blocks for array in stage.to_arrays().values()):
                raise ValueError(
                    f"{self!r}: stage {k}, {type(stage).__name__}, does not fit {n_blocks} blocks of dimension {dim}."
                )
        return DrawnStages(repr(self), n_blocks, dim, stages)


def check_factors(owner: str, name: str, value: Any) -> int:
    """Return a number of factors as an int; unreasonably large numbers are refused."""
    if isinstance(value, numbers.Integral) and int(value) > _MOST_FACTORS:
        raise ValueError(f"{owner}: {name} must be at most {_MOST_FACTORS}, got {shown(value)}; a few factors suffice.")
    return check_count(owner, name, value)
