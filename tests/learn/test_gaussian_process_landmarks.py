"""Gaussian processes on landmarks: exact where the landmarks are the data, and as uncertain as the prior far away."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from bochner import kernels, maps
from bochner.learn import GaussianProcess, GaussianProcessClassifier

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2))
Y = np.stack([np.sin(2 * X[:, 0]), X[:, 1]], axis=1) + 0.1 * RNG.standard_normal((40, 2))
NEW = 2 * RNG.standard_normal((6, 2))
FIXED = {"optimize": False, "noise": 0.2, "amplitude": 1.7, "random_state": 0}


def test_landmarks_at_all_rows_are_the_exact_process():
    kernel = ConstantKernel(1.7, "fixed") * RBF(0.8, "fixed") + WhiteKernel(0.2, "fixed")
    y = Y[:, 0] - Y[:, 0].mean()
    mean, covariance = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y).predict(NEW, return_cov=True)
    ours = GaussianProcess(kernels.Gaussian(0.8), map=maps.Landmarks(X), n_components=40, **FIXED).fit(X, y)
    found = ours.predict(NEW, return_cov=True, include_noise=True)
    np.testing.assert_allclose(found[0], mean, atol=1e-6)
    np.testing.assert_allclose(found[1], covariance, atol=1e-6)


def test_search_over_all_rows_as_landmarks_finds_the_exact_optimum():
    peer = GaussianProcessRegressor(ConstantKernel() * RBF([1.0, 1.0]) + WhiteKernel(), random_state=0)
    y = Y[:, 0] + np.cos(X[:, 1])
    y -= y.mean()
    exact = peer.fit(X, y).kernel_
    ours = GaussianProcess(map="landmarks", n_components=40, ard=True, gamma=0.5, random_state=0).fit(X, y)
    np.testing.assert_allclose(ours.kernel_.lengthscale, exact.k1.k2.length_scale, rtol=1e-2)
    np.testing.assert_allclose(ours.noise_, exact.k2.noise_level, rtol=1e-2)


def test_few_landmarks_keep_the_uncertainty_of_the_prior_far_away():
    gp = GaussianProcess(kernels.Gaussian(0.5), map="landmarks", n_components=10, **FIXED).fit(X, Y)
    far = np.array([[50.0, -50.0]])
    mean, std = gp.predict(far, return_std=True)
    np.testing.assert_allclose(mean[0], gp.scaling_.shift)
    np.testing.assert_allclose(std[0], np.sqrt(1.7))
    covariance = gp.predict(NEW, return_cov=True)[1]
    spread = gp.predict(NEW, return_std=True)[1]
    np.testing.assert_allclose(np.diagonal(covariance).T, spread**2, rtol=1e-9)


def test_probabilities_are_uncertain_far_away():
    labels = (X[:, 0] > 0).astype(int)
    gp = GaussianProcessClassifier(
        kernels.Gaussian(0.7), map="landmarks", n_components=10, optimize=False, amplitude=50.0, random_state=0
    ).fit(X, labels)
    sure = GaussianProcessClassifier(
        kernels.Gaussian(0.7), map=maps.Landmarks(X), n_components=40, optimize=False, amplitude=50.0, random_state=0
    ).fit(X, labels)
    grid = NEW / 2
    nearest = np.abs(gp.predict_proba(grid) - sure.predict_proba(grid)).max()
    assert nearest < 0.35
    np.testing.assert_allclose(gp.predict_proba([[60.0, 60.0]]), 0.5, atol=1e-9)


@pytest.fixture(scope="module")
def draws():
    gp = GaussianProcess(kernels.Matern(1.5), map="landmarks", n_components=8, **FIXED).fit(X, Y[:, 0])
    return gp, gp.sample_y(NEW, 800, random_state=1)


def test_functions_have_the_posterior_mean(draws):
    gp, samples = draws
    mean, std = gp.predict(NEW, return_std=True)
    assert np.abs((samples.mean(axis=1) - mean) / (std / np.sqrt(800))).max() < 5


def test_functions_have_the_posterior_covariance(draws):
    gp, samples = draws
    mean, covariance = gp.predict(NEW, return_cov=True)
    gaps = samples - mean[:, None]
    products = gaps[:, None] * gaps[None]
    z = (products.mean(axis=2) - covariance) / (products.std(axis=2) / np.sqrt(800))
    assert np.abs(z).max() < 5


def test_functions_are_the_same_anywhere(draws):
    gp, _ = draws
    functions = gp.sample_functions(3, random_state=2)
    np.testing.assert_allclose(functions(NEW)[4:], functions(NEW[4:]))


@pytest.mark.parametrize("kernel", ["softmax", "arc-cosine-1", "laplacian"])
def test_every_kernel_has_functions(kernel):
    gp = GaussianProcess(kernel, map="landmarks", n_components=10, optimize=False, random_state=0).fit(X, Y)
    assert np.isfinite(gp.sample_y(NEW, 2)).all()


def test_lengthscales_move_no_landmark():
    given = GaussianProcess(kernels.Gaussian((2.0, 3.0)), map="landmarks", n_components=10, ard=True, random_state=0)
    start = given.set_params(optimize=False).fit(X, Y).features_
    found = given.set_params(optimize=True).fit(X, Y).features_
    assert found.spec.kernel != start.spec.kernel
    for phi in (start, found):
        points = phi.spec.map.points * np.asarray(phi.spec.kernel.lengthscale)
        np.testing.assert_allclose(points, start.spec.map.points * [2.0, 3.0])
    assert found.spec.map.trace_error is None


def test_copies_predict_the_same():
    gp = GaussianProcess(map="landmarks", n_components=10, ard=True, random_state=0).fit(X, Y)
    copied = pickle.loads(pickle.dumps(gp))
    for ours, theirs in zip(copied.predict(NEW, return_std=True), gp.predict(NEW, return_std=True), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(copied.sample_y(NEW, 2), gp.sample_y(NEW, 2))
