"""The benchmark of attention measures what it says, on small sizes; no time is asserted."""

from __future__ import annotations

import contextlib
import json
import math
import sys

import pytest
import torch

from bochner.reporting import as_json
from bochner_lab.benchmarks import attention as attention
from bochner_lab.benchmarks import attention_neighbour as neighbour
from bochner_lab.benchmarks import decode as decode
from bochner_lab.benchmarks import engines as engines
from bochner_lab.benchmarks._bench import SUITES, best_of_each, not_measured
from bochner_lab.command_line import main


@pytest.fixture
def small(monkeypatch):
    """Short sequences, once, and on one thread: those that wait for each other take most of the time here."""
    monkeypatch.setattr(attention, "best_of_each", lambda works, repeats: best_of_each(works, 1))
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    monkeypatch.setattr(attention, "_L", 64)
    monkeypatch.setattr(attention._inputs, "__defaults__", (64,))
    monkeypatch.setattr(attention, "_LONG", 128)
    monkeypatch.setattr(attention, "_LENGTHS", (16, 32))
    monkeypatch.setattr(attention, "_SHORT", 64)
    monkeypatch.setattr(attention, "_MIDDLE", 128)
    monkeypatch.setattr(attention, "_BATCH", (2, 8, 16, 64))
    monkeypatch.setattr(engines, "_REPEATS", {32: 1})
    for name in ("_FUSED", "_PLAIN"):
        monkeypatch.setattr(engines, name, tuple((32, *case[1:]) for case in getattr(engines, name)))
    monkeypatch.setattr(engines, "_CONTEXT", 8)
    monkeypatch.setattr(engines, "_STEPS", 1)


def test_every_case_is_measured(small):
    pytest.importorskip("performer_pytorch", reason="performer-pytorch is the peer")
    results = list(SUITES["attention"]())
    assert len(results) == 47 and not any(math.isnan(result.value) for result in results)


def test_a_missing_peer_is_named(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "performer_pytorch", None)
    results = [result for result in attention._bidirectional() if result.unit == "not measured"]
    assert [result.details for result in results] == ['needs performer-pytorch: pip install -e "lab[peers]"']


def test_what_is_not_measured_is_null():
    assert json.loads(as_json(vars(not_measured("case", "reason"))))["value"] is None


def test_neighbours_are_for_attention(capsys):
    assert main(["bench", "projections", "--neighbour"]) == 2
    assert "--neighbour measures attention, not projections" in capsys.readouterr().err


def test_slowdowns_are_ratios_of_medians(monkeypatch):
    """Without the neighbours, which never run in tests."""
    monkeypatch.setattr(neighbour, "_neighbours", contextlib.nullcontext)
    monkeypatch.setattr(neighbour, "_REPEATS", {64: 1})
    results = list(neighbour.run())
    assert len(results) == 4 and all(result.value > 0 for result in results)


def test_decoding_is_measured(monkeypatch):
    small = {
        "_CONTEXTS": (4, 8, 16),
        "_PART": 8,
        "_REPEATS": 1,
        "_WIDTH": 16,
        "_M": 8,
        "_CODED": (96, 128, 160),
        "_STEPS": 1,
    }
    for name, value in small.items():
        monkeypatch.setattr(decode, name, value)
    model = decode._smollm2
    monkeypatch.setattr(
        decode, "_smollm2", lambda layers, **_: model(min(layers, 2), vocab_size=8, intermediate_size=8)
    )
    results = list(SUITES["decode"]())
    assert len(results) == 17 and not any(math.isnan(result.value) for result in results)
