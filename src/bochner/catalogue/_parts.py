"""What users give as a part, and every pair of parts that is worth trying."""

from __future__ import annotations

from collections.abc import Iterator

from .._validation import check_count, check_instance
from ..approximation import Approximation
from ..approximation._names import look_up, maps, projections
from ..kernels import Kernel
from ..projections import Projection

LARGE_DIMENSION = 1024
"""Largest dimension in which mechanisms that take seconds to draw are tried."""


def as_projection(owner: str, projection: Projection | str) -> Projection:
    """The projection itself, or the one of that name, as functions take it from their users.

    Parameters
    ----------
    owner : str
        Name of the caller, for error messages.
    projection : Projection or str
        A projection, or its name in the catalogue.

    Returns
    -------
    Projection
        The projection.
    """
    if isinstance(projection, str):
        return look_up("projection", projection, projections())
    check_instance(owner, "projection", projection, Projection, "projections.Orthogonal()")
    return projection


def candidates(kernel: Kernel, d: int) -> Iterator[Approximation]:
    """Yield every pair of map and projection that works for a kernel in d dimensions and is worth trying.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    d : int
        Dimension of the data; above 1024, projections that do not scale are left out.

    Yields
    ------
    Approximation
        A specification with one projection; use ``with_width`` to set the number of features.

    Examples
    --------
    >>> from bochner import catalogue, kernels
    >>> {spec.projection for spec in catalogue.candidates(kernels.Laplacian(), 3)}
    {IID()}
    """
    check_instance("catalogue.candidates", "kernel", kernel, Kernel, "kernels.Gaussian()")
    check_count("catalogue.candidates", "d", d)
    rows = [P for P in projections().values() if d <= LARGE_DIMENSION or P.scales]
    for feature_map in maps().values():
        if not feature_map.serves(kernel) or d > (feature_map.largest_dimension or d):
            continue
        for P in rows:
            if feature_map.worth_trying(P):
                try:
                    yield Approximation(kernel, feature_map, P, 1)
                except ValueError:
                    continue  # this pair does not work together, as the compatibility rules say
