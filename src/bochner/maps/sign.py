"""Signs of projections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .._arrays import array_namespace
from ..kernels import Angular, Kernel
from .homogeneous import HomogeneousMap


@dataclass(frozen=True)
class Sign(HomogeneousMap):
    r"""Sign features :math:`m^{-1/2}\,\mathrm{sgn}(w_i\cdot x)` of the angular kernel :math:`1 - 2\theta/\pi`.

    Notes
    -----
    :math:`E\,\mathrm{sgn}(w\cdot x)\,\mathrm{sgn}(w\cdot y) = 1 - 2\theta/\pi` for any uniform direction.  Variance with
    independent rows: :math:`(1 - k^2)/m`.  Exact at angles 0 and :math:`\pi`.

    References
    ----------
    goemans1995, charikar2002, hrf (Eq. 19).

    Examples
    --------
    >>> from bochner import Approximation, kernels, maps
    >>> Approximation(kernels.Angular(), maps.Sign(), n_projections=8).draw(3, rng=0).n_features_out
    8
    """

    requirement: ClassVar[str] = "the angular kernel, which its products of signs have as their mean"
    references: ClassVar[tuple[str, ...]] = ("goemans1995", "charikar2002", "hrf")
    even: ClassVar[bool] = True

    def serves(self, kernel: Kernel | None) -> bool:
        """The angular kernel."""
        return isinstance(kernel, Angular)

    @property
    def degree(self) -> int:
        """Zero."""
        return 0

    def function(self, u: Any) -> Any:
        """Signs, zero at zero."""
        return array_namespace(u).sign(u)
