"""Tables with categories and gaps."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from bochner.learn import GaussianProcess, GaussianProcessClassifier, KernelClassifier, KernelRidge, RandomFeatures
from bochner.learn._cells import MOST_LEVELS, Cells
from bochner.learn._coordinates import Coordinates
from bochner.learn._row_source import rows_in_memory

EFFECTS = {"a": 0.0, "b": 1.0, "c": -1.0, "d": 2.0, "e": -2.0}
N, TRAIN = 360, 240
FIXED = {"kernel": "gaussian", "metric": None, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    kind, size, flag = rng.choice(list(EFFECTS), N), rng.standard_normal(N), rng.uniform(size=N) < 0.3
    y = np.array([EFFECTS[k] for k in kind]) * np.where(flag, 1.0, -0.5) + np.sin(2 * size)
    gaps = rng.uniform(size=N) < 0.1
    y = y + np.where(gaps, 1.5, 0.0) + 0.1 * rng.standard_normal(N)  # that a cell is missing tells something
    frame = pd.DataFrame({"kind": pd.Categorical(kind), "size": np.where(gaps, np.nan, size), "flag": flag})
    return frame, y


@pytest.mark.parametrize("machine", [KernelRidge(**FIXED), GaussianProcess("gaussian", random_state=0)], ids=str)
def test_categories_and_gaps_explain_the_target(table, machine):
    frame, y = table
    codes = frame.assign(kind=frame["kind"].cat.codes, size=frame["size"].fillna(0.0)).to_numpy(dtype=float)
    machine.fit(frame[:TRAIN], y[:TRAIN])
    assert machine.score(frame[TRAIN:], y[TRAIN:]) > 0.8
    assert machine.n_features_in_ == 3 and list(machine.feature_names_in_) == ["kind", "size", "flag"]
    by_codes = type(machine)("gaussian", random_state=0).fit(codes[:TRAIN], y[:TRAIN])
    assert machine.score(frame[TRAIN:], y[TRAIN:]) > by_codes.score(codes[TRAIN:], y[TRAIN:])


@pytest.mark.parametrize(
    "machine", [KernelClassifier(**FIXED), GaussianProcessClassifier("gaussian", random_state=0)], ids=str
)
def test_classifiers_take_categories_and_gaps(table, machine):
    frame, y = table
    labels = np.where(y > 0, "high", "low")
    machine.fit(frame[:TRAIN], labels[:TRAIN])
    assert machine.score(frame[TRAIN:], labels[TRAIN:]) > 0.75  # the most frequent class has 0.55
    assert machine.predict_proba(frame[TRAIN:]).shape == (N - TRAIN, 2)


def test_every_kind_of_table_gives_the_same(table):
    frame, y = table
    columns = {name: [None if pd.isna(v) else v for v in frame[name].astype(object)] for name in frame}
    kinds = {
        "words": frame.assign(kind=frame["kind"].astype(str)),
        "polars": pl.DataFrame(columns),
        "objects": np.array(list(zip(*columns.values(), strict=True)), dtype=object),
        "nullable": frame.assign(size=frame["size"].astype("Float64"), flag=frame["flag"].astype("boolean")),
    }
    expected = KernelRidge(**FIXED).fit(frame[:TRAIN], y[:TRAIN]).predict(frame[TRAIN:])
    for name, rows in kinds.items():
        found = KernelRidge(**FIXED).fit(rows[:TRAIN], y[:TRAIN]).predict(rows[TRAIN:])
        np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=name)


def test_a_new_category_is_like_no_other(table):
    frame, y = table
    model = KernelRidge(**FIXED).fit(frame[:TRAIN], y[:TRAIN])
    rows = frame[TRAIN : TRAIN + 6].astype({"kind": object})
    known = model.predict(rows.assign(kind=list("abcdea")))
    new = model.predict(rows.assign(kind="zebra"))
    np.testing.assert_array_equal(new, model.predict(rows.assign(kind="okapi")))
    assert (np.abs(new - known) > 0).all() and np.isfinite(new).all()
    assert np.isfinite(model.predict(rows.assign(kind=None, size=None))).all()


def test_saved_machines_read_the_same_cells(table):
    frame, y = table
    model = KernelRidge(**FIXED).fit(frame[:TRAIN], y[:TRAIN])
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))


def test_a_fit_without_gaps_starts_anew(table):
    frame, y = table
    model = KernelRidge(**FIXED).fit(frame, y)
    numbers = frame[["flag"]].to_numpy(dtype=float)
    assert model.fit(numbers, y).cells_ is None and model.n_features_in_ == 1
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.array([[np.nan]]))


def test_streams_take_the_levels_of_the_first_call(table):
    frame, y = table
    model = KernelRidge("gaussian", gamma=0.2, metric=None, map=None, n_components=64, alpha=0.1, random_state=0)
    with_all = model.partial_fit(frame[:100], y[:100]).partial_fit(frame[100:TRAIN], y[100:TRAIN])
    assert with_all.score(frame[TRAIN:], y[TRAIN:]) > 0.5


def test_blocks_have_the_variance_of_one_column():
    kinds = np.random.default_rng(1).choice(4, 500, p=[0.5, 0.3, 0.15, 0.05])
    rows = rows_in_memory("test", np.eye(4)[kinds], blocks=((0, 4),))
    scale = Coordinates.standard(rows).scale
    Z = scale * np.eye(4)[kinds]
    assert np.ptp(scale) == 0 and abs(Z.var(axis=0).sum() - 1) < 1e-12
    np.testing.assert_allclose(Coordinates.robust(rows.X, 5.0, rows.blocks).scale, scale)


def test_rare_levels_and_identifiers():
    words = [f"w{k}" for k in range(200)] * 2 + ["often"] * 10
    cells = Cells.of("test", pd.DataFrame({"a": words}))
    assert len(cells.levels[0]) == MOST_LEVELS and "often" in cells.levels[0]
    frame = pd.DataFrame({"name": [f"row {k}" for k in range(50)], "x": np.arange(50.0)})
    with pytest.warns(
        UserWarning, match="column 'name' has a different word in every row, such as 'row 0', and is left out"
    ):
        cells = Cells.of("test", frame)
    assert cells.n_columns == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f[["kind", "size"]], "The feature names should match|has 2 features"),
        (lambda f: f.assign(size="large"), "KernelRidge: column 'size' held numbers in fit, and has 'large' now"),
        (lambda f: f.assign(size=np.inf), "infinity"),
    ],
)
def test_other_columns_are_refused(table, change, message):
    frame, y = table
    model = KernelRidge(**FIXED).fit(frame[:TRAIN], y[:TRAIN])
    with pytest.raises(ValueError, match=message):
        model.predict(change(frame[TRAIN:]))


def test_what_is_neither_word_nor_number_is_refused(table):
    frame, y = table
    with pytest.raises(ValueError, match="expected columns of numbers or words, got 'kind' with"):
        KernelRidge(**FIXED).fit(frame.assign(kind=[(1, 2)] * N), y)
    model = KernelRidge(**FIXED).fit(frame[["size"]].to_numpy(), y)
    with pytest.raises(TypeError, match="fitted to a table with categories or gaps, got csr_array"):
        model.predict(sparse.csr_array(np.ones((3, 1))))


def test_features_alone_still_need_numbers(table):
    with pytest.raises(ValueError, match="expected columns of numbers, got 'kind'"):
        RandomFeatures().fit(table[0])
