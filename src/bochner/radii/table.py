"""Which radial law a kernel and an option stand for."""

from __future__ import annotations

from ..kernels import Kernel
from .base import RadialLaw
from .chi import Chi
from .fixed import Fixed
from .scale_mixture import ScaleMixture

RADII = ("kernel", "fixed")


def radial_law(owner: str, kernel: Kernel | None, radii: str) -> RadialLaw:
    """The law of row lengths for ``kernel`` (None means Gaussian rows) with option ``radii``."""
    base = Chi() if radii == "kernel" else Fixed()
    if kernel is None:
        return base
    check_radial(owner, kernel)
    return ScaleMixture(kernel, base)


def check_radial(owner: str, kernel: Kernel) -> None:
    """Refuse a kernel whose rows have no uniform direction."""
    if kernel.spectrum != "radial":
        raise ValueError(
            f"{owner} with {kernel!r}: the rows of this kernel are a product law without a uniform direction, "
            f"which rotations and quadrature need; use IID()."
        )
