"""Kernels of the difference x - y: their base classes, and all of them except Matern."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NoReturn, Self, cast

import numpy as np

from .._arrays import array_namespace, is_sparse
from .._random import RNG, as_generator, opposite_gamma
from .._validation import check_count, check_positive
from ._distances import DistancesTo, Lengthscale, manhattan_distances, scale_like, squared_distances
from ._kernel import Bandwidth, Kernel


def check_lengthscale(owner: str, value: Any) -> float | tuple[float, ...]:
    """Return ``value`` as a positive float, or as a tuple of them if it is a list, a tuple or a 1-D array."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return check_positive(owner, "lengthscale", value)
    if not value:
        raise ValueError(f"{owner}: lengthscale must be a positive number or one for each dimension, got {value!r}.")
    return tuple(check_positive(owner, f"lengthscale[{i}]", entry) for i, entry in enumerate(value))


_ORDERS = 1e-15, 1e15
"""Beyond, kernels are to the last digit those they tend to, and their arithmetic overflows, first in float32."""


def check_order(owner: str, name: str, value: float) -> None:
    """Raise a ValueError if the order of a kernel that tends to the Gaussian one is too small or too large to compute."""
    if value > _ORDERS[1]:
        raise ValueError(
            f"{owner}: {name} must be at most {_ORDERS[1]:g}, got {value:g}; use Gaussian(), to which the kernel tends."
        )
    if value < _ORDERS[0]:
        raise ValueError(f"{owner}: {name} must be at least {_ORDERS[0]:g}, got {value:g}; smaller ones overflow.")


class ShiftInvariant(Kernel):
    r"""Base class of kernels of the scaled difference :math:`(x - y)/\ell`, equal to one at x = y.

    Derive your own kernel from it if the entries of its random rows are independent (``spectrum = "product"``), and
    from `Radial` if it depends on the Euclidean distance.  A subclass has a field ``lengthscale`` and implements
    `entries` and `sample_rows`.

    Notes
    -----
    By Bochner's theorem it is :math:`\mathrm{E} \cos(\omega\cdot(x - y)/\ell)` over random rows :math:`\omega`.
    """

    shift_invariant: ClassVar[bool] = True
    metric: ClassVar[Literal["euclidean", "cityblock"] | None] = "euclidean"
    has_bandwidth: ClassVar[bool] = True
    has_spectral_density: ClassVar[bool] = False
    lengthscale: Lengthscale

    def __post_init__(self) -> None:
        """Check the lengthscale, and keep it as a float or a tuple of floats."""
        object.__setattr__(self, "lengthscale", check_lengthscale(type(self).__name__, self.lengthscale))

    def diagonal(self, X: Any) -> Any:
        """Return k(x_i, x_i) = 1, shape (..., n)."""
        if is_sparse(X):
            return np.ones(X.shape[0], X.dtype)
        X = self._check_inputs(X)
        return array_namespace(X).ones(X.shape[:-1], dtype=X.dtype, device=X.device)

    def at_unit_scale(self, X: Any) -> Any:
        """Return checked rows divided by the lengthscale."""
        return X / scale_like(self.lengthscale, X)

    def check_columns(self, d: int) -> None:
        """Raise a ValueError if there is a lengthscale per column, but not for d columns."""
        if isinstance(self.lengthscale, tuple) and len(self.lengthscale) != d:
            raise ValueError(
                f"{type(self).__name__}: lengthscale has {len(self.lengthscale)} entries, one for each dimension, "
                f"got inputs whose last axis is {d}."
            )

    def spectral_density(self, frequencies: np.ndarray) -> np.ndarray:
        r"""Density of the law of the random rows at unit lengthscale, for kernels that declare ``has_spectral_density``.

        Parameters
        ----------
        frequencies : array (..., d)
            Points :math:`\omega`.

        Returns
        -------
        float64 array (...)

        Examples
        --------
        >>> import numpy as np
        >>> from bochner.kernels import Matern
        >>> w = np.linspace(-500, 500, 100_001)[:, None]
        >>> bool(np.isclose(Matern(1.5).spectral_density(w).sum() * 0.01, 1))
        True
        """
        raise ValueError(f"{type(self).__name__}: its spectral density has no closed form here.")

    @property
    def bandwidth(self) -> Bandwidth:
        """The lengthscale."""
        return cast(Bandwidth, self.lengthscale)

    def with_bandwidth(self, value: Any) -> Self:
        """Return the same kernel with another lengthscale: a positive number, or one per column."""
        return replace(self, lengthscale=value)  # type: ignore[type-var]

    def from_gamma(self, gamma: float) -> Self:
        r"""Return the kernel with :math:`\ell = 1/\sqrt{2\gamma}`, or :math:`1/\gamma` for kernels of the L1 distance."""
        gamma = check_positive(type(self).__name__, "gamma", gamma)
        return self.with_bandwidth(1 / gamma if self.metric == "cityblock" else (2 * gamma) ** -0.5)


class Radial(ShiftInvariant):
    r"""Base class of kernels :math:`\kappa(q)` of the squared distance :math:`q = \sum_i (x_i - y_i)^2/\ell_i^2`.

    Such a kernel is a mixture :math:`\mathrm{E} \exp(-s^2 q/2)` of Gaussian kernels in every dimension, so its random
    rows are :math:`s\,g` with :math:`g \sim N(0, I)`.  A subclass implements :math:`\kappa` as `profile` and the law of
    s as `sample_scales`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from bochner import kernels
    >>> @dataclass(frozen=True)
    ... class TwoScales(kernels.Radial):
    ...     lengthscale: float = 1.0
    ...     def profile(self, xp, q):
    ...         return (xp.exp(-q / 2) + xp.exp(-2 * q)) / 2
    ...     def sample_scales(self, shape, rng):
    ...         return np.random.default_rng(rng).choice([1.0, 2.0], shape)
    >>> TwoScales()([[0.0]], [[0.0]])
    array([[1.]])
    """

    @abstractmethod
    def profile(self, xp: Any, q: Any) -> Any:
        r"""Return the values :math:`\kappa(q)`, in the array namespace ``xp``."""

    @abstractmethod
    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> np.ndarray:
        """Draw independent scales s: a float64 array of shape ``shape``."""

    def entries(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return the profile at all squared distances."""
        return self.profile(xp, squared_distances(xp, X, Y, self.lengthscale))

    def columns(self, points: np.ndarray) -> Callable[[Any], np.ndarray]:
        """Return the profile at the distances to the points, with their norms computed once."""
        distances = DistancesTo(points, self.lengthscale)
        return lambda X: np.asarray(self.profile(np, distances(X)))


@dataclass(frozen=True)
class Gaussian(Radial):
    r"""The Gaussian kernel, also called squared exponential or RBF.

    Use it as the first choice for smooth functions of standardised columns.

    Parameters
    ----------
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell` over which the kernel decays, or one length per dimension.

    Notes
    -----
    Kernel: :math:`k(x, y) = \exp(-|x - y|^2/(2\ell^2))`.  In the convention :math:`\exp(-\gamma|x - y|^2)`,
    :math:`\gamma = 1/(2\ell^2)`.  With one lengthscale for each dimension, the exponent is
    :math:`-\tfrac12 \sum_i (x_i - y_i)^2/\ell_i^2`.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = g \sim N(0, I)`, that is scale s = 1.

    It is the softmax kernel divided by both of its diagonals:
    :math:`e^{x\cdot y} = e^{|x|^2/2}\, k(x, y)\, e^{|y|^2/2}` at :math:`\ell = 1`.

    References
    ----------
    rahimi2007, Figure 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import Gaussian
    >>> k = Gaussian(lengthscale=2.0)
    >>> bool(np.allclose(k([[0.0]], [[2.0]]), np.exp(-1 / 2)))
    True
    >>> Gaussian(lengthscale=[1, 2])
    Gaussian(lengthscale=(1.0, 2.0))
    """

    lengthscale: Lengthscale = 1.0

    name: ClassVar[str] = "gaussian"
    has_spectral_density: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("rahimi2007",)

    @classmethod
    def variants(cls) -> dict[str, Gaussian]:
        """Return the kernel under its two names."""
        return {"gaussian": cls(), "rbf": cls()}

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> np.ndarray:
        """Return ones."""
        return np.ones(shape)

    def spectral_density(self, frequencies: np.ndarray) -> np.ndarray:
        """Return the density of N(0, I)."""
        w = np.asarray(frequencies, dtype=np.float64)
        return np.asarray(np.exp(-0.5 * (w**2).sum(axis=-1)) * (2 * np.pi) ** (-w.shape[-1] / 2))

    def profile(self, xp: Any, q: Any) -> Any:
        return xp.exp(-0.5 * q)

    def columns(self, points: np.ndarray) -> Callable[[Any], np.ndarray]:
        """Return the profile at the distances to the points, in place of these distances."""
        distances = DistancesTo(points, self.lengthscale)

        def values(X: Any) -> np.ndarray:
            q = distances(X)
            q *= -0.5
            np.exp(q, out=q)
            return q

        return values


@dataclass(frozen=True)
class Cauchy(Radial):
    r"""The Cauchy kernel, with heavy tails in x - y and exponential tails in frequency.

    Use it for smooth functions where distant rows should still have some weight.

    Parameters
    ----------
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell` at which the kernel is one half, or one length per dimension.

    Notes
    -----
    Kernel: :math:`k(x, y) = 1/(1 + |x - y|^2/\ell^2)`, the density of the Cauchy law up to its constant.  It is a
    function of the Euclidean distance, the rational quadratic kernel with :math:`\alpha = 1` and lengthscale
    :math:`\ell/\sqrt2`; rahimi2007 gives this name to the product of one-dimensional ones, which differs for d > 1.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = s\,g` with :math:`g \sim N(0, I)` and :math:`s^2 = 2E`, E
    standard exponential, since :math:`\mathrm{E}\,e^{-E r^2} = 1/(1 + r^2)`.

    References
    ----------
    rahimi2007, Figure 1; rasmussen2006, Equation 4.19.

    Examples
    --------
    >>> from bochner.kernels import Cauchy
    >>> Cauchy(lengthscale=3.0)([[0.0]], [[3.0]])
    array([[0.5]])
    """

    lengthscale: Lengthscale = 1.0

    name: ClassVar[str] = "cauchy"
    references: ClassVar[tuple[str, ...]] = ("rahimi2007", "rasmussen2006")

    def from_gamma(self, gamma: float) -> Self:
        r"""Return the kernel :math:`1/(1 + \gamma|x-y|^2)`."""
        return self.with_bandwidth(check_positive("Cauchy", "gamma", gamma) ** -0.5)

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> np.ndarray:
        """Draw s, the root of twice a standard exponential variate."""
        return np.sqrt(2 * as_generator(rng).standard_exponential(shape))

    def opposite_scales(self, scales: np.ndarray) -> np.ndarray:
        """Return the scales of opposite exponential variates."""
        return np.asarray(np.sqrt(2 * opposite_gamma(1.0, scales**2 / 2)))

    def profile(self, xp: Any, q: Any) -> Any:
        return 1 / (1 + q)


@dataclass(frozen=True)
class RationalQuadratic(Radial):
    r"""The rational quadratic kernel, a mixture of Gaussian kernels of many lengthscales with Gamma weights.

    Use it where functions vary on several lengthscales at once, and you do not know which.

    Parameters
    ----------
    alpha : float
        Tail exponent :math:`\alpha > 0`.
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell`, or one length per dimension.

    Notes
    -----
    Kernel: :math:`k(x, y) = (1 + |x - y|^2/(2\alpha\ell^2))^{-\alpha}`.  It tends to the Gaussian kernel as
    :math:`\alpha` grows.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = s\,g` with :math:`g \sim N(0, I)` and
    :math:`s^2 = \Gamma_\alpha/\alpha`, :math:`\Gamma_\alpha` a Gamma variate of shape :math:`\alpha`, since
    :math:`\mathrm{E}\,e^{-t\,\Gamma_\alpha} = (1 + t)^{-\alpha}`.

    References
    ----------
    rasmussen2006, Equation 4.19.

    Examples
    --------
    >>> from bochner.kernels import RationalQuadratic
    >>> RationalQuadratic(alpha=0.5)([[0.0]], [[0.0], [3.0**0.5]])
    array([[1. , 0.5]])
    """

    alpha: float
    lengthscale: Lengthscale = 1.0

    references: ClassVar[tuple[str, ...]] = ("rasmussen2006",)

    def __post_init__(self) -> None:
        """Check alpha and the lengthscale."""
        object.__setattr__(self, "alpha", check_positive("RationalQuadratic", "alpha", self.alpha))
        check_order("RationalQuadratic", "alpha", self.alpha)
        super().__post_init__()

    @classmethod
    def variants(cls) -> dict[str, RationalQuadratic]:
        """Return the kernel of alpha = 1."""
        return {"rational-quadratic": cls(1.0)}

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> np.ndarray:
        """Draw s, the root of a Gamma variate of shape and rate alpha."""
        return np.sqrt(as_generator(rng).standard_gamma(self.alpha, shape) / self.alpha)

    def opposite_scales(self, scales: np.ndarray) -> np.ndarray:
        """Return the scales of opposite Gamma variates."""
        return np.asarray(np.sqrt(opposite_gamma(self.alpha, self.alpha * scales**2) / self.alpha))

    def profile(self, xp: Any, q: Any) -> Any:
        return xp.exp(-self.alpha * xp.log1p(q / (2 * self.alpha)))  # a power would lose digits for large alpha


@dataclass(frozen=True)
class Laplacian(ShiftInvariant):
    r"""The Laplacian kernel of the L1 distance.

    Use it where functions have kinks or jumps along single columns, as in many tables.

    Parameters
    ----------
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell` over which the kernel decays, or one length per dimension.

    Notes
    -----
    Kernel: :math:`k(x, y) = \exp(-|x - y|_1/\ell)`; with one lengthscale for each dimension,
    :math:`\exp(-\sum_i |x_i - y_i|/\ell_i)`.  With the Euclidean distance in place of L1 it would be
    ``Matern(nu=0.5)``.

    Law of the rows at :math:`\ell = 1`: independent standard Cauchy entries, since
    :math:`\mathrm{E} \cos(\omega_i t) = e^{-|t|}`.  Their direction is not uniform (long rows point along the axes), so
    they cannot be drawn by a rotation, and ``spectrum`` is ``"product"``.

    References
    ----------
    rahimi2007, Figure 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import Laplacian
    >>> bool(np.allclose(Laplacian()([[0.0, 0.0]], [[1.0, -2.0]]), np.exp(-3)))
    True
    >>> Laplacian().sample_rows(2, 5, rng=0).shape
    (5, 2)
    """

    lengthscale: Lengthscale = 1.0

    name: ClassVar[str] = "laplacian"
    spectrum: ClassVar[Literal["radial", "product"]] = "product"
    metric: ClassVar[Literal["euclidean", "cityblock"] | None] = "cityblock"
    has_spectral_density: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("rahimi2007",)

    def sample_rows(self, d: int, m: int, rng: RNG) -> np.ndarray:
        """Draw m independent rows of d entries for unit lengthscale: a float64 array of shape (m, d)."""
        shape = (check_count("Laplacian", "m", m), check_count("Laplacian", "d", d))
        return as_generator(rng).standard_cauchy(shape)

    def spectral_density(self, frequencies: np.ndarray) -> np.ndarray:
        """Return the product of Cauchy densities."""
        return np.asarray(np.prod(1 / (np.pi * (1 + np.asarray(frequencies, dtype=np.float64) ** 2)), axis=-1))

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> NoReturn:
        """Raise a ValueError, since the rows are not Gaussian vectors of random scale."""
        raise ValueError(
            "Laplacian: its rows have independent Cauchy entries and are not Gaussian vectors of random scale; "
            "use sample_rows(d, m, rng)."
        )

    def entries(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return the exponential of minus all L1 distances."""
        return xp.exp(-manhattan_distances(xp, X, Y, self.lengthscale))
