"""Every rotation and projection of the library, as small instances; the common laws run over all of them."""

from __future__ import annotations

from bochner.projections import IID, QMC, GaussHermite, Orthogonal, Projection, Quadrature, Simplex, SimplexPlus
from bochner.rotations import Butterfly, Haar, Hadamard, Kac, MultiHadamard, Rotation, StructuredGivens

ROTATIONS: list[Rotation] = [
    Haar(),
    Hadamard(1),
    Hadamard(2),
    Hadamard(3),
    MultiHadamard(1),
    MultiHadamard(2),
    Kac(2.0),
    Kac(),
    StructuredGivens(),
    StructuredGivens(mix=False),
    StructuredGivens("tree"),
    StructuredGivens("uniform", mix=False),
    Butterfly(),
    Butterfly(mix=False),
    Butterfly("tree", mix=False),
    Butterfly("tree", mix=False, products=3),
    Butterfly("uniform", mix=False),
]

COUPLED: list[Projection] = [kind(R) for R in ROTATIONS for kind in (Orthogonal, Simplex, SimplexPlus)]

QUADRATURES: list[Projection] = [Quadrature(R, vertices) for R in ROTATIONS for vertices in ("simplex", "orthoplex")]

PROJECTIONS: list[Projection] = [
    IID(),
    QMC("halton"),
    QMC("sobol"),
    GaussHermite(2),
    GaussHermite(5),
    *COUPLED,
    Orthogonal(Haar(), radii="fixed"),
    Orthogonal(Hadamard(3), radii="fixed"),
    Simplex(Haar(), radii="fixed"),
    SimplexPlus(Haar(), radii="fixed"),
    *QUADRATURES,
    Quadrature(Haar(), "simplex", "resample"),
    Quadrature(Haar(), "orthoplex", "resample"),
]
