"""Which kernels, maps and projections work together, the defaults, and the errors for incompatible parts."""

from __future__ import annotations

from .. import maps
from .._facts import classes
from ..kernels import Kernel
from ..maps import Map
from ..projections import IID, Orthogonal, Projection, Simplex
from ..rotations import Haar


def default_map(kernel: Kernel) -> Map:
    """Return the map that declares itself the default for the kernel, or else the first that serves it."""
    for cls in classes(maps, Map):
        found: Map | None = cls.default_for(kernel)  # type: ignore[attr-defined]
        if found is not None:
            return found
    for cls in classes(maps, Map):
        for feature_map in cls.variants().values():  # type: ignore[attr-defined]
            if feature_map.serves(kernel):
                return feature_map  # type: ignore[no-any-return]
    raise ValueError(
        f"Approximation: no map of the catalogue serves {kernel!r}; pass map=..., or register one that does."
    )


def default_projection(kernel: Kernel | None, feature_map: Map) -> Projection:
    """Return Haar rows with the coupling that suits the map, or independent rows if there is no W or no radial law."""
    if not feature_map.uses_rows or (kernel is not None and kernel.spectrum == "product"):
        return IID()
    return {
        "orthogonal": Orthogonal(Haar()),
        "simplex": Simplex(Haar()),
        "directions": Orthogonal(Haar(), radii="fixed"),
        "independent": IID(),
    }[feature_map.coupling]


def check_map(kernel: Kernel | None, feature_map: Map) -> None:
    """Raise a ValueError if the map does not estimate the kernel."""
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
    """Raise a ValueError if the map or the kernel cannot use the projection."""
    if projection.coupling == "iid":
        return
    if not feature_map.uses_rows:
        raise ValueError(
            f"Approximation: {feature_map!r} cannot use {projection!r}: it has no rows of W to couple; leave the projection "
            f"out, or use IID()."
        )
    if kernel is not None and kernel.spectrum == "product":
        raise ValueError(
            f"Approximation: {kernel!r} cannot use {projection!r}: its spectral law is a product without uniform "
            f"directions, which rotations, quadrature and normal quantiles need; leave the projection out, or use IID()."
        )
