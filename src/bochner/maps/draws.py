"""Where a map gets its randomness: operators and streams by name, and nothing of how they are drawn."""

from __future__ import annotations

import copy

import numpy as np

from .._random import RNG, as_generator, streams
from ..kernels import Kernel
from ..projections import IID, Operator, Projection


class Draws:
    """Named draws of one approximation; each name has a stream of its own.

    Parameters
    ----------
    projection : Projection
    d, m : int
        Dimension of the data, rows of W.
    kernel : Kernel or None
        Owner of the spectral law.
    rng : int, numpy.random.Generator or None
    """

    def __init__(self, projection: Projection, d: int, m: int, kernel: Kernel | None, rng: RNG) -> None:
        self.projection, self.d, self.m, self.kernel = projection, d, m, kernel
        self._seed = int(as_generator(rng).integers(2**63))
        self._prefix = ""
        self._drawn: dict[str, Operator] = {}

    @property
    def dim(self) -> int:
        """Dimension in which rows are drawn: d, or what the projection pads it to."""
        return self.projection.padded(self.d)

    def stream(self, name: str) -> np.random.Generator:
        """The generator of that name."""
        return streams(self._seed, self._prefix + name)[0]

    def apart(self, name: str) -> Draws:
        """The same draws under other names: independent of these."""
        other = copy.copy(self)
        other._prefix, other._drawn = f"{self._prefix}{name}/", {}
        return other

    def operator(self, name: str = "base") -> Operator:
        """W of that name, drawn once by the projection."""
        if name not in self._drawn:
            self._drawn[name] = self.projection.sample(self.d, self.m, self.stream(name), kernel=self.kernel)
        return self._drawn[name]

    def independent_rows(self, name: str, n: int) -> Operator:
        """N independent Gaussian rows, for the coefficients of hybrids."""
        return IID().sample(self.d, n, self.stream(name))
