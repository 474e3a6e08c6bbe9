"""What is computed, and when; what comes to the client, and what does not."""

from __future__ import annotations

import pickle

import dask
import dask.array as da
import numpy as np
import pytest

from bochner import distributed
from bochner.distributed._dask_rows import DaskRows, tree_sum

X = np.random.default_rng(0).standard_normal((4000, 3))
Y = X[:, 0] ** 2


def blocks(array):
    return da.from_array(array, chunks=(500, *array.shape[1:]))


def failing(width):
    """Rows that cannot be computed."""

    def fail(block):
        raise RuntimeError("computed")

    return blocks(X[:, :width]).map_blocks(fail, dtype=float, meta=np.empty((0, width)))


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def test_predictions_wait_until_they_are_computed():
    model = distributed.KernelRidge(n_components=8, random_state=0).fit(blocks(X), blocks(Y))
    lazy = model.predict(failing(3))
    with pytest.raises(RuntimeError, match="computed"):
        lazy.compute()


def test_a_number_for_gamma_asks_for_no_data():
    model = distributed.RandomFeatures(gamma=0.5, n_components=8, random_state=0).fit(failing(3))
    assert model.transform(failing(3)).shape == (4000, 8)


def test_blocks_of_the_result_are_those_of_the_data():
    model = distributed.RandomFeatures(gamma=0.5, n_components=8, random_state=0).fit(blocks(X))
    assert model.transform(blocks(X)).chunks == ((500,) * 8, (8,))


def test_columns_come_into_one_chunk():
    rows = da.from_array(X, chunks=(500, 1))
    model = distributed.RandomFeatures(gamma=0.5, n_components=8, random_state=0).fit(rows)
    np.testing.assert_array_equal(model.transform(rows).compute(), model.transform(X))


def test_a_later_fit_does_not_change_what_was_asked_for():
    model = distributed.KernelRidge(n_components=8, random_state=0).fit(blocks(X), blocks(Y))
    expected = model.predict(X)
    lazy = model.predict(blocks(X))
    model.partial_fit(blocks(X), blocks(-Y))
    np.testing.assert_allclose(lazy.compute(), expected)


def test_the_fit_is_solved_once_and_its_statistics_stay(monkeypatch):
    from bochner.learn._linear.spectrum import NormalEquations

    solved, original = [], NormalEquations.cholesky
    monkeypatch.setattr(NormalEquations, "cholesky", lambda self, alpha: solved.append(alpha) or original(self, alpha))
    options = {"gamma": "scale", "map": None, "n_components": 200, "alpha": 1.0, "random_state": 0}
    model = distributed.KernelRidge(**options).fit(blocks(X), blocks(Y))
    lazy = model.predict(blocks(X))
    assert max(len(pickle.dumps(part)) for part in lazy.dask.values()) < 200 * 200 * 8
    lazy.compute()
    assert solved == [1.0]


@pytest.mark.parametrize("gamma, most", [("scale", 0), ("median", 1000)])
def test_no_more_rows_are_gathered_than_the_rule_looks_at(monkeypatch, gamma, most):
    gathered, original = [], DaskRows._drawn

    def recording(self, n, rng):
        found = original(self, n, rng)
        gathered.append(len(found[0]))
        return found

    monkeypatch.setattr(DaskRows, "_drawn", recording)
    options = {"gamma": gamma, "map": None, "n_components": 8, "alpha": 1.0, "random_state": 0}
    distributed.KernelRidge(**options).fit(blocks(X), blocks(Y))
    assert sum(gathered) <= most


def test_empty_blocks_are_nothing():
    rows = blocks(X)
    kept = rows[rows[:, 0] > 1.0 + 0 * rows[:, 0]]  # of unknown lengths
    target = blocks(Y)[rows[:, 0] > 1.0]
    cut = da.concatenate([kept, kept[kept[:, 0] > 100]])
    model = distributed.KernelRidge(n_components=8, gamma=0.5, random_state=0).fit(
        cut, da.concatenate([target, target[target < -1]])
    )
    expected = distributed.KernelRidge(n_components=8, gamma=0.5, random_state=0).fit(X[X[:, 0] > 1], Y[X[:, 0] > 1])
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-6)
    assert model.predict(cut).compute().shape == (int((X[:, 0] > 1).sum()),)


def test_the_tree_adds_neighbours_in_order():
    assert tree_sum([dask.delayed([k]) for k in range(100)], split_every=3) == list(range(100))


def test_the_tree_never_adds_more_than_it_may():
    widest = []

    class Part:
        def __init__(self, size):
            self.size = size

        def __add__(self, other):
            widest.append(other.size)
            return Part(self.size + other.size)

    total = tree_sum([dask.delayed(Part)(1) for _ in range(64)], split_every=4)
    assert total.size == 64 and max(widest) == 16


def test_progress_is_shown_when_asked_for(capsys):
    distributed.KernelRidge(n_components=8, gamma=0.5, verbose=1).fit(blocks(X), blocks(Y))
    assert "Completed" in capsys.readouterr().out


def test_copies_predict_the_same():
    model = distributed.GaussianProcess(n_components=8, gamma=0.5, optimize=False).fit(blocks(X), blocks(Y))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_samples_of_a_state_that_is_no_number_are_one_function():
    model = distributed.GaussianProcess(n_components=8, gamma=0.5, optimize=False).fit(blocks(X), blocks(Y))
    twice = da.concatenate([blocks(X)[:500], blocks(X)[:500]])
    drawn = model.sample_y(twice, 2, random_state=np.random.default_rng(3)).compute()
    np.testing.assert_array_equal(drawn[:500], drawn[500:])
