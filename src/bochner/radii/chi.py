"""The lengths of Gaussian vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .base import RadialLaw


@dataclass(frozen=True)
class Chi(RadialLaw):
    r"""Lengths of N(0, I) rows, :math:`\chi_{d + k}`.

    Parameters
    ----------
    extra : int
        k; zero for rows, two for the nodes of spherical-radial quadrature, whose weights carry a factor
        :math:`1/\rho^2` (QBF Eq. 4).

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.radii import Chi
    >>> Chi().lengths(5, 3, np.random.default_rng(0)).shape
    (3,)
    """

    extra: int = 0

    def lengths(self, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw from the chi law."""
        return np.sqrt(rng.chisquare(dim + self.extra, count))
