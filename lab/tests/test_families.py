"""The benchmark that converts every class of attention of transformers, on a few families."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")

from bochner_lab.benchmarks.families import families, sweep
from support.checks import THOROUGH


@pytest.mark.filterwarnings("ignore")
def test_classes_convert_agree_save_and_generate():
    names = {"albert": "AlbertAttention", "t5": "T5Attention", "opt": "OPTAttention", "siglip": "SiglipAttention"}
    names = names if THOROUGH else dict(list(names.items())[:2])
    found = {outcome.attention: outcome for outcome in sweep(list(names))}
    assert found.keys() == set(names.values())
    for outcome in found.values():
        assert outcome.converts and outcome.agrees and outcome.saves and not outcome.reason, outcome
    assert all(found[name].generates for name in ("OPTAttention", "T5Attention") if name in found)
    assert found["AlbertAttention"].generates is None


def test_a_family_without_the_interface_has_no_lines():
    assert "bloom" in families() and not list(sweep(["bloom"]))
