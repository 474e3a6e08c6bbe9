"""Kernels, rotations, geometries, radii, projections, maps and transforms: constructors, draws and products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bochner import catalogue, geometries, kernels, linalg, maps, projections, radii, rotations
from fuzz.exploring import explore
from fuzz.targets import Good, Target, constant, public, target_of
from fuzz.values import D, rows
from support.catalogue import spec_of

GOOD: Good = {
    "A": constant(-0.1),
    "B": constant(0),
    "X": rows,
    "Y": lambda: rows(seed=1),
    "Z": lambda: rows(4, 7),
    "alpha": constant(1.5),
    "beta": constant(1.5),
    "base": constant(radii.Chi()),
    "bases": constant((maps.Positive(), maps.Trigonometric())),
    "blocks": constant(1),
    "block": constant(0),
    "coefficients": constant((maps.coefficients.AngularCoefficient(3),)),
    "d": constant(D),
    "degree": constant(2),
    "f": constant(np.tanh),
    "gamma": constant(0.5),
    "kernel": constant(kernels.Matern(1.5)),
    "left": constant(1.0),
    "right": constant(-1.0),
    "radius": constant(1.0),
    "sigma": constant(1.0),
    "m": constant(7),
    "map": constant(maps.Trigonometric()),
    "matrices": lambda: [np.eye(D)],
    "decay": constant(1.5),
    "factors": constant((kernels.Gaussian(), kernels.Matern(1.5))),
    "indices": constant((0, 1)),
    "norm": constant(1.5),
    "power": constant(1.5),
    "terms": constant((kernels.Gaussian(), kernels.Matern(1.5))),
    "n": constant(2),
    "n_blocks": constant(2),
    "n_rows": constant(2),
    "nu": constant(1.5),
    "order": constant(1),
    "owner": constant("owner"),
    "products": constant(1),
    "radii": constant("kernel"),
    "rng": constant(0),
    "rows": rows,
    "rule": constant("scale"),
    "shape": constant(3),
    "value": constant(1.5),
    "x": lambda: rows(4, 8),
}


# Constructors, and what is made of them


def use_kernel(kernel: Any) -> Any:
    return kernel(rows()) if isinstance(kernel, kernels.Kernel) else kernel


def use_rotation(rotation: Any) -> Any:
    return rotation.sample(D, 2, rng=0)(np.eye(rotation.padded(D)))


def use_projection(projection: Any) -> Any:
    return projection.sample(D, 7, rng=0)(rows())


def use_map(map: Any) -> Any:
    if isinstance(map, maps.Pointwise):  # what the user's function does to arrays is the user's
        return map
    return spec_of(map).fit(rows(), rng=0).gram(rows())


OWN: dict[str, Good] = {"kernels.DotProduct": {"coefficients": constant((1.0, 0.5))}}
"""Values of parameters whose names mean something else elsewhere."""


def constructors(module: Any, kind: type, use: Any) -> list[Target]:
    """The public variants of one kind of part, made and used."""

    def target(name: str, part: Any) -> Target:
        made = target_of(name, part, GOOD | OWN.get(name, {}))
        return Target(made.name, lambda **arguments: use(part(**arguments)), made.good, required=made.required)

    label = module.__name__.rpartition(".")[2]
    parts = [(name, part) for name, part in public(module) if isinstance(part, type) and issubclass(part, kind)]
    return [target(f"{label}.{name}", part) for name, part in parts]


def functions(module: Any, good: Good, *leave_out: str) -> list[Target]:
    label = module.__name__.rpartition(".")[2]
    found = [(name, call) for name, call in public(module, leave_out=leave_out) if not isinstance(call, type)]
    return [target_of(f"{label}.{name}", call, good | NAMES.get(name, {})) for name, call in found]


NAMES: dict[str, Good] = {
    "kernel": {"name": constant("gaussian")},
    "map": {"name": constant("positive")},
    "projection": {"name": constant("iid")},
    "rotation": {"name": constant("haar")},
    "mechanism": {"name": constant("favor++"), "kernel": constant(None)},
    "as_projection": {"projection": constant("iid")},
    "as_specification": {"spec": constant("favor++"), "kernel": constant(None)},
}


def use_geometry(geometry: Any) -> Any:
    return use_projection(projections.Blocks(geometry=geometry))


def use_law(law: Any) -> Any:
    return use_projection(projections.Blocks(radii=law))


STAGES: dict[str, Good] = {
    "SignedWalsh": {"signs": lambda: np.ones((2, 4), np.int8), "low": constant(0), "high": constant(2)},
    "FoldedWalsh": {"signs": lambda: np.ones((2, 5), np.int8), "last": constant(True)},
    "GivensLevel": {"level": constant(1), "angles": lambda: np.ones((2, 1, 2))},
    "GivensWalk": {
        "first": lambda: np.zeros((2, 3), np.int32),
        "second": lambda: np.ones((2, 3), np.int32),
        "angles": lambda: np.ones((2, 3)),
    },
    "Permutation": {"order": lambda: np.array([[1, 0, 2]])},
    "hd_block": {"dim": constant(4)},
}

CONSTRUCTORS = [
    *constructors(kernels, kernels.Kernel, use_kernel),
    *constructors(rotations, rotations.Rotation, use_rotation),
    *(target_of(f"rotations.{name}", getattr(rotations, name), GOOD | good) for name, good in STAGES.items()),
    *constructors(geometries, geometries.Geometry, use_geometry),
    *constructors(radii, radii.RadialLaw, use_law),
    *constructors(projections, projections.Projection, use_projection),
    *constructors(maps, maps.Map, use_map),
    *constructors(maps.coefficients, maps.coefficients.Coefficient, lambda coefficient: coefficient),
]
FUNCTIONS = [
    *functions(kernels, GOOD),
    *functions(linalg, GOOD | {"X": lambda: rows(6, 4)}),
    *functions(catalogue, GOOD, "register", "unregister"),
]


@pytest.mark.parametrize("target", [*CONSTRUCTORS, *FUNCTIONS], ids=str)
def test_constructors_and_functions(target):
    explore(target.name, target.spoils(), target.check)


# Methods of what they give


def methods(things: list[Any], *names: str, label: str = "") -> list[Target]:
    return [
        target_of(f"{label}{thing!r}.{name}", getattr(thing, name), GOOD)
        for thing in things
        for name in names
        if hasattr(thing, name)
    ]


ALL_KERNELS = [
    *(
        kernels.Gaussian(),
        kernels.Gaussian((0.5, 1.0, 2.0)),
        kernels.Softmax(0.5),
        kernels.Matern(1.5),
        kernels.Matern(2.7),
    ),
    *(kernels.Laplacian(), kernels.Cauchy(), kernels.RationalQuadratic(0.7)),
    *(kernels.Angular(), kernels.ArcCosine(2), kernels.Linear()),
]
ALL_ROTATIONS = [
    *(rotations.Haar(), rotations.Hadamard(2), rotations.MultiHadamard(2), rotations.Kac()),
    rotations.UnpaddedHadamard(),
    rotations.UnpaddedButterfly(),
    *(rotations.StructuredGivens(), rotations.Butterfly("tree", mix=False)),
]
ALL_PROJECTIONS = [
    *(projections.IID(), projections.QMC("sobol"), projections.GaussHermite(3), projections.Quadrature()),
    *(projections.Orthogonal(rotations.Hadamard()), projections.Simplex(), projections.SimplexPlus(radii="fixed")),
]
OPERATORS = [projection.sample(D, 7, rng=0) for projection in ALL_PROJECTIONS]

METHODS = [
    *methods(ALL_KERNELS, "__call__", "paired", "diagonal", "sample_rows"),
    *methods([kernel for kernel in ALL_KERNELS if kernel.has_bandwidth], "with_bandwidth", "from_gamma"),
    *methods(ALL_ROTATIONS, "sample", "sample_rows"),
    *methods(ALL_PROJECTIONS, "sample"),
    *methods(OPERATORS, "__call__", "adjoint"),
]
DRAWN_ROTATIONS = [
    target_of(
        f"{rotation!r}.sample(4).{name}", getattr(rotation.sample(4, 2, rng=0), name), GOOD | {"X": lambda: rows(6, 4)}
    )
    for rotation in ALL_ROTATIONS
    for name in ("__call__", "adjoint")
]


@pytest.mark.parametrize("target", METHODS + DRAWN_ROTATIONS, ids=str)
@pytest.mark.swept(2)
def test_methods(target):
    explore(target.name, target.spoils(), target.check)


@pytest.mark.parametrize("target", [t for t in METHODS if "__call__" in t.name], ids=str)
def test_makes_of_the_same_numbers(target):
    for name, make in target.makes():
        target.check_make(name, make)


@pytest.mark.parametrize("target", [*CONSTRUCTORS, *FUNCTIONS, *METHODS, *DRAWN_ROTATIONS], ids=str)
@pytest.mark.swept(2)
def test_good_arguments_are_accepted(target):
    target.ask({})
