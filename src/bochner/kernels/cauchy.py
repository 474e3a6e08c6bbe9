"""The Cauchy kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._random import RNG, as_generator
from ._lengthscale import Lengthscale
from .radial import Radial


@dataclass(frozen=True)
class Cauchy(Radial):
    r"""The Cauchy kernel: heavy tails in x - y, exponential tails in frequency.

    Notes
    -----
    Kernel: :math:`k(x, y) = 1/(1 + |x - y|^2/\ell^2)`, the density of the Cauchy law up to its constant.  It is a
    function of the Euclidean distance, the rational quadratic kernel with :math:`\alpha = 1` and lengthscale
    :math:`\ell/\sqrt2`; rahimi2007 gives this name to the product of one-dimensional ones, which differs for d > 1.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = s\,g` with :math:`g \sim N(0, I)` and :math:`s^2 = 2E`, E
    standard exponential, since :math:`\mathrm{E}\,e^{-E r^2} = 1/(1 + r^2)`.

    Parameters
    ----------
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell` at which the kernel is one half, or one for each dimension.

    References
    ----------
    rahimi2007, Figure 1; rasmussen2006, Equation 4.19.

    Examples
    --------
    >>> from bochner.kernels import Cauchy
    >>> Cauchy(lengthscale=3.0)([[0.0]], [[3.0]])
    array([[0.5]])
    """

    lengthscale: Lengthscale = 1.0

    references: ClassVar[tuple[str, ...]] = ("rahimi2007", "rasmussen2006")

    def sample_scales(self, shape: int | tuple[int, ...], rng: RNG) -> np.ndarray:
        """Draw s, the root of twice a standard exponential number."""
        return np.sqrt(2 * as_generator(rng).standard_exponential(shape))

    def _profile(self, xp: Any, q: Any) -> Any:
        return 1 / (1 + q)
