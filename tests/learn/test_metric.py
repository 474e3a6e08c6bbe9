"""Learned and given metrics: gradients, the directions that matter, and safety where none does."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from bochner import Approximation, kernels
from bochner.learn import KernelClassifier, KernelRidge
from bochner.learn._feature_parameters import FeatureParameters
from bochner.learn._metric import _Iterate, _Task, given_root, learned_metric
from bochner.learn._row_source import Chunk

RNG = np.random.default_rng(0)
X = RNG.standard_normal((500, 8))
DIRECTION = np.array([1.0, -1.0, 0, 0, 0, 0, 0, 0]) / np.sqrt(2)
Y = np.sin(3 * X @ DIRECTION) + 0.1 * RNG.standard_normal(500)
GIVEN = {"map": None, "n_components": 200, "random_state": 0}


def test_gradients_are_those_of_the_prediction():
    phi, B = Approximation(kernels.Gaussian(1.7), n_projections=20).draw(8, rng=0), RNG.standard_normal((40, 2))
    found = _Task.gradients("", phi, X[:3], B).reshape(2, 3, 8)
    for j, step in enumerate(1e-5 * np.eye(8)):
        expected = (phi.queries(X[:3] + step) - phi.queries(X[:3] - step)) @ B / 2e-5
        np.testing.assert_allclose(found[:, :, j].T, expected, atol=1e-7)


def test_the_direction_that_matters_is_found():
    model = KernelRidge(metric="learned", **GIVEN).fit(X[:400], Y[:400])
    M = model.coordinates_.matrix @ model.coordinates_.matrix.T
    assert abs(np.linalg.eigh(M)[1][:, -1] @ DIRECTION) > 0.98
    plain = KernelRidge(**GIVEN).fit(X[:400], Y[:400])
    errors = [np.mean((m.predict(X[400:]) - Y[400:]) ** 2) for m in (model, plain)]
    assert errors[0] < 0.3 * errors[1]
    assert "learned metric, held-out error" in model.selection_.reason and len(model.selection_.metric_errors) > 1
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.parametrize("given", ({}, {"gamma": 0.1, "alpha": 0.01}, {"gamma": 0.1}), ids=str)
def test_a_bandwidth_for_each_column(given):
    y = np.sin(3 * X[:, 2]) > 0.1
    model = KernelClassifier(ard=True, **GIVEN, **given).fit(X[:400], y[:400])
    assert model.coordinates_.matrix is None and model.coordinates_.scale.argmax() == 2
    assert model.score(X[400:], y[400:]) > KernelClassifier(**GIVEN, **given).fit(X[:400], y[:400]).score(
        X[400:], y[400:]
    )


def test_noise_is_not_worth_a_metric():
    noise = RNG.standard_normal(500)
    model = KernelRidge(metric="learned", **GIVEN).fit(X, noise)
    assert model.coordinates_.matrix is None and "no metric" in model.selection_.reason


def test_a_saving_within_its_doubt_is_not_worth_a_metric():
    before = np.r_[np.ones(30), 40.0]  # an outlier among held-out rows
    lucky, better = np.r_[np.ones(30), 4.0], np.r_[np.full(30, 0.5), 40.0]
    iterates = [_Iterate(np.ones(1), 0.0, losses.mean(), losses, np.ones((1, 1))) for losses in (before, lucky, better)]
    assert not iterates[1].clearly_below(iterates[0]) and iterates[2].clearly_below(iterates[0])


def test_directions_are_found_where_most_columns_do_not_matter():
    rows = np.random.default_rng(8).standard_normal((800, 30))
    target = np.sin(2 * rows[:, 0]) + rows[:, 1]
    model = KernelRidge(metric="learned", map=None, n_components=128, random_state=0).fit(rows[:600], target[:600])
    assert model.score(rows[600:], target[600:]) > 0.9


def test_the_first_part_of_a_stream_and_sparse_rows():
    rows, y = sparse.csr_matrix(X), np.sin(2 * X[:, 2])
    stream = KernelRidge(ard=True, gamma=0.1, **GIVEN).partial_fit(rows[:400], y[:400])
    scale = stream.coordinates_.scale
    stream.partial_fit(rows[400:], y[400:])
    assert stream.coordinates_.scale is scale and sparse.issparse(stream.coordinates_(rows))


def test_a_given_metric_is_a_change_of_coordinates():
    A = RNG.standard_normal((8, 8))
    options = GIVEN | {"gamma": 0.1, "alpha": 0.1}
    for metric in (A @ A.T, np.arange(8.0)):
        root = given_root("", metric, 8)
        np.testing.assert_allclose(root**2 if metric.ndim == 1 else root @ root, metric)
        moved = X * root if metric.ndim == 1 else X @ root
        for method in ("ridge", "nadaraya-watson"):
            ours = KernelRidge(metric=metric, method=method, **options).fit(X, Y).predict(X)
            np.testing.assert_allclose(
                ours, KernelRidge(method=method, **options).fit(moved, Y).predict(moved), rtol=1e-6
            )


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"metric": -np.ones(8)}, r"KernelRidge: metric must be None, 'learned', non-negative numbers \(8,\), or"),
        ({"metric": -np.eye(8)}, r"KernelRidge: metric must be .*positive semidefinite"),
        ({"metric": np.ones(3)}, r"KernelRidge: metric must be "),
        ({"metric": np.ones(8), "ard": True}, r"KernelRidge: ard=True learns the scale of each column"),
        ({"metric": "learned", "method": "nadaraya-watson"}, r"a metric is learned with method='ridge'"),
        ({"metric": "learned", "kernel": kernels.ArcCosine(1)}, r"metric='learned' needs features with a gradient"),
    ],
    ids=str,
)
def test_refusals(parameters, message):
    with pytest.raises(ValueError, match=message):
        KernelRidge(**GIVEN, **parameters).fit(X[:50], Y[:50])


def test_a_matrix_of_many_columns_is_refused():
    sample = Chunk(np.zeros((8, 3000)), np.zeros((8, 1)), None)
    options = {"bandwidth": True, "diagonal": False, "intercept": True, "alike": False, "seed": 0}
    with pytest.raises(ValueError, match=r"x: metric='learned' has a matrix of 3000 x 3000 numbers; .* pass ard=True"):
        learned_metric("x", FeatureParameters(), None, sample, **options)
