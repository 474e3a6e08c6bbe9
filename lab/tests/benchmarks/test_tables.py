"""The benchmark on tables: its halves, cells that are kept, and counts that follow from them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from bochner_lab.benchmarks import tables
from bochner_lab.benchmarks._table_methods import BOOSTING, CANDIDATE, CONSTANT, METHODS, OURS, XRFM, Method
from bochner_lab.benchmarks._tables import DESIGN, JUDGING, TABLES
from bochner_lab.command_line import main

GENERATED = [table for table in TABLES if table.make is not None]


def cell(table, split, half=JUDGING, *, smooth=False, **errors):
    names = {"ours": OURS, "boosting": BOOSTING, "xrfm": XRFM, "constant": CONSTANT}
    methods = {names.get(name, f"{CANDIDATE}{name}"): {"error": e, "cpu_seconds": 1.0} for name, e in errors.items()}
    return {"table": table, "half": half, "smooth": smooth, "split": split, "methods": methods}


def test_at_least_thirty_tables_in_two_halves():
    assert len(TABLES) >= 30 and len({table.name for table in TABLES}) == len(TABLES)
    assert min(sum(table.half == half for table in TABLES) for half in (DESIGN, JUDGING)) >= 15


@pytest.mark.parametrize("table", GENERATED, ids=lambda table: table.name)
def test_splits_are_of_different_rows(table):
    split = table.split(0, 150, 200)
    assert split.X.shape[0] == 150 and np.isfinite(split.X).all() and np.isfinite(split.y).all()
    assert len(np.unique(split.y)) > 1 and not np.array_equal(split.X, table.split(1, 150, 200).X)
    np.testing.assert_array_equal(split.X, table.split(0, 150, 200).X)
    if table.name != "duplicates":
        assert not {tuple(row) for row in split.X} & {tuple(row) for row in split.X_test}


def test_ours_agrees_with_scikit_learn_at_fixed_hyperparameters(monkeypatch):
    monkeypatch.setattr(tables, "TABLES", [t for t in TABLES if t.name in ("unscaled", "steps")])
    found = list(tables.agreement())
    assert len(found) == 4 and all(result.met for result in found)


@pytest.mark.parametrize("method", [m for m in METHODS[1:] if not m.name.startswith(CANDIDATE)], ids=lambda m: m.name)
@pytest.mark.parametrize("name", ["friedman 1, 5 columns", "rings"])
def test_every_method_predicts(method, name):
    if not method.present:
        pytest.skip(f"{method.needs} is not installed")
    split = next(table for table in TABLES if table.name == name).split(0, 80, 50)
    assert method.predict(split, 0).shape == (50,)


def test_a_run_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    calls = []

    def mean(split, seed):
        calls.append(split.name)
        return np.full(len(split.X_test), split.y.mean())

    monkeypatch.setattr(tables, "agreement", lambda: iter(()))
    monkeypatch.setattr(tables, "METHODS", [Method(name, mean) for name in (OURS, BOOSTING, CONSTANT)])
    names = ["unscaled", "steps"]
    first = list(tables.run(names, "smoke", tmp_path, [0]))
    assert calls == [] and first == []  # neither is among the first three tables, which smoke measures
    list(tables.run(names, "quick", tmp_path, [0]))
    assert calls == ["unscaled"] * 3 + ["steps"] * 3
    results = list(tables.run(names, "quick", tmp_path, [0, 1]))
    assert len(calls) == 12 and sorted(path.name for path in tmp_path.glob("*.json"))[0] == "steps-0.json"
    assert any(result.case == f"unscaled: {OURS}" and result.value == 1 for result in results)
    assert json.loads((tmp_path / "steps-1.json").read_text())["half"] == JUDGING


def test_goals_are_counted_from_cells():
    cells = [
        cell("steps", 0, ours=2.0, boosting=1.0, xrfm=2.0, constant=10.0, one=1.0, two=4.0),
        cell("steps", 1, ours=2.2, boosting=1.0, xrfm=2.0, constant=10.0, one=1.0, two=4.0),
        cell("bike", 0, smooth=True, ours=1.0, boosting=1.5, xrfm=1.0, constant=10.0, one=1.0, two=4.0),
        cell("wine", 0, boosting=1.5, constant=10.0),  # not complete, and not counted
    ]
    found = {result.case: result for result in tables.goals(cells)}
    assert found["judging: within 2 % of the best of all"].value == 0.5
    assert "steps 2.10" in found["judging: within 2 % of the best of all"].details
    assert found["judging: behind the best on smooth tables"].value == 1.0
    assert found[f"judging: better than {BOOSTING}"].value == 0.5
    regret = found["judging: the choice over the best of its candidates"]
    assert math.isclose(regret.value, math.sqrt(2.1)) and not regret.met
    steps = tables.errors(cells)["steps"]
    assert tables.t_value(steps, BOOSTING) > 10 and math.isnan(tables.t_value(tables.errors(cells)["bike"], BOOSTING))


def test_options_of_other_suites_are_refused(capsys):
    assert main(["bench", "learn", "--profile", "smoke"]) == 2
    assert "belong to the suite tables" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"--data must be one of .* got 'nothing'"):
        list(tables.run(["nothing"]))
