r"""Coefficients of hybrid maps: unbiased estimates of weights :math:`\lambda(x, y)`, as dot products.

A hybrid mixes several estimators of one kernel by random coefficients
:math:`\hat\lambda = a + s\,\rho_1(x)\cdot\rho_2(y)`.  It is unbiased for any coefficients that are drawn independently
of the projections of the bases.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .._arrays import array_namespace
from .._facts import publish
from .._validation import check_count, check_positive, shown
from ..projections import Operator
from ._data import Data
from ._drawing import Draws
from ._features import as_tuple, transform

__all__ = ["AngularCoefficient", "Coefficient", "GaussianCoefficient", "NormalizedGaussianCoefficient"]

_Linear = float | tuple[float, ...] | tuple[tuple[float, ...], ...]
_SMALLEST_RHO = 0.05
"""Lower bound of rho: short vectors would make 1/rho, and the cancellation between blocks, unbounded."""


@dataclass(frozen=True, eq=False)
class DrawnCoefficient:
    r"""A random coefficient :math:`\hat\lambda = a + s\,\rho_1(x)\cdot\rho_2(y)` with its numbers drawn.

    Here :math:`\rho_1(x) = c\,g(\tau\cdot Lx)` and :math:`\rho_2(y) = c\,g(\tau\cdot Ry)`.

    Attributes
    ----------
    a : float
        The constant.
    s : int
        The sign of the product, 1 or -1.
    width : int
        Number of entries of rho.
    tau : Operator
        Independent Gaussian rows.
    nonlinearity : callable
        The function g.
    factor : float
        The factor c.
    left, right : arrays
        L and R: numbers, diagonals or matrices.
    """

    a: float
    s: int
    width: int
    tau: Operator
    nonlinearity: Callable[[Any], Any]
    factor: float
    left: np.ndarray
    right: np.ndarray

    def features(self, X: Any, *, key: bool) -> Any:
        """Return rho of queries or keys, (..., width)."""
        return self.factor * self.nonlinearity(self.tau.apply(transform(self.right if key else self.left, X)))


class Coefficient(ABC):
    """Base class of random coefficients: an immutable value with a field ``n``, the number of its projections.

    Each class declares ``sign`` (s), ``entries`` (features of rho per projection) and ``constant`` (a).
    """

    n: int
    sign: ClassVar[int]
    entries: ClassVar[int]

    @property
    def width(self) -> int:
        """Number of entries of rho."""
        return self.entries * self.n

    @property
    @abstractmethod
    def constant(self) -> float | None:
        """The constant a; None if it depends on data and is not planned yet."""

    @property
    def planned(self) -> bool:
        """Whether every constant has a value."""
        return True

    def plan(self, data: Data) -> Coefficient:
        """Return the same coefficient with every constant filled in."""
        return self

    @abstractmethod
    def draw(self, draws: Draws) -> DrawnCoefficient:
        """Draw the random numbers of the coefficient."""


@dataclass(frozen=True)
class AngularCoefficient(Coefficient):
    r"""The angle between two points, :math:`\lambda = \theta/\pi`, estimated by n products of signs.

    Zero at x = y and one at x = -y, without variance.

    Parameters
    ----------
    n : int
        Number of independent projections tau.

    Notes
    -----
    :math:`\hat\lambda = \frac12 - \frac1{2n}\sum_i \mathrm{sgn}(\tau_i\cdot x)\,\mathrm{sgn}(\tau_i\cdot y)`, a
    binomial proportion (HRF Eq. 19).
    """

    n: int = 8
    sign: ClassVar[int] = -1
    entries: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_count("AngularCoefficient", "n", self.n))

    @property
    def constant(self) -> float:
        """The constant a, one half."""
        return 0.5

    def draw(self, draws: Draws) -> DrawnCoefficient:
        """Draw the projections."""
        tau, one = draws.independent_rows("tau", self.n), np.asarray(1.0)
        return DrawnCoefficient(0.5, -1, self.width, tau, signs, 1 / math.sqrt(2 * self.n), one, one)


@dataclass(frozen=True)
class GaussianCoefficient(Coefficient):
    r"""A Gaussian bump, :math:`\lambda = e^{-|Lx - Ry|^2/2}`, estimated by n cosines and sines.

    Parameters
    ----------
    left, right : number, diagonal or matrix
        The linear transformations L and R.
    n : int
        Number of independent projections tau.

    Notes
    -----
    HRF Eq. 20, with L = I/c and R = -M/c.  Trigonometric features have zero variance at the top of the bump, Lx = Ry,
    where positive features have a variance of :math:`e^{4|Lx|^2} - 1`.
    """

    left: _Linear
    right: _Linear
    n: int = 8
    sign: ClassVar[int] = 1
    entries: ClassVar[int] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_count("GaussianCoefficient", "n", self.n))
        for name in ("left", "right"):
            try:
                array = np.asarray(getattr(self, name), dtype=np.float64)
            except (TypeError, ValueError, RuntimeError):  # the last one: a tensor that keeps a gradient
                raise TypeError(
                    f"GaussianCoefficient: {name} must be a number, diagonal or matrix, got {shown(getattr(self, name))}."
                ) from None
            if array.ndim > 2 or not np.isfinite(array).all():
                raise ValueError(f"GaussianCoefficient: {name} must be a finite number, diagonal or matrix.")
            object.__setattr__(self, name, as_tuple(array))

    @property
    def constant(self) -> float:
        """The constant a, zero."""
        return 0.0

    def draw(self, draws: Draws) -> DrawnCoefficient:
        """Draw the projections."""
        tau = draws.independent_rows("tau", self.n)
        left, right = np.asarray(self.left), np.asarray(self.right)
        for T in (left, right):
            if T.ndim and T.shape[-1] != draws.d:
                raise ValueError(
                    f"GaussianCoefficient: left and right act on {T.shape[-1]} columns, the data has {draws.d}."
                )
        return DrawnCoefficient(0.0, 1, self.width, tau, cosines_and_sines, 1 / math.sqrt(self.n), left, right)


@dataclass(frozen=True)
class NormalizedGaussianCoefficient(Coefficient):
    r"""The normalised Gaussian weight: zero at x = y and, on average, one at x = -y for points of norm r.

    Parameters
    ----------
    sigma : float
        Inverse width.
    radius : float, optional
        The norm r; by default the root mean square norm of the data.
    n : int
        Number of independent projections tau.

    Notes
    -----
    It estimates :math:`\lambda = (1 - e^{-\sigma^2|x-y|^2/2})/\rho`, :math:`\rho = 1 - e^{-2\sigma^2r^2}` (HRF Section
    F):

    .. math:: \hat\lambda = \frac1\rho - \frac{1}{n\rho}\sum_i \cos(\sigma\tau_i\cdot(x-y)),

    with :math:`\rho` at least 0.05.  It ranges over :math:`[0, 2/\rho]` and has zero variance at x = y.  HRF Eq. 70
    lacks the sigma inside cosine and sine.
    """

    sigma: float = 1.0
    radius: float | None = None
    n: int = 8
    sign: ClassVar[int] = -1
    entries: ClassVar[int] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", check_positive("NormalizedGaussianCoefficient", "sigma", self.sigma))
        if self.radius is not None:
            radius = check_positive("NormalizedGaussianCoefficient", "radius", self.radius)
            object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "n", check_count("NormalizedGaussianCoefficient", "n", self.n))

    @property
    def planned(self) -> bool:
        """Whether the radius is known."""
        return self.radius is not None

    def plan(self, data: Data) -> Coefficient:
        """Return the same coefficient with the radius of the data."""
        if self.radius is not None:
            return self
        square = float(data.queries.square.sum() + data.keys.square.sum()) / 2
        return replace(self, radius=max(math.sqrt(square), self._smallest_radius))

    @property
    def _smallest_radius(self) -> float:
        """The radius at which rho is as small as it may be."""
        return math.sqrt(-math.log1p(-_SMALLEST_RHO) / 2) / self.sigma

    @property
    def effective_radius(self) -> float:
        """The radius, or the smallest at which rho reaches its lower bound."""
        assert self.radius is not None  # planned
        return max(self.radius, self._smallest_radius)

    @property
    def constant(self) -> float | None:
        """One over rho, which is below one also where rounding makes it one: so no block of the hybrid is empty."""
        if self.radius is None:
            return None
        return 1 / min(-math.expm1(-2 * (self.sigma * self.effective_radius) ** 2), 1 - 1e-12)

    def draw(self, draws: Draws) -> DrawnCoefficient:
        """Draw the projections."""
        a = self.constant
        assert a is not None  # planned
        tau, sigma = draws.independent_rows("tau", self.n), np.asarray(float(self.sigma))
        return DrawnCoefficient(a, -1, self.width, tau, cosines_and_sines, math.sqrt(a / self.n), sigma, sigma)


def signs(u: Any) -> Any:
    """Signs, zero at zero."""
    return array_namespace(u).sign(u)


def cosines_and_sines(u: Any) -> Any:
    """Cosines then sines on the last axis."""
    xp = array_namespace(u)
    return xp.concat([xp.cos(u), xp.sin(u)], axis=-1)


publish(globals())
