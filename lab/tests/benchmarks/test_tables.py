"""The benchmark on tables: its halves, cells that are kept, and counts that follow from them."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from bochner_lab.benchmarks import _table_methods, tables
from bochner_lab.benchmarks._table_methods import BOOSTING, BY_FOLDS, CANDIDATE, CONSTANT, METHODS, OURS, XRFM, Method
from bochner_lab.benchmarks._tables import DESIGN, JUDGING, TABLES
from bochner_lab.command_line import main

GENERATED = [table for table in TABLES if table.make is not None]
OTHERS = [method for method in METHODS[1:] if not method.name.startswith((CANDIDATE, BY_FOLDS))]


def cell(table, split, half=JUDGING, *, smooth=False, **errors):
    names = {"ours": OURS, "boosting": BOOSTING, "xrfm": XRFM, "constant": CONSTANT, "folds": BY_FOLDS}
    methods = {names.get(name, f"{CANDIDATE}{name}"): {"error": e, "cpu_seconds": 1.0} for name, e in errors.items()}
    facts = {"classes": False, "rows": 100, "test_rows": 50}
    return facts | {"table": table, "half": half, "smooth": smooth, "split": split, "methods": methods}


def test_at_least_thirty_tables_in_two_halves():
    assert len(TABLES) >= 30 and len({table.name for table in TABLES}) == len(TABLES)
    assert min(sum(table.half == half for table in TABLES) for half in (DESIGN, JUDGING)) >= 15


@pytest.mark.parametrize("table", GENERATED, ids=lambda table: table.name)
def test_splits_are_of_different_rows(table):
    split = table.split(0, 120, 200)
    assert split.X.shape[0] == 120 and np.isfinite(split.X).all() and np.isfinite(split.y).all()
    assert len(np.unique(split.y)) > 1 and not np.array_equal(split.X, table.split(1, 120, 200).X)
    np.testing.assert_array_equal(split.X, table.split(0, 120, 200).X)
    if table.name != "duplicates":
        assert not {tuple(row) for row in split.X} & {tuple(row) for row in split.X_test}


def test_ours_agrees_with_scikit_learn_at_fixed_hyperparameters(monkeypatch):
    monkeypatch.setattr(tables, "TABLES", [t for t in TABLES if t.name in ("unscaled", "steps")])
    found = list(tables.agreement())
    assert len(found) == 4 and all(result.met for result in found)


@pytest.mark.parametrize(
    "method", [m for m in METHODS[1:] if not m.name.startswith((CANDIDATE, BY_FOLDS))], ids=lambda m: m.name
)
@pytest.mark.parametrize("name", ["friedman 1, 5 columns", "rings"])
def test_every_method_predicts(method, name):
    if not method.present:
        pytest.skip(f"{method.needs} is not installed")
    split = next(table for table in TABLES if table.name == name).split(0, 80, 50)
    assert method.predict(split, 0).shape == split.y_test.shape


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
    list(tables.run(names, "quick", tmp_path, [1], again=["Hist"]))
    assert len(calls) == 14  # boosting again, on two tables
    monkeypatch.setattr(tables, "METHODS", [*tables.METHODS, Method("another", mean)])
    monkeypatch.setattr(tables, "environment", lambda: {"bochner": "later"})
    list(tables.run(["steps"], "quick", tmp_path, [0, 1, 2], again=["Hist", "another"]))
    assert len(calls) == 16 and not (tmp_path / "steps-2.json").exists()  # only what is there is measured again
    assert json.loads((tmp_path / "steps-1.json").read_text())["environment"] != {"bochner": "later"}
    list(tables.run(["steps"], "quick", tmp_path, [1], again=[OURS]))
    assert json.loads((tmp_path / "steps-1.json").read_text())["environment"] == {"bochner": "later"}


def test_smooth_classes_are_tested_on_many_new_rows():
    table = next(table for table in TABLES if table.name == "rings")
    one, two = table.split(0, 100, 700), table.split(1, 100, 700)
    assert table.draws_tests and one.X_test.shape == (7000, 2) and set(one.y_test) == {0, 1, 2}
    assert not {tuple(row) for row in one.X_test} & {tuple(row) for row in [*one.X, *two.X_test]}


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
    assert found["judging: worse than the best other method beyond noise (paired t test, level 0.05)"].value == 0.0


def test_half_a_wrong_row_stands_for_none_among_all_splits():
    one = cell("wine", 0, ours=0.02, boosting=0.0, constant=0.5) | {"classes": True}
    pooled = tables.errors([one, one | {"split": 1}])["wine"]
    assert pooled.means[BOOSTING] == 0.5 / 100 / 0.5  # 50 test rows twice, in units of the error of a constant
    assert tables.errors([one | {"classes": False}])["wine"].means[BOOSTING] == 0.0


def test_paired_tests_know_that_splits_share_rows():
    """Levels under the null hypothesis, with the correlation test / (train + test) of Nadeau and Bengio: 5 % +- 5 z."""
    rng, n, J, rejected = np.random.default_rng(0), 2000, 10, 0
    for _ in range(n):
        gaps = rng.standard_normal(J) * math.sqrt(2 / 3) + rng.standard_normal() * math.sqrt(1 / 3)
        found = tables.Errors({OURS: 5 + gaps, BOOSTING: np.full(J, 5.0)}, overlap=0.5)
        rejected += found.p_value(BOOSTING) < 0.05
    assert abs(rejected - 0.05 * n) < 5 * math.sqrt(0.05 * 0.95 * n)
    assert math.isnan(tables.Errors({OURS: np.ones(1), BOOSTING: np.ones(1)}).p_value(BOOSTING))


def test_methods_may_be_measured_on_fewer_splits():
    both = [cell("bike", k, ours=1.0, boosting=2.0, xrfm=3.0, constant=4.0) for k in range(3)]
    del both[2]["methods"][XRFM]
    found = tables.errors(both)["bike"]
    assert found.means[XRFM] == 0.75 and np.isnan(found.methods[XRFM]).sum() == 1


def test_methods_are_compared_on_the_splits_of_both():
    hard = [cell("bike", k, ours=1.0 + k, boosting=2.0 + 2 * k, xrfm=1.0, constant=4.0) for k in range(3)]
    del hard[2]["methods"][XRFM], hard[1]["methods"][XRFM]  # it was measured on the easy split alone
    found = tables.errors(hard)["bike"]
    assert found.ratio(XRFM) == 1.0 and found.ratio(BOOSTING) == 0.5


def test_a_wrong_row_more_or_less_is_no_regret_of_six():
    """Three wrong rows of 45 against none: by half a row for none, with one more row each, and by the other splits."""
    one = cell("wine", 0, ours=3 / 45, boosting=0.5, constant=1.0, lucky=0.0, usual=2 / 45)
    two = cell("wine", 1, ours=1 / 45, boosting=0.5, constant=1.0, lucky=4 / 45, usual=1 / 45)
    first, both = (
        tables.errors([c | {"classes": True, "test_rows": 45} for c in cells]) for cells in ([one], [one, two])
    )
    assert math.isclose(tables.regret(first["wine"]), 6.0)
    assert math.isclose(tables.regret(first["wine"], more=True), 4.0)
    assert math.isnan(tables.unseen_regret(first["wine"]))
    assert math.isclose(tables.unseen_regret(both["wine"]), 4 / 6)  # usual on the first split, lucky on the second


def test_the_choice_of_folds_is_a_reference_and_no_rival():
    one = cell("wine", 0, ours=0.3, boosting=0.5, constant=1.0, folds=0.2, usual=0.1)
    found = {
        result.case: result for result in tables.goals([one, cell("bike", 0, ours=1, boosting=2, constant=4, few=1)])
    }
    reference = found["judging: the choice of ten folds over the best"]
    assert math.isclose(reference.value, 2) and reference.details.startswith("ours there 3; 1 tables")
    assert BY_FOLDS not in tables.rivals(tables.errors([one])["wine"].methods)


def test_folds_choose_what_predicts_held_out_rows(monkeypatch):
    def constant(value):
        return Method(f"{CANDIDATE}{value}", lambda split, seed: np.full(len(split.X_test), value))

    monkeypatch.setattr(_table_methods, "_candidates", lambda: iter([constant(0), constant(2), constant(1)]))
    split = next(table for table in TABLES if table.name == "rings").split(0, 60, 50)
    split.y[:40] = 2  # the most frequent class
    assert (_table_methods._by_folds(split, 0) == 2).all()


def test_options_of_other_suites_are_refused(capsys):
    assert main(["bench", "learn", "--profile", "smoke"]) == 2
    assert "belong to the suite tables" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"--data must be one of .* got 'nothing'"):
        list(tables.run(["nothing"]))
