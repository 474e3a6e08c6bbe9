"""Polynomial kernels, and power series of the dot product with coefficients that are not negative."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

from .._validation import check_count, check_number, check_positive, shown
from ._distances import dot_products
from ._kernel import Bandwidth, Kernel


class PowerSeries(Kernel):
    r"""Base class of kernels :math:`\sum_n c_n (x\cdot y)^n` with finitely many coefficients :math:`c_n \ge 0`.

    A subclass has a field ``scale``, the factor of the dot product, and the property ``series``.
    """

    dot_product: ClassVar[bool] = True
    metric: ClassVar[Literal["euclidean", "cityblock"] | None] = "euclidean"
    has_bandwidth: ClassVar[bool] = True
    scale: float

    @property
    def series(self) -> tuple[float, ...]:
        """The coefficients at unit scale, from that of degree 0."""
        raise NotImplementedError

    @property
    def default_rule(self) -> None:
        """None: the scale stays as it is given, as scikit-learn's ``gamma`` does not fit rows of other lengths."""
        return None

    def at_unit_scale(self, X: Any) -> Any:
        """Return checked rows times the root of the scale."""
        return X * math.sqrt(self.scale)

    @property
    def bandwidth(self) -> Bandwidth:
        """The length at which the scaled dot product of a vector with itself is one."""
        return float(self.scale**-0.5)

    def with_bandwidth(self, value: Any) -> Self:
        """Return the kernel with the scale of another bandwidth."""
        return replace(self, scale=check_positive(type(self).__name__, "bandwidth", value) ** -2)  # type: ignore[type-var]

    def from_gamma(self, gamma: float) -> Self:
        """Return the kernel with gamma as the factor of the dot product, as scikit-learn has it."""
        return replace(self, scale=check_positive(type(self).__name__, "gamma", gamma))  # type: ignore[type-var]


@dataclass(frozen=True)
class Polynomial(PowerSeries):
    r"""The polynomial kernel, whose functions are all polynomials of the columns up to a degree.

    Use it where products of a few columns matter: bags of words, pixels, interactions of factors.

    Parameters
    ----------
    degree : int
        The degree p, at least 1.
    offset : float, default 1.0
        The constant :math:`c \ge 0`; with zero there are products of exactly p columns, otherwise also of fewer.
    scale : float, default 1.0
        The factor a of the dot product; scikit-learn's ``gamma``.

    See Also
    --------
    DotProduct : Other coefficients of the powers.

    Notes
    -----
    Kernel: :math:`k(x, y) = (a\,x\cdot y + c)^p`.

    Features: exact monomials where they fit, and sketches of products of random projections (`maps.Maclaurin`), or
    `maps.TensorSketch` for sparse rows.

    References
    ----------
    pham2013; wacker2024.

    Examples
    --------
    >>> from bochner.kernels import Polynomial
    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]])
    array([[144.]])
    """

    degree: int
    offset: float = 1.0
    scale: float = 1.0

    references: ClassVar[tuple[str, ...]] = ("pham2013", "wacker2024")

    def __post_init__(self) -> None:
        """Check the degree, the offset and the scale."""
        object.__setattr__(self, "degree", check_count("Polynomial", "degree", self.degree))
        object.__setattr__(self, "offset", check_not_negative("Polynomial", "offset", self.offset))
        object.__setattr__(self, "scale", check_positive("Polynomial", "scale", self.scale))

    @classmethod
    def variants(cls) -> dict[str, Polynomial]:
        """Return the degrees 2 and 3."""
        return {"polynomial-2": cls(2), "polynomial-3": cls(3)}

    @property
    def series(self) -> tuple[float, ...]:
        """The binomial coefficients times powers of the offset."""
        p = self.degree
        return tuple(math.comb(p, n) * self.offset ** (p - n) for n in range(p + 1))

    def entries(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return the powers of dot products."""
        return (self.scale * dot_products(xp, X, Y) + self.offset) ** self.degree


@dataclass(frozen=True)
class DotProduct(PowerSeries):
    r"""A kernel of the dot product by its power series.

    Use it for kernels that no other class has: truncated exponentials, neural-tangent and zonal kernels on the sphere.

    Parameters
    ----------
    coefficients : sequence of float
        The coefficients :math:`c_0, c_1, \dots, c_p`, none of them negative, which makes the kernel positive definite.
    scale : float, default 1.0
        The factor a of the dot product.

    See Also
    --------
    Polynomial : Binomial coefficients.
    Softmax : The whole series of the exponential function.

    Notes
    -----
    Kernel: :math:`k(x, y) = \sum_{n \le p} c_n (a\,x\cdot y)^n`.

    References
    ----------
    kar2012.

    Examples
    --------
    >>> from bochner.kernels import DotProduct
    >>> DotProduct([1, 0, 2])([[1.0, 1.0]], [[1.0, 2.0]])         # 1 + 2 (x . y)^2
    array([[19.]])
    """

    coefficients: tuple[float, ...]
    scale: float = 1.0

    references: ClassVar[tuple[str, ...]] = ("kar2012",)

    def __post_init__(self) -> None:
        """Check the coefficients and the scale."""
        if not hasattr(self.coefficients, "__iter__"):
            raise TypeError(f"DotProduct: coefficients must be a sequence of numbers, got {shown(self.coefficients)}.")
        found = tuple(
            check_not_negative("DotProduct", f"coefficients[{n}]", value) for n, value in enumerate(self.coefficients)
        )
        if not any(found):
            raise ValueError(f"DotProduct: coefficients must not be all zero, got {shown(self.coefficients)}.")
        object.__setattr__(self, "coefficients", found)
        object.__setattr__(self, "scale", check_positive("DotProduct", "scale", self.scale))

    @classmethod
    def variants(cls) -> dict[str, DotProduct]:
        """Return the exponential series up to degree 4."""
        return {"truncated-exponential": cls((1.0, 1.0, 1 / 2, 1 / 6, 1 / 24))}

    @property
    def series(self) -> tuple[float, ...]:
        """The coefficients."""
        return self.coefficients

    def entries(self, xp: Any, X: Any, Y: Any) -> Any:
        """Return the values of the polynomial, by Horner's rule."""
        t = self.scale * dot_products(xp, X, Y)
        K = xp.full_like(t, self.coefficients[-1])
        for c in self.coefficients[-2::-1]:
            K = K * t + c
        return K


def check_not_negative(owner: str, name: str, value: Any) -> float:
    """Return ``value`` as a finite float of at least zero."""
    number = check_number(owner, name, value)
    if number < 0:
        raise ValueError(f"{owner}: {name} must be a number of at least zero, got {shown(value)}.")
    return number
