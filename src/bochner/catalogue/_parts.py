"""Parts by name: what the classes declare, collected, and looked up with an error that lists the names."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from .. import geometries as _geometries
from .. import kernels as _kernels
from .. import maps as _maps
from .. import projections as _projections
from .. import radii as _radii
from .. import rotations as _rotations
from .._facts import classes
from .._validation import check_count, check_instance, shown
from ..approximation import Approximation
from ..geometries import FastGeometry, Geometry
from ..kernels import Kernel
from ..maps import Map
from ..projections import Blocks, Orthogonal, Projection
from ..radii import RadialLaw
from ..rotations import Haar, Hadamard, Rotation

T = TypeVar("T")
LARGE_DIMENSION = 1024
"""Largest dimension in which mechanisms that take seconds to draw are tried."""


def kernels() -> dict[str, Kernel]:
    """Return all kernels at unit scale, by name.

    Returns
    -------
    dict of str to Kernel
    """
    return _variants(_kernels, Kernel)


def rotations() -> dict[str, Rotation]:
    """Return all rotations R, by name.

    Returns
    -------
    dict of str to Rotation
    """
    return _variants(_rotations, Rotation)


def geometries() -> dict[str, Geometry]:
    """Return all geometries S, by name.

    Returns
    -------
    dict of str to Geometry
    """
    return _variants(_geometries, Geometry)


def radii() -> dict[str, RadialLaw]:
    """Return all radial laws D, by name.

    Returns
    -------
    dict of str to RadialLaw
    """
    return _variants(_radii, RadialLaw)


def maps() -> dict[str, Map]:
    """Return all maps, by name.

    Returns
    -------
    dict of str to Map
    """
    return _variants(_maps, Map)


def projections() -> dict[str, Projection]:
    """Return all projections by name: the declared ones, and W = D S R for every other rotation, geometry and radial law.

    A rotation R that no declared projection uses appears as ``"orthogonal-R"``.  A geometry S appears as ``"S"`` (with
    Haar rotations) and, if its products are fast, as ``"fast-S"`` (with Hadamard rotations).  A radial law D appears as
    ``"orthogonal-D"``.

    Returns
    -------
    dict of str to Projection
    """
    found = _variants(_projections, Projection)
    R, S, D = (
        [getattr(rows, name, None) for rows in found.values()] for name in ("rotation", "geometry", "radial_law")
    )
    found |= {f"orthogonal-{name}": Orthogonal(new) for name, new in rotations().items() if new not in R}
    for name, new in geometries().items():
        if new not in S:
            found[name] = Blocks(Haar(), new)
            if isinstance(new, FastGeometry):
                found[f"fast-{name}"] = Blocks(Hadamard(), new)
    found |= {f"orthogonal-{name}": Orthogonal(Haar(), new) for name, new in radii().items() if new not in D}
    return found


def kernel(name: str) -> Kernel:
    """Return the kernel of that name, at unit scale.

    Parameters
    ----------
    name : str
        One of the names in `kernels()`.

    Returns
    -------
    Kernel
    """
    return look_up("kernel", name, kernels())


def rotation(name: str) -> Rotation:
    """Return the rotation of that name.

    Parameters
    ----------
    name : str
        One of the names in `rotations()`.

    Returns
    -------
    Rotation
    """
    return look_up("rotation", name, rotations())


def projection(name: str) -> Projection:
    """Return the projection of that name.

    Parameters
    ----------
    name : str
        One of the names in `projections()`.

    Returns
    -------
    Projection
    """
    return look_up("projection", name, projections())


def map(name: str) -> Map:
    """Return the map of that name.

    Parameters
    ----------
    name : str
        One of the names in `maps()`.

    Returns
    -------
    Map
    """
    return look_up("map", name, maps())


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
        if not feature_map.serves(kernel):
            continue
        for P in rows:
            if feature_map.worth_trying(P):
                try:
                    yield Approximation(kernel, feature_map, P, 1)
                except ValueError:
                    continue  # this pair does not work together, as the compatibility rules say


def _variants(module: Any, kind: Any) -> dict[str, Any]:
    """Collect the instances that the classes of a module and registered classes declare; duplicate names are refused."""
    found: dict[str, Any] = {}
    for cls in classes(module, kind):
        for name, value in cls.variants().items():  # type: ignore[attr-defined]
            if name in found:
                raise ValueError(
                    f"catalogue: two {kind.__name__.lower()}s are named {name!r}, {found[name]!r} and {value!r}."
                )
            found[name] = value
    return found


def look_up(kind: str, name: Any, table: Mapping[str, T]) -> T:
    """Return the entry of that name, or raise a ValueError that lists all names."""
    if isinstance(name, str) and name in table:
        return table[name]
    close = difflib.get_close_matches(str(name), table, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"unknown {kind} {shown(name)}.{hint} The names are {', '.join(table)}.")
