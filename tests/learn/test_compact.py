"""Compact machines: they predict the same to the last bit, are small, and refuse more rows in words."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from bochner.learn import GaussianProcess, GaussianProcessClassifier, KernelClassifier, KernelRidge

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 3))
Y = X[:, 0] + 0.1 * RNG.standard_normal(80)
LABELS = np.where(Y > 0, "up", "down")
SMALL = {"n_components": 16, "random_state": 0}
MACHINES = {
    "ridge": (KernelRidge(alpha="gcv", **SMALL), Y),
    "dual ridge": (KernelRidge(n_components=100, random_state=0), Y),
    "landmarks": (KernelRidge(map="landmarks", **SMALL), np.stack([Y, -Y], axis=1)),
    "average": (KernelRidge(method="nadaraya-watson", **SMALL), Y),
    "classifier": (KernelClassifier(**SMALL), LABELS),
    "process": (GaussianProcess(optimize=False, **SMALL), Y),
    "classifying process": (GaussianProcessClassifier(optimize=False, **SMALL), LABELS),
}


@pytest.fixture(params=MACHINES)
def fitted(request):
    estimator, y = copy.deepcopy(MACHINES[request.param])
    return estimator.fit(X, y)


def results(estimator):
    names = ("predict", "decision_function", "predict_proba")
    found = [getattr(estimator, name)(X) for name in names if hasattr(estimator, name)]
    return found + (list(estimator.predict(X, return_std=True)) if isinstance(estimator, GaussianProcess) else [])


def test_predictions_stay_to_the_last_bit(fitted):
    before = results(fitted)
    assert fitted.compact() is fitted
    for estimator in (fitted, pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted).compact()):
        for ours, theirs in zip(results(estimator), before, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_files_of_skops(fitted):
    sio = pytest.importorskip("skops.io")
    data = sio.dumps(fitted.compact())
    loaded = sio.loads(data, trusted=sio.get_untrusted_types(data=data))
    for ours, theirs in zip(results(loaded), results(fitted), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["ridge", "dual ridge", "classifier", "process"])
def test_more_rows_are_refused(name):
    estimator, y = copy.deepcopy(MACHINES[name])
    estimator.fit(X, y).compact()
    before = estimator.predict(X)
    with pytest.raises(ValueError, match=rf"{type(estimator).__name__}: .*statistics,? to which rows could be added"):
        estimator.partial_fit(X, y)
    np.testing.assert_array_equal(estimator.predict(X), before)
    assert not hasattr(estimator, "statistics_")
    np.testing.assert_array_equal(estimator.fit(X, y).predict(X), before)
    assert hasattr(estimator, "statistics_")


def test_an_average_is_its_statistics():
    estimator, y = copy.deepcopy(MACHINES["average"])
    assert estimator.fit(X, y).compact().partial_fit(X, y).predict(X).shape == (80,)


def test_rows_in_parts_are_solved_first():
    parts = (
        KernelRidge("gaussian", gamma=0.1, map=None, **SMALL).partial_fit(X[:40], Y[:40]).partial_fit(X[40:], Y[40:])
    )
    whole = copy.deepcopy(parts).predict(X)
    np.testing.assert_array_equal(parts.compact().predict(X), whole)


def test_a_wide_ridge_is_small():
    rows = RNG.standard_normal((2100, 11))
    model = KernelRidge(gamma=0.1, map=None, n_components=2048, alpha=1.0, random_state=0).fit(rows, rows[:, 0])
    assert len(pickle.dumps(model)) > 2**24
    assert len(pickle.dumps(model.compact())) < 250_000
    assert model.coef_.shape == (2048,) and model.alpha_ == 1.0


@pytest.mark.parametrize("dtype, bytes_each", [(np.float32, 5.4), (np.float64, 10.8)])
def test_landmarks_are_saved_in_the_precision_of_the_rows(dtype, bytes_each):
    rows = RNG.standard_normal((600, 40)).astype(dtype)
    model = KernelRidge(gamma=0.02, map="landmarks", n_components=400, alpha=1.0, random_state=0).fit(rows, rows[:, 0])
    before, data = model.predict(rows), pickle.dumps(model.compact())
    assert len(data) < 400 * (40 * bytes_each + 8) + 8000  # landmarks, coefficients, and the plan around them
    np.testing.assert_array_equal(pickle.loads(data).predict(rows), before)


def test_a_process_without_spread_keeps_the_mean_alone():
    gp = GaussianProcess(n_components=256, optimize=False, random_state=0).fit(X, Y)
    mean, value = gp.predict(X), gp.log_marginal_likelihood()
    assert 2**19 < len(pickle.dumps(gp.compact())) < 2**20
    assert len(pickle.dumps(gp.compact(std=False))) < 40_000
    copied = pickle.loads(pickle.dumps(gp))
    np.testing.assert_array_equal(copied.predict(X), mean)
    assert copied.log_marginal_likelihood() == value
    for ask in (lambda: copied.predict(X, return_std=True), lambda: copied.sample_functions()):
        with pytest.raises(ValueError, match=r"compact\(std=False\) has dropped the covariance of the weights"):
            ask()
    with pytest.raises(ValueError, match=r"GaussianProcess: .*compact\(\) drops them"):
        copied.log_marginal_likelihood([0.0, 0.0])


def test_only_fitted_machines():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError, match="This KernelRidge instance is not fitted yet"):
        KernelRidge().compact()
