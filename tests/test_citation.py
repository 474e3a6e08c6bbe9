"""Every reference that a mechanism declares is in the bibliography."""

from __future__ import annotations

import pytest

import bochner
from bochner._citation import bibliography
from bochner.projections import Orthogonal
from bochner.rotations import Kac
from support.catalogue import KERNELS, MAPS, PROJECTIONS, ROTATIONS


@pytest.mark.parametrize("thing", [*ROTATIONS, *PROJECTIONS, *KERNELS, *MAPS], ids=repr)
def test_every_reference_is_known(thing):
    assert set(thing.references) <= set(bibliography())
    assert bochner.citation(thing).startswith("@")


def test_parts_are_cited_too():
    text = bochner.citation(Orthogonal(Kac()))
    assert "{pillai2017," in text and "{yu2016," in text


def test_nothing_to_cite():
    with pytest.raises(ValueError, match="citation: expected at least one"):
        bochner.citation(3)
