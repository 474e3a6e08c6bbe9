"""Gaussian process classification: against the exact process, against Monte Carlo, and by finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.gaussian_process import GaussianProcessClassifier as Peer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from bochner import kernels
from bochner.learn import GaussianProcessClassifier
from bochner.learn._linear.laplace import find_mode, hessian
from bochner.learn._linear.likelihoods import (
    LogisticLikelihood,
    SoftmaxLikelihood,
    expected_probabilities,
    likelihood_of,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((100, 2))
TWO = (X[:, 0] + 0.3 * RNG.standard_normal(100) > 0).astype(int)
THREE = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.3 * RNG.standard_normal(100), [-0.5, 0.5])]
NEW = RNG.standard_normal((9, 2))
LIKELIHOODS = [LogisticLikelihood(TWO), SoftmaxLikelihood(np.searchsorted(["a", "b", "c"], THREE), 3)]
STEP = 1e-6


@pytest.fixture(params=LIKELIHOODS, ids=["logistic", "softmax"])
def likelihood(request):
    return request.param


@pytest.fixture
def F(likelihood):
    return np.random.default_rng(2).standard_normal((100, likelihood.n_latents))


def bumps(shape):
    for k in range(shape[1]):
        bump = np.zeros(shape)
        bump[:, k] = STEP
        yield k, bump


def part_of(likelihood, rows):
    """The likelihood of some of its rows."""
    return likelihood_of(likelihood.labels[rows], max(likelihood.n_latents, 2))


def test_residual_is_the_gradient(likelihood, F):
    for n in (0, 57):
        one = part_of(likelihood, slice(n, n + 1))
        for k, bump in bumps((1, F.shape[1])):
            slope = (one.value(F[n : n + 1] + bump) - one.value(F[n : n + 1] - bump)) / (2 * STEP)
            assert likelihood.residual(F)[n, k] == pytest.approx(slope, abs=1e-7)


def test_curvature_is_minus_the_slope_of_the_residual(likelihood, F):
    for k, bump in bumps(F.shape):
        slope = (likelihood.residual(F + bump) - likelihood.residual(F - bump)) / (2 * STEP)
        np.testing.assert_allclose(likelihood.curvature(F)[:, :, k], -slope, atol=1e-8)


def test_slope_of_the_curvature(likelihood, F):
    root = np.random.default_rng(3).standard_normal((100, F.shape[1], F.shape[1]))
    C = root @ root.transpose(0, 2, 1)
    for k, bump in bumps(F.shape):
        gap = likelihood.curvature(F + bump) - likelihood.curvature(F - bump)
        slope = np.einsum("nij,nji->n", C, gap) / (2 * STEP)
        np.testing.assert_allclose(likelihood.curvature_slope(F, C)[:, k], slope, atol=1e-6)


def test_hessian_is_the_curvature_of_the_objective_at_the_mode(likelihood):
    D, k, a = 5, likelihood.n_latents, 2.0
    Phi = np.random.default_rng(4).standard_normal((100, D))

    def rows():
        return iter([(Phi[part], part_of(likelihood, part)) for part in (slice(0, 40), slice(40, 100))])

    def gradient(w):
        W = w.reshape(k, D).T
        return (Phi.T @ likelihood.residual(Phi @ W) - W / a).T.ravel()

    W = find_mode(rows, D, k, a).weights
    w = W.T.ravel()
    np.testing.assert_allclose(gradient(w), 0, atol=1e-5)
    expected = np.array([(gradient(w - STEP * e) - gradient(w + STEP * e)) / (2 * STEP) for e in np.eye(D * k)])
    np.testing.assert_allclose(hessian(rows, W, a), expected, atol=1e-6)


def test_probabilities_of_two_classes_tend_to_those_of_the_exact_process():
    # errors of independent draws fall as one over the root of the width: by four here, of which half is asked
    peer = Peer(ConstantKernel(2.0, "fixed") * RBF(1.0, "fixed"), optimizer=None).fit(X, TWO)
    options = {"kernel": kernels.Gaussian(1.0), "amplitude": 2.0, "optimize": False}
    errors = {}
    for width in (32, 512):
        fits = [GaussianProcessClassifier(n_components=width, random_state=k, **options).fit(X, TWO) for k in range(8)]
        gaps = [gp.predict_proba(NEW)[:, 1] - peer.predict_proba(NEW)[:, 1] for gp in fits]
        evidence = [gp.log_marginal_likelihood_value_ - peer.log_marginal_likelihood_value_ for gp in fits]
        errors[width] = np.sqrt([np.mean(np.square(gaps)), np.mean(np.square(evidence))])
    assert (errors[512] < errors[32] / 2).all()
    assert (errors[512] < [0.03, 1.0]).all()


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_probabilities_are_means_over_the_posterior(y):
    gp = GaussianProcessClassifier(n_components=32, standardize=False, random_state=0).fit(X, y)
    D, k = gp.weights_.shape
    draws = (gp.root_ @ np.random.default_rng(5).standard_normal((D * k, 20000))).reshape(k, D, -1)
    latents = np.einsum("nd,kds->snk", gp.features_.queries(NEW), gp.weights_.T[:, :, None] + draws)
    if k == 1:
        p = expit(latents[:, :, 0]).mean(axis=0)
        expected = np.stack([1 - p, p], axis=1)
    else:
        expected = softmax(latents, axis=2).mean(axis=0)
    # Monte Carlo errs by less than five standard errors, at most 5 / (2 sqrt(20000)); the average itself by 0.005
    np.testing.assert_allclose(gp.predict_proba(NEW), expected, atol=0.023)


def test_one_latent_averages_as_quadrature_does():
    mean, variance = np.array([[0.0], [1.0], [-3.0], [5.0]]), np.array([0.1, 2.0, 30.0, 400.0])
    z = np.linspace(-10, 10, 200001)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    expected = [np.trapezoid(expit(m + np.sqrt(v) * z) * density, z) for m, v in zip(mean[:, 0], variance, strict=True)]
    np.testing.assert_allclose(expected_probabilities(mean, variance[:, None, None])[:, 1], expected, atol=1e-3)


def test_huge_latents_do_not_overflow():
    p = expected_probabilities(np.array([[1e4, 0.0, -1e4]]), np.zeros((1, 3, 3)))
    np.testing.assert_allclose(p, [[1, 0, 0]], atol=1e-12)


def test_calibration_on_data_of_known_probability():
    # y is drawn with probability sigmoid(3 x): predictions in ten bins match the frequencies, by z-tests
    rng = np.random.default_rng(6)
    rows, new = rng.uniform(-1.5, 1.5, (2000, 1)), rng.uniform(-1.5, 1.5, (4000, 1))
    y, truth = rng.random(2000) < expit(3 * rows[:, 0]), expit(3 * new[:, 0])
    gp = GaussianProcessClassifier(n_components=64, optimize_rows=500, random_state=0).fit(rows, y)
    p = gp.predict_proba(new)[:, 1]
    assert np.abs(p - truth).mean() < 0.03
    assert np.abs(p - truth).max() < 0.12


def test_far_from_the_data_nothing_is_known():
    gp = GaussianProcessClassifier(gamma=1.0, n_components=512, optimize=False, random_state=0).fit(X, THREE)
    assert np.abs(gp.predict_proba(NEW).max(axis=1) - 1 / 3).max() > 0.2
    np.testing.assert_allclose(gp.predict_proba(NEW + 100), 1 / 3, atol=0.1)


def test_chunks_change_nothing(monkeypatch):
    from bochner.learn import _gaussian_process_classifier, _row_source

    options = {"n_components": 16, "optimize": False, "random_state": 0}
    whole = GaussianProcessClassifier(**options).fit(X, THREE)
    monkeypatch.setattr(_row_source, "_CHUNK_NUMBERS", 18 * 7)
    monkeypatch.setattr(_gaussian_process_classifier, "_KEPT_NUMBERS", 1)
    parts = GaussianProcessClassifier(**options).fit(X, THREE)
    np.testing.assert_allclose(parts.predict_proba(NEW), whole.predict_proba(NEW), rtol=1e-6)
    assert list(parts.classes_) == ["a", "b", "c"]


@pytest.mark.parametrize("n_jobs", [2])
def test_threads_change_no_bit(n_jobs):
    one = GaussianProcessClassifier(n_components=32, n_jobs=1, random_state=0).fit(X, THREE).predict_proba(NEW)
    other = GaussianProcessClassifier(n_components=32, n_jobs=n_jobs, random_state=0).fit(X, THREE).predict_proba(NEW)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n_classes", (2, 3))
def test_weights_are_repetitions(n_classes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = (X[:, 0] > 0) + (n_classes == 3) * (X[:, 1] > 0.5).astype(int)
    w = rng.integers(0, 3, 60)
    given = {"gamma": 0.5, "n_components": 20, "standardize": False, "optimize": ["amplitude"], "random_state": 0}
    weighted = GaussianProcessClassifier(**given).fit(X, y, sample_weight=w)
    repeated = GaussianProcessClassifier(**given).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert weighted.amplitude_ == pytest.approx(repeated.amplitude_, rel=1e-3)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)
    plain = GaussianProcessClassifier(**given).fit(X, y)
    assert np.abs(weighted.predict_proba(X) - plain.predict_proba(X)).max() > 0.01


def test_rows_that_repeat_leave_the_lengthscale_where_it_was():
    rng = np.random.default_rng(0)
    X, X_new = rng.standard_normal((200, 5)), rng.standard_normal((500, 5))
    y, y_new = (np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] > 0 for Z in (X, X_new))
    once = GaussianProcessClassifier(n_components=128, random_state=0).fit(X, y)
    many = GaussianProcessClassifier(n_components=128, random_state=0).fit(np.repeat(X, 4, axis=0), np.repeat(y, 4))
    # from a bandwidth of one the search ended at .03, where all new rows are alike
    assert many.kernel_.bandwidth == pytest.approx(once.kernel_.bandwidth, rel=0.2)
    assert many.score(X_new, y_new) > once.score(X_new, y_new) - 0.03
