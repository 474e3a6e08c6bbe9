"""The catalogue: every class declares its facts, and every name gives its part."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import bochner
from bochner import catalogue, geometries, kernels, maps, projections, radii, rotations
from bochner._citation import bibliography
from support.catalogue import KERNELS, MAPS, PROJECTIONS, ROTATIONS

KINDS = {
    "kernels": (kernels, kernels.Kernel),
    "rotations": (rotations, rotations.Rotation),
    "geometries": (geometries, geometries.Geometry),
    "radii": (radii, radii.RadialLaw),
    "projections": (projections, projections.Projection),
    "maps": (maps, maps.Map),
}
NEED_ARGUMENTS = (maps.Hybrid, maps.Pointwise)
"""Classes without a sensible instance of their own: they are used by name of class only."""


def public_classes(module, base):
    classes = (getattr(module, name) for name in module.__all__)
    return [c for c in classes if inspect.isclass(c) and issubclass(c, base) and not inspect.isabstract(c)]


LISTED = [cls for module, base in KINDS.values() for cls in public_classes(module, base) if cls not in NEED_ARGUMENTS]


@pytest.mark.parametrize("cls", LISTED, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_every_public_class_has_a_named_variant(cls):
    assert all(type(value) is cls for value in cls.variants().values())
    assert cls.variants() or cls is projections.Blocks


@pytest.mark.parametrize("kind", KINDS)
def test_names_give_values_of_their_kind(kind):
    found = getattr(catalogue, kind)()
    assert found and all(isinstance(value, KINDS[kind][1]) for value in found.values())


@pytest.mark.parametrize("kind", ("kernel", "rotation", "projection", "map"))
def test_every_name_gives_its_part(kind):
    for name, value in getattr(catalogue, f"{kind}s")().items():
        assert getattr(catalogue, kind)(name) == value


@pytest.mark.parametrize("name", catalogue.mechanisms())
def test_every_mechanism_works(name):
    X = 0.3 * np.random.default_rng(0).standard_normal((20, 5))
    assert bochner.mechanism(name, n_projections=12).fit(X, rng=0).gram(X).shape == (20, 20)


@pytest.mark.parametrize("name", catalogue.mechanisms())
def test_every_mechanism_cites_its_paper(name):
    assert catalogue.mechanisms()[name].paper in bibliography()


def test_kernels_of_mechanisms_may_be_given():
    assert bochner.mechanism("rff", kernels.Matern(1.5)).kernel == kernels.Matern(1.5)
    assert bochner.mechanism("rff", "cauchy").kernel == kernels.Cauchy()


@pytest.mark.parametrize("kind", ("kernel", "rotation", "projection", "map", "mechanism"))
def test_unknown_names_list_the_known_ones(kind):
    with pytest.raises(ValueError, match=rf"unknown {kind} 'nonesuch'\. The names are "):
        getattr(catalogue, kind)("nonesuch")


def test_a_near_miss_is_guessed():
    with pytest.raises(ValueError, match=r"unknown projection 'simplx'\. Did you mean 'simplex'\? The names are "):
        catalogue.projection("simplx")


def test_projections_are_those_declared_and_one_for_every_rotation():
    found = list(catalogue.projections().values())
    assert all(any(getattr(P, "rotation", None) == R for P in found) for R in catalogue.rotations().values())
    assert len(set(map(repr, found))) == len(found)


def test_candidates_work_together_and_leave_out_what_does_not_scale():
    small, large = (list(catalogue.candidates(kernels.Softmax(), d)) for d in (8, 4096))
    assert {spec.map for spec in small} >= {maps.Positive(), maps.Hyperbolic(), maps.Poisson(), maps.AngularHybrid()}
    assert set(large) < set(small) and all(spec.projection.scales for spec in large)


@pytest.mark.parametrize("spec", ("favor++", bochner.mechanism("favor+")))
def test_specifications_are_accepted_by_name(spec):
    assert isinstance(catalogue.as_specification("owner", spec), bochner.Approximation)


def test_what_is_not_a_specification_is_explained():
    with pytest.raises(ValueError, match=r"owner: unknown mechanism 'favour'\. Did you mean"):
        catalogue.as_specification("owner", "favour")
    with pytest.raises(TypeError, match=r"owner: spec must be a approximation such as|owner: spec must be"):
        catalogue.as_specification("owner", 3)


def test_registering_is_explained():
    with pytest.raises(TypeError, match=r"extending\.register: expected a class of a kernel, rotation"):
        catalogue.register(int)
    with pytest.raises(ValueError, match=r"extending\.unregister: .* is not registered"):
        catalogue.unregister(rotations.Haar)


@pytest.mark.parametrize("mechanism", [*ROTATIONS, *PROJECTIONS, *MAPS, *KERNELS], ids=repr)
def test_mechanisms_state_their_references(mechanism):
    assert mechanism.references and all(key in bibliography() for key in mechanism.references)
