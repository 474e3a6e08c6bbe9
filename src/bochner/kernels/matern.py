"""The Matern kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._arrays import root
from .._random import RNG, as_generator
from .._validation import check_positive
from ._lengthscale import Lengthscale
from ._mixture import evaluate, matern_mixture
from .radial import Radial

FAR = 1e4  # lengthscales after which the kernel is zero in float64
SMALLEST_GAMMA = 1e-60  # keeps scales finite in float32; the kernel feels it below 1e-30 lengthscales


@dataclass(frozen=True)
class Matern(Radial):
    r"""The Matern kernels: samples of their Gaussian processes have :math:`\lceil\nu\rceil - 1` derivatives.

    Notes
    -----
    Kernel: with :math:`r = |x - y|/\ell` and :math:`z = \sqrt{2\nu}\,r`,
    :math:`k(x, y) = 2^{1-\nu} z^\nu K_\nu(z)/\Gamma(\nu)`, :math:`K_\nu` the modified Bessel function.  In closed form
    :math:`e^{-z}` for :math:`\nu = 1/2`, :math:`(1 + z)\,e^{-z}` for 3/2, :math:`(1 + z + z^2/3)\,e^{-z}` for 5/2; any
    other order is summed as a mixture of Gaussian kernels, by the law of s below.  It tends to the Gaussian kernel as
    :math:`\nu` grows.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = s\,g` with :math:`g \sim N(0, I)` and
    :math:`s^2 = \nu/\Gamma_\nu`, :math:`\Gamma_\nu` a Gamma number of shape :math:`\nu`: the multivariate t law with
    :math:`2\nu` degrees of freedom.

    Gradients at x = y are zero, also for :math:`\nu \le 1/2` where the kernel has a cusp.

    Parameters
    ----------
    nu : float
        Smoothness :math:`\nu > 0`.
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell`, or one for each dimension.

    References
    ----------
    rasmussen2006, Equations 4.14 to 4.17.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import Matern
    >>> bool(np.allclose(Matern(nu=0.5)([[0.0, 0.0]], [[3.0, 4.0]]), np.exp(-5)))
    True
    """

    nu: float
    lengthscale: Lengthscale = 1.0

    references: ClassVar[tuple[str, ...]] = ("rasmussen2006",)

    def __post_init__(self) -> None:
        """Check nu and the lengthscale."""
        object.__setattr__(self, "nu", check_positive("Matern", "nu", self.nu))
        super().__post_init__()

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> np.ndarray:
        """Draw s, the root of nu over a Gamma number of shape nu."""
        gamma = as_generator(rng).standard_gamma(self.nu, shape)
        return np.sqrt(self.nu / np.maximum(gamma, SMALLEST_GAMMA))

    def _profile(self, xp: Any, q: Any) -> Any:
        if self.nu not in (0.5, 1.5, 2.5):
            return evaluate(xp, q, matern_mixture(self.nu))
        z = math.sqrt(2 * self.nu) * xp.clip(root(xp, q), None, FAR)  # infinity times zero is no number
        if self.nu == 0.5:
            return xp.exp(-z)
        if self.nu == 1.5:
            return (1 + z) * xp.exp(-z)
        return (1 + z + z * z / 3) * xp.exp(-z)
