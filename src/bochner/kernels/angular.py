"""The angular kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ._angles import angles
from .base import Kernel


@dataclass(frozen=True)
class Angular(Kernel):
    r"""The angular kernel, the mean of sign features.

    Notes
    -----
    Kernel: :math:`k(x, y) = 1 - 2\theta/\pi` with :math:`\theta` the angle between x and y.  The angle with a zero
    vector is taken to be :math:`\pi/2`: the kernel is zero there, as the sign of zero is.

    Law of the rows: :math:`\omega \sim N(0, I)`, and
    :math:`\mathrm{E}\,\mathrm{sgn}(\omega\cdot x)\,\mathrm{sgn}(\omega\cdot y) = 1 - 2\theta/\pi`.  In terms of the
    arc-cosine kernel of order 0 it is :math:`2 k_0 - 1`.

    References
    ----------
    goemans1995, Lemma 3.2; charikar2002.

    Examples
    --------
    >>> from bochner.kernels import Angular
    >>> Angular()([[1.0, 0.0]], [[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]])
    array([[ 1.,  0., -1.]])
    """

    dot_product: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("goemans1995", "charikar2002")

    def _gram(self, xp: Any, X: Any, Y: Any) -> Any:
        return angles(xp, X, Y).complement(xp) * (2 / math.pi)
