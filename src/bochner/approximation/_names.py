"""Parts by name: what the classes declare, collected, and looked up with an error that lists the names.

`bochner.catalogue` is the public face of these functions; `Approximation` takes names by them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from .. import geometries as _geometries
from .. import kernels as _kernels
from .. import maps as _maps
from .. import projections as _projections
from .. import radii as _radii
from .. import rotations as _rotations
from .._facts import classes
from .._validation import shown
from ..geometries import FastGeometry, Geometry
from ..kernels import Kernel
from ..maps import Map
from ..projections import IID, Blocks, Orthogonal, Projection, Simplex
from ..radii import RadialLaw
from ..rotations import Haar, Hadamard, Rotation

T = TypeVar("T")


def kernels() -> dict[str, Kernel]:
    """Return all kernels at unit scale, by name.

    Returns
    -------
    dict of str to Kernel

    Examples
    --------
    >>> from bochner import catalogue
    >>> "matern-3/2" in catalogue.kernels()
    True
    """
    return _variants(_kernels, Kernel)


def rotations() -> dict[str, Rotation]:
    """Return all rotations R, by name.

    Returns
    -------
    dict of str to Rotation

    Examples
    --------
    >>> from bochner import catalogue
    >>> "haar" in catalogue.rotations()
    True
    """
    return _variants(_rotations, Rotation)


def geometries() -> dict[str, Geometry]:
    """Return all geometries S, by name.

    Returns
    -------
    dict of str to Geometry

    Examples
    --------
    >>> from bochner import catalogue
    >>> "simplex" in catalogue.geometries()
    True
    """
    return _variants(_geometries, Geometry)


def radii() -> dict[str, RadialLaw]:
    """Return all radial laws D, by name.

    Returns
    -------
    dict of str to RadialLaw

    Examples
    --------
    >>> from bochner import catalogue
    >>> "coupled" in catalogue.radii()
    True
    """
    return _variants(_radii, RadialLaw)


def maps() -> dict[str, Map]:
    """Return all maps, by name.

    Returns
    -------
    dict of str to Map

    Examples
    --------
    >>> from bochner import catalogue
    >>> "optimal-positive" in catalogue.maps()
    True
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

    Examples
    --------
    >>> from bochner import catalogue
    >>> "orthogonal" in catalogue.projections()
    True
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


def default_map(kernel: Kernel) -> Map:
    """Return the map that declares itself the default for the kernel, or else the first that serves it."""
    for cls in classes(_maps, Map):
        found: Map | None = cls.default_for(kernel)  # type: ignore[attr-defined]
        if found is not None:
            return found
    for cls in classes(_maps, Map):
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
