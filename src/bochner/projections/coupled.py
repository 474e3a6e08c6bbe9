"""Blocks of rows coupled through a geometry and turned by a rotation: W = D S R."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .._random import RNG
from .._validation import check_instance, check_option
from ..geometries import FastGeometry, Geometry
from ..kernels import Kernel
from ..radii.table import RADII, radial_law
from ..rotations import Haar, Rotation
from .base import Projection, block_sizes, draw_blocks, named_streams
from .operator import Operator


@dataclass(frozen=True)
class Coupled(Projection):
    """Common body of `Orthogonal`, `Simplex` and `SimplexPlus`, which add their geometry."""

    rotation: Rotation = Haar()
    radii: str = "kernel"

    def __post_init__(self) -> None:
        check_instance(type(self).__name__, "rotation", self.rotation, Rotation, "rotations.Haar()")
        check_option(type(self).__name__, "radii", self.radii, RADII)

    @property
    @abstractmethod
    def geometry(self) -> type[Geometry]:
        """The class of S."""

    @property
    def uniform_directions(self) -> bool:
        """With a rotation that makes the geometry's directions exactly uniform."""
        return makes_uniform(self.rotation, self.geometry)

    @property
    def gaussian_rows(self) -> bool:
        """With uniform directions and the kernel's own lengths."""
        return self.radii == "kernel" and self.uniform_directions

    @property
    def gaussian_lengths(self) -> bool:
        """Unless they are fixed."""
        return self.radii == "kernel"

    @property
    def coupling(self) -> Literal["orthogonal", "simplex"] | None:
        """The geometry's, for Haar blocks of the kernel's own lengths."""
        exact = self.radii == "kernel" and self.rotation.uniform_directions == "all"
        return self.geometry.coupling if exact else None

    @property
    def scales(self) -> bool:
        """Where neither R nor S is ever formed; Haar with orthogonal rows stays, as the measure of the others."""
        return self.geometry.axes or (self.rotation.powers_of_two and issubclass(self.geometry, FastGeometry))

    def padded(self, d: int) -> int:
        """What the rotation pads d to."""
        return self.rotation.padded(d)

    def _draw(self, name: str, d: int, m: int, rng: RNG, kernel: Kernel | None) -> Operator:
        law = radial_law(name, kernel, self.radii)
        directions, lengths = named_streams(rng)
        dim = self.rotation.padded(d)
        sizes = block_sizes(m, dim)
        radii = law.lengths(dim, m, lengths)
        geometry = self._geometry(radii, sizes)
        lengths_of_kernel = self.radii == "kernel"
        return draw_blocks(
            name, d, self.rotation, geometry, sizes, radii, directions, gaussian_lengths=lengths_of_kernel
        )

    def _geometry(self, lengths: np.ndarray, sizes: tuple[int, ...]) -> Geometry:
        """S for blocks with these lengths."""
        return self.geometry()


def makes_uniform(rotation: Rotation, geometry: type[Geometry]) -> bool:
    """Whether every direction of the geometry comes out exactly uniform."""
    return rotation.uniform_directions == "all" or (rotation.uniform_directions == "axes" and geometry.axes)
