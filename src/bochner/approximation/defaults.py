"""What is best for a kernel and a map, where nothing else is asked for."""

from __future__ import annotations

from ..kernels import Angular, ArcCosine, Kernel, Linear, Softmax
from ..maps import Identity, Map, OptimalPositive, Rectified, Sign, Trigonometric
from ..projections import IID, Orthogonal, Projection, Simplex
from ..rotations import Haar


def default_map(kernel: Kernel) -> Map:
    """Optimal positive features for softmax, signs and positive parts for their kernels, cosines for the others."""
    if isinstance(kernel, Softmax):
        return OptimalPositive()
    if isinstance(kernel, ArcCosine):
        return Rectified(kernel.order)
    if isinstance(kernel, Angular):
        return Sign()
    if isinstance(kernel, Linear):
        return Identity()
    return Trigonometric()


def default_projection(kernel: Kernel | None, feature_map: Map) -> Projection:
    """Haar rows, coupled as the map likes them; independent ones where there is no W, or no radial law."""
    if feature_map.discrete or (kernel is not None and kernel.spectrum == "product"):
        return IID()
    return {
        "orthogonal": Orthogonal(Haar()),
        "simplex": Simplex(Haar()),
        "directions": Orthogonal(Haar(), radii="fixed"),
        "independent": IID(),
    }[feature_map.coupling]
