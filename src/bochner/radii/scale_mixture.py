"""Lengths for kernels whose rows are Gaussian vectors of random scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .base import RadialLaw


@dataclass(frozen=True)
class ScaleMixture(RadialLaw):
    r"""Lengths :math:`s\,\ell` with s of a kernel's spectral scale law and :math:`\ell` of a base law.

    Matern spectra are multivariate t (:math:`s^2 = \nu/\Gamma_\nu`), rational quadratic ones Gamma mixtures
    (:math:`s^2 = \Gamma_\alpha/\alpha`), Cauchy ones exponential (:math:`s^2 = 2 E`): see the kernels.

    Parameters
    ----------
    kernel : Kernel
        Owner of ``sample_scales(shape, rng)``.
    base : RadialLaw
        Law of the lengths at scale one.
    """

    kernel: Any
    base: RadialLaw

    def lengths(self, dim: int, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw both factors."""
        base = self.base.lengths(dim, count, rng)
        lengths: np.ndarray = base * self.kernel.sample_scales((count,), rng)
        return lengths
