"""Gaussian processes by conjugate gradients: the mean of the direct solver, and its covariance in law."""

from __future__ import annotations

import pickle

import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from bochner import distributed, kernels
from bochner.learn import GaussianProcess, _gaussian_regression
from bochner.learn._linear import conjugate_gradients

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 3))
Y = np.stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]], axis=1) + 0.1 * RNG.standard_normal((300, 2)) + 5
NEW = RNG.standard_normal((7, 3))
WEIGHTS = RNG.integers(0, 4, 300).astype(float)
FIXED = {"kernel": kernels.Gaussian(1.5), "noise": 0.05, "amplitude": 1.7, "n_components": 200, "random_state": 0}


def pair(weights=None, **options):
    options = {**FIXED, "optimize": False, **options}
    return [GaussianProcess(solver=solver, **options).fit(X, Y, weights) for solver in ("direct", "cg")]


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("options", [{}, {"normalize_y": True}], ids=str)
def test_mean(weights, options):
    direct, iterated = pair(weights, **options)
    np.testing.assert_allclose(iterated.predict(NEW), direct.predict(NEW), atol=1e-4)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_variance_is_that_of_64_functions(weights):
    # 64 times the ratio is chi-squared of 64 degrees of freedom, at |z| < 5
    direct, iterated = pair(weights)
    variance, estimate = (gp.predict(NEW, return_std=True)[1][:, 0] ** 2 for gp in (direct, iterated))
    assert (np.abs(estimate / variance - 1) < 5 * np.sqrt(2 / 64)).all()


def test_covariance_over_many_fits():
    rows, y, expected, found = X[:60], Y[:60, 0], None, []
    options = {**FIXED, "optimize": False, "n_components": 40}
    direct = GaussianProcess(**options).fit(rows, y)
    expected = direct.predict(NEW[:3], return_cov=True)[1]
    for state in range(15):
        gp = GaussianProcess(solver="cg", **options).fit(rows, y)
        gp._single_target, rng = True, np.random.default_rng(state)
        gp._iterated(direct.features_, gp._rows(rows, y), rng)
        found.append(gp.predict(NEW[:3], return_cov=True)[1])
    z = (np.mean(found, axis=0) - expected) / (np.std(found, axis=0) / np.sqrt(15))
    assert np.abs(z).max() < 6  # Student's law of 14 degrees of freedom


def test_landmarks_are_solved_directly():
    with pytest.raises(ValueError, match="landmarks are narrow, use"):
        pair(map="landmarks", n_components=50)


def test_hyperparameters_of_a_sample_that_is_all_rows():
    direct, iterated = pair(optimize=True, ard=True)
    np.testing.assert_allclose(iterated.kernel_.lengthscale, direct.kernel_.lengthscale)
    np.testing.assert_allclose(iterated.noise_, direct.noise_, rtol=1e-6)
    np.testing.assert_allclose(
        iterated.log_marginal_likelihood_value_, direct.log_marginal_likelihood_value_, rtol=1e-6
    )


def test_wide_features_are_searched_on_a_narrow_draw(monkeypatch):
    options = {"map": None, "standardize": False, "n_components": 200, "random_state": 0}
    wide = GaussianProcess(**options).fit(X, Y)
    monkeypatch.setattr(_gaussian_regression, "_SEARCHED", 100)
    narrow = GaussianProcess(**options).fit(X, Y)
    assert narrow.features_.n_features_out == 200
    assert narrow.kernel_ != wide.kernel_
    np.testing.assert_allclose(narrow.kernel_.lengthscale, wide.kernel_.lengthscale, rtol=0.3)


def test_sparse_rows_and_copies():
    rows = sparse.csr_array(X)
    gp = GaussianProcess(solver="cg", optimize=False, **FIXED).fit(rows, Y)
    np.testing.assert_allclose(gp.predict(rows), pair()[0].predict(X), atol=1e-4)
    copied = pickle.loads(pickle.dumps(gp))
    np.testing.assert_array_equal(copied.predict(rows, return_std=True)[1], gp.predict(rows, return_std=True)[1])
    assert copied.sample_y(NEW, 3).shape == (7, 2, 3)


def test_what_it_cannot_do():
    gp = GaussianProcess(solver="cg", optimize=False, **FIXED)
    with pytest.raises(ValueError, match=r"solver='cg' needs all rows again, .*use solver='direct'"):
        gp.partial_fit(X, Y)
    gp.fit(X, Y)
    assert not hasattr(gp, "statistics_")
    with pytest.raises(ValueError, match="GaussianProcess: a fit by conjugate gradients keeps no statistics"):
        gp.log_marginal_likelihood([0.0, 0.0])
    with pytest.raises(ValueError, match="GaussianProcess: solver must be one of 'direct', 'cg', got 'lu'"):
        GaussianProcess(solver="lu").fit(X, Y)
    rows = da.from_array(X, chunks=(100, 3))
    with pytest.raises(ValueError, match="GaussianProcess: solver='cg' needs all rows in one place"):
        distributed.GaussianProcess(solver="cg", optimize=False, **FIXED).fit(rows, Y)


def test_no_convergence(monkeypatch):
    monkeypatch.setattr(conjugate_gradients, "MAX_PASSES", 2)
    monkeypatch.setattr(conjugate_gradients, "sample_size", lambda *arguments: 20)
    with pytest.warns(ConvergenceWarning, match=r"GaussianProcess: conjugate gradients stopped .* Raise noise, lower"):
        GaussianProcess(solver="cg", optimize=False, **FIXED).fit(X, Y)
