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

from .. import theory
from .._arrays import array_namespace
from .._facts import publish
from .._validation import check_count, check_instance, check_number, check_positive, shown
from ..kernels import Kernel
from ..projections import Operator, Orthogonal, Projection
from ._data import Data
from ._drawing import Draws
from ._error import ErrorCase, NoClosedForm
from ._features import Features, as_tuple, transform
from ._map import Map

__all__ = ["AngularCoefficient", "FromMap", "GaussianCoefficient", "NormalizedGaussianCoefficient"]

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

    def plan(self, data: Data, rng: np.random.Generator) -> Coefficient:
        """Return the same coefficient with every constant filled in."""
        return self

    @abstractmethod
    def draw(self, draws: Draws) -> Any:
        """Draw the random numbers: an object with ``width`` and ``features(X, key=...)``, such as `DrawnCoefficient`."""

    def moments(self, case: ErrorCase) -> theory.CoefficientMoments:
        """Mean and variance of the estimated coefficient at all pairs of a case, (n, p) each.

        Raises `NoClosedForm` if they are not known.
        """
        raise NoClosedForm(
            f"no closed form is known for the variance of {self!r}; simulate_mse estimates the error of any approximation."
        )


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

    def moments(self, case: ErrorCase) -> theory.CoefficientMoments:
        """Mean and variance of a binomial proportion."""
        return theory.angular_coefficient(case.pairs.angle, self.n)


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
            object.__setattr__(self, name, _linear("GaussianCoefficient", name, getattr(self, name)))

    @property
    def constant(self) -> float:
        """The constant a, zero."""
        return 0.0

    def draw(self, draws: Draws) -> DrawnCoefficient:
        """Draw the projections."""
        tau = draws.independent_rows("tau", self.n)
        left, right = np.asarray(self.left), np.asarray(self.right)
        for T in (left, right):
            _check_columns("GaussianCoefficient", T, draws.d)
        return DrawnCoefficient(0.0, 1, self.width, tau, cosines_and_sines, 1 / math.sqrt(self.n), left, right)

    def moments(self, case: ErrorCase) -> theory.CoefficientMoments:
        """Mean and variance of the bump."""
        U, V = transform(np.asarray(self.left), case.X), transform(np.asarray(self.right), case.Y)
        return theory.gaussian_coefficient(U[:, None, :], V[None], self.n)


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

    def plan(self, data: Data, rng: np.random.Generator) -> Coefficient:
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

    def moments(self, case: ErrorCase) -> theory.CoefficientMoments:
        """Mean and variance of HRF Section F."""
        return theory.normalized_gaussian_coefficient(case.pairs.minus, self.effective_radius, self.sigma, self.n)


@dataclass(frozen=True)
class FromMap(Coefficient):
    r"""A kernel as a coefficient, :math:`\lambda = a + b\,k(Lx, Ry)`, estimated by any map with any projection.

    Use it for positive estimates of a Gaussian bump, for orthogonal projections, and for hybrids inside hybrids.

    Parameters
    ----------
    map : Map
        The map that estimates the kernel.
    kernel : Kernel
        The kernel k.
    n : int
        Number of projections of the map.
    projection : Projection
        The law of its rows; orthogonal by default.
    weight : float
        The factor b, which may be negative.
    constant : float
        The constant a.
    left, right : number, diagonal or matrix
        The linear transformations L and R.

    Notes
    -----
    :math:`\hat\lambda = a + b\,\phi_q(Lx)\cdot\phi_k(Ry)` with the features of the map, drawn independently of all bases.
    The variance is :math:`b^2` times the error of the map, wherever that has a closed form.  The general linearised
    coefficients of HRF Eq. 9 and 10 have this form:

    - ``FromMap(Sign(), Angular(), weight=-0.5, constant=0.5)`` is the coefficient of HRF Eq. 19 with orthogonal
      projections, as in the authors' code.  Its variance is 0.52 times that of `AngularCoefficient` at d = n = 8 and right
      angles, and 0.89 times at d = 64, n = 8;
    - ``FromMap(Positive(), Gaussian(), left=1/c, right=-M/c)`` is the bump of HRF Eq. 20 by the positive features of Eq. 95
      and 96.

    References
    ----------
    hrf (Eq. 9, 10, 20, 95, 96).

    Examples
    --------
    >>> from bochner import Approximation, kernels, maps
    >>> from bochner.maps.coefficients import FromMap
    >>> signs = FromMap(maps.Sign(), kernels.Angular(), weight=-0.5, constant=0.5)
    >>> hybrid = maps.Hybrid([maps.Hyperbolic(), maps.Trigonometric()], [signs])
    >>> Approximation(kernels.Softmax(), hybrid, n_projections=8).n_features_out
    288
    """

    map: Map
    kernel: Kernel
    n: int = 8
    projection: Projection = Orthogonal()
    weight: float = 1.0
    constant: float = 0.0
    left: _Linear = 1.0
    right: _Linear = 1.0

    def __post_init__(self) -> None:
        check_instance("FromMap", "map", self.map, Map, "maps.Positive()")
        check_instance("FromMap", "kernel", self.kernel, Kernel, "kernels.Gaussian()")
        check_instance("FromMap", "projection", self.projection, Projection, "projections.Orthogonal()")
        object.__setattr__(self, "n", check_count("FromMap", "n", self.n))
        if not self.map.serves(self.kernel):
            raise ValueError(f"FromMap: {self.map!r} needs {self.map.requirement}, got {self.kernel!r}.")
        for name in ("weight", "constant"):
            object.__setattr__(self, name, check_number("FromMap", name, getattr(self, name)))
        if not self.weight:
            raise ValueError("FromMap: weight must not be zero; a constant coefficient needs no map.")
        for name in ("left", "right"):
            object.__setattr__(self, name, _linear("FromMap", name, getattr(self, name)))

    @property
    def sign(self) -> int:  # type: ignore[override]
        """The sign of the weight."""
        return 1 if self.weight > 0 else -1

    @property
    def width(self) -> int:
        """Width of the features of the map."""
        return self.map.layout(self.projection).width(self.n)

    @property
    def planned(self) -> bool:
        """Whether the map has all its constants."""
        return self.map.planned

    def plan(self, data: Data, rng: np.random.Generator) -> Coefficient:
        """Return the same coefficient with the constants of its map, chosen at the transformed points."""
        if self.planned:
            return self
        X, Y = self._transformed(data.X, key=False), self._transformed(data.Y, key=True)
        inside = Data(X, Y, None, data.weights)
        return replace(self, map=self.map.plan(inside, self.projection, self.kernel, rng, self.n))

    def draw(self, draws: Draws) -> _DrawnMap:
        """Draw the features of the map."""
        for T in (np.asarray(self.left), np.asarray(self.right)):
            _check_columns("FromMap", T, draws.d)
        self.kernel.check_columns(draws.d)
        own = draws.of("map", self.projection, self.n, self.kernel)
        return _DrawnMap(self, self.map.draw(own, self.kernel))

    def moments(self, case: ErrorCase) -> theory.CoefficientMoments:
        """Mean and variance from the error of the map."""
        value = self.kernel(transform(np.asarray(self.left), case.X), transform(np.asarray(self.right), case.Y))
        X, Y = self._transformed(case.X, key=False), self._transformed(case.Y, key=True)
        error = self.map.mse(ErrorCase(self.kernel, self.projection, self.n, X, Y, case.quick))
        return theory.CoefficientMoments.of(self.constant + self.weight * value, self.weight**2 * error)

    def _transformed(self, X: Any, *, key: bool) -> Any:
        """Rows at the unit scale of the kernel, after L or R."""
        return self.kernel.at_unit_scale(transform(np.asarray(self.right if key else self.left), X))


@dataclass(frozen=True, eq=False)
class _DrawnMap:
    """The coefficient of drawn features."""

    of: FromMap
    drawn: Features

    @property
    def width(self) -> int:
        return self.drawn.width

    def features(self, X: Any, *, key: bool) -> Any:
        """Return rho of queries or keys, (..., width)."""
        return math.sqrt(abs(self.of.weight)) * self.drawn(self.of._transformed(X, key=key), key=key)


def _linear(owner: str, name: str, value: Any) -> _Linear:
    """Return a linear transformation as a number or nested tuples of numbers."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):  # the last one: a tensor that keeps a gradient
        raise TypeError(f"{owner}: {name} must be a number, diagonal or matrix, got {shown(value)}.") from None
    if array.ndim > 2 or not np.isfinite(array).all():
        raise ValueError(f"{owner}: {name} must be a finite number, diagonal or matrix.")
    result: _Linear = as_tuple(array)
    return result


def _check_columns(owner: str, T: np.ndarray, d: int) -> None:
    if T.ndim and T.shape[-1] != d:
        raise ValueError(f"{owner}: left and right act on {T.shape[-1]} columns, the data has {d}.")


def signs(u: Any) -> Any:
    """Signs, zero at zero."""
    return array_namespace(u).sign(u)


def cosines_and_sines(u: Any) -> Any:
    """Cosines then sines on the last axis."""
    xp = array_namespace(u)
    return xp.concat([xp.cos(u), xp.sin(u)], axis=-1)


publish(globals())
