"""The benchmarks whose cases are kept as files: lines that follow from numbers, and cases that are measured once."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bochner_lab.benchmarks import exact, many_rows, processes
from bochner_lab.benchmarks._bench import kept_cell
from bochner_lab.benchmarks._tables import TABLES


def test_a_case_is_measured_once(tmp_path):
    calls = []

    def work():
        calls.append(1)
        return {"ours": 1.0}

    assert kept_cell(tmp_path, "100000 x 20", work) == kept_cell(tmp_path, "100000 x 20", work)
    assert calls == [1] and json.loads((tmp_path / "100000_x_20.json").read_text())["ours"] == 1.0
    kept_cell(None, "100000 x 20", work)
    assert calls == [1, 1]


def test_lines_of_the_exact_machine_follow_from_numbers():
    ours = {"error": 0.2, "seconds": 30.0, "cpu_seconds": 20.0}
    fast = ours | {"cpu_seconds": 5.0}
    cells = {
        "krkopt": {
            "rows": 10,
            "threads": 2,
            "ours": {"given": ours, "open": ours},
            "theirs": {"given": fast, "open": ours},
        },
        "kin40k": {"rows": 10, "threads": 2, "ours": ours, "coverage": 0.9},
        "100000 x 20": {"rows": 10, "threads": 2, "ours": ours},
        "500000 x 20 ridge": {
            "rows": 10,
            "columns": 2,
            "width": 5,
            "memory": 2e9,
            "error": 0.1,
            "cpu_seconds": 3.0,
            "bars": [],
        },
    }
    found = {result.case: result for result in exact.goals(cells)}
    assert found["krkopt, parameters given: wrong classes of map='exact' over SVC's"].met
    assert found["krkopt, parameters left open: time of map='exact' over SVC's"].met
    assert found["krkopt, ours left open, theirs given: time of map='exact' over SVC's"].value == 4.0
    assert not found["kin40k, published split 0: RMSE of map='exact'"].met
    assert found["default fit of 100,000 x 20"].met
    assert not found["ridge on random features, 10 x 2 float32: memory beyond the rows"].met
    with pytest.raises(ValueError, match=r"--data must be one of 'krkopt'.* got 'nothing'"):
        list(exact.run(["nothing"]))


def test_processes_are_measured_in_the_same_units(monkeypatch):
    """At 60 rows of a line with noise both have about its density, and cover it."""
    table = next(table for table in TABLES if table.name == "friedman 1, 5 columns")
    monkeypatch.setattr(processes, "ROWS", 60)
    monkeypatch.setattr(processes, "TEST_ROWS", 300)
    cell = processes._small(table, 0)
    assert abs(cell["ours"]["nll"] - cell["theirs"]["nll"]) < 0.3 and 0.85 < cell["ours"]["coverage"] <= 1
    found = {result.case: result for result in processes.goals([cell], [])}
    ratio = cell["ours"]["rmse"] / cell["theirs"]["rmse"]
    assert np.isclose(found["judging: RMSE over that of scikit-learn's exact ARD process"].value, ratio)


def test_published_figures_are_compared():
    numbers = {"rmse": 0.3, "nll": 0.5, "coverage": 0.95, "cpu_seconds": 3.0}
    cell = {"table": "elevators", "split": 0, "rows": 10, "width": 5, "ours": numbers}
    found = {result.case: result for result in processes.goals([], [cell])}
    assert found["elevators, published split 0: RMSE"].met and not found["elevators, published split 0: NLL"].met
    other = cell | {"split": 1, "ours": numbers | {"rmse": 0.5, "coverage": 0.99}}
    found = {result.case: result for result in processes.goals([], [cell, other])}
    assert not found["elevators, published splits 0, 1: RMSE"].met
    assert found["elevators, published splits 0, 1: 95 % intervals cover"].met


def test_half_a_million_rows_are_measured_in_the_precision_of_the_rows(monkeypatch):
    monkeypatch.setattr(many_rows, "ROWS", 2000)
    monkeypatch.setattr(many_rows, "NEW_ROWS", 500)
    monkeypatch.setattr(many_rows, "WIDTH", 256)
    found = many_rows.ridge()
    assert found["type"] == "float32" and found["width"] == 256 and found["error"] < 1
