"""What users call is apart from what extensions need, and every public name is where it says."""

from __future__ import annotations

import builtins
import importlib

import numpy as np
import pytest

import bochner
from bochner import Approximation, extending, kernels, maps, projections

MODULES = [name for name in bochner.__all__ if hasattr(getattr(bochner, name), "__all__")]


@pytest.mark.parametrize("name", MODULES)
def test_a_star_import_replaces_no_builtin(name):
    assert not set(getattr(bochner, name).__all__) & set(dir(builtins))


@pytest.mark.parametrize("name", [name for name in MODULES if name != "extending"])
def test_what_extensions_need_is_in_one_place(name):
    assert not set(getattr(bochner, name).__all__) & set(extending.__all__)


def test_users_have_few_names():
    """Another name is for users only if they call it; what their own classes need is in `bochner.extending`."""
    assert len({public for name in MODULES if name != "extending" for public in getattr(bochner, name).__all__}) <= 150


@pytest.mark.parametrize("name", MODULES)
def test_every_name_is_there_and_no_function_takes_an_owner(name):
    module = importlib.import_module(f"bochner.{name}")
    for public in module.__all__:
        thing = getattr(module, public)
        code = getattr(thing, "__code__", None)
        assert name == "extending" or code is None or "owner" not in code.co_varnames[: code.co_argcount], public


def test_names_stand_for_parts():
    found = Approximation("gaussian", "trigonometric", "orthogonal", 16)
    assert found == Approximation(kernels.Gaussian(), maps.Trigonometric(), projections.Orthogonal(), 16)
    X = np.random.default_rng(0).standard_normal((4, 3))
    np.testing.assert_array_equal(
        found.fit(X, rng=0).queries(X), Approximation("gaussian", n_projections=16).fit(X, rng=0).queries(X)
    )


@pytest.mark.parametrize("part", ("kernel", "map", "projection"))
def test_an_unknown_name_lists_the_names(part):
    good = {"kernel": "gaussian", "map": "trigonometric", "projection": "orthogonal"}
    with pytest.raises(ValueError, match=rf"unknown {part} 'nothing'\. .*The names are .*{good[part]}"):
        Approximation(**(good | {part: "nothing"}))
