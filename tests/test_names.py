"""The table of names."""

from __future__ import annotations

import numpy as np
import pytest

import bochner
from bochner import kernels, names
from bochner._citation import bibliography


@pytest.mark.parametrize("name", names.MECHANISMS)
def test_every_mechanism_works(name):
    spec = bochner.mechanism(name, n_projections=12)
    X = 0.3 * np.random.default_rng(0).standard_normal((20, 5))
    phi = spec.fit(X, rng=0)
    assert phi.gram(X).shape == (20, 20)
    assert names.MECHANISMS[name].paper in bibliography()


@pytest.mark.parametrize(
    ("look_up", "table"),
    [
        (names.kernel, names.KERNELS),
        (names.rotation, names.ROTATIONS),
        (names.projection, names.PROJECTIONS),
        (names.feature_map, names.MAPS),
    ],
)
def test_every_name_gives_its_part(look_up, table):
    for name in table:
        assert look_up(name) == table[name]()


def test_kernels_may_be_given():
    assert bochner.mechanism("rff", kernels.Matern(1.5)).kernel == kernels.Matern(1.5)
    assert bochner.mechanism("rff", "cauchy").kernel == kernels.Cauchy()


@pytest.mark.parametrize("kind", ("kernel", "rotation", "projection", "map", "mechanism"))
def test_unknown_names_list_the_known_ones(kind):
    look_up = {"map": names.feature_map}.get(kind) or getattr(names, kind)
    with pytest.raises(ValueError, match=rf"unknown {kind} 'nonesuch'\. The names are "):
        look_up("nonesuch")


def test_a_near_miss_is_guessed():
    with pytest.raises(ValueError, match=r"unknown projection 'simplx'\. Did you mean 'simplex'\? The names are iid, "):
        names.projection("simplx")
