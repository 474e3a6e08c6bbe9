"""Rows of one length."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .base import RadialLaw


@dataclass(frozen=True)
class Fixed(RadialLaw):
    r"""All lengths :math:`\sqrt d`: right on average for the dot product, biased for every other kernel.

    The trigonometric estimate of the Gaussian kernel is then off by about :math:`-z^4 e^{-z^2/2}/(4d)` even with Haar
    directions (d = 8, z = 1.5: -0.052).  It is what SORF, QBF's ROM and orthogonal JL transforms do.
    """

    def lengths(self, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
        """The same number for all."""
        return np.full(count, math.sqrt(dim))
