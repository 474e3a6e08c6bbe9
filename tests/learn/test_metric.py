"""Learned and given metrics: gradients, the directions that matter, and safety where none does."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from bochner import kernels
from bochner.learn import KernelClassifier, KernelRidge
from bochner.learn._coordinates import Coordinates
from bochner.learn._linear.leave_one_out import Judged
from bochner.learn._metric import given_root, gradients, iterates, metric_starts, screened_root
from bochner.learn._row_source import Chunk
from bochner.learn._search import Search

RNG = np.random.default_rng(0)
X = RNG.standard_normal((500, 8))
DIRECTION = np.array([1.0, -1.0, 0, 0, 0, 0, 0, 0]) / np.sqrt(2)
Y = np.sin(3 * X @ DIRECTION) + 0.1 * RNG.standard_normal(500)
GIVEN = {"kernel": "gaussian", "random_state": 0}


@pytest.mark.parametrize("kernel", [kernels.Gaussian(1.7), kernels.Matern(1.5, 2.0), kernels.Laplacian(4.0)], ids=repr)
def test_gradients_are_those_of_the_prediction(kernel):
    rows, c = X[:30], RNG.standard_normal((30, 2))
    found = gradients(kernel, rows, c).reshape(2, 30, 8)
    for j, step in enumerate(1e-5 * np.eye(8)):
        up, down = (kernel(rows[:4] + s, rows) @ c for s in (step, -step))
        np.testing.assert_allclose(found[:, :4, j].T, (up - down) / 2e-5, atol=2e-4)


def test_the_gradients_of_many_targets_have_the_same_outer_products_in_the_mean():
    c = RNG.standard_normal((30, 6))
    exact = sum(G.T @ G for G in (gradients(kernels.Gaussian(2.0), X[:30], c[:, [t]]) for t in range(6)))
    combined = gradients(kernels.Gaussian(2.0), X[:30], c)
    assert combined.shape == (4 * 30, 8)
    assert 0.3 < np.trace(combined.T @ combined) / np.trace(exact) < 3


def test_the_direction_that_matters_is_found():
    model = KernelRidge(metric="learned", **GIVEN).fit(X[:400], Y[:400])
    M = model.coordinates_.matrix @ model.coordinates_.matrix.T
    assert abs(np.linalg.eigh(M)[1][:, -1] @ DIRECTION) > 0.98
    plain = KernelRidge(metric=None, **GIVEN).fit(X[:400], Y[:400])
    errors = [np.mean((m.predict(X[400:]) - Y[400:]) ** 2) for m in (model, plain)]
    assert errors[0] < 0.3 * errors[1] and model.selection_.metric == "learned"
    assert "learned metric, a matrix, held-out error" in model.selection_.reason
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.parametrize("kernel", ("gaussian", "laplacian"))
def test_a_bandwidth_for_each_column(kernel):
    y = np.sin(3 * X[:, 2]) > 0.1
    options = {"kernel": kernel, "random_state": 0}
    model = KernelClassifier(metric="columns", **options).fit(X[:400], y[:400])
    assert model.coordinates_.matrix.ndim == 1 and model.coordinates_.matrix.argmax() == 2
    plain = KernelClassifier(metric=None, **options).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) >= plain.score(X[400:], y[400:])


@pytest.mark.filterwarnings("ignore:.*explains nothing")
def test_noise_is_not_worth_a_metric():
    noise = np.random.default_rng(1).standard_normal(500)
    model = KernelRidge(metric="auto", **GIVEN).fit(X, noise)
    assert model.selection_.metric == "none" and "no metric" in model.selection_.reason


def test_directions_are_found_where_most_columns_do_not_matter():
    rows = np.random.default_rng(8).standard_normal((800, 30))
    target = np.sin(2 * rows[:, 0]) + rows[:, 1]
    model = KernelRidge(**GIVEN).fit(rows[:600], target[:600])
    assert model.score(rows[600:], target[600:]) > 0.9


def test_trees_show_the_columns_where_a_first_fit_explains_nothing():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((1500, 32))
    target = 2 * np.sin(2 * rows[:, 3]) * rows[:, 7] + rng.standard_normal(1500) / 3
    root = screened_root(rows[:1000], Judged.of(target[:1000, None], None, classes=False), 0)
    assert set(np.argsort(root)[-2:]) == {3, 7}
    model = KernelRidge(**GIVEN).fit(rows[:1000], target[:1000])
    assert model.selection_.metric != "none" and model.score(rows[1000:], target[1000:]) > 0.8


def test_columns_are_scaled_before_directions_are_learned():
    judged = Judged.of(Y[:200, None], None, classes=False)
    path = iterates(kernels.Gaussian(), 0.0, X[:200], judged, start=np.ones(8), matrix_after=2, intercept=True)
    shapes = [root.ndim for (root, *_), _ in zip(path, range(5), strict=False)]
    assert shapes == [1, 1, 1, 2, 2]


def test_a_given_metric_is_a_change_of_coordinates():
    A = RNG.standard_normal((8, 8))
    options = {"gamma": 0.1, "alpha": 0.1, "map": None, "n_components": 100, "random_state": 0}
    for metric in (A @ A.T, np.arange(8.0)):
        root = given_root("", metric, 8)
        np.testing.assert_allclose(root**2 if metric.ndim == 1 else root @ root, metric)
        moved = X * root if metric.ndim == 1 else X @ root
        for method in ("ridge", "nadaraya-watson"):
            ours = KernelRidge(metric=metric, method=method, **options).fit(X, Y).predict(X)
            plain = KernelRidge(metric=None, method=method, **options).fit(moved, Y).predict(moved)
            np.testing.assert_allclose(ours, plain, rtol=1e-6)


@pytest.mark.parametrize(
    "parameters, message",
    [
        (
            {"metric": -np.ones(8)},
            r"metric must be 'auto', None, 'columns', 'learned', non-negative numbers \(8,\), or",
        ),
        ({"metric": -np.eye(8)}, r"KernelRidge: metric must be .*positive semidefinite"),
        ({"metric": np.ones(3)}, r"KernelRidge: metric must be "),
        ({"metric": "learned", "method": "nadaraya-watson"}, r"a metric is learned with method='ridge'"),
        (
            {"metric": "learned", "kernel": kernels.ArcCosine(1)},
            r"metric='learned' is learned along with the bandwidth",
        ),
    ],
    ids=str,
)
def test_refusals(parameters, message):
    with pytest.raises(ValueError, match=message):
        KernelRidge(**GIVEN | parameters).fit(X[:50], Y[:50])


def test_columns_are_scaled_for_as_long_as_held_out_rows_gain():
    """Four of 32 columns matter, in products without a linear signal: two iterates leave most of it unexplained."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 32))
    y = np.sin(X[:, 3]) * np.abs(X[:, 11]) + 0.3 * X[:, 20] * X[:, 27] + 0.1 * rng.standard_normal(900)
    model = KernelRidge("matern-3/2", metric="columns", random_state=0).fit(X[:500], y[:500])
    table = model.selection_.candidates
    errors = [e for e, metric in zip(table["error"], table["metric"], strict=True) if metric == "columns"]
    assert min(errors) < 0.7 * min(errors[:2]) and model.score(X[500:], y[500:]) > 0.7


def test_a_metric_starts_from_a_euclidean_kernel_with_columns_of_its_own():
    """The Laplacian kernel wins on columns as they are, and a matrix of Euclidean distances on standardised ones."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4)) * [1.0, 2.0, 0.5, 1.0]
    Y = (X[:, 0] > 0.3).astype(float)
    search = Search(
        "example", Chunk(X, Y[:, None], None), 300, kernels=(kernels.Gaussian(), kernels.Laplacian()), bandwidth=True,
        columns={"standardised": Coordinates(X.mean(axis=0), 1 / X.std(axis=0)), "as they are": None},
        metrics=("columns",), classes=False, intercept=True, alphas=None, seed=0,
    )  # fmt: skip
    near = search._exact_trial(kernels.Gaussian(), "standardised", 0.0, 300)
    plain = search._exact_trial(kernels.Laplacian(), "as they are", 0.0, 300)
    assert [t.columns for t in metric_starts(search, plain)] == [plain.columns, near.columns]
    assert [t.columns for t in metric_starts(search, near)] == [near.columns]


def test_a_metric_of_classes_must_lower_the_wrong_ones():
    """Classes that are told apart without a metric: one that only sharpens the scores has a lower loss, and no use."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=100)
    X = rng.standard_normal((100, 6)) + 7.0 * y[:, None] * np.eye(6)[0]
    selection = KernelClassifier("gaussian", random_state=0).fit(X, y).selection_
    table = selection.candidates
    held = [(e, m) for e, m, n in zip(table["error"], table["metric"], table["width"], strict=True) if n < 100]
    assert selection.metric == "none" and min(e for e, m in held if m != "none") < 0.5 * held[0][0]


def test_a_metric_is_learned_from_a_few_dozen_rows():
    rng = np.random.default_rng(5)
    X, new = rng.standard_normal((26, 5)), rng.standard_normal((500, 5))
    model = KernelRidge(random_state=0).fit(X, np.sin(2 * X[:, 0]) + 0.2 * rng.standard_normal(26))
    assert model.selection_.metric == "columns" and model.coordinates_.matrix.argmax() == 0
    assert model.score(new, np.sin(2 * new[:, 0])) > 0.8  # without a metric about .3
