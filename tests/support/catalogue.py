"""Every mechanism of the library, as small instances; the common laws run over all of them."""

from __future__ import annotations

import numpy as np

from bochner import Approximation, catalogue, geometries, kernels, maps, radii
from bochner import _facts as facts
from bochner.maps.coefficients import AngularCoefficient, GaussianCoefficient
from bochner.projections import (
    Blocks,
    GaussHermite,
    Orthogonal,
    Projection,
    Quadrature,
    Simplex,
    SimplexPlus,
)
from bochner.rotations import Butterfly, Haar, Hadamard, Kac, MultiHadamard, Rotation, StructuredGivens
from support.checks import PART, THOROUGH, probes


def distinct(*values):
    """Values in order, each once."""
    return list(dict.fromkeys(values))


# What the library's catalogue lists comes first, so that a new class is under the common laws by itself; then more
# parameters than it lists.
ROTATIONS: list[Rotation] = distinct(
    *catalogue.rotations().values(),
    Hadamard(1),
    Hadamard(2),
    MultiHadamard(2),
    Kac(2.0),
    StructuredGivens(mix=False),
    StructuredGivens("tree"),
    StructuredGivens("uniform", mix=False),
    Butterfly(mix=False),
    Butterfly("tree", mix=False),
    Butterfly("tree", mix=False, products=3),
    Butterfly("uniform", mix=False),
)

GEOMETRIES: list[geometries.Geometry] = list(catalogue.geometries().values())

RADII: list[radii.RadialLaw] = distinct(*catalogue.radii().values(), radii.SphericalRadial("resample"))

# Every rotation under the identity; other geometries on three of them: dense, fast with padding, fast without.
COMPOSED_ROTATIONS: list[Rotation] = [Haar(), StructuredGivens(), Kac()]

COUPLED: list[Projection] = [
    *(Orthogonal(R) for R in ROTATIONS),
    *(kind(R) for R in COMPOSED_ROTATIONS for kind in (Simplex, SimplexPlus)),
]

QUADRATURES: list[Projection] = [
    *(Quadrature(R, vertices) for R in COMPOSED_ROTATIONS for vertices in ("simplex", "orthoplex")),
    Quadrature(Butterfly("tree"), "orthoplex"),
]

PROJECTIONS: list[Projection] = distinct(
    *catalogue.projections().values(),
    GaussHermite(2),
    *COUPLED,
    Orthogonal(Haar(), radii="fixed"),
    Orthogonal(Hadamard(3), radii="fixed"),
    Simplex(Haar(), radii="fixed"),
    SimplexPlus(Haar(), radii="fixed"),
    *QUADRATURES,
    Quadrature(Haar(), "simplex", "resample"),
    Quadrature(Haar(), "orthoplex", "resample"),
    Blocks(Haar(), geometries.SimplexVertices()),
    Blocks(Hadamard(3), geometries.SimplexVertices(), "fixed"),
    Blocks(StructuredGivens(), geometries.SimplexPlus(), radii.SphericalRadial()),
)


def listed(*, planned, uses_rows=True):
    """Maps of the library's catalogue for the softmax kernel."""
    found = [m for m in catalogue.maps().values() if m.serves(kernels.Softmax())]
    return [m for m in found if m.planned == planned and m.uses_rows == uses_rows]


LISTED: list[Projection] = distinct(*catalogue.projections().values())
"""What the catalogue lists, without more parameters: for laws that hardly depend on which rotation it is."""


# Maps with their constants given, which need no data; d = 3 in the tests that use them.
FIXED_MAPS: list[maps.Map] = distinct(
    *(m for m in listed(planned=True) if m != maps.AngularHybrid()),  # a narrower one below
    maps.Trigonometric(single_last=True),
    maps.GeneralizedExponential(-0.1),
    maps.GeneralizedExponential(-0.1, -1),
    maps.GeneralizedExponential(-0.05 + 0.08j, 1),
    maps.GeneralizedExponential(-0.05 + 0.08j, -1, antithetic=True),
    maps.ComplexExponential(1.2),
    maps.ComplexExponential((1.1 + 0.3j, 0.2 + 0.9j, 0.8 - 0.4j)),
    maps.ComplexExponential(((1.0, 0.1, 0.05), (0.0, 0.95, -0.1), (0.1, 0.0, 1.05)), antithetic=True),
    maps.ComplexExponential(((1.0, 0.2j, 0.1), (0.0, 0.9j, -0.3), (0.2, 0.0, 1.1))),
    maps.AngularHybrid(4),
    maps.AngularHybrid(4, shared=False),
    maps.GaussianHybrid(4, radius=1.0),
    maps.GaussianHybrid(4, matrices=(1.0, (1.0, -1.0, 2.0)), width=1.5, shared=False),
    maps.Hybrid(
        (maps.Positive(), maps.GeneralizedExponential(-0.1), maps.Trigonometric()),
        (AngularCoefficient(3), GaussianCoefficient(1.0, -1.0, 2)),
    ),
)

DISCRETE_MAPS: list[maps.Map] = [maps.Poisson(rate=0.4), maps.Geometric(success=0.6)]

ADAPTIVE_MAPS: list[maps.Map] = distinct(
    *(
        m for m in listed(planned=False) if not isinstance(m, maps.GaussianHybrid | maps.ClusterHybrid)
    ),  # narrower below
    *listed(planned=False, uses_rows=False),
    maps.GeneralizedExponential("optimal", -1),
    maps.OptimalPositive(quantile=0.9),
    maps.OptimalPositive(antithetic=True),
    maps.GaussianHybrid(4),
    maps.ClusterHybrid(2, 2),
    maps.ClusterHybrid(2, 2, diagonal="real", light=0.2, shared=False),
    maps.ClusterHybrid(1, 1, "gaussian", n_coefficients=4),
)

HOMOGENEOUS_MAPS: list[tuple[maps.Map, kernels.Kernel]] = [
    (m, next(k for k in catalogue.kernels().values() if m.serves(k)))
    for m in catalogue.maps().values()
    if m.degree is not None
]

OTHER_MAPS: list[maps.Map] = [
    m for m in catalogue.maps().values() if m.degree is None and not m.serves(kernels.Softmax())
]
"""Listed maps of kernels other than softmax, under the common laws with the first kernel that they serve."""

POINTWISE = maps.Pointwise(np.tanh)

MAPS: list[maps.Map] = [
    *FIXED_MAPS,
    *DISCRETE_MAPS,
    *ADAPTIVE_MAPS,
    *(m for m, _ in HOMOGENEOUS_MAPS),
    *OTHER_MAPS,
    POINTWISE,
]

KERNELS: list[kernels.Kernel] = distinct(
    *catalogue.kernels().values(),
    kernels.Gaussian((0.7, 1.0, 2.0)),
    kernels.Softmax(0.5),
    kernels.Cauchy(2.0),
    kernels.RationalQuadratic(0.7),
    kernels.Laplacian(1.5),
)

UNBIASED_PROJECTIONS: list[Projection] = [P for P in catalogue.projections().values() if P.unbiased]


def kernel_of(feature_map: maps.Map) -> kernels.Kernel | None:
    """A kernel that the map serves: softmax or the Gaussian one if possible, else the first one of the catalogue."""
    if feature_map is POINTWISE:
        return None
    return next(
        k for k in (kernels.Softmax(), kernels.Gaussian(), *catalogue.kernels().values()) if feature_map.serves(k)
    )


def spec_of(feature_map: maps.Map, projection: Projection | None = None, m: int = 5) -> Approximation:
    """An approximation with that map, of a kernel that it serves."""
    return Approximation(kernel_of(feature_map), feature_map, projection, m)


def registered() -> dict[str, type]:
    """Classes that are not of the library, by the names that their repr has."""
    return {cls.__name__: cls for cls in facts.registered()}


def part_of(pairs: list[tuple], share: int = 3) -> list[tuple]:
    """One in ``share`` of the pairs of each first partner, in turn; all pairs of few and of a class from elsewhere.

    Another part with BOCHNER_PART=1, 2 and so on, and all of them with BOCHNER_THOROUGH.
    """
    own, found = tuple(registered()), []
    for turn, first in enumerate(distinct(*(pair[0] for pair in pairs))):
        group = [pair for pair in pairs if pair[0] == first]
        few = THOROUGH or len(group) < share
        for place, pair in enumerate(group):
            if few or (place + turn) % share == PART % share or any(name in repr(pair) for name in own):
                found.append(pair)
    return found


def works(feature_map: maps.Map, projection: Projection) -> bool:
    """Whether the map and the projection say that they work together."""
    try:
        spec_of(feature_map, projection)
    except ValueError:
        return False
    return True


UNBIASED_SPECS: list[tuple[maps.Map, Projection]] = part_of(
    [
        (m, P)
        for m in (*FIXED_MAPS, *(m for m in OTHER_MAPS if m.planned and m.uses_rows))
        for P in UNBIASED_PROJECTIONS
        if m.serves(kernels.Softmax()) or (works(m, P) and m.unbiased(P))
    ],
    share=4,
)
"""Maps with fixed constants, each with projections with which its estimate is unbiased."""


D = 3
"""Dimension of the data in the tests of maps."""


def data(seed=0, n=30):
    """Queries and keys of different sizes, not centred."""
    rng = np.random.default_rng(seed)
    return 0.6 * rng.standard_normal((n, D)), 0.6 * rng.standard_normal((n - 9, D)) + 0.2


def pairs(seed=0):
    """Pairs whose sum lies on an axis, on the diagonal and on a generic direction, at norm 1.2, and differ besides."""
    Z = np.stack(list(probes(D, 1.2, seed).values()))
    apart = np.array([0.3, -0.4, 0.25])
    return Z / 2 + apart, Z / 2 - apart
