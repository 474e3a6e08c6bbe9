r"""Periodic kernels, products and sums of kernels.

The random rows follow from those of the parts.  The rows of a product are sums of independent rows, since characteristic
functions multiply; the rows of a weighted sum are rows of a part drawn with its weight.  A composite has a lengthscale of
its own, which stretches all of its parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NoReturn, Self

import numpy as np

from .._arrays import like
from .._random import RNG, as_generator
from .._validation import check_count, check_positive, shown
from ._distances import Lengthscale, scale_like
from ._kernel import Bandwidth
from ._shift_invariant import Gaussian, ShiftInvariant, check_lengthscale


class Composite(ShiftInvariant):
    """Base class of kernels whose rows have no uniform directions, and are drawn by `sample_rows`."""

    spectrum: ClassVar[Literal["radial", "product"]] = "product"

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> NoReturn:
        """Raise a ValueError, since the rows are not Gaussian vectors of random scale."""
        raise ValueError(
            f"{type(self).__name__}: its rows are not Gaussian vectors of random scale; use sample_rows(d, m, rng)."
        )

    def _counts(self, d: Any, m: Any) -> tuple[int, int]:
        name = type(self).__name__
        shape = check_count(name, "m", m), check_count(name, "d", d)
        self.check_columns(shape[1])
        return shape


@dataclass(frozen=True)
class Periodic(Composite):
    r"""The periodic kernel, whose functions repeat after a period.

    Use it for seasons, hours, angles and other periodic quantities.

    Parameters
    ----------
    period : float or sequence of float, default 1.0
        The period p, or one per dimension.
    lengthscale : float or sequence of float, default 1.0
        Smoothness :math:`\ell` within a period: the larger, the closer to a single sine wave.  It does not stretch the
        inputs, which ``period`` does; one number, or one per dimension.

    See Also
    --------
    Product : Its product with another kernel is locally periodic: a pattern that changes slowly.

    Notes
    -----
    Kernel: :math:`k(x, y) = \exp(-\sum_i 2\sin^2(\pi(x_i - y_i)/p_i)/\ell_i^2)`.

    Law of the rows at unit period: independent entries :math:`2\pi(N - N')` with Poisson variates N, N' of mean
    :math:`1/(2\ell^2)`.  Their difference is j with probability :math:`e^{-\kappa} I_j(\kappa)`, :math:`\kappa = 1/\ell^2`,
    the Fourier coefficients of :math:`e^{\kappa(\cos\theta - 1)}`.  Features are therefore exactly periodic.

    The bandwidth is the period.  No rule chooses it from the spread of the data; it stays as given.

    References
    ----------
    mackay1998; rasmussen2006, Equation 4.31.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import Periodic
    >>> bool(np.allclose(Periodic(period=7.0)([[0.0]], [[14.0]]), 1))
    True
    """

    period: Lengthscale = 1.0
    lengthscale: Lengthscale = 1.0

    name: ClassVar[str] = "periodic"
    references: ClassVar[tuple[str, ...]] = ("mackay1998", "rasmussen2006")

    def __post_init__(self) -> None:
        """Check the period and the lengthscale."""
        super().__post_init__()
        try:
            object.__setattr__(self, "period", check_lengthscale("Periodic", self.period))
        except (TypeError, ValueError) as error:
            raise type(error)(str(error).replace("lengthscale", "period")) from None
        if np.min(self.lengthscale) < 1e-6:
            raise ValueError(
                f"Periodic: lengthscale must be at least 1e-6, in units of the period, got {shown(self.lengthscale)}."
            )

    @property
    def default_rule(self) -> None:
        """None: a period is not found from the spread of the data."""
        return None

    @property
    def bandwidth(self) -> Bandwidth:
        """The period."""
        return self.period  # type: ignore[return-value]

    def with_bandwidth(self, value: Any) -> Self:
        """Return the same kernel with another period."""
        return replace(self, period=value)

    def at_unit_scale(self, X: Any) -> Any:
        """Return checked rows divided by the period."""
        return X / scale_like(self.period, X)

    def check_columns(self, d: int) -> None:
        """Raise a ValueError if there is a period or a lengthscale per column, but not for d columns."""
        super().check_columns(d)
        if isinstance(self.period, tuple) and len(self.period) != d:
            raise ValueError(
                f"Periodic: period has {len(self.period)} entries, one for each dimension, got inputs whose last axis "
                f"is {d}."
            )

    def sample_rows(self, d: int, m: int, rng: RNG) -> np.ndarray:
        """Draw m independent rows of d entries for unit period: a float64 array of shape (m, d)."""
        shape, rng = self._counts(d, m), as_generator(rng)
        mean = np.broadcast_to(0.5 / np.asarray(self.lengthscale) ** 2, shape)
        return np.asarray(2 * math.pi * (rng.poisson(mean) - rng.poisson(mean)))

    def entries(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return the exponentials of sums over columns, which are added one by one."""
        period = xp.broadcast_to(scale_like(self.period, X), X.shape[-1:])
        weight = xp.broadcast_to(like(2 / np.asarray(self.lengthscale) ** 2, X), X.shape[-1:])
        total = 0
        for i in range(X.shape[-1]):
            turns = (X[..., :, None, i] - Y[..., None, :, i]) / period[i]
            sine = xp.sin(math.pi * (turns - xp.round(turns)))  # far points keep the digits of their phase
            total = total + weight[i] * sine * sine
        return xp.exp(-total)


@dataclass(frozen=True)
class Product(Composite):
    r"""The product of kernels: two points are similar only if every factor is large.

    Use it to let a pattern change slowly (`Periodic` times `Gaussian`: locally periodic), or for kernels of different
    kinds on different columns (`Columns`).

    Parameters
    ----------
    factors : sequence of ShiftInvariant
        The kernels, each with a lengthscale of its own.
    lengthscale : float or sequence of float, default 1.0
        A length by which the inputs of all factors are divided, or one length per dimension.

    See Also
    --------
    Sum : Two points are similar if any term is large.

    Notes
    -----
    Kernel: :math:`k(x, y) = \prod_j k_j(x/\ell, y/\ell)`.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = \sum_j \omega_j` with independent rows of the factors at their own
    lengthscales, since the mean of :math:`e^{i\omega\cdot z}` is then the product of those of the factors.

    References
    ----------
    rasmussen2006, Section 4.2.4.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import Gaussian, Periodic, Product
    >>> k = Product([Periodic(period=7.0), Gaussian(lengthscale=70.0)])
    >>> bool(np.allclose(k([[0.0]], [[70.0]]), np.exp(-0.5)))
    True
    """

    factors: tuple[ShiftInvariant, ...]
    lengthscale: Lengthscale = 1.0

    references: ClassVar[tuple[str, ...]] = ("rasmussen2006",)

    def __post_init__(self) -> None:
        """Check the factors and the lengthscale."""
        object.__setattr__(self, "factors", check_parts("Product", "factors", self.factors))
        super().__post_init__()

    @classmethod
    def variants(cls) -> dict[str, Product]:
        """Return the locally periodic kernel."""
        return {"locally-periodic": cls((Periodic(), Gaussian(2.0)))}

    def check_columns(self, d: int) -> None:
        """Raise a ValueError if the lengthscale or a factor does not fit data of d columns."""
        super().check_columns(d)
        for factor in self.factors:
            factor.check_columns(d)

    def sample_rows(self, d: int, m: int, rng: RNG) -> np.ndarray:
        """Draw m independent rows of d entries for unit lengthscale: a float64 array of shape (m, d)."""
        m, d = self._counts(d, m)
        rng = as_generator(rng)
        return np.asarray(sum(rows_at_own_scale(factor, d, m, rng) for factor in self.factors))

    def entries(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return the products of all factors."""
        x = self.at_unit_scale(X)
        y = x if Y is X else self.at_unit_scale(Y)
        K = self.factors[0].entries(xp, x, y)
        for factor in self.factors[1:]:
            K = K * factor.entries(xp, x, y)
        return K


@dataclass(frozen=True)
class Sum(Composite):
    r"""The weighted sum of kernels: a function with parts of different kinds or lengths.

    Use it where a function has parts of different kinds, such as a slow trend and a fast oscillation.

    Parameters
    ----------
    terms : sequence of ShiftInvariant
        The kernels, each with a lengthscale of its own.
    weights : sequence of float, optional
        Positive weights, which are divided by their sum; equal ones by default.
    lengthscale : float or sequence of float, default 1.0
        A length by which the inputs of all terms are divided, or one length per dimension.

    See Also
    --------
    Additive : The sum over columns, or over all subsets of a size.

    Notes
    -----
    Kernel: :math:`k(x, y) = \sum_j w_j k_j(x/\ell, y/\ell)` with :math:`\sum_j w_j = 1`.

    Law of the rows at :math:`\ell = 1`: with probability :math:`w_j` a row of the term j at its own lengthscale.

    References
    ----------
    rasmussen2006, Section 4.2.4.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import Columns, Gaussian, Sum
    >>> k = Sum([Columns(Gaussian(), [0]), Columns(Gaussian(), [1])])
    >>> k([[0.0, 0.0]], [[0.0, 99.0]])
    array([[0.5]])
    """

    terms: tuple[ShiftInvariant, ...]
    weights: tuple[float, ...] | None = None
    lengthscale: Lengthscale = 1.0

    references: ClassVar[tuple[str, ...]] = ("rasmussen2006",)

    def __post_init__(self) -> None:
        """Check the terms, the weights and the lengthscale."""
        object.__setattr__(self, "terms", check_parts("Sum", "terms", self.terms))
        n = len(self.terms)
        given = (1.0,) * n if self.weights is None else self.weights
        if not isinstance(given, list | tuple | np.ndarray):
            raise TypeError(f"Sum: weights must be {n} numbers, one for each term, got {shown(given)}.")
        if len(given) != n:
            raise ValueError(f"Sum: weights must be {n} numbers, one for each term, got {len(given)}.")
        weights = [check_positive("Sum", f"weights[{i}]", value) for i, value in enumerate(given)]
        weights = [value / max(weights) for value in weights]  # their sum does not overflow
        object.__setattr__(self, "weights", tuple(value / math.fsum(weights) for value in weights))
        super().__post_init__()

    @classmethod
    def variants(cls) -> dict[str, Sum]:
        """Return the sum of two Gaussian kernels of different lengths."""
        return {"gaussian-sum": cls((Gaussian(), Gaussian(0.25)))}

    def check_columns(self, d: int) -> None:
        """Raise a ValueError if the lengthscale or a term does not fit data of d columns."""
        super().check_columns(d)
        for term in self.terms:
            term.check_columns(d)

    def sample_rows(self, d: int, m: int, rng: RNG) -> np.ndarray:
        """Draw m independent rows of d entries for unit lengthscale: a float64 array of shape (m, d)."""
        m, d = self._counts(d, m)
        rng = as_generator(rng)
        chosen = rng.choice(len(self.terms), m, p=self.weights)
        W = np.empty((m, d))
        for j, term in enumerate(self.terms):
            rows = np.flatnonzero(chosen == j)
            if len(rows):
                W[rows] = rows_at_own_scale(term, d, len(rows), rng)
        return W

    def entries(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return the weighted mean of all terms, term by term, so that it is exactly one where all of them are."""
        assert self.weights is not None
        x = self.at_unit_scale(X)
        y = x if Y is X else self.at_unit_scale(Y)
        K, mass = self.terms[0].entries(xp, x, y), self.weights[0]
        for term, weight in zip(self.terms[1:], self.weights[1:], strict=True):
            mass += weight
            K = K + (weight / mass) * (term.entries(xp, x, y) - K)
        return K


def check_parts(owner: str, name: str, parts: Any) -> tuple[ShiftInvariant, ...]:
    """Return the kernels that a composite is made of as a tuple."""
    if isinstance(parts, ShiftInvariant) or not hasattr(parts, "__iter__"):
        raise TypeError(f"{owner}: {name} must be a sequence of kernels, got {shown(parts)}.")
    found = tuple(parts)
    if not found:
        raise ValueError(f"{owner}: {name} must be at least one kernel, got none.")
    for part in found:
        check_part(owner, name, part)
    return found


def check_part(owner: str, name: str, part: Any) -> None:
    """Raise a TypeError if a part is not a kernel of the difference, whose rows are needed."""
    if not isinstance(part, ShiftInvariant):
        raise TypeError(
            f"{owner}: {name} must be kernels of the difference x - y, such as Gaussian(), got {shown(part)}."
        )


def rows_at_own_scale(kernel: ShiftInvariant, d: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """Draw m independent rows of a kernel that act on inputs as they are, (m, d)."""
    return np.asarray(kernel.sample_rows(d, m, rng) * kernel.at_unit_scale(np.ones((1, d))))
