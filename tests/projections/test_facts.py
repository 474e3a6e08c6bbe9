"""Facts are known without a draw, and draws agree with them."""

from __future__ import annotations

import pytest

from bochner import geometries, projections, radii, rotations
from bochner.projections import IID, QMC, Orthogonal, Quadrature, Simplex, SimplexPlus
from bochner.rotations import Butterfly, Haar, Hadamard, StructuredGivens
from support.catalogue import PROJECTIONS


def variants_of(module):
    kinds = (getattr(module, name) for name in module.__all__)
    return {name: value for kind in kinds if hasattr(kind, "variants") for name, value in kind.variants().items()}


NAMES = {  # of version 0.1.0: code and saved files use them
    rotations: "butterfly haar hadamard kac multi-hadamard structured-givens unpadded-butterfly unpadded-hadamard",
    geometries: "orthogonal simplex simplex+ simplex-vertices",
    radii: "coupled fixed kernel spherical-radial",
    projections: "butterfly fast-orthogonal fast-orthoplex fast-simplex gauss-hermite hadamard halton iid kac "
    "multi-hadamard orthogonal orthoplex quadrature simplex simplex+ sobol unpadded-hadamard",
}


@pytest.mark.parametrize("module", NAMES, ids=lambda module: module.__name__)
def test_released_names_stay(module):
    assert set(NAMES[module].split()) <= variants_of(module).keys()


def test_names_stand_for_what_they_say():
    named = variants_of(projections)
    assert named["fast-orthogonal"] == Orthogonal(StructuredGivens()) and named["hadamard"] == Orthogonal(Hadamard())
    assert named["fast-simplex"] == Simplex(Hadamard()) and named["sobol"] == QMC("sobol")
    assert named["orthoplex"] == Quadrature(vertices="orthoplex")
    assert named["fast-orthoplex"] == Quadrature(Butterfly("tree"), "orthoplex")


@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
def test_draws_agree_with_the_facts(projection):
    weights = [projection.sample(5, 7, seed).origin_weight for seed in range(20)]
    if not projection.has_origin:
        assert not any(weights)
    else:
        assert all(weights) and projection.signed == (min(weights) < 0)
    P = projection.sample(5, 7, 0)
    assert (P.dim, sum(P.block_sizes)) == (projection.padded(5), 7)
    assert projection.rows_per_rule(5) in (1, projection.block_sizes(5, 100)[0])
    assert (projection.rows_per_rule(5) > 1) == projection.has_origin


def test_couplings_with_closed_forms():
    couplings = {
        IID(): "iid",
        Orthogonal(): "orthogonal",
        Simplex(): "simplex",
        Orthogonal(StructuredGivens()): None,  # pairs of rows are not coupled as Haar's are
        Orthogonal(Haar(), "fixed"): None,
        SimplexPlus(): None,
        QMC(): None,
        Quadrature(): None,
    }
    assert {projection: projection.coupling for projection in couplings} == couplings


def test_what_is_worth_trying_in_large_dimensions():
    large = {name for name, projection in variants_of(projections).items() if projection.scales}
    assert large == {
        *(
            "iid",
            "orthogonal",
            "fast-orthogonal",
            "hadamard",
            "multi-hadamard",
            "unpadded-hadamard",
            "butterfly",
            "kac",
        ),
        *("fast-simplex", "fast-orthoplex", "halton"),
    }
