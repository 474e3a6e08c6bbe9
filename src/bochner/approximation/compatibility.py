"""Which kernels, maps and projections work together, and the sentence said when they do not."""

from __future__ import annotations

from ..kernels import Kernel
from ..maps import Map
from ..projections import IID, Projection
from .defaults import default_map


def check_map(kernel: Kernel | None, feature_map: Map) -> None:
    """Refuse a map that does not estimate the kernel."""
    if feature_map.serves(kernel):
        return
    if kernel is None:
        raise ValueError(
            f"Approximation: {feature_map!r} needs {feature_map.requirement}, and no kernel was given; pass kernel=..., or "
            f"use Pointwise(f), whose kernel is its own."
        )
    raise ValueError(
        f"Approximation: {feature_map!r} cannot estimate {kernel!r}: it needs {feature_map.requirement}; "
        f"for this kernel use {default_map(kernel)!r}."
    )


def check_projection(kernel: Kernel | None, feature_map: Map, projection: Projection) -> None:
    """Refuse a projection that the map or the kernel cannot use."""
    if isinstance(projection, IID):
        return
    if feature_map.discrete:
        raise ValueError(
            f"Approximation: {feature_map!r} cannot use {projection!r}: it draws tables of integers and has no rows to "
            f"couple; leave the projection out, or use IID()."
        )
    if kernel is not None and kernel.spectrum == "product":
        raise ValueError(
            f"Approximation: {kernel!r} cannot use {projection!r}: its spectral law is a product without uniform "
            f"directions, which rotations, quadrature and normal quantiles need; leave the projection out, or use IID()."
        )
