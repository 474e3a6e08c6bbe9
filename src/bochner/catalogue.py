"""The catalogue: every kernel, rotation, geometry, radial law, projection, map and named mechanism, by name.

Each class declares its facts once (`name`, variants, references, what it serves, when it is worth trying).  This module
collects them, and `recommend`, `compare`, the command line, the benchmarks, the tables of the documentation, the error
messages and the common tests iterate over it.  Use `register` to add your own class.

>>> from bochner import catalogue
>>> sorted(catalogue.rotations())
['butterfly', 'haar', 'hadamard', 'kac', 'multi-hadamard', 'structured-givens', 'unpadded-hadamard']
>>> catalogue.projection("fast-simplex")
Simplex(rotation=Hadamard(blocks=3), radii='kernel')
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from . import geometries as _geometries
from . import kernels as _kernels
from . import maps as _maps
from . import projections as _projections
from . import radii as _radii
from . import rotations as _rotations
from ._facts import classes, register, unregister
from ._validation import check_count, check_instance, shown
from .approximation import Approximation
from .geometries import FastGeometry, Geometry
from .kernels import Kernel
from .maps import Map
from .projections import Blocks, Orthogonal, Projection
from .radii import RadialLaw
from .rotations import Haar, Hadamard, Rotation

__all__ = [
    "Mechanism",
    "as_projection",
    "as_specification",
    "candidates",
    "geometries",
    "kernel",
    "kernels",
    "map",
    "maps",
    "mechanism",
    "mechanisms",
    "projection",
    "projections",
    "radii",
    "register",
    "rotation",
    "rotations",
    "unregister",
]

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


@dataclass(frozen=True)
class Mechanism:
    """A mechanism of the literature: the names of its parts, and the kernel for which it was proposed.

    Attributes
    ----------
    map, projection, kernel : str
        Names of the parts in the catalogue.
    paper : str
        Key of the paper in the bibliography.
    """

    map: str
    projection: str | Projection
    kernel: str
    paper: str


def mechanisms() -> dict[str, Mechanism]:
    """Return all mechanisms of the literature, by name.

    Returns
    -------
    dict of str to Mechanism
    """
    return dict(_MECHANISMS)


def _orthogonal(rotation: Rotation) -> Projection:
    return Orthogonal(rotation)


_MECHANISMS: dict[str, Mechanism] = {
    "rff": Mechanism("trigonometric", "iid", "gaussian", "rahimi2007"),
    "qmc": Mechanism("trigonometric", "halton", "gaussian", "yang2014"),
    "gq": Mechanism("trigonometric", "gauss-hermite", "gaussian", "dao2017"),
    "orf": Mechanism("trigonometric", "orthogonal", "gaussian", "yu2016"),
    "sorf": Mechanism("trigonometric", "hadamard", "gaussian", "yu2016"),
    "rom": Mechanism(
        "trigonometric", _projections.Orthogonal(_rotations.Hadamard(), "fixed"), "gaussian", "choromanski2017"
    ),
    "hmd": Mechanism("trigonometric", _orthogonal(_rotations.MultiHadamard()), "gaussian", "omc"),
    "kac": Mechanism("trigonometric", _orthogonal(_rotations.Kac()), "gaussian", "omc"),
    "sgp": Mechanism(
        "trigonometric", _orthogonal(_rotations.StructuredGivens("uniform", mix=False)), "gaussian", "omc"
    ),
    "bfly": Mechanism("trigonometric", _orthogonal(_rotations.Butterfly("uniform", mix=False)), "gaussian", "omc"),
    "qbf-h": Mechanism("trigonometric", "quadrature", "gaussian", "qbf"),
    "qbf-b": Mechanism(
        "trigonometric", _projections.Quadrature(_rotations.Butterfly("tree", mix=False, products=3)), "gaussian", "qbf"
    ),
    "simrf": Mechanism("positive", "simplex", "gaussian", "simrf"),
    "simrf+": Mechanism("positive", "simplex+", "gaussian", "simrf"),
    "fast-simrf": Mechanism("positive", "fast-simplex", "gaussian", "simrf"),
    "favor": Mechanism("trigonometric", "orthogonal", "softmax", "choromanski2021"),
    "favor+": Mechanism("positive", "orthogonal", "softmax", "choromanski2021"),
    "favor++": Mechanism("optimal-positive", "orthogonal", "softmax", "crt"),
    "favor#": Mechanism("dense-uncentred", "orthogonal", "softmax", "likhosherstov2023"),
    "dense": Mechanism("dense", "orthogonal", "softmax", "likhosherstov2023"),
    "simrf-performer": Mechanism("positive", "simplex", "softmax", "simrf"),
    "oprf": Mechanism("optimal-positive", "iid", "softmax", "crt"),
    "gerf": Mechanism("generalized-exponential", "iid", "softmax", "crt"),
    "poisrf": Mechanism("poisson", "iid", "softmax", "crt"),
    "poisrf+": Mechanism("poisson+", "iid", "softmax", "crt"),
    "geomrf": Mechanism("geometric", "iid", "softmax", "crt"),
    "geomrf+": Mechanism("geometric+", "iid", "softmax", "crt"),
    "hrf-angular": Mechanism("angular-hybrid", "orthogonal", "softmax", "hrf"),
    "hrf-gaussian": Mechanism("gaussian-hybrid", "orthogonal", "softmax", "hrf"),
    "hrf-cluster": Mechanism("cluster-hybrid", "orthogonal", "softmax", "hrf"),
    "jlt": Mechanism("identity", "iid", "linear", "johnson1984"),
    "ojlt": Mechanism("identity", _projections.Orthogonal(_rotations.Haar(), "fixed"), "linear", "omc"),
}


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
    return _look_up("kernel", name, kernels())


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
    return _look_up("rotation", name, rotations())


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
    return _look_up("projection", name, projections())


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
    return _look_up("map", name, maps())


def mechanism(name: str, kernel: Kernel | str | None = None, n_projections: int = 256) -> Approximation:
    """Return the specification of a mechanism by its name in the literature.

    Parameters
    ----------
    name : str
        The name of the mechanism: "rff", "orf", "sorf", "simrf", "favor+", "favor++", "qbf-h", ...
    kernel : Kernel or str, optional
        The kernel; by default the one for which the mechanism was proposed.
    n_projections : int
        Number of rows.

    Returns
    -------
    Approximation

    Examples
    --------
    >>> from bochner import mechanism
    >>> mechanism("favor+", n_projections=64)
    Approximation(kernel=Softmax(scale=1.0), map=Positive(antithetic=False), \
projection=Orthogonal(rotation=Haar(), radii='kernel'), n_projections=64)
    """
    found = _look_up("mechanism", name, _MECHANISMS)
    rows = found.projection
    chosen = found.kernel if kernel is None else kernel
    return Approximation(
        kernel=_look_up("kernel", chosen, kernels()) if isinstance(chosen, str) else chosen,
        map=map(found.map),
        projection=projection(rows) if isinstance(rows, str) else rows,
        n_projections=n_projections,
    )


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
        return _look_up("projection", projection, projections())
    check_instance(owner, "projection", projection, Projection, "projections.Orthogonal()")
    return projection


def as_specification(
    owner: str, spec: Approximation | str, kernel: Kernel | str | None = None, n_projections: int = 256
) -> Approximation:
    """Return a specification given as a value or by the name of a mechanism, for arguments that accept both.

    Parameters
    ----------
    owner : str
        Name of the caller, for error messages.
    spec : Approximation or str
        A specification, which is returned unchanged, or a name.
    kernel : Kernel or str, optional
        The kernel of a named mechanism; by default the one for which it was proposed.
    n_projections : int
        Number of rows of a named mechanism.

    Returns
    -------
    Approximation
    """
    if isinstance(spec, str):
        try:
            return mechanism(spec, kernel, n_projections)
        except ValueError as error:
            raise ValueError(f"{owner}: {error}") from None
    check_instance(owner, "spec", spec, Approximation, "Approximation(kernels.Softmax()) or a name such as 'favor++'")
    return spec


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


def _look_up(kind: str, name: Any, table: Mapping[str, T]) -> T:
    if isinstance(name, str) and name in table:
        return table[name]
    close = difflib.get_close_matches(str(name), table, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"unknown {kind} {shown(name)}.{hint} The names are {', '.join(table)}.")
