"""What every radial law is, and the laws themselves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._facts import Catalogued
from .._validation import check_option
from ..kernels import Kernel


class RadialLaw(Catalogued, ABC):
    r"""A law of the lengths of rows, and of their weights in an average.

    A law of one's own is a frozen dataclass that writes `unit_lengths`.  Each declares

    - ``exact``: whether the length of each row, by itself, is that of a Gaussian vector (:math:`\chi_d`), so that each row
      keeps the kernel's own law under an exact rotation;
    - ``independent``: whether the lengths of different rows are independent;
    - ``unbiased``: whether averages over rows of uniform direction, with their weights, are unbiased; what is exact is;
    - ``reflected``: whether each row stands for the pair of w and -w, half of the weight each;
    - ``has_origin``: whether rows have the weights of `weights`, whose rest is the weight of a node at zero;
    - ``signed``: whether that rest may be negative;
    - ``name`` (also the string by which projections take the law) and ``references``.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from bochner import projections, radii
    >>> @dataclass(frozen=True)
    ... class Repeated(radii.RadialLaw):
    ...     "One length per block."
    ...     exact = True
    ...     def unit_lengths(self, dim, sizes, rng):
    ...         return np.repeat(np.sqrt(rng.chisquare(dim, len(sizes))), sizes)
    >>> projections.Blocks(radii=Repeated()).unbiased
    True
    """

    exact: ClassVar[bool] = False
    independent: ClassVar[bool] = False
    reflected: ClassVar[bool] = False
    has_origin: ClassVar[bool] = False

    @property
    def unbiased(self) -> bool:
        """Whether weighted averages over rows of uniform direction are unbiased."""
        return self.exact

    @property
    def signed(self) -> bool:
        """Whether the weight of the node at zero may be negative."""
        return False

    @abstractmethod
    def unit_lengths(self, dim: int, sizes: Sequence[int], rng: np.random.Generator) -> np.ndarray:
        """Lengths for Gaussian rows in ``dim`` dimensions, float64 (m,), block after block of ``sizes`` rows."""

    def weights(self, unit_lengths: np.ndarray, dim: int) -> np.ndarray:
        """Weights of rows of these lengths in an average, (m,); what is missing to one belongs to the node at zero."""
        return np.full(len(unit_lengths), 1 / len(unit_lengths))

    def lengths(
        self, dim: int, sizes: Sequence[int], rng: np.random.Generator, kernel: Kernel | None = None
    ) -> np.ndarray:
        """Lengths of the rows of blocks of ``sizes`` rows in ``dim`` dimensions, float64 (m,).

        Parameters
        ----------
        dim : int
            Dimension in which the rows are drawn.
        sizes : sequence of int
            Rows of each block.
        rng : numpy.random.Generator
            Source of randomness.
        kernel : Kernel, optional
            Owner of the spectral law; Gaussian rows without it.
        """
        return self.draw(dim, sizes, rng, kernel)[0]

    def draw(
        self, dim: int, sizes: Sequence[int], rng: np.random.Generator, kernel: Kernel | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Lengths, as `lengths` returns them, and the weights that belong to them."""
        m = sum(sizes)
        unit = self._checked("unit_lengths", self.unit_lengths(dim, sizes, rng), m)
        weights = self._checked("weights", self.weights(unit, dim), m) if self.has_origin else None
        return unit * kernel_scales(m, kernel, rng), weights

    def _checked(self, what: str, values: Any, m: int) -> np.ndarray:
        """What a law returned, as it must be."""
        array = np.asarray(values, np.float64)
        if array.shape != (m,) or not np.all((array > 0) & np.isfinite(array)):
            raise ValueError(f"{self!r}: {what} must return {m} positive finite numbers, got shape {array.shape}.")
        return array


def kernel_scales(m: int, kernel: Kernel | None, rng: np.random.Generator) -> Any:
    r"""The scales s of m rows :math:`s\,g` of a kernel's scale mixture; one for Gaussian rows.

    Matern spectra are multivariate t (:math:`s^2 = \nu/\Gamma_\nu`), rational quadratic ones Gamma mixtures
    (:math:`s^2 = \Gamma_\alpha/\alpha`), Cauchy ones exponential (:math:`s^2 = 2 E`): see the kernels.
    """
    return 1.0 if kernel is None else kernel.sample_scales((m,), rng)


@dataclass(frozen=True)
class Chi(RadialLaw):
    r"""The kernel's own law: lengths :math:`\chi_d` of N(0, I) rows, times the kernel's scales.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.radii import Chi
    >>> Chi().lengths(5, (5, 3), np.random.default_rng(0)).shape
    (8,)
    """

    name: ClassVar[str] = "kernel"
    exact: ClassVar[bool] = True
    independent: ClassVar[bool] = True

    def unit_lengths(self, dim: int, sizes: Sequence[int], rng: np.random.Generator) -> np.ndarray:
        """Independent."""
        return np.sqrt(rng.chisquare(dim, sum(sizes)))


@dataclass(frozen=True)
class Fixed(RadialLaw):
    r"""All lengths :math:`\sqrt d`: right on average for the dot product, biased for every other kernel.

    The trigonometric estimate of the Gaussian kernel is then off by about :math:`-z^4 e^{-z^2/2}/(4d)` even with Haar
    directions (d = 8, z = 1.5: -0.052).  It is what SORF, QBF's ROM and orthogonal JL transforms do.
    """

    name: ClassVar[str] = "fixed"
    independent: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("choromanski2017",)

    def unit_lengths(self, dim: int, sizes: Sequence[int], rng: np.random.Generator) -> np.ndarray:
        """The same number for all."""
        return np.full(sum(sizes), math.sqrt(dim))


ORIGINS = ("signed", "resample")


@dataclass(frozen=True)
class SphericalRadial(RadialLaw):
    r"""Radii :math:`\chi_{d+2}` of the nodes of spherical-radial rules, with weights :math:`d/(m \rho^2)` (QBF Eq. 4).

    Parameters
    ----------
    origin : {"signed", "resample"}
        What is done about a negative weight at zero: keep it, which is unbiased, or draw the radii of a block again until it
        is not negative, which is biased.

    See Also
    --------
    bochner.projections.Quadrature : the projection made of it, with the formulas.
    """

    origin: str = "signed"
    name: ClassVar[str] = "spherical-radial"
    references: ClassVar[tuple[str, ...]] = ("qbf", "genz1998")
    reflected: ClassVar[bool] = True
    has_origin: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_option("SphericalRadial", "origin", self.origin, ORIGINS)

    @property
    def unbiased(self) -> bool:
        """With the signed weight at zero."""
        return self.origin == "signed"

    @property
    def signed(self) -> bool:
        """Unless radii are drawn again."""
        return self.origin == "signed"

    def unit_lengths(self, dim: int, sizes: Sequence[int], rng: np.random.Generator) -> np.ndarray:
        """Independent, or conditioned on a weight at zero that is not negative in every block."""
        rho = np.sqrt(rng.chisquare(dim + 2, sum(sizes)))
        if self.origin == "resample":
            for rule, start in zip(sizes, np.cumsum(sizes) - sizes, strict=True):
                while np.mean(dim / rho[start : start + rule] ** 2) > 1:
                    rho[start : start + rule] = np.sqrt(rng.chisquare(dim + 2, rule))
        return rho

    def weights(self, unit_lengths: np.ndarray, dim: int) -> np.ndarray:
        """The factor that turns the law of the radii into that of Gaussian lengths, over m."""
        return dim / (len(unit_lengths) * unit_lengths**2)
