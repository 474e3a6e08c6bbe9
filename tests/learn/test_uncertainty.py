"""Probabilities and prediction intervals from rows that were left out: exact, and true to their level."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import log_loss

from bochner.learn import KernelClassifier, KernelRidge

PLAIN = {"kernel": "gaussian", "metric": None, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * RNG.standard_normal(60)
TEST = RNG.standard_normal((8, 2))


def brute_bounds(fit, X, Y, w, rows, level):
    """Jackknife+ bounds of fits without each row."""
    moved, errors = [], []
    for i in range(len(X)):
        kept = np.arange(len(X)) != i
        model = fit(X[kept], Y[kept], None if w is None else w[kept])
        moved.append(model.predict(rows))
        errors.append(np.abs(Y[i] - model.predict(X[i : i + 1])[0]))
    moved, errors = np.array(moved), np.array(errors)
    rank = int(np.ceil(level * (len(X) + 1)))
    return np.sort(moved - errors[:, None], axis=0)[len(X) - rank], np.sort(moved + errors[:, None], axis=0)[rank - 1]


@pytest.mark.parametrize("weighted", (False, True))
@pytest.mark.parametrize("intercept", (False, True))
@pytest.mark.parametrize("width", (20, 200))
def test_intervals_are_those_of_fits_without_each_row(width, intercept, weighted):
    w = RNG.uniform(0.5, 2, 60) if weighted else None
    options = {
        "gamma": 0.3,
        "map": None,
        "n_components": width,
        "alpha": 0.1,
        "fit_intercept": intercept,
        "random_state": 0,
    }
    model = KernelRidge(**options).fit(X, Y, w)
    predicted, bounds = model.predict(TEST, interval=0.8)
    np.testing.assert_allclose(predicted, model.predict(TEST), rtol=1e-10)
    low, high = brute_bounds(lambda *rows: KernelRidge(**options).fit(*rows), X, Y, w, TEST, 0.8)
    np.testing.assert_allclose(bounds, np.column_stack([low, high]), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("repeated", (False, True))
def test_intervals_contain_their_share_of_new_targets(repeated):
    """Of 3 x 1500 targets, with the doubt of 3 x 300 rows: 5 standard errors are 0.05."""
    hits = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows, new = rng.standard_normal((300, 3)), rng.standard_normal((1500, 3))
        rows = np.repeat(rows[:150], 2, axis=0) if repeated else rows
        y, z = (np.sin(2 * Z[:, 0]) + Z[:, 1] + 0.3 * rng.standard_normal(len(Z)) for Z in (rows, new))
        _, bounds = KernelRidge(**PLAIN).fit(rows, y).predict(new, interval=0.9)
        hits.append((bounds[:, 0] <= z) & (z <= bounds[:, 1]))
    assert abs(np.mean(hits) - 0.9) < 0.05


def test_intervals_of_several_targets_and_of_few_rows():
    both = np.column_stack([Y, -2 * Y])
    model = KernelRidge(gamma=0.3, alpha=0.1, map=None, n_components=20, random_state=0).fit(X, both)
    predicted, bounds = model.predict(TEST, interval=0.9)
    assert predicted.shape == (8, 2) and bounds.shape == (8, 2, 2)
    np.testing.assert_allclose(bounds[:, 1], -2 * bounds[:, 0, ::-1], rtol=1e-6)
    few = KernelRidge(gamma=0.3, alpha=0.1, map=None, n_components=20, random_state=0).fit(X[:5], Y[:5])
    assert np.isinf(few.predict(TEST, interval=0.95)[1]).all()  # five rows cannot tell
    one = KernelRidge(random_state=0).fit(X[:1], Y[:1])
    np.testing.assert_array_equal(one.predict(TEST[:1], interval=0.9)[1], [[-np.inf, np.inf]])


def test_refusals():
    model = KernelRidge(gamma=0.3, alpha=0.1, map=None, n_components=20, random_state=0).fit(X, Y)
    for level in (0.0, 1.0, 90, "no"):
        with pytest.raises(ValueError, match=r"KernelRidge.predict: interval must be a number between 0 and 1"):
            model.predict(X, interval=level)
    with pytest.raises(ValueError, match=r"intervals need leave-one-out errors, which this fit does not keep"):
        model.compact().predict(X, interval=0.9)


@pytest.mark.parametrize("load", (load_wine, load_breast_cancer))
def test_probabilities_are_as_good_as_those_of_cross_validation(load):
    rows, labels = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(rows))
    train, test = order[: len(rows) // 2], order[len(rows) // 2 :]
    model = KernelClassifier(**PLAIN).fit(rows[train], labels[train])
    found = model.predict_proba(rows[test])
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[found.argmax(axis=1)], model.predict(rows[test]))
    other = CalibratedClassifierCV(KernelClassifier(**PLAIN), cv=3).fit(rows[train], labels[train])
    assert log_loss(labels[test], found) < log_loss(labels[test], other.predict_proba(rows[test]))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(rows), model.predict_proba(rows))
    np.testing.assert_array_equal(model.predict_proba(rows), model.compact().predict_proba(rows))


def test_probabilities_of_labels_and_streams():
    labels = np.column_stack([Y > 0, X[:, 1] > 0]).astype(int)
    given = {"gamma": 0.3, "alpha": 0.1, "map": None, "n_components": 20, "random_state": 0}
    found = KernelClassifier(**given).fit(X, labels).predict_proba(X)
    assert (
        found.shape == (60, 2) and ((found > 0.5) == (KernelClassifier(**given).fit(X, labels).predict(X) == 1)).all()
    )
    stream = (
        KernelClassifier(**given)
        .partial_fit(X[:40], labels[:40, 0], classes=[0, 1])
        .partial_fit(X[40:], labels[40:, 0])
    )
    assert log_loss(labels[:, 0], stream.predict_proba(X)) < 0.5


def test_intervals_are_wide_where_the_noise_is():
    """Noise that grows 20 times along a column; coverage in both halves: 5 standard errors of 500 rows are 0.09."""
    rng = np.random.default_rng(0)
    rows, new = rng.uniform(-1, 1, (500, 2)), rng.uniform(-1, 1, (2000, 2))
    y, z = (np.sin(2 * Z[:, 1]) + np.exp(1.5 * Z[:, 0]) * 0.2 * rng.standard_normal(len(Z)) for Z in (rows, new))
    model = KernelRidge(gamma=0.5, alpha=0.1, map=None, n_components=50, random_state=0).fit(rows, y)
    _, bounds = model.predict(new, interval=0.9)
    inside, width = (bounds[:, 0] <= z) & (z <= bounds[:, 1]), bounds[:, 1] - bounds[:, 0]
    for part in (new[:, 0] < 0, new[:, 0] > 0):
        assert abs(inside[part].mean() - 0.9) < 0.09
    calm, noisy = new[:, 0] < -0.5, new[:, 0] > 0.5
    assert 4 < width[noisy].mean() / width[calm].mean() < 12  # the noise itself: 7
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(new, interval=0.9)[1], bounds)


def test_sets_contain_their_share_of_new_classes():
    """Of 4000 rows, with the doubt of 600 left-out ones: 5 standard errors are 0.06."""
    rng = np.random.default_rng(0)
    rows, new = rng.standard_normal((600, 2)), rng.standard_normal((4000, 2))
    y, z = (1 * (Z[:, 0] + 0.7 * rng.standard_normal(len(Z)) > 0) + (Z[:, 1] > 0.5) for Z in (rows, new))
    model = KernelClassifier(gamma=0.5, alpha=0.1, map=None, n_components=50, random_state=0).fit(rows, y)
    for coverage in (0.85, 0.95):
        found = model.predict_set(new, coverage=coverage)
        assert found.shape == (4000, 3) and found.dtype == bool
        assert abs(found[np.arange(4000), z].mean() - coverage) < 0.06
        assert found[np.arange(4000), model.predict(new)].all()
    wide = model.predict_set(new, coverage=0.99)
    assert (wide >= found).all() and wide.sum() > found.sum()
    np.testing.assert_array_equal(model.compact().predict_set(new, coverage=0.99), wide)


def test_sets_are_refused_in_words():
    given = {"gamma": 0.3, "alpha": 0.1, "map": None, "n_components": 20, "random_state": 0}
    model = KernelClassifier(**given).fit(X, Y > 0)
    with pytest.raises(
        ValueError, match=r"KernelClassifier.predict_set: coverage must be a number between 0 and 1, got 90"
    ):
        model.predict_set(X, coverage=90)
    several = KernelClassifier(**given).fit(X, np.column_stack([Y > 0, X[:, 1] > 0]).astype(int))
    with pytest.raises(ValueError, match="but rows have several labels"):
        several.predict_set(X)
    with pytest.raises(ValueError, match="leaves no rows out"):
        KernelClassifier(gamma=0.3, n_components=20, method="nadaraya-watson").fit(X, Y > 0).predict_set(X)


def test_probabilities_on_dask_are_those_of_the_rows_that_chose_alpha():
    array = pytest.importorskip("dask.array")
    from bochner import distributed

    given = {"gamma": 0.3, "map": None, "n_components": 20, "random_state": 0}
    labels = (Y > 0).astype(int)
    model = distributed.KernelClassifier(**given).fit(array.from_array(X), array.from_array(labels))
    here = KernelClassifier(**given, alpha=model.alpha_).fit(X, labels)
    np.testing.assert_allclose(model.predict_proba(array.from_array(X)).compute(), here.predict_proba(X), atol=1e-6)
    assert model.predict_set(X, coverage=0.9).shape == (60, 2)
