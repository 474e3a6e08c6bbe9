"""Maximising the marginal likelihood: its gradients, and what it finds on data drawn from the prior."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import kernels
from bochner.learn import GaussianProcess, GaussianProcessClassifier

RNG = np.random.default_rng(1)
X = RNG.standard_normal((80, 3))
Y = np.stack([np.sin(2 * X[:, 0]), X[:, 1]], axis=1) + 0.2 * RNG.standard_normal((80, 2))
STEP = 3e-5
MAPS = [
    {},
    {"kernel": kernels.Matern(1.5), "projection": "fast-orthogonal"},
    {"kernel": kernels.Laplacian()},
    {"kernel": kernels.Gaussian((1.0, 2.0, 0.5)), "map": "positive"},
    {"kernel": kernels.Matern(2.5), "map": "landmarks"},
    {"kernel": kernels.Laplacian(), "map": "landmarks"},
]


def differences(f, theta):
    """Of the fourth order: rows of the Laplacian kernel are long, and the likelihood is wavy."""

    def slope(e):
        one, two = ((f(theta + h * e) - f(theta - h * e)) / 12 for h in (STEP, 2 * STEP))
        return (8 * one - two) / STEP

    return np.array([slope(e) for e in np.eye(len(theta))])


@pytest.mark.parametrize("options", MAPS, ids=str)
@pytest.mark.parametrize("width", [32, 33, 128], ids=["by features", "by features of odd width", "by rows"])
@pytest.mark.parametrize("theta", [[0.3, 2.0], [0.3, 2.0, 0.8], [0.3, 2.0, 0.8, 1.2, 1.5]], ids=len)
def test_gradient_of_regression(options, width, theta):
    gp = GaussianProcess(n_components=width, optimize=False, random_state=0, **options).fit(X, Y)
    gradient = gp.log_marginal_likelihood(np.log(theta), X, Y, eval_gradient=True)[1]
    expected = differences(lambda logs: gp.log_marginal_likelihood(logs, X, Y), np.log(theta))
    np.testing.assert_allclose(gradient, expected, atol=1e-6 * np.abs(expected).max() + 1e-6)


def test_gradient_from_statistics():
    gp = GaussianProcess(n_components=32, optimize=False, random_state=0).fit(X, Y)
    theta = np.log([0.3, 2.0])
    gradient = gp.log_marginal_likelihood(theta, eval_gradient=True)[1]
    np.testing.assert_allclose(gradient, differences(gp.log_marginal_likelihood, theta), rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("width", [32, 128], ids=["by features", "by rows"])
@pytest.mark.parametrize("options", [MAPS[0], MAPS[3], MAPS[4]], ids=str)
def test_gradient_of_classification(n_classes, width, options):
    y = np.digitize(Y[:, 0], [0.0] if n_classes == 2 else [-0.4, 0.4])
    gp = GaussianProcessClassifier(n_components=width, optimize=False, random_state=0, **options).fit(X, y)
    theta = np.log([2.0, 0.8, 1.2, 1.5])
    gradient = gp.log_marginal_likelihood(theta, X, y, eval_gradient=True)[1]
    expected = differences(lambda logs: gp.log_marginal_likelihood(logs, X, y), theta)
    np.testing.assert_allclose(gradient, expected, atol=1e-6 * np.abs(expected).max() + 1e-6)


def prior_draw(n, d, lengthscale, noise, amplitude, seed):
    """Rows, and targets drawn from the exact process of the Gaussian kernel."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-2, 2, (n, d))
    K = amplitude * kernels.Gaussian(lengthscale)(rows) + noise * np.eye(n)
    return rows, np.linalg.cholesky(K) @ rng.standard_normal(n)


def test_hyperparameters_of_the_prior_are_recovered(seed):
    # 20 draws of 150 rows; a mean of logarithms over draws, against its standard error, at |z| < 5, and that error is small
    logs = []
    for k in range(20):
        rows, y = prior_draw(150, 1, 0.5, 0.05, 2.0, 1000 * seed + k)
        gp = GaussianProcess(map=None, standardize=False, n_components=128, random_state=k).fit(rows, y)
        logs.append(np.log([gp.kernel_.lengthscale / 0.5, gp.noise_ / 0.05]))
    error = np.std(logs, axis=0) / np.sqrt(20)
    assert (error < 0.15).all()
    assert (np.abs(np.mean(logs, axis=0)) < 5 * error).all()


def test_noise_and_amplitude_alone_reach_the_maximum():
    gp = GaussianProcess(n_components=32, gamma=0.5, optimize=("noise", "amplitude"), random_state=0).fit(X, Y)
    gradient = gp.log_marginal_likelihood(eval_gradient=True)[1]
    assert np.abs(gradient).max() < 1e-3


@pytest.mark.parametrize("name, fixed", [("noise", "amplitude"), ("amplitude", "noise")])
def test_one_alone_leaves_the_other(name, fixed):
    gp = GaussianProcess(n_components=32, optimize=name, noise=0.3, amplitude=0.7, random_state=0).fit(X, Y)
    gradient = gp.log_marginal_likelihood(eval_gradient=True)[1]
    assert abs(gradient[0 if name == "noise" else 1]) < 1e-3
    assert getattr(gp, f"{fixed}_") == getattr(gp, fixed)


def test_lengthscale_alone_leaves_noise_and_amplitude():
    gp = GaussianProcess(
        map=None, standardize=False, n_components=64, optimize="lengthscale", noise=0.3, random_state=0
    ).fit(X, Y)
    assert (gp.noise_, gp.amplitude_) == (0.3, 1.0)
    theta = np.log([0.3, 1.0, gp.kernel_.lengthscale])
    assert abs(gp.log_marginal_likelihood(theta, X, Y, eval_gradient=True)[1][2]) < 0.01


def test_the_irrelevant_column_is_found():
    rows = np.random.default_rng(3).standard_normal((200, 3))
    y = np.sin(2 * rows[:, 0]) + rows[:, 2]
    gp = GaussianProcess(map=None, standardize=False, n_components=128, ard=True, random_state=0).fit(rows, y)
    relevant, irrelevant, linear = gp.kernel_.lengthscale
    assert irrelevant > 20 * relevant and irrelevant > 3 * linear


def test_the_irrelevant_column_is_found_by_classification():
    rows = np.random.default_rng(3).standard_normal((300, 2))
    y = rows[:, 0] + 0.1 * np.random.default_rng(4).standard_normal(300) > 0
    gp = GaussianProcessClassifier(n_components=64, ard=True, random_state=0).fit(rows, y)
    assert gp.kernel_.lengthscale[1] > 5 * gp.kernel_.lengthscale[0]


def test_restarts_never_lose():
    rows, y = prior_draw(120, 2, 0.4, 0.01, 1.0, 7)
    options = {"kernel": kernels.Gaussian(20.0), "n_components": 128, "random_state": 0}
    once = GaussianProcess(**options).fit(rows, y).log_marginal_likelihood_value_
    more = GaussianProcess(n_restarts=3, **options).fit(rows, y).log_marginal_likelihood_value_
    assert more >= once - 1e-6


def test_a_softmax_scale_is_optimised():
    gp = GaussianProcess("softmax", map="positive", n_components=64, random_state=0).fit(0.3 * X, Y[:, 1])
    fixed = GaussianProcess("softmax", map="positive", n_components=64, random_state=0, optimize=("noise", "amplitude"))
    assert gp.log_marginal_likelihood_value_ > fixed.fit(0.3 * X, Y[:, 1]).log_marginal_likelihood_value_


def test_a_kernel_without_a_lengthscale_optimises_the_rest():
    gp = GaussianProcess("arc-cosine-1", n_components=64, random_state=0).fit(X, Y[:, 0])
    assert np.abs(gp.log_marginal_likelihood(eval_gradient=True)[1]).max() < 1e-3


def test_a_subset_of_rows_finds_nearly_the_same():
    rows, y = prior_draw(600, 1, 0.5, 0.05, 1.0, 5)
    whole = (
        GaussianProcess(map=None, standardize=False, n_components=64, random_state=0).fit(rows, y).kernel_.lengthscale
    )
    some = GaussianProcess(map=None, standardize=False, n_components=64, optimize_rows=300, random_state=0).fit(rows, y)
    some = some.kernel_.lengthscale
    assert some != whole and abs(np.log(some / whole)) < 0.3
