"""The normalised Gaussian coefficient."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..._validation import check_count, check_positive
from ..draws import Draws
from ..statistics import Data
from .base import Coefficient, DrawnCoefficient
from .gaussian import cosines_and_sines

_SMALLEST_RHO = 0.05
"""Short vectors would make 1/rho, and with it the cancellation between blocks, unbounded; any rho is unbiased."""


@dataclass(frozen=True)
class NormalizedGaussianCoefficient(Coefficient):
    r"""Estimates :math:`\lambda = (1 - e^{-\sigma^2|x-y|^2/2})/\rho`, :math:`\rho = 1 - e^{-2\sigma^2r^2}` (HRF Section F).

    Zero at x = y without variance, and one, in the mean, at x = -y for points of norm r.

    .. math:: \hat\lambda = \frac1\rho - \frac{1}{n\rho}\sum_i \cos(\sigma\tau_i\cdot(x-y)),

    with :math:`\rho` at least 0.05.  It ranges over :math:`[0, 2/\rho]`.
    HRF Eq. 70 lacks the sigma inside of cosine and sine.

    Parameters
    ----------
    sigma : float
        Inverse width.
    radius : float, optional
        r; the root mean square norm of the data without it.
    n : int
        Number of independent projections tau.
    """

    sigma: float = 1.0
    radius: float | None = None
    n: int = 8

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", check_positive("NormalizedGaussianCoefficient", "sigma", self.sigma))
        if self.radius is not None:
            radius = check_positive("NormalizedGaussianCoefficient", "radius", self.radius)
            object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "n", check_count("NormalizedGaussianCoefficient", "n", self.n))

    @property
    def needs_data(self) -> bool:
        """For the radius."""
        return self.radius is None

    def effective_radius(self, data: Data | None) -> float:
        """The radius given or that of the data, but one at which rho is not too small."""
        radius = self.radius
        if radius is None:
            assert data is not None
            radius = math.sqrt(float(data.queries.square.sum() + data.keys.square.sum()) / 2)
        return max(radius, math.sqrt(-math.log1p(-_SMALLEST_RHO) / 2) / self.sigma)

    def draw(self, draws: Draws, data: Data | None) -> DrawnCoefficient:
        """Choose the radius if need be, and draw the projections."""
        rho = -math.expm1(-2 * (self.sigma * self.effective_radius(data)) ** 2)
        tau, sigma = draws.independent_rows("tau", self.n), np.asarray(float(self.sigma))
        factor = 1 / math.sqrt(self.n * rho)
        return DrawnCoefficient(1 / rho, -1, 2 * self.n, tau, cosines_and_sines, factor, sigma, sigma)
