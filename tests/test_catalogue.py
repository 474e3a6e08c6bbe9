"""Every public class of mechanisms is in the catalogue: a new one that is not fails here."""

from __future__ import annotations

import inspect

import pytest

from bochner import geometries, kernels, maps, projections, radii, rotations
from support.catalogue import GEOMETRIES, KERNELS, MAPS, PROJECTIONS, RADII, ROTATIONS


def public_classes(module, base):
    classes = (getattr(module, name) for name in module.__all__)
    return [c for c in classes if inspect.isclass(c) and issubclass(c, base) and not inspect.isabstract(c)]


@pytest.mark.parametrize("kind", public_classes(rotations, rotations.Rotation))
def test_every_rotation_is_in_the_catalogue(kind):
    assert any(type(R) is kind for R in ROTATIONS)


@pytest.mark.parametrize("kind", public_classes(geometries, geometries.Geometry))
def test_every_geometry_is_in_the_catalogue(kind):
    assert any(type(S) is kind for S in GEOMETRIES)


@pytest.mark.parametrize("kind", public_classes(radii, radii.RadialLaw))
def test_every_radial_law_is_in_the_catalogue(kind):
    assert any(type(D) is kind for D in RADII)


@pytest.mark.parametrize("kind", public_classes(projections, projections.Projection))
def test_every_projection_is_in_the_catalogue(kind):
    assert any(type(p) is kind for p in PROJECTIONS)


@pytest.mark.parametrize("kind", public_classes(maps, maps.Map))
def test_every_map_is_in_the_catalogue(kind):
    assert any(type(m) is kind for m in MAPS)


@pytest.mark.parametrize("kind", public_classes(kernels, kernels.Kernel))
def test_every_kernel_is_in_the_catalogue(kind):
    assert any(type(k) is kind for k in KERNELS)


@pytest.mark.parametrize("mechanism", [*ROTATIONS, *PROJECTIONS, *MAPS, *KERNELS], ids=repr)
def test_mechanisms_state_their_references(mechanism):
    assert mechanism.references and all(isinstance(key, str) for key in mechanism.references)
