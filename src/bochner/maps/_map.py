"""What every map is: a value that says how projections become features, and what is known of them before any draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from .._facts import Catalogued
from ..kernels import Kernel
from ..projections import Projection
from ._data import Data
from ._drawing import Draws
from ._error import ErrorCase, NoClosedForm
from ._features import Features

Coupling = Literal["orthogonal", "simplex", "directions", "independent"]


class Layout(NamedTuple):
    """Width, symmetry and sign of the features of m projections, known without drawing them.

    Attributes
    ----------
    per_row, extra : int
        The features of m projections are ``per_row * m + extra`` wide.
    symmetric : bool
        Whether queries and keys have the same features.
    positive : bool
        Whether all features are positive.
    """

    per_row: int
    extra: int
    symmetric: bool
    positive: bool

    def width(self, n_projections: int) -> int:
        """Width with that many projections."""
        return self.per_row * n_projections + self.extra

    def rows_within(self, width: int) -> int:
        """Most projections whose features are no wider; zero if one row is too wide already."""
        return max((width - self.extra) // self.per_row, 0)


class Map(Catalogued, ABC):
    """A nonlinearity, with its constants, that turns random projections into features of a kernel.

    Subclasses are frozen dataclasses: ``repr`` rebuilds them and ``==`` compares them.  Each declares

    - ``serves(kernel)`` and, in words, ``requirement``: which kernels it estimates;
    - ``family``: the kind of features ("cosines", "exponentials", ...), for comparisons between kinds;
    - ``coupling``: how the rows of W should be coupled for it, by default;
    - ``uses_rows``: whether it needs a matrix W at all;
    - ``degree``: of a homogeneous map, which only needs uniform directions; otherwise None;
    - ``layout(projection)``: width, symmetry and sign, without a draw;
    - ``mse(case)``: its error in closed form, where one is known.

    A map with constants that are best chosen from data implements ``planned`` and ``plan``.
    """

    requirement: ClassVar[str]
    family: ClassVar[str] = ""
    uses_rows: ClassVar[bool] = True

    @abstractmethod
    def serves(self, kernel: Kernel | None) -> bool:
        """Whether this map estimates that kernel."""

    @classmethod
    def default_for(cls, kernel: Kernel) -> Map | None:
        """The map of this class that is the default for a kernel; None for all others."""
        return None

    def unbiased(self, projection: Projection) -> bool:
        """Whether the mean of the estimate with these rows is exactly the kernel."""
        return projection.unbiased if self.degree is None else projection.uniform_directions

    @property
    def coupling(self) -> Coupling:
        """How the rows of W should be coupled."""
        return "orthogonal"

    @property
    def degree(self) -> int | None:
        """Degree of homogeneity, if any."""
        return None

    @property
    def planned(self) -> bool:
        """Whether every constant has a value."""
        return True

    def plan(self, data: Data, projection: Projection, kernel: Kernel | None, rng: np.random.Generator, m: int) -> Map:
        """The same map with every constant filled in.

        Parameters
        ----------
        data : Data
            Queries and keys at unit scale.
        projection : Projection
            The rows it will meet; padding changes their dimension.
        kernel : Kernel or None
        rng : numpy.random.Generator
            For subsamples of the data.
        m : int
            Number of rows, or of landmarks.
        """
        return self

    @property
    def remedy_without_data(self) -> str:
        """What to write where there is no data."""
        return "call fit(X, Y) with data"

    @abstractmethod
    def layout(self, projection: Projection) -> Layout:
        """Width, symmetry and sign of the features; a ValueError where they depend on constants not chosen yet."""

    def narrowed(self) -> Map | None:
        """The same map with one feature fewer, its last row having one feature in place of a pair; None if it cannot."""
        return None

    def worth_trying(self, projection: Projection) -> bool:
        """Whether `recommend` and `compare` try the map with these rows: fixed lengths bias all but homogeneous maps."""
        return self.degree is not None or projection.gaussian_lengths or projection.has_origin

    @abstractmethod
    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        """The features, with every random number taken from ``draws``."""

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Mean squared errors of all pairs of the case in closed form, (n, p)."""
        raise NoClosedForm(
            f"no closed form is known for the error of {self!r}; simulate_mse estimates it for any approximation."
        )

    def why(self, facts: Any) -> str:
        """One sentence on why features of this family have the lowest error on data with these facts."""
        return f"{self.family or type(self).__name__} features win on these data."


def unplanned(feature_map: Map, fact: str) -> ValueError:
    """The error said when a fact depends on constants that are still to be chosen."""
    return ValueError(f"{fact} of {feature_map!r} depends on constants chosen from data; call plan(X, Y) first.")
