"""The benchmark that converts every class of attention of transformers, on a few families."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")

from bochner_lab.benchmarks.families import families, sweep


@pytest.mark.filterwarnings("ignore")
def test_classes_convert_agree_save_and_generate():
    found = {outcome.attention: outcome for outcome in sweep(["albert", "opt", "t5", "siglip"])}
    assert found.keys() == {"AlbertAttention", "OPTAttention", "T5Attention", "SiglipAttention"}
    for outcome in found.values():
        assert outcome.converts and outcome.agrees and outcome.saves and not outcome.reason, outcome
    assert found["OPTAttention"].generates and found["T5Attention"].generates
    assert found["AlbertAttention"].generates is None


def test_a_family_without_the_interface_has_no_lines():
    assert "bloom" in families() and not list(sweep(["bloom"]))
