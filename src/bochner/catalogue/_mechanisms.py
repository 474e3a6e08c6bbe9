"""Mechanisms of the literature by name, what users give as a part, and every pair of parts that is worth trying."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .._validation import check_count, check_instance
from ..approximation import Approximation
from ..approximation._names import kernels, look_up, map, maps, projection, projections
from ..kernels import Kernel
from ..projections import Orthogonal, Projection, Quadrature
from ..rotations import Butterfly, Haar, Hadamard, Kac, MultiHadamard, StructuredGivens, UnpaddedButterfly


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


_MECHANISMS: dict[str, Mechanism] = {
    "rff": Mechanism("trigonometric", "iid", "gaussian", "rahimi2007"),
    "qmc": Mechanism("trigonometric", "halton", "gaussian", "yang2014"),
    "gq": Mechanism("trigonometric", "gauss-hermite", "gaussian", "dao2017"),
    "orf": Mechanism("trigonometric", "orthogonal", "gaussian", "yu2016"),
    "sorf": Mechanism("trigonometric", "hadamard", "gaussian", "yu2016"),
    "rom": Mechanism("trigonometric", Orthogonal(Hadamard(), "fixed"), "gaussian", "choromanski2017"),
    "hmd": Mechanism("trigonometric", Orthogonal(MultiHadamard()), "gaussian", "omc"),
    "kac": Mechanism("trigonometric", Orthogonal(Kac()), "gaussian", "omc"),
    "sgp": Mechanism("trigonometric", Orthogonal(StructuredGivens("uniform", mix=False)), "gaussian", "omc"),
    "bfly": Mechanism("trigonometric", Orthogonal(Butterfly("uniform", mix=False)), "gaussian", "omc"),
    "qbf-h": Mechanism("trigonometric", "quadrature", "gaussian", "qbf"),
    "qbf-b": Mechanism("trigonometric", Quadrature(UnpaddedButterfly()), "gaussian", "qbf"),
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
    "ojlt": Mechanism("identity", Orthogonal(Haar(), "fixed"), "linear", "omc"),
}


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
    Approximation(kernel=Softmax(scale=1.0), map=Positive(), \
projection=Orthogonal(rotation=Haar(), radii='kernel'), n_projections=64)
    """
    found = look_up("mechanism", name, _MECHANISMS)
    rows = found.projection
    chosen = found.kernel if kernel is None else kernel
    return Approximation(
        kernel=look_up("kernel", chosen, kernels()) if isinstance(chosen, str) else chosen,
        map=map(found.map),
        projection=projection(rows) if isinstance(rows, str) else rows,
        n_projections=n_projections,
    )


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


LARGE_DIMENSION = 1024  # largest dimension in which mechanisms that take seconds to draw are tried


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
