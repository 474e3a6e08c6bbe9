"""What deterministic maps of few columns share: a box around the data, and the frequencies of largest weight."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._validation import check_positive, shown
from ..kernels import Kernel, ShiftInvariant
from ..projections import Projection
from ._data import Data
from ._drawing import Draws
from ._error import ErrorCase
from ._features import Features
from ._map import Coupling, Layout, Map

LARGEST_DIMENSION = 3  # the number of frequencies grows with its power
MARGINS = tuple(np.geomspace(0.5, 48.0, 25))
"""Margins that are tried, in lengthscales: below, images of the data are felt; above, even slow kernels have decayed."""
_IMAGES = 3  # images of the box along each axis that bounds add up
_SPARE = 4.0
"""Points of the lattice, in a box, for each one that is kept: a ball in three dimensions has half of its cube."""


class Lattice(NamedTuple):
    """Frequencies (p, d) in integer steps, their size along each axis, and the weights of their features."""

    steps: np.ndarray
    spacing: np.ndarray
    weights: np.ndarray

    @property
    def frequencies(self) -> np.ndarray:
        """The frequencies, (p, d)."""
        return np.asarray(self.steps * self.spacing)


class BoxedFeatures(Features):
    """Features of the frequencies of a lattice about the centre of a box, then columns of zeros up to the width."""

    symmetric, positive = True, False

    def __init__(self, lattice: Lattice, centre: np.ndarray, width: int) -> None:
        self.lattice, self.centre, self.width = lattice, centre, width


class BoxedMap(Map):
    """Base class of deterministic maps of kernels of the difference, inside a box around data of at most three columns.

    A subclass has the fields ``margin``, ``low`` and ``high`` and implements `lattice` and `left_out`;
    ``drawn`` are its features.
    """

    margin: Any
    low: Any
    high: Any
    requirement: ClassVar[str] = "a kernel of the difference with a spectral density: Gaussian, Matern or Laplacian"
    family: ClassVar[str] = "frequency grids"
    uses_rows: ClassVar[bool] = False
    deterministic: ClassVar[bool] = True
    largest_dimension: ClassVar[int | None] = LARGEST_DIMENSION
    drawn: ClassVar[type[BoxedFeatures]]

    def __post_init__(self) -> None:
        owner = type(self).__name__
        if self.margin is not None:
            object.__setattr__(self, "margin", check_positive(owner, "margin", self.margin))
        for name in ("low", "high"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _corner(owner, name, value))
        if (self.low is None) != (self.high is None) or (
            self.low is not None
            and (len(self.low) != len(self.high) or any(a > b for a, b in zip(self.low, self.high, strict=True)))
        ):
            raise ValueError(
                f"{owner}: low and high must be two corners of a box, got {shown(self.low)} and {shown(self.high)}."
            )

    def serves(self, kernel: Kernel | None) -> bool:
        return isinstance(kernel, ShiftInvariant) and kernel.has_spectral_density

    @property
    def coupling(self) -> Coupling:
        return "independent"

    def unbiased(self, projection: Projection) -> bool:
        return False

    def worth_trying(self, projection: Projection) -> bool:
        """True for the one projection that stands for none."""
        return projection.coupling == "iid"

    @property
    def planned(self) -> bool:
        return self.low is not None

    def layout(self, projection: Projection) -> Layout:
        return Layout(1, 0, True, False)

    def plan(self, data: Data, projection: Projection, kernel: Kernel | None, rng: np.random.Generator, m: int) -> Map:
        """Find the box of the data."""
        self._check_dimension(data.d)
        sides = [data.X] if data.same else [data.X, data.Y]
        low = np.min([side.min(axis=0) for side in sides], axis=0)
        high = np.max([side.max(axis=0) for side in sides], axis=0)
        return replace(self, low=tuple(low.tolist()), high=tuple(high.tolist()))  # type: ignore[type-var]

    def rescaled(self, old: Kernel, new: Kernel) -> Map:
        """Return the map with the same box of the data, in lengthscales of the new kernel."""
        if self.low is None or old == new:
            return self
        one = np.ones((1, len(self.low)))
        ratio = (new.at_unit_scale(one) / old.at_unit_scale(one))[0]
        return replace(self, low=tuple((ratio * self.low).tolist()), high=tuple((ratio * self.high).tolist()))  # type: ignore[type-var]

    @property
    def remedy_without_data(self) -> str:
        return "call fit(X) with data, whose box it needs, or pass low and high"

    def draw(self, draws: Draws, kernel: Kernel | None) -> Features:
        self._check_dimension(draws.d)
        if len(self.low) != draws.d:
            raise ValueError(
                f"{type(self).__name__}: its box has {len(self.low)} columns, the data has {draws.d}; plan it on these data."
            )
        return self.features(kernel, draws.m)

    def mse(self, case: ErrorCase) -> np.ndarray:
        """The squared error itself, which is not random."""
        phi, unit = self.features(case.kernel, case.m), case.kernel.with_bandwidth(1.0)
        return np.asarray((phi(case.X, key=False) @ phi(case.Y, key=True).T - unit(case.X, case.Y)) ** 2)

    def why(self, facts: Any) -> str:
        return "A grid of frequencies is best: in so few columns it has no gaps and no random error."

    def bound(self, kernel: Kernel, m: int) -> float:
        """Largest error of m features inside the box: what frequencies leave out, plus what images of the box add.

        Parameters
        ----------
        kernel : Kernel
            The kernel.
        m : int
            Number of features.

        Returns
        -------
        float
        """
        return self._bound_at(kernel, m, self.chosen_margin(kernel, m))

    def _bound_at(self, kernel: Any, m: int, margin: float) -> float:
        return self.left_out(kernel, m, margin) + self.from_images(kernel, margin)

    def chosen_margin(self, kernel: Any, m: int) -> float:
        """The margin, or the one with the smallest bound for m features."""
        if self.margin is not None:
            return float(self.margin)
        return _best_margin(self, kernel.with_bandwidth(1.0), m)

    @abstractmethod
    def lattice(self, kernel: Any, m: int, margin: float) -> Lattice:
        """The frequencies of m features, those of largest weight, and their weights."""

    @abstractmethod
    def left_out(self, kernel: Any, m: int, margin: float) -> float:
        """Bound on the sum of all frequencies without a feature."""

    def from_images(self, kernel: Any, margin: float) -> float:
        """Bound on what all images of the box add to the kernel inside it."""
        n = images(len(self.low))  # periodic ones; translated by two walls where even and reflected at one where odd
        nearest = np.maximum(np.abs(n) * (self.extent + margin) - self.extent, 0)
        return float(at_distances(kernel, nearest[np.any(n != 0, axis=1)]).sum())

    def features(self, kernel: Any, m: int) -> BoxedFeatures:
        """The features of a plan."""
        found = self.lattice(kernel, m, self.chosen_margin(kernel, m))
        return self.drawn(found, np.add(self.low, self.high) / 2, m)

    @property
    def extent(self) -> np.ndarray:
        """Sides of the box, (d,)."""
        return np.asarray(np.subtract(self.high, self.low))

    def _check_dimension(self, d: int) -> None:
        if d > LARGEST_DIMENSION:
            raise ValueError(
                f"{type(self).__name__}: it serves data of at most {LARGEST_DIMENSION} columns, got {d}: the number of "
                f"frequencies of a grid grows exponentially; use Trigonometric() or Landmarks()."
            )


@lru_cache(maxsize=256)
def _best_margin(boxed: BoxedMap, unit: Any, m: int) -> float:
    return float(min(MARGINS, key=lambda margin: boxed._bound_at(unit, m, margin)))


def box_of_steps(periods: np.ndarray, count: float, *, positive: bool) -> np.ndarray:
    """Integer points of a box of about ``count`` of them, with one largest frequency along all axes, (p, d).

    Parameters
    ----------
    periods : array (d,)
        In inverse proportion to the spacing of the frequencies along each axis.
    count : float
        Number of points, at least.
    positive : bool
        Whether all entries are one or more; otherwise they have both signs, and of z and -z one is there.
    """
    d = len(periods)
    most = 1.0
    while True:
        largest = np.ceil(most * periods / periods.max()).astype(int)
        if np.prod(largest if positive else 2 * largest + 1) >= (1 if d == 1 else _SPARE) * count:
            break
        most *= 1.1
    ranges = [np.arange(1, M + 1) if positive else np.arange(-M, M + 1) for M in largest]
    steps = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, d)
    return steps if positive else steps[len(steps) // 2 :]  # lexicographic: the second half, from zero on


def images(d: int) -> np.ndarray:
    """Integer vectors with entries up to three, (7^d, d)."""
    return np.array(list(itertools.product(range(-_IMAGES, _IMAGES + 1), repeat=d)))


def at_distances(kernel: Any, distances: np.ndarray) -> np.ndarray:
    """The kernel at unit lengthscale between zero and points (p, d)."""
    return np.asarray(kernel.with_bandwidth(1.0)(np.zeros((1, distances.shape[1])), distances)[0])


def _corner(owner: str, name: str, value: Any) -> tuple[float, ...]:
    try:
        corner = tuple(float(x) for x in value)
    except (TypeError, ValueError):
        corner = ()
    if not corner or not np.isfinite(corner).all():
        raise ValueError(
            f"{owner}: {name} must be a corner of a box, one finite number per column, got {shown(value)}."
        )
    return corner
