"""The projections themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..kernels import Kernel, Linear
from .homogeneous import HomogeneousMap


@dataclass(frozen=True)
class Identity(HomogeneousMap):
    r"""Projections :math:`m^{-1/2} w_i\cdot x` as features of the linear kernel: dimensionality reduction.

    Notes
    -----
    The Johnson-Lindenstrauss transform; with orthogonal rows of fixed radius the orthogonal one (OJLT), whose error is
    lower by a factor (d - m)/(d - 1) and more (OMC Section 5.1).  Variance with independent rows:
    :math:`(|x|^2|y|^2 + (x\cdot y)^2)/m`.

    References
    ----------
    johnson1984, omc.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import Approximation, kernels, maps
    >>> phi = Approximation(kernels.Linear(), maps.Identity(), n_projections=3).draw(3, rng=0)
    >>> X = np.arange(6.0).reshape(2, 3)
    >>> bool(np.allclose(phi.gram(X), X @ X.T))      # a whole orthogonal block of fixed radius is a rotation
    True
    """

    requirement: ClassVar[str] = "the linear kernel"
    references: ClassVar[tuple[str, ...]] = ("johnson1984", "omc")
    even: ClassVar[bool] = True

    def serves(self, kernel: Kernel | None) -> bool:
        """The linear kernel."""
        return isinstance(kernel, Linear)

    @property
    def degree(self) -> int:
        """One."""
        return 1

    def function(self, u: Any) -> Any:
        """Nothing is done."""
        return u
