"""The softmax kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from .._arrays import array_namespace, cast, working_dtype
from .._validation import check_positive
from .base import Kernel


@dataclass(frozen=True)
class Softmax(Kernel):
    r"""The softmax kernel, the unnormalised weights of attention.

    Notes
    -----
    Kernel: :math:`k(x, y) = \exp(c\,x\cdot y)` with c the scale.  Attention with heads of width d uses
    :math:`c = 1/\sqrt d`.

    Law of the rows at c = 1: :math:`\omega = g \sim N(0, I)`, since
    :math:`\mathrm{E} \exp(\omega\cdot(x + y)) = \exp(|x|^2/2 + |y|^2/2 + x\cdot y)`.

    The exponential overflows where :math:`c\,x\cdot y` exceeds 709 (88 in float32); the kernel is then infinite.

    Parameters
    ----------
    scale : float, default 1.0
        The factor c > 0 of the dot product.

    References
    ----------
    choromanski2021, Section 2; hrf, Equation 1.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.kernels import Softmax
    >>> bool(np.allclose(Softmax(scale=0.5)([[1.0, 2.0]], [[2.0, 1.0]]), np.exp(2)))
    True
    """

    scale: float = 1.0

    dot_product: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("choromanski2021", "hrf")

    def __post_init__(self) -> None:
        """Check the scale."""
        object.__setattr__(self, "scale", check_positive("Softmax", "scale", self.scale))

    def scaled(self, X: Any) -> Any:
        """Return X times the root of the scale: the inputs on which random features at unit scale act."""
        X = self._check_inputs(X)
        xp, dtype = array_namespace(X), X.dtype
        return cast(cast(X, working_dtype(xp, dtype)) * math.sqrt(self.scale), dtype)

    def at_unit_scale(self, X: Any) -> Any:
        """Return checked rows times the root of the scale."""
        return X * math.sqrt(self.scale)

    def _gram(self, xp: Any, X: Any, Y: Any) -> Any:
        return xp.exp(self.scale * (X @ xp.matrix_transpose(Y)))
