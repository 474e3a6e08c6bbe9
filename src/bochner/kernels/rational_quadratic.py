"""The rational quadratic kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._random import RNG, as_generator
from .._validation import check_positive
from ._lengthscale import Lengthscale
from .radial import Radial


@dataclass(frozen=True)
class RationalQuadratic(Radial):
    r"""The rational quadratic kernel: Gaussian kernels of many lengthscales, with Gamma distributed weights.

    Notes
    -----
    Kernel: :math:`k(x, y) = (1 + |x - y|^2/(2\alpha\ell^2))^{-\alpha}`.  It tends to the Gaussian kernel as
    :math:`\alpha` grows.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = s\,g` with :math:`g \sim N(0, I)` and
    :math:`s^2 = \Gamma_\alpha/\alpha`, :math:`\Gamma_\alpha` a Gamma number of shape :math:`\alpha`, since
    :math:`\mathrm{E}\,e^{-t\,\Gamma_\alpha} = (1 + t)^{-\alpha}`.

    Parameters
    ----------
    alpha : float
        Tail exponent :math:`\alpha > 0`.
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell`, or one for each dimension.

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
        super().__post_init__()

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> np.ndarray:
        """Draw s, the root of a Gamma number of shape and rate alpha."""
        return np.sqrt(as_generator(rng).standard_gamma(self.alpha, shape) / self.alpha)

    def _profile(self, xp: Any, q: Any) -> Any:
        return xp.exp(-self.alpha * xp.log1p(q / (2 * self.alpha)))  # a power would lose digits for large alpha
