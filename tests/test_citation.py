"""Every reference that a mechanism declares is in the bibliography."""

from __future__ import annotations

import pytest

import bochner
from bochner._citation import addresses, bibliography
from bochner.projections import Orthogonal, Simplex
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


def test_the_five_papers_can_be_read_somewhere():
    places = addresses()
    assert {"hrf", "crt", "qbf", "simrf", "omc"} <= set(places) <= set(bibliography())
    assert places["simrf"] == ("arXiv:2301.13856", "https://arxiv.org/abs/2301.13856")
    assert all(address.startswith("https://") for _, address in places.values())


def test_entries_name_their_preprint():
    assert "eprint = {2301.13856}, archivePrefix = {arXiv}" in bochner.citation(Simplex())
