"""The base class of radial laws, and the laws."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._facts import Catalogued
from .._random import opposite_gamma
from .._validation import check_option
from ..kernels import Kernel


class RadialLaw(Catalogued, ABC):
    r"""Base class of radial laws: the lengths of rows, and their weights in an average.

    To add your own law, write a frozen dataclass that implements `unit_lengths`.  Each class declares

    - ``exact``: whether the length of each row has the law of a Gaussian vector (:math:`\chi_d`), so that each row has
      exactly the kernel's law under an exact rotation;
    - ``independent``: whether the lengths of different rows are independent;
    - ``unbiased``: whether weighted averages over rows of uniform direction are unbiased; exact laws always are;
    - ``reflected``: whether each row stands for the pair of w and -w, each with half of the weight;
    - ``has_origin``: whether the rows are weighted by `weights`, and a node at zero has the remaining weight;
    - ``signed``: whether that remaining weight may be negative;
    - ``name`` (also accepted as a string by projections) and ``references``.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from bochner import projections, radii
    >>> @dataclass(frozen=True)
    ... class Sorted(radii.RadialLaw):
    ...     "Independent lengths, the longest first: no longer the law of each row."
    ...     def unit_lengths(self, dim, sizes, rng):
    ...         return -np.sort(-np.sqrt(rng.chisquare(dim, sum(sizes))))
    >>> projections.Blocks(radii=Sorted()).unbiased
    False
    """

    exact: ClassVar[bool] = False
    independent: ClassVar[bool] = False
    reflected: ClassVar[bool] = False
    has_origin: ClassVar[bool] = False
    coupling: ClassVar[str | None] = None

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
        """Draw the lengths of Gaussian rows in ``dim`` dimensions, for blocks of ``sizes`` rows: float64 (m,)."""

    def weights(self, unit_lengths: np.ndarray, dim: int) -> np.ndarray:
        """Weights of rows of these lengths in an average, (m,); the node at zero has the weight that is missing to one."""
        return np.full(len(unit_lengths), 1 / len(unit_lengths))

    def lengths(
        self, dim: int, sizes: Sequence[int], rng: np.random.Generator, kernel: Kernel | None = None
    ) -> np.ndarray:
        """Draw the lengths of rows in ``dim`` dimensions.

        Parameters
        ----------
        dim : int
            Dimension in which the rows are drawn.
        sizes : sequence of int
            Number of rows of each block.
        rng : numpy.random.Generator
            Source of randomness.
        kernel : Kernel, optional
            Kernel whose spectral law the rows follow; Gaussian rows by default.

        Returns
        -------
        float64 array (m,)
        """
        return self.draw(dim, sizes, rng, kernel)[0]

    def draw(
        self, dim: int, sizes: Sequence[int], rng: np.random.Generator, kernel: Kernel | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Draw the lengths, as in `lengths`, together with their weights."""
        m = sum(sizes)
        unit = self._checked("unit_lengths", self.unit_lengths(dim, sizes, rng), m)
        weights = self._checked("weights", self.weights(unit, dim), m) if self.has_origin else None
        return unit * self.scales(sizes, kernel, rng), weights

    def scales(self, sizes: Sequence[int], kernel: Kernel | None, rng: np.random.Generator) -> Any:
        """Draw the scales of the kernel's rows, for blocks of ``sizes`` rows: float64 (m,), or 1.0 for Gaussian rows."""
        return kernel_scales(sum(sizes), kernel, rng)

    def _checked(self, what: str, values: Any, m: int) -> np.ndarray:
        """Check the values that a law returned."""
        array = np.asarray(values, np.float64)
        if array.shape != (m,) or not np.all((array > 0) & np.isfinite(array)):
            raise ValueError(f"{self!r}: {what} must return {m} positive finite numbers, got shape {array.shape}.")
        return array


def kernel_scales(m: int, kernel: Kernel | None, rng: np.random.Generator) -> Any:
    r"""Draw the scales s of m rows :math:`s\,g` of a kernel's scale mixture; 1.0 for Gaussian rows.

    Matern spectra are multivariate t (:math:`s^2 = \nu/\Gamma_\nu`), rational quadratic spectra are Gamma mixtures
    (:math:`s^2 = \Gamma_\alpha/\alpha`) and Cauchy spectra exponential mixtures (:math:`s^2 = 2 E`); see the kernels.
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
        return np.sqrt(rng.chisquare(dim, sum(sizes)))


@dataclass(frozen=True)
class Fixed(RadialLaw):
    r"""All lengths equal to :math:`\sqrt d`, which is unbiased for the dot product and biased for every other kernel.

    Used by SORF, the ROM of QBF and orthogonal JL transforms.  The bias of the trigonometric estimate of the Gaussian
    kernel is about :math:`-z^4 e^{-z^2/2}/(4d)` even with Haar directions (d = 8, z = 1.5: -0.052).
    """

    name: ClassVar[str] = "fixed"
    independent: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("choromanski2017",)

    def unit_lengths(self, dim: int, sizes: Sequence[int], rng: np.random.Generator) -> np.ndarray:
        return np.full(sum(sizes), math.sqrt(dim))


@dataclass(frozen=True)
class Shared(RadialLaw):
    r"""One length :math:`\chi_d` for all rows of a block, times the kernel's scales (OMC Example 2.1, QBF Eq. 5).

    Each row by itself keeps its law, so nothing becomes biased.  With orthogonal Haar rows the errors of cosines and of
    exponentials are exactly those of independent rows, since :math:`(w_i \pm w_j)/\sqrt2` is again Gaussian: the gain of
    orthogonal features comes from independent lengths (`Chi`).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.radii import Shared
    >>> len(set(Shared().lengths(5, (5, 3), np.random.default_rng(0)).tolist()))
    2
    """

    name: ClassVar[str] = "shared"
    exact: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("omc", "qbf")

    def unit_lengths(self, dim: int, sizes: Sequence[int], rng: np.random.Generator) -> np.ndarray:
        return np.repeat(np.sqrt(rng.chisquare(dim, len(sizes))), sizes)

    def scales(self, sizes: Sequence[int], kernel: Kernel | None, rng: np.random.Generator) -> Any:
        """Draw one scale for each block."""
        return 1.0 if kernel is None else np.repeat(kernel_scales(len(sizes), kernel, rng), sizes)


ORIGINS = ("signed", "resample")


@dataclass(frozen=True)
class Coupled(RadialLaw):
    r"""Lengths in opposite pairs: a long row stands beside a short one.

    For trigonometric features of close points, whose error it lowers at no cost; positive features gain nothing.

    Notes
    -----
    The rows of a block are taken two by two.  The first of a pair has a length r of the law :math:`\chi_d`, with
    distribution function F, and the second :math:`F^{-1}(1 - F(r))`: each by itself keeps its law, so nothing becomes
    biased, and the sum of their squares hardly varies.  The odd last row of a block is independent.  Lengths of other
    kernels are products of such a length and a random scale; both factors are opposite ones.  A kernel of your own needs
    `Kernel.opposite_scales` for that, and otherwise keeps independent scales.

    References
    ----------
    reid2024 (pairwise norm coupling).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.radii import Coupled
    >>> r = Coupled().lengths(8, (4,), np.random.default_rng(0))
    >>> bool(np.all((r[::2] > 2.73) != (r[1::2] > 2.73)))        # the median of chi with 8 degrees of freedom
    True
    """

    name: ClassVar[str] = "coupled"
    references: ClassVar[tuple[str, ...]] = ("reid2024",)
    exact: ClassVar[bool] = True
    coupling: ClassVar[str | None] = "norm-coupled"

    def unit_lengths(self, dim: int, sizes: Sequence[int], rng: np.random.Generator) -> np.ndarray:
        """Draw all lengths, then replace every second one of a block by the opposite of its neighbour."""
        squares, second = rng.chisquare(dim, sum(sizes)), _second_of_pairs(sizes)
        squares[second] = 2 * opposite_gamma(dim / 2, squares[second - 1] / 2)
        return np.sqrt(np.maximum(squares, np.finfo(np.float64).tiny))

    def scales(self, sizes: Sequence[int], kernel: Kernel | None, rng: np.random.Generator) -> Any:
        """Draw all scales, then replace every second one of a block likewise, if the kernel knows their law."""
        scales, second = super().scales(sizes, kernel, rng), _second_of_pairs(sizes)
        opposite = None if kernel is None else kernel.opposite_scales(scales[second - 1])
        if opposite is not None:
            scales[second] = opposite
        return scales


def _second_of_pairs(sizes: Sequence[int]) -> np.ndarray:
    """Numbers of the rows that are the second of a pair within their block."""
    starts = np.cumsum(sizes) - sizes
    return np.concatenate([start + np.arange(1, size, 2) for start, size in zip(starts, sizes, strict=True)])


@dataclass(frozen=True)
class SphericalRadial(RadialLaw):
    r"""Radii :math:`\chi_{d+2}` of the nodes of spherical-radial rules, with weights :math:`d/(m \rho^2)` (QBF Eq. 4).

    Parameters
    ----------
    origin : {"signed", "resample"}
        How a negative weight at zero is handled: "signed" keeps it, which is unbiased; "resample" draws the radii of a
        block again until the weight is not negative, which is biased.

    See Also
    --------
    bochner.projections.Quadrature : The projection that uses this law, with the formulas.
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
        """True with the signed weight at zero."""
        return self.origin == "signed"

    @property
    def signed(self) -> bool:
        """True unless the radii are resampled."""
        return self.origin == "signed"

    def unit_lengths(self, dim: int, sizes: Sequence[int], rng: np.random.Generator) -> np.ndarray:
        rho = np.sqrt(rng.chisquare(dim + 2, sum(sizes)))
        if self.origin == "resample":
            for rule, start in zip(sizes, np.cumsum(sizes) - sizes, strict=True):
                while np.mean(dim / rho[start : start + rule] ** 2) > 1:
                    rho[start : start + rule] = np.sqrt(rng.chisquare(dim + 2, rule))
        return rho

    def weights(self, unit_lengths: np.ndarray, dim: int) -> np.ndarray:
        return dim / (len(unit_lengths) * unit_lengths**2)
