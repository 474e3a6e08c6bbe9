"""Common body of the maps that are homogeneous in the projections."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from ..kernels import Kernel
from .base import Coupling, Map
from .draws import Draws
from .features import Features
from .nodes import Directions
from .pointwise import PointwiseFeatures
from .statistics import Data


class HomogeneousMap(Map):
    """Features c f(w . x) with f(r u) = r^b f(u) for r > 0, which need uniform directions alone.

    With ``radii="fixed"``, or in a quadrature, the radius is integrated out (`bochner.maps.nodes.Directions`): the
    estimate is unbiased all the same, and has no radial noise.
    """

    even: ClassVar[bool] = False
    constant: ClassVar[float] = 1.0

    @property
    def coupling(self) -> Coupling:
        """Orthogonal directions without radial noise."""
        return "directions"

    @property
    @abstractmethod
    def degree(self) -> int:
        """Degree of homogeneity."""

    @abstractmethod
    def function(self, u: Any) -> Any:
        """The nonlinearity."""

    def draw(self, draws: Draws, kernel: Kernel | None, data: Data | None) -> Features:
        """Products that are even in w need no reflection."""
        operator = draws.operator()
        nodes = Directions(operator, self.degree, reflect=operator.reflected and not self.even)
        return PointwiseFeatures(nodes, self.function, self.constant, positive=self.positive)
