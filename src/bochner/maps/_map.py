"""The base class of maps, which describe how projections become features and what is known before drawing."""

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
        """Width of the features of ``n_projections`` projections."""
        return self.per_row * n_projections + self.extra

    def rows_within(self, width: int) -> int:
        """Largest number of projections whose features fit in ``width``; zero if a single one does not."""
        return max((width - self.extra) // self.per_row, 0)


class Argument(NamedTuple):
    r"""An estimator whose rows are :math:`k\,\mathrm{Re}\,e^{w\cdot z - z\cdot z/2}`."""

    z: np.ndarray  # (n, p, d): the vectors, one for each pair of points
    even: bool  # whether each row is used together with its negative


class Map(Catalogued, ABC):
    """Base class of maps: a nonlinearity with its constants, which turns random projections into features of a kernel.

    Subclasses are frozen dataclasses.  Each declares

    - ``serves(kernel)``: which kernels it estimates, and ``requirement``, the same as a phrase for error messages;
    - ``family``: the kind of features ("cosines", "exponentials", ...), for comparisons between kinds;
    - ``coupling``: how the rows of W should be coupled by default;
    - ``uses_rows``: whether it uses a matrix W at all;
    - ``keeps_points``: whether its plan holds points of the data, where it is exact, so that it is judged on others;
    - ``from_below``: whether the Gram matrix of the features is never above that of the kernel, in any direction;
    - ``formula`` and ``cost``: a feature, up to its constant, and its operations, for the tables of the documentation;
    - ``deterministic``: whether nothing in it is random, so that every draw of a plan is the same;
    - ``largest_dimension``: the most columns of data that it serves, or None;
    - ``degree``: the degree of a homogeneous map, which only needs uniform directions, or None;
    - ``layout(projection)``: width, symmetry and sign of the features, known without drawing;
    - ``mse(case)``: the error in closed form, if one is known.

    A map whose constants can be chosen from data implements ``planned`` and ``plan``.
    """

    requirement: ClassVar[str]
    formula: ClassVar[str] = ""
    cost: ClassVar[str] = r"O(d)\text{, or }O(\log d)"
    family: ClassVar[str] = ""
    uses_rows: ClassVar[bool] = True
    keeps_points: ClassVar[bool] = False
    from_below: ClassVar[bool] = False
    deterministic: ClassVar[bool] = False
    largest_dimension: ClassVar[int | None] = None

    @abstractmethod
    def serves(self, kernel: Kernel | None) -> bool:
        """Whether this map estimates ``kernel``."""

    @classmethod
    def default_for(cls, kernel: Kernel) -> Map | None:
        """Return the map of this class that is the default for ``kernel``, or None."""
        return None

    def unbiased(self, projection: Projection) -> bool:
        """Whether the mean of the estimate with rows of ``projection`` is exactly the kernel."""
        return projection.unbiased if self.degree is None else projection.uniform_directions

    @property
    def coupling(self) -> Coupling:
        """The coupling of the rows of W that suits this map."""
        return "orthogonal"

    @property
    def degree(self) -> int | None:
        """Degree of homogeneity, or None if the map is not homogeneous."""
        return None

    @property
    def planned(self) -> bool:
        """Whether every constant has a value."""
        return True

    def plan(self, data: Data, projection: Projection, kernel: Kernel | None, rng: np.random.Generator, m: int) -> Map:
        """Return the same map with every constant filled in.

        Parameters
        ----------
        data : Data
            Queries and keys at unit scale.
        projection : Projection
            The projection that the map will be used with; padding changes the dimension of its rows.
        kernel : Kernel or None
            The kernel, or None for maps that induce their own.
        rng : numpy.random.Generator
            Selects subsamples of the data.
        m : int
            Number of rows, or of landmarks.

        Returns
        -------
        Map
        """
        return self

    def rescaled(self, old: Kernel, new: Kernel) -> Map:
        """Return the map for a kernel with another bandwidth; points of the data stay where they are.

        Parameters
        ----------
        old, new : Kernel
            Kernels of one class, before and after.

        Returns
        -------
        Map
        """
        return self

    @property
    def remedy_without_data(self) -> str:
        """What to do if there is no data to choose the constants from, for error messages."""
        return "call fit(X, Y) with data"

    @abstractmethod
    def layout(self, projection: Projection) -> Layout:
        """Return width, symmetry and sign of the features, without drawing them.

        Raises a ValueError if they depend on constants that are not chosen yet.
        """

    @property
    def most_rows(self) -> int | None:
        """Number of rows beyond which features are zero, or None if there is no such number."""
        return None

    def narrowed(self) -> Map | None:
        """Return the same map with one feature fewer, by a single feature in place of a pair; None if that is impossible."""
        return None

    def sharing(self, planned: Map) -> Map:
        """Return this map with what its plan for another projection found that holds for every projection."""
        return self

    def worth_trying(self, projection: Projection) -> bool:
        """Whether `recommend` and `compare` try the map with this projection; fixed lengths bias most maps."""
        return self.degree is not None or projection.gaussian_lengths or projection.has_origin

    @abstractmethod
    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        """Return the features, with all random numbers taken from ``draws``."""

    def mse(self, case: ErrorCase) -> np.ndarray:
        """Mean squared errors of all pairs of the case in closed form, (n, p).

        Raises `NoClosedForm` if none is known.
        """
        raise NoClosedForm(
            f"no closed form is known for the error of {self!r}; simulate_mse estimates it for any approximation."
        )

    def argument(self, case: ErrorCase) -> Argument | None:
        """Return the complex vectors of the estimator, if it is an exponential; hybrids need them for shared rows."""
        return None

    def why(self, facts: Any) -> str:
        """One sentence, for `recommend`, on why this family of features has the lowest error on data with these facts."""
        return f"{self.family or type(self).__name__} features have the lowest error on these data."

    def effect(self, facts: Any) -> str:
        """One sentence, for `recommend`, on what constants fitted to data with these facts did; empty if nothing to say."""
        return ""


def unplanned(feature_map: Map, fact: str) -> ValueError:
    """Return the error for a fact that depends on constants that are not chosen yet."""
    return ValueError(f"{fact} of {feature_map!r} depends on constants chosen from data; call plan(X, Y) first.")
