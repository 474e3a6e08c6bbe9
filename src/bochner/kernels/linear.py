"""The linear kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .base import Kernel


@dataclass(frozen=True)
class Linear(Kernel):
    r"""The linear kernel, estimated by random projections.

    Notes
    -----
    Kernel: :math:`k(x, y) = x\cdot y`.

    Law of the rows: :math:`\omega \sim N(0, I)`, since :math:`\mathrm{E}\,(\omega\cdot x)(\omega\cdot y) = x\cdot y`,
    the Johnson-Lindenstrauss projection.

    References
    ----------
    johnson1984.

    Examples
    --------
    >>> from bochner.kernels import Linear
    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    dot_product: ClassVar[bool] = True
    references: ClassVar[tuple[str, ...]] = ("johnson1984",)

    def _gram(self, xp: Any, X: Any, Y: Any) -> Any:
        return X @ xp.matrix_transpose(Y)
