"""The Gaussian kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ._lengthscale import Lengthscale
from .radial import Radial


@dataclass(frozen=True)
class Gaussian(Radial):
    r"""The Gaussian kernel, also called squared exponential or RBF.

    Notes
    -----
    Kernel: :math:`k(x, y) = \exp(-|x - y|^2/(2\ell^2))`.  In the convention :math:`\exp(-\gamma|x - y|^2)`,
    :math:`\gamma = 1/(2\ell^2)`.  With one lengthscale for each dimension, the exponent is
    :math:`-\tfrac12 \sum_i (x_i - y_i)^2/\ell_i^2`.

    Law of the rows at :math:`\ell = 1`: :math:`\omega = g \sim N(0, I)`, that is scale s = 1.

    It is the softmax kernel divided by both of its diagonals:
    :math:`e^{x\cdot y} = e^{|x|^2/2}\, k(x, y)\, e^{|y|^2/2}` at :math:`\ell = 1`.

    Parameters
    ----------
    lengthscale : float or sequence of float, default 1.0
        The length :math:`\ell` over which the kernel decays, or one for each dimension.

    References
    ----------
    rahimi2007, Figure 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import Gaussian
    >>> k = Gaussian(lengthscale=2.0)
    >>> bool(np.allclose(k([[0.0]], [[2.0]]), np.exp(-1 / 2)))
    True
    >>> Gaussian(lengthscale=[1, 2])
    Gaussian(lengthscale=(1.0, 2.0))
    """

    lengthscale: Lengthscale = 1.0

    references: ClassVar[tuple[str, ...]] = ("rahimi2007",)

    def _profile(self, xp: Any, q: Any) -> Any:
        return xp.exp(-0.5 * q)
