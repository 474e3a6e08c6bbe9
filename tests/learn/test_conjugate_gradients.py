"""Conjugate gradients on wide features find what the normal equations find, in passes over the rows."""

from __future__ import annotations

import pickle
import warnings
from functools import partialmethod

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from bochner import Approximation, kernels
from bochner.learn import KernelClassifier, KernelRidge
from bochner.learn._linear import conjugate_gradients, nystrom, ridge, tiles
from bochner.learn._linear.conjugate_gradients import direct_cost, iterated_ridge
from bochner.learn._linear.nystrom import Preconditioner, WeightedRows, building_cost, sample_size, sampled
from bochner.learn._row_source import ArrayRows

RNG = np.random.default_rng(0)
N, D = 900, 300
X = RNG.standard_normal((N, 4))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * RNG.standard_normal((N, 2)) + [4.0, -30.0]
W = RNG.integers(0, 4, N) * RNG.uniform(0.1, 2.0, N)


def model(**parameters):
    return KernelRidge(
        **({"gamma": 0.2, "map": None, "n_components": D, "random_state": 0, "solver": "cg"} | parameters)
    )


def difference(ours, direct, Z=X):
    """Of predictions, relative to their size."""
    a, b = ours.predict(Z), direct.predict(Z)
    return np.linalg.norm(a - b) / np.linalg.norm(b - b.mean(axis=0))


@pytest.fixture
def small_sample(monkeypatch):
    """A sample that does not hold all rows, so that there is something left to iterate."""
    monkeypatch.setattr(nystrom, "MOST_ROWS", 120)


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("intercept", (True, False))
@pytest.mark.parametrize("weights", (None, W), ids=("plain", "weighted"))
@pytest.mark.parametrize("alpha", (0.3, [1e-2, 5.0]), ids=("one", "each"))
def test_the_solution_is_that_of_the_normal_equations(dtype, intercept, weights, alpha, small_sample):
    Z, T = X.astype(dtype), (Y if intercept else Y - Y.mean(axis=0)).astype(dtype)
    options = {"alpha": alpha, "fit_intercept": intercept}
    ours = model(**options).fit(Z, T, weights)
    direct = model(**options, solver="primal").fit(X, T.astype(float), weights)
    assert difference(ours, direct) < (2e-5 if dtype is np.float64 else 1e-4)
    loss = 2e-5 if dtype is np.float64 else 1e-3  # the rounding of the features themselves
    assert np.linalg.norm(ours.coef_ - direct.coef_) < loss * np.linalg.norm(direct.coef_)
    np.testing.assert_allclose(ours.intercept_, direct.intercept_, atol=1e-3)
    np.testing.assert_array_equal(ours.alpha_, alpha)
    assert ours.predict(Z).dtype == dtype


@pytest.mark.parametrize("alpha", (1.0, 0.2))
def test_coefficients_are_known_where_products_are_in_float32(alpha, small_sample):
    """To 1e-4, against float64 products of the same features, though the fit itself is known earlier."""
    Z = X.astype(np.float32)
    ours = model(alpha=alpha).fit(Z, Y)
    F = ours.features_.queries(Z).astype(np.float64)
    F -= F.mean(axis=0)
    exact = np.linalg.solve(F.T @ F + alpha * np.eye(D), F.T @ (Y - Y.mean(axis=0)))
    error = np.linalg.norm(ours.coef_.T - exact, axis=0) / np.linalg.norm(exact, axis=0)
    assert error.max() < 1e-4, error


@pytest.mark.parametrize("n_components", (64, 1200))
def test_fewer_or_more_features_than_rows(n_components, small_sample):
    ours, direct = (model(n_components=n_components, alpha=0.1, solver=s).fit(X, Y) for s in ("cg", "primal"))
    assert difference(ours, direct) < 1e-5


def test_features_that_are_nearly_dependent(small_sample):
    options = {"kernel": kernels.Gaussian(30.0), "gamma": None, "alpha": 1e-4}  # eigenvalues over fifteen decades
    ours, direct = (model(**options, solver=s).fit(X, Y) for s in ("cg", "primal"))
    assert difference(ours, direct) < 1e-4


def test_float32_rows_with_a_small_strength(small_sample):
    options = {"gamma": 0.05, "alpha": 1e-5}
    ours, direct = model(**options).fit(X.astype(np.float32), Y), model(**options, solver="primal").fit(X, Y)
    assert difference(ours, direct) < 1e-3  # the rounding of the features themselves


def test_a_constant_target_and_a_standardised_row(small_sample):
    T = np.column_stack([np.full(N, 7.0), Y[:, 0]])
    ours = model(standardize=True, alpha=0.1).fit(X * [1.0, 100.0, 1.0, 1e-3], T)
    direct = model(standardize=True, alpha=0.1, solver="primal").fit(X * [1.0, 100.0, 1.0, 1e-3], T)
    np.testing.assert_allclose(ours.predict(X)[:, 0], 7.0)
    assert difference(ours, direct, X * [1.0, 100.0, 1.0, 1e-3]) < 1e-5


@pytest.mark.parametrize("n", (1, 2, 7, 40))
def test_few_rows_and_equal_rows(n):
    options = {"gamma": 0.5, "n_components": 3, "alpha": 0.1}
    for Z in (X[:n], np.ones((n, 4))):
        ours, direct = (model(**options, solver=s).fit(Z, Y[:n]).predict(X) for s in ("cg", "primal"))
        np.testing.assert_allclose(ours, direct, atol=1e-4)


def test_classes_and_sparse_rows(small_sample):
    Z, classes = np.where(np.abs(X) < 1, 0, X), np.digitize(X[:, 0], [-0.5, 0.5])
    options = {"gamma": 0.2, "alpha": 0.1, "n_components": D, "class_weight": "balanced", "random_state": 0}
    ours = KernelClassifier(solver="cg", **options).fit(sparse.csr_matrix(Z), classes)
    direct = KernelClassifier(solver="primal", **options).fit(Z, classes)
    np.testing.assert_allclose(ours.decision_function(Z), direct.decision_function(Z), atol=1e-5)


def test_the_number_of_threads_does_not_change_a_bit(small_sample, monkeypatch):
    monkeypatch.setattr(tiles, "_TILE_ROWS", 16)
    one, three = (model(alpha=0.1, n_jobs=k).fit(X, Y).coef_ for k in (1, 3))
    np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("criterion", ("gcv", "loo"))
def test_a_criterion_chooses_on_a_sample(criterion, monkeypatch):
    monkeypatch.setattr(ridge, "_SAMPLE_ROWS", 400)
    options, Z = {"alpha": criterion, "n_components": 100}, ({"X": X, "y": Y, "sample_weight": W})
    ours = model(**options).fit(**Z)
    assert 1 / 30 < ours.alpha_ / model(**options, solver="primal").fit(**Z).alpha_ < 30
    assert difference(ours, model(alpha=ours.alpha_, n_components=100, solver="primal").fit(**Z)) < 1e-4


def test_a_fit_that_does_not_converge_says_so(small_sample, monkeypatch):
    monkeypatch.setattr(conjugate_gradients, "MAX_PASSES", 10)
    message = (
        r"KernelRidge: conjugate gradients stopped after 10 passes over the rows at a relative error of about .*, above "
        r"1e-06: alpha=1e-08 is small for these features\. Raise alpha, or use solver='primal'\."
    )
    with pytest.warns(ConvergenceWarning, match=message):
        fitted = model(alpha=1e-8).fit(X, Y)
    assert np.isfinite(fitted.predict(X)).all()


def test_a_strength_within_rounding_ends(small_sample, monkeypatch):
    monkeypatch.setattr(conjugate_gradients, "MAX_PASSES", 50)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = model(kernel=kernels.Gaussian(1e3), gamma=None, alpha=1e-300).fit(X, Y)
    assert np.isfinite(fitted.predict(X)).all()


def test_refusals():
    with pytest.raises(
        ValueError, match=r"KernelRidge: alpha must be positive for solver='cg', got 0\.0; use 'primal'"
    ):
        model(alpha=0.0).fit(X, Y)


def test_no_rows_are_added_to_a_fit_by_passes():
    assert not hasattr(model(), "partial_fit")
    with pytest.raises(AttributeError, match="KernelRidge"):
        model().partial_fit(X, Y)
    fitted = model().fit(X, Y).set_params(solver="auto")
    with pytest.raises(ValueError, match=r"KernelRidge: a fit by conjugate gradients keeps no statistics .*'primal'"):
        fitted.partial_fit(X, Y)
    with pytest.raises(AttributeError, match=r"KernelRidge: a fit by conjugate gradients keeps no statistics"):
        fitted.statistics_  # noqa: B018


def test_a_saved_fit_predicts():
    fitted = model().fit(X, Y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))


def test_the_progress_bar_shows_the_error(small_sample, capfd, monkeypatch):
    from tqdm import tqdm

    from bochner import _progress

    monkeypatch.setattr(_progress, "SECONDS_BEFORE_SHOWN", 0.0)
    monkeypatch.setattr(tqdm, "__init__", partialmethod(tqdm.__init__, mininterval=0.0))
    model(alpha=0.01, verbose=1).fit(X, Y)
    shown = capfd.readouterr().err
    assert "conjugate gradients" in shown and "error" in shown


def features(lengthscale=1.0):
    return Approximation(kernels.Gaussian(lengthscale), n_projections=D // 2).draw(4, rng=0)


def test_the_cheaper_one_is_chosen(monkeypatch):
    """With the costs of a wide problem, and with those of this one, which is narrow."""
    direct = model(solver="auto", alpha=0.1).fit(X, Y)
    assert direct.statistics_.n_rows == N
    monkeypatch.setattr(ridge, "direct_cost", lambda n, width: 1e15)
    assert model(solver="auto", alpha=0.1).fit(X, Y).model_.data is None
    for parameters in ({"alpha": "gcv"}, {"alpha": 0.0}, {"map": "landmarks"}):
        assert model(solver="auto", **parameters).fit(X, Y).model_.data is not None


def test_too_many_passes_are_too_expensive(small_sample, monkeypatch):
    rows, phi, each = ArrayRows("test", X, Y), features(), (50 + 4 + 8) * N * D
    once = building_cost(120, D) + 16 * each
    assert iterated_ridge(phi, rows, 1e-6, at_most=0.9 * once) is None  # before anything is computed
    assert iterated_ridge(phi, rows, 1e-6, at_most=2 * once) is None  # by the spectrum of the sample
    assert iterated_ridge(phi, rows, 10.0, at_most=2 * once) is not None
    monkeypatch.setattr(conjugate_gradients, "_PASSES_PER_ROOT", 0.0)
    assert iterated_ridge(phi, rows, 1e-6, at_most=2 * once) is None  # when so many passes were made


def test_costs_of_the_goal():
    """200000 rows of 64 columns at width 32768: forty passes are less than a quarter of the normal equations."""
    n, width, each = 200_000, 32_768, 50 + 64 + 4
    assert 40 * each * n * width + building_cost(sample_size(n, 64, width, each), width) < direct_cost(n, width) / 4


def test_the_preconditioner_is_the_inverse_of_its_matrix():
    phi, alpha = features(), np.array([0.1, 50.0])
    M = Preconditioner.of(phi, WeightedRows(X[:120], 7 * W[:120]), alpha, intercept=True)
    F = M.roots[:, None] * (phi.queries(X[:120]) - M.centre)
    for k, mu in enumerate(M.shift):
        R = RNG.standard_normal((D, 1))
        Z = M.solve(R, np.array([k]))
        np.testing.assert_allclose(F.T @ (F @ Z) + mu * Z, R, atol=1e-9)
    values = np.linalg.eigvalsh(F @ F.T)
    assert 0.7 * 60 < (values / (values + M.shift[0])).sum() < 1.1 * 60 and M.shift[1] <= 50.0 < 4 * M.shift[1]


def test_a_sample_whose_features_are_not_held(monkeypatch):
    sample, R = WeightedRows(X[:200], np.full(200, 4.5)), RNG.standard_normal((D, 2))
    held = Preconditioner.of(features(), sample, np.full(2, 0.1), intercept=True)
    monkeypatch.setattr(nystrom, "_HELD_NUMBERS", 0)
    monkeypatch.setattr(nystrom, "_BLOCK_NUMBERS", 64 * D)
    other = Preconditioner.of(features(), sample, np.full(2, 0.1), intercept=True)
    assert other.tiles.held is None and held.tiles.held is not None
    np.testing.assert_allclose(other.solve(R, np.arange(2)), held.solve(R, np.arange(2)), rtol=1e-9, atol=1e-10)


def test_leverage_is_estimated():
    """By the mean of sixteen squares, whose relative standard deviation is a third."""
    phi = features()
    M = Preconditioner.of(phi, WeightedRows(X[:200], np.full(200, 4.5)), np.array([0.1]), intercept=True)
    F = phi.queries(X[200:]) - M.centre
    scores = W[200:] * (F * M.solve(F.T, np.zeros(len(F), int)).T).sum(axis=1)
    ratio = M.leverage(X[200:], W[200:], M.probes())[W[200:] > 0] / (scores / (1 + scores))[W[200:] > 0]
    assert 0.8 < ratio.mean() < 1.2 and ratio.std() < 0.5


def test_rows_far_from_all_others_are_drawn(small_sample):
    Z = X.copy()
    Z[:10] *= 20  # each has a direction of its own
    drawn = sampled(features(4.0), ArrayRows("test", Z, Y), np.array([1.0]), 120, weight=N, intercept=True)
    far = (np.abs(drawn.tiles.X) > 8).any(axis=1)
    assert far.sum() >= 3 and 90 < len(far) < 150  # a uniform sample has one of them
    assert drawn.roots[far].max() < drawn.roots[~far].max() and 0.7 * N < (drawn.roots**2).sum() < 1.4 * N


def test_all_rows_as_a_sample_need_one_or_two_passes():
    found = iterated_ridge(features(), ArrayRows("test", X[:60], Y[:60]), 0.1)
    assert found.steps <= 2
