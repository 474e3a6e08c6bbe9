"""The arc-cosine kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from .._validation import check_count, check_option
from ._angles import angles
from .base import Kernel


@dataclass(frozen=True)
class ArcCosine(Kernel):
    r"""The arc-cosine kernels, those of infinitely wide layers of rectified units.

    Notes
    -----
    Kernel: :math:`k_b(x, y) = |x|^b |y|^b J_b(\theta)/\pi` with :math:`\theta` the angle between x and y,

    - :math:`J_0 = \pi - \theta`,
    - :math:`J_1 = \sin\theta + (\pi - \theta)\cos\theta`,
    - :math:`J_2 = 3\sin\theta\cos\theta + (\pi - \theta)(1 + 2\cos^2\theta)`.

    On the diagonal :math:`k_0 = 1`, :math:`k_1 = |x|^2`, :math:`k_2 = 3|x|^4`.  The angle with a zero vector is taken
    to be :math:`\pi/2`: there :math:`k_0 = 1/2`, as for a step that is 1/2 at zero, and the others are zero.

    Law of the rows: :math:`\omega \sim N(0, I)`, and
    :math:`k_b(x, y) = 2\,\mathrm{E}\,f_b(\omega\cdot x) f_b(\omega\cdot y)` with :math:`f_b(t) = t^b` for t > 0 and 0
    for t < 0.

    Parameters
    ----------
    order : {0, 1, 2}
        The power b: steps, rectified linear units, or rectified squares.

    References
    ----------
    cho2009, Section 2; qbf, Section 4.2.

    Examples
    --------
    >>> from bochner.kernels import ArcCosine
    >>> ArcCosine(order=1)([[3.0, 4.0]])
    array([[25.]])
    """

    order: int

    dot_product: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("cho2009", "qbf")

    def __post_init__(self) -> None:
        """Check the order."""
        order = check_count("ArcCosine", "order", self.order, minimum=0)
        check_option("ArcCosine", "order", order, (0, 1, 2))
        object.__setattr__(self, "order", order)

    def _gram(self, xp: Any, X: Any, Y: Any) -> Any:
        theta = angles(xp, X, Y)
        supplement = theta.supplement(xp)
        if self.order == 0:
            return supplement / math.pi
        sine, cosine = theta.sine_and_cosine(xp)
        if self.order == 1:
            return theta.norms * ((sine + supplement * cosine) / math.pi)
        return theta.norms**2 * ((3 * sine * cosine + supplement * (1 + 2 * cosine * cosine)) / math.pi)
