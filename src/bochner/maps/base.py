"""What every map is: a value that says how projections become features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from ..kernels import Kernel
from .draws import Draws
from .features import Features
from .statistics import Data

Coupling = Literal["orthogonal", "simplex", "directions", "independent"]


class Map(ABC):
    """A nonlinearity, with its constants, that turns random projections into features of a kernel.

    Subclasses are frozen dataclasses: ``repr`` rebuilds them and ``==`` compares them.  Each declares

    - ``serves(kernel)`` and, in words, ``requirement``: which kernels it estimates;
    - ``coupling``: how the rows of W should stand to each other for it, by default;
    - ``discrete``: whether it draws tables of integers and has no W;
    - ``degree``: of a homogeneous map, which needs uniform directions alone; otherwise None;
    - ``needs_data``: whether it has constants to be chosen from data;
    - ``symmetric`` and ``positive``: whether queries and keys share their features, and whether those are positive,
      with rows of equal weight; by ``always_symmetric`` and ``always_positive`` where no parameter decides;
    - ``references``: bibliography keys.
    """

    requirement: ClassVar[str]
    discrete: ClassVar[bool] = False
    always_symmetric: ClassVar[bool] = True
    always_positive: ClassVar[bool] = False
    references: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def serves(self, kernel: Kernel | None) -> bool:
        """Whether this map estimates that kernel."""

    @property
    def coupling(self) -> Coupling:
        """How rows of W should stand to each other."""
        return "orthogonal"

    @property
    def degree(self) -> int | None:
        """Degree of homogeneity, if any."""
        return None

    @property
    def needs_data(self) -> bool:
        """Whether constants must be chosen from data."""
        return False

    @property
    def symmetric(self) -> bool:
        """Whether queries and keys share their features."""
        return self.always_symmetric

    @property
    def positive(self) -> bool:
        """Whether all features are positive."""
        return self.always_positive

    @abstractmethod
    def draw(self, draws: Draws, kernel: Kernel | None, data: Data | None) -> Features:
        """The features, with constants chosen from ``data`` where the map does so."""

    @property
    def remedy_without_data(self) -> str:
        """What to write where there is no data."""
        return "call fit(X, Y) with data"
