"""Gaussian process regression: exact for its own kernel matrix, and the kernel's process as features grow."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from bochner import kernels
from bochner.learn import GaussianProcess

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = np.stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]], axis=1) + 0.1 * RNG.standard_normal((60, 2)) + 3
NEW = RNG.standard_normal((7, 3))
FIXED = {
    "kernel": kernels.Gaussian(1.5),
    "map": None,
    "optimize": False,
    "noise": 0.2,
    "amplitude": 1.7,
    "random_state": 0,
}


class Exact:
    """The textbook formulas with the kernel matrix of the features."""

    def __init__(self, gp, X, y, noise, amplitude):
        self.gp, self.amplitude, self.mean = gp, amplitude, y.mean() if gp.fit_intercept else 0.0
        self.Phi = gp.features_.queries(X)
        self.K = amplitude * self.Phi @ self.Phi.T + noise * np.eye(len(X))
        self.y = y - self.mean

    def predict(self, X):
        Phi = self.gp.features_.queries(X)
        k = self.amplitude * Phi @ self.Phi.T
        covariance = self.amplitude * Phi @ Phi.T - k @ np.linalg.solve(self.K, k.T)
        return self.mean + k @ np.linalg.solve(self.K, self.y), covariance

    def log_marginal_likelihood(self):
        fit = self.y @ np.linalg.solve(self.K, self.y)
        return -0.5 * fit - 0.5 * np.linalg.slogdet(2 * np.pi * self.K)[1]


@pytest.mark.parametrize("intercept", [True, False], ids=["mean of the targets", "zero mean"])
@pytest.mark.parametrize("width", [16, 256], ids=["fewer features than rows", "more features than rows"])
class TestAgainstTheKernelMatrixOfTheFeatures:
    @pytest.fixture
    def gp(self, width, intercept):
        return GaussianProcess(n_components=width, fit_intercept=intercept, **FIXED).fit(X, Y[:, 0])

    @pytest.fixture
    def exact(self, gp):
        return Exact(gp, X, Y[:, 0], 0.2, 1.7)

    def test_mean(self, gp, exact):
        np.testing.assert_allclose(gp.predict(NEW), exact.predict(NEW)[0], rtol=1e-9)

    def test_standard_deviation(self, gp, exact):
        std = gp.predict(NEW, return_std=True)[1]
        np.testing.assert_allclose(std**2, np.diag(exact.predict(NEW)[1]), rtol=1e-8)

    def test_covariance(self, gp, exact):
        np.testing.assert_allclose(gp.predict(NEW, return_cov=True)[1], exact.predict(NEW)[1], atol=1e-10)

    def test_log_marginal_likelihood(self, gp, exact):
        np.testing.assert_allclose(gp.log_marginal_likelihood_value_, exact.log_marginal_likelihood(), rtol=1e-10)

    def test_log_marginal_likelihood_of_other_hyperparameters(self, gp):
        value = gp.log_marginal_likelihood(np.log([0.5, 0.3]))
        np.testing.assert_allclose(value, Exact(gp, X, Y[:, 0], 0.5, 0.3).log_marginal_likelihood(), rtol=1e-10)

    def test_log_marginal_likelihood_of_rows_is_that_of_statistics(self, gp):
        theta = np.log([0.5, 0.3])
        np.testing.assert_allclose(
            gp.log_marginal_likelihood(theta, X, Y[:, 0]), gp.log_marginal_likelihood(theta), rtol=1e-10
        )


def test_tends_to_the_process_of_the_kernel():
    # errors of independent draws fall as one over the root of the width: by four here, of which half is asked
    y = Y[:, 0] - 3
    kernel = ConstantKernel(1.7, "fixed") * RBF(1.5, "fixed") + WhiteKernel(0.2, "fixed")
    mean, std = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y).predict(NEW, return_std=True)
    errors = {}
    for width in (32, 512):
        gaps = []
        for state in range(10):
            gp = GaussianProcess(n_components=width, fit_intercept=False, **{**FIXED, "random_state": state}).fit(X, y)
            ours, our_std = gp.predict(NEW, return_std=True)
            gaps.append([ours - mean, np.sqrt(our_std**2 + 0.2) - std])  # the white kernel is in the peer's spread
        errors[width] = np.sqrt(np.mean(np.square(gaps), axis=(0, 2)))
    assert (errors[512] < errors[32] / 2).all()
    assert (errors[512] < [0.15, 0.03]).all()


def test_lengthscale_of_the_marginal_likelihood_is_that_of_the_exact_process():
    y = Y[:, 0] - 3
    peer = GaussianProcessRegressor(ConstantKernel() * RBF() + WhiteKernel(), random_state=0)
    exact = peer.fit(X, y).kernel_.k1.k2.length_scale
    ours = GaussianProcess(map=None, standardize=False, n_components=512, fit_intercept=False, random_state=0).fit(X, y)
    ours = ours.kernel_.lengthscale
    np.testing.assert_allclose(ours, exact, rtol=0.15)


def test_samples_have_the_posterior_mean():
    gp = GaussianProcess(n_components=64, **FIXED).fit(X, Y[:, 0])
    samples = gp.sample_y(NEW, 4000, random_state=1)
    mean, std = gp.predict(NEW, return_std=True)
    assert samples.shape == (7, 4000)
    z = (samples.mean(axis=1) - mean) / (std / np.sqrt(4000))
    assert np.abs(z).max() < 5


def test_samples_have_the_posterior_covariance():
    gp = GaussianProcess(n_components=64, **FIXED).fit(X, Y[:, 0])
    mean, covariance = gp.predict(NEW, return_cov=True)
    gaps = gp.sample_y(NEW, 4000, random_state=2) - mean[:, None]
    products = gaps[:, None] * gaps[None]
    z = (products.mean(axis=2) - covariance) / (products.std(axis=2) / np.sqrt(4000))
    assert np.abs(z).max() < 5


def test_one_state_is_one_function():
    gp = GaussianProcess(n_components=64, **FIXED).fit(X, Y)
    whole = gp.sample_y(NEW, 3, random_state=5)
    assert whole.shape == (7, 2, 3)
    np.testing.assert_allclose(gp.sample_y(NEW[2:4], 3, random_state=5), whole[2:4], rtol=1e-10)


def test_functions_are_those_of_sample_y():
    gp = GaussianProcess(n_components=64, **FIXED).fit(X, Y)
    functions = gp.sample_functions(3, random_state=5)
    assert functions.shape == (2, 3) and repr(functions) == "<3 functions of 3 columns>"
    np.testing.assert_array_equal(functions(NEW), gp.sample_y(NEW, 3, random_state=5))
    np.testing.assert_allclose(np.concatenate([functions(NEW[i : i + 1]) for i in range(7)]), functions(NEW))


@pytest.mark.parametrize("noisy", [False, True], ids=["of the function", "of observations"])
def test_intervals_cover_functions_of_the_prior(noisy):
    # 400 functions of the prior itself as targets; the share of points covered, over functions, at |z| < 5
    gp = GaussianProcess(n_components=32, fit_intercept=False, **FIXED).fit(X, X[:, 0])
    rng, (a, noise) = np.random.default_rng(3), (gp.amplitude_, gp.noise_)
    weights = np.sqrt(a) * rng.standard_normal((32, 400))
    here, there = (gp.features_.queries(rows) @ weights for rows in (X, NEW))
    gp.fit(X, here + np.sqrt(noise) * rng.standard_normal(here.shape))
    mean, std = gp.predict(NEW, return_std=True, include_noise=noisy)
    truth = there + noisy * np.sqrt(noise) * rng.standard_normal(there.shape)
    shares = (np.abs(truth - mean) < 1.959964 * std).mean(axis=0)
    assert abs(shares.mean() - 0.95) < 5 * shares.std() / 20


@pytest.mark.parametrize("optimize", [False, ("noise", "amplitude"), True], ids=str)
@pytest.mark.parametrize("width", [16, 128], ids=["by features", "by rows"])
def test_weights_are_repetitions(optimize, width):
    weights = np.random.default_rng(5).integers(0, 4, len(X))
    options = {"n_components": width, "gamma": 0.3, "optimize": optimize, "normalize_y": True, "random_state": 0}
    weighted = GaussianProcess(**options).fit(X, Y, weights)
    repeated = GaussianProcess(**options).fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
    tolerance = 1e-4 if optimize else 1e-9  # equal targets of equal rows have no noise: it goes to its floor
    for ours, theirs in zip(
        weighted.predict(NEW, return_std=True), repeated.predict(NEW, return_std=True), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance)
    np.testing.assert_allclose(weighted.noise_, repeated.noise_, rtol=tolerance)
    value = weighted.log_marginal_likelihood_value_
    np.testing.assert_allclose(value, repeated.log_marginal_likelihood_value_, rtol=tolerance)
    theta = np.log([weighted.noise_, weighted.amplitude_])
    np.testing.assert_allclose(weighted.log_marginal_likelihood(theta, X, Y, weights), value, rtol=tolerance)


@pytest.mark.parametrize("width", [16, 128], ids=["by features", "by rows"])
def test_weights_that_are_no_counts_are_inverse_variances_at_any_scale(width):
    weights = np.random.default_rng(5).uniform(0.5, 2, len(X))
    y = np.sin(X[:, 0]) + np.random.default_rng(6).standard_normal(len(X)) / np.sqrt(weights)
    options = {"n_components": width, "gamma": 0.3, "optimize": ("noise", "amplitude"), "random_state": 0}
    one, many = (GaussianProcess(**options).fit(X, y, c * weights) for c in (1.0, 1000.1))
    np.testing.assert_allclose(many.noise_, 1000.1 * one.noise_, rtol=1e-3)
    np.testing.assert_allclose(many.predict(NEW), one.predict(NEW), rtol=1e-3, atol=1e-4)


def test_weights_of_pieces():
    weights = np.random.default_rng(6).uniform(0.1, 3, len(X))
    whole = GaussianProcess(n_components=32, **FIXED).fit(X, Y, weights)
    parts = GaussianProcess(n_components=32, **FIXED)
    for rows in (slice(0, 20), slice(20, 60)):
        parts.partial_fit(X[rows], Y[rows], weights[rows])
    np.testing.assert_allclose(parts.predict(NEW), whole.predict(NEW), rtol=1e-9)


def test_a_weight_divides_the_noise():
    weights = np.random.default_rng(6).uniform(0.1, 3, len(X))
    gp = GaussianProcess(n_components=32, **FIXED).fit(X, Y[:, 0], weights)
    Phi, new, mean = gp.features_.queries(X), gp.features_.queries(NEW), np.average(Y[:, 0], weights=weights)
    K, k = 1.7 * Phi @ Phi.T + np.diag(0.2 / weights), 1.7 * new @ Phi.T
    np.testing.assert_allclose(gp.predict(NEW), mean + k @ np.linalg.solve(K, Y[:, 0] - mean), rtol=1e-9)


def test_the_mean_of_the_targets_moves_nothing_else():
    options = {"n_components": 32, "random_state": 0}
    gp, moved = (GaussianProcess(**options).fit(X, y) for y in (Y[:, 0], Y[:, 0] + 1000))
    np.testing.assert_allclose(moved.predict(NEW) - 1000, gp.predict(NEW), rtol=1e-5)
    np.testing.assert_allclose(moved.noise_, gp.noise_, rtol=1e-5)


@pytest.mark.parametrize("optimize", [False, ("noise", "amplitude")], ids=str)
@pytest.mark.parametrize("normalize_y", [False, True], ids=["raw", "normalised"])
def test_pieces_equal_the_whole(optimize, normalize_y):
    options = {"n_components": 32, "gamma": 0.3, "optimize": optimize, "normalize_y": normalize_y, "random_state": 0}
    whole = GaussianProcess(**options).fit(X, Y)
    parts = GaussianProcess(**options)
    for rows in (slice(0, 9), slice(9, 40), slice(40, 60)):
        parts.partial_fit(X[rows], Y[rows])
    np.testing.assert_allclose(parts.predict(NEW), whole.predict(NEW), rtol=1e-6)
    np.testing.assert_allclose(
        parts.predict(NEW, return_std=True)[1], whole.predict(NEW, return_std=True)[1], rtol=1e-6
    )
    np.testing.assert_allclose(parts.log_marginal_likelihood_value_, whole.log_marginal_likelihood_value_, rtol=1e-9)


def test_targets_are_fitted_apart_where_nothing_is_optimised():
    both = GaussianProcess(n_components=32, **FIXED).fit(X, Y)
    mean, std = both.predict(NEW, return_std=True)
    for t in range(2):
        alone = GaussianProcess(n_components=32, **FIXED).fit(X, Y[:, t])
        np.testing.assert_allclose(mean[:, t], alone.predict(NEW), rtol=1e-9)
        np.testing.assert_allclose(std[:, t], alone.predict(NEW, return_std=True)[1], rtol=1e-9)


def test_normalised_targets_carry_their_units():
    options = {"n_components": 32, "normalize_y": True, "optimize": False, "random_state": 0}
    mean, std = GaussianProcess(**options).fit(X, Y[:, 0]).predict(NEW, return_std=True)
    scaled_mean, scaled_std = GaussianProcess(**options).fit(X, 10 * Y[:, 0] - 7).predict(NEW, return_std=True)
    np.testing.assert_allclose(scaled_mean, 10 * mean - 7, rtol=1e-9)
    np.testing.assert_allclose(scaled_std, 10 * std, rtol=1e-9)


@pytest.mark.parametrize("normalize_y", [False, True], ids=["raw", "normalised"])
@pytest.mark.parametrize("optimize", [False, True], ids=["fixed", "optimised"])
def test_a_constant_target_keeps_its_unit(normalize_y, optimize):
    options = {"n_components": 8, "normalize_y": normalize_y, "optimize": optimize, "random_state": 0}
    fitted = GaussianProcess(**options).fit(X, np.full(len(X), 0.1))
    assert fitted.scaling_.scale == 1.0
    mean, std = fitted.predict(X, return_std=True)
    np.testing.assert_allclose(mean, 0.1)
    assert np.isfinite(std).all()


def test_normalised_targets_without_an_intercept_have_mean_square_one():
    options = {"n_components": 32, "optimize": False, "fit_intercept": False, "random_state": 0}
    size = np.sqrt((Y[:, 0] ** 2).mean())
    scaled = GaussianProcess(**options).fit(X, Y[:, 0] / size).predict(NEW)
    np.testing.assert_allclose(GaussianProcess(normalize_y=True, **options).fit(X, Y[:, 0]).predict(NEW), size * scaled)


def test_sparse_rows():
    from scipy import sparse

    rows = sparse.random(50, 20, 0.2, format="csr", random_state=0)
    y = np.asarray(rows.sum(axis=1)).ravel() + 0.1 * np.random.default_rng(0).standard_normal(
        50
    )  # else rounding decides
    options = {"n_components": 32, "random_state": 0}
    dense = GaussianProcess(**options).fit(rows.toarray(), y).predict(rows.toarray())
    np.testing.assert_allclose(GaussianProcess(**options).fit(rows, y).predict(rows), dense, rtol=1e-6)


def test_a_noise_below_rounding_still_has_a_posterior():
    rows = np.repeat(X[:4], 50, axis=0)  # rank four, with large sums
    with pytest.warns(
        LinAlgWarning, match=r"GaussianProcess: noise=1e-16 is below the rounding .* leave 60 directions"
    ):
        gp = GaussianProcess(n_components=64, optimize=False, noise=1e-16, random_state=0).fit(rows, rows[:, 0])
    mean, std = gp.predict(X[:4], return_std=True)
    np.testing.assert_allclose(mean, X[:4, 0], atol=1e-5)
    assert np.isfinite(std).all() and np.isfinite(gp.log_marginal_likelihood_value_)


def test_features_that_are_nearly_dependent_and_no_noise_give_the_shortest_fit():
    rows = RNG.standard_normal((400, 3))
    y = np.sin(rows[:, 0] / 20)
    options = {"n_components": 128, "optimize": False, "random_state": 0}
    with pytest.warns(LinAlgWarning, match="noise=1e-300 is below the rounding of the features"):
        gp = GaussianProcess(kernels.Gaussian(50.0), noise=1e-300, **options).fit(rows, y)
    mean, std = gp.predict(rows, return_std=True)
    np.testing.assert_allclose(mean, y, atol=1e-5)
    assert (std < 1e-5).all()


def test_noise_is_in_the_units_of_the_targets():
    y = 1000 + 50 * (np.sin(X[:, 0]) + 0.3 * RNG.standard_normal(len(X)))
    gp = GaussianProcess(n_components=64, normalize_y=True, random_state=0).fit(X, y)
    function, observed = (gp.predict(NEW, return_std=True, include_noise=noise)[1] for noise in (False, True))
    np.testing.assert_allclose(observed**2 - function**2, gp.noise_ * y.var(), rtol=1e-8)
    covariance = gp.predict(NEW, return_cov=True, include_noise=True)[1]
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), observed, rtol=1e-8)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_change_no_bit(n_jobs):
    options = {"n_components": 64, "random_state": 0}
    one = GaussianProcess(n_jobs=1, **options).fit(X, Y).predict(NEW, return_std=True)
    other = GaussianProcess(n_jobs=n_jobs, **options).fit(X, Y).predict(NEW, return_std=True)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def test_single_precision_loses_nothing():
    # long lengthscales leave small eigenvalues, which sums in float32 would drown
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((20000, 3)).astype(np.float32)
    y = np.sin(rows[:, 0]) + 0.1 * rng.standard_normal(20000)
    gp = GaussianProcess(kernels.Gaussian(8.0), optimize=("noise", "amplitude"), n_components=64, random_state=0)
    noise, mean = gp.fit(rows, y).noise_, gp.predict(rows[:5])
    assert noise == gp.fit(rows.astype(np.float64), y).noise_
    np.testing.assert_array_equal(mean, gp.predict(rows[:5].astype(np.float64)))
    assert 0.009 < noise < 0.011
