"""Names as strings, for the outer edge: one table, which the errors, the tests and the documentation read.

`kernel`, `rotation`, `projection` and `feature_map` turn a name into a part; `mechanism` into a whole `Approximation` by
the name that a paper gave it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from . import kernels, maps, projections, rotations
from .approximation import Approximation
from .kernels import Kernel
from .maps import Map
from .projections import Projection
from .rotations import Rotation

T = TypeVar("T")

KERNELS: dict[str, Callable[[], Kernel]] = {
    "gaussian": kernels.Gaussian,
    "rbf": kernels.Gaussian,
    "softmax": kernels.Softmax,
    "arc-cosine-0": lambda: kernels.ArcCosine(0),
    "arc-cosine-1": lambda: kernels.ArcCosine(1),
    "arc-cosine-2": lambda: kernels.ArcCosine(2),
    "angular": kernels.Angular,
    "linear": kernels.Linear,
    "matern-1/2": lambda: kernels.Matern(0.5),
    "matern-3/2": lambda: kernels.Matern(1.5),
    "matern-5/2": lambda: kernels.Matern(2.5),
    "laplacian": kernels.Laplacian,
    "cauchy": kernels.Cauchy,
    "rational-quadratic": lambda: kernels.RationalQuadratic(1.0),
}

ROTATIONS: dict[str, Callable[[], Rotation]] = {
    "haar": rotations.Haar,
    "structured-givens": rotations.StructuredGivens,
    "butterfly": rotations.Butterfly,
    "hadamard": rotations.Hadamard,
    "multi-hadamard": rotations.MultiHadamard,
    "kac": rotations.Kac,
}

PROJECTIONS: dict[str, Callable[[], Projection]] = {
    "iid": projections.IID,
    "orthogonal": projections.Orthogonal,
    "fast-orthogonal": lambda: projections.Orthogonal(rotations.StructuredGivens()),
    "hadamard": lambda: projections.Orthogonal(rotations.Hadamard()),
    "simplex": projections.Simplex,
    "fast-simplex": lambda: projections.Simplex(rotations.Hadamard()),
    "simplex+": projections.SimplexPlus,
    "quadrature": projections.Quadrature,
    "orthoplex": lambda: projections.Quadrature(vertices="orthoplex"),
    "fast-orthoplex": lambda: projections.Quadrature(rotations.Butterfly("tree"), "orthoplex"),
    "halton": projections.QMC,
    "sobol": lambda: projections.QMC("sobol"),
    "gauss-hermite": lambda: projections.GaussHermite(5),
}

MAPS: dict[str, Callable[[], Map]] = {
    "trigonometric": maps.Trigonometric,
    "positive": maps.Positive,
    "hyperbolic": maps.Hyperbolic,
    "optimal-positive": maps.OptimalPositive,
    "generalized-exponential": lambda: maps.GeneralizedExponential("optimal"),
    "complex-exponential": lambda: maps.ComplexExponential(1j),
    "poisson": maps.Poisson,
    "poisson+": lambda: maps.Poisson(positive=True),
    "geometric": maps.Geometric,
    "geometric+": lambda: maps.Geometric(positive=True),
    "angular-hybrid": maps.AngularHybrid,
    "gaussian-hybrid": maps.GaussianHybrid,
    "cluster-hybrid": maps.ClusterHybrid,
    "sign": maps.Sign,
    "step": lambda: maps.Rectified(0),
    "relu": lambda: maps.Rectified(1),
    "relu-squared": lambda: maps.Rectified(2),
    "identity": maps.Identity,
}


@dataclass(frozen=True)
class Mechanism:
    """A mechanism by the name that its paper gave it: names of its parts, and the kernel it was made for."""

    map: str
    projection: str | Projection
    kernel: str
    paper: str


def _orthogonal(rotation: Rotation) -> Projection:
    return projections.Orthogonal(rotation)


MECHANISMS: dict[str, Mechanism] = {
    "rff": Mechanism("trigonometric", "iid", "gaussian", "rahimi2007"),
    "qmc": Mechanism("trigonometric", "halton", "gaussian", "yang2014"),
    "gq": Mechanism("trigonometric", "gauss-hermite", "gaussian", "dao2017"),
    "orf": Mechanism("trigonometric", "orthogonal", "gaussian", "yu2016"),
    "sorf": Mechanism("trigonometric", "hadamard", "gaussian", "yu2016"),
    "rom": Mechanism(
        "trigonometric", projections.Orthogonal(rotations.Hadamard(), "fixed"), "gaussian", "choromanski2017"
    ),
    "hmd": Mechanism("trigonometric", _orthogonal(rotations.MultiHadamard()), "gaussian", "omc"),
    "kac": Mechanism("trigonometric", _orthogonal(rotations.Kac()), "gaussian", "omc"),
    "sgp": Mechanism("trigonometric", _orthogonal(rotations.StructuredGivens("uniform", mix=False)), "gaussian", "omc"),
    "bfly": Mechanism("trigonometric", _orthogonal(rotations.Butterfly("uniform", mix=False)), "gaussian", "omc"),
    "qbf-h": Mechanism("trigonometric", "quadrature", "gaussian", "qbf"),
    "qbf-b": Mechanism(
        "trigonometric", projections.Quadrature(rotations.Butterfly("tree", mix=False, products=3)), "gaussian", "qbf"
    ),
    "simrf": Mechanism("positive", "simplex", "gaussian", "simrf"),
    "simrf+": Mechanism("positive", "simplex+", "gaussian", "simrf"),
    "fast-simrf": Mechanism("positive", "fast-simplex", "gaussian", "simrf"),
    "favor": Mechanism("trigonometric", "orthogonal", "softmax", "choromanski2021"),
    "favor+": Mechanism("positive", "orthogonal", "softmax", "choromanski2021"),
    "favor++": Mechanism("optimal-positive", "orthogonal", "softmax", "crt"),
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
    "ojlt": Mechanism("identity", projections.Orthogonal(rotations.Haar(), "fixed"), "linear", "omc"),
}


def kernel(name: str) -> Kernel:
    """The kernel of that name, at unit scale."""
    return _look_up("kernel", name, KERNELS)()


def rotation(name: str) -> Rotation:
    """The rotation of that name."""
    return _look_up("rotation", name, ROTATIONS)()


def projection(name: str) -> Projection:
    """The projection of that name."""
    return _look_up("projection", name, PROJECTIONS)()


def feature_map(name: str) -> Map:
    """The map of that name."""
    return _look_up("map", name, MAPS)()


def mechanism(name: str, kernel: Kernel | str | None = None, n_projections: int = 256) -> Approximation:
    """The mechanism of that name, as a specification.

    Parameters
    ----------
    name : str
        As in its paper: "rff", "orf", "sorf", "simrf", "favor+", "favor++", "qbf-h", ...
    kernel : Kernel or str, optional
        The kernel; the one it was made for without it.
    n_projections : int
        Number of rows.

    Examples
    --------
    >>> from bochner import mechanism
    >>> mechanism("favor++", n_projections=64)
    Approximation(kernel=Softmax(scale=1.0), map=OptimalPositive(quantile=None, antithetic=False), \
projection=Orthogonal(rotation=Haar(), radii='kernel'), n_projections=64)
    """
    found = _look_up("mechanism", name, MECHANISMS)
    rows = found.projection
    chosen = found.kernel if kernel is None else kernel
    return Approximation(
        kernel=_look_up("kernel", chosen, KERNELS)() if isinstance(chosen, str) else chosen,
        map=feature_map(found.map),
        projection=projection(rows) if isinstance(rows, str) else rows,
        n_projections=n_projections,
    )


def _look_up(kind: str, name: Any, table: Mapping[str, T]) -> T:
    if name in table:
        return table[name]
    close = difflib.get_close_matches(str(name), table, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"unknown {kind} {name!r}.{hint} The names are {', '.join(table)}.")
