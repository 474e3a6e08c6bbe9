"""The automatic mode of Gaussian processes: exact gradients, the kernel that fits, and intervals that cover."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from bochner import kernels, maps
from bochner.learn import GaussianProcess, GaussianProcessClassifier, _gaussian_regression
from bochner.learn._linear.conditional import best_ratio
from bochner.learn._linear.evidence import Hyperparameters
from bochner.learn._process_choice import KernelEvidence, choose_process

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = np.sin(2 * X[:, :1]) + 0.1 * RNG.standard_normal((60, 1))
FREE = Hyperparameters(None, None)


@pytest.mark.parametrize("kernel", [kernels.Gaussian(), kernels.Matern(1.5), kernels.Matern(2.5), kernels.Laplacian()])
@pytest.mark.parametrize("n_scales", [1, 3])
@pytest.mark.parametrize("weights", [None, RNG.uniform(0.5, 2, 60)], ids=["plain", "weighted"])
def test_gradient_is_that_of_differences(kernel, n_scales, weights):
    evidence = KernelEvidence(kernel, X, Y, weights)
    theta = np.concatenate([np.log(1.3) + 0.1 * np.arange(n_scales), np.log([0.05, 1.5])])
    steps = 1e-5 * np.eye(len(theta))
    numeric = [(evidence(theta + step)[0] - evidence(theta - step)[0]) / 2e-5 for step in steps]
    np.testing.assert_allclose(evidence(theta)[1], numeric, rtol=1e-6, atol=1e-4)


def test_value_is_the_density_of_the_targets():
    noise, amplitude, scale = 0.3, 1.7, 0.8
    K = amplitude * kernels.Matern(1.5, scale)(X) + noise * np.eye(60)
    expected = -0.5 * (Y.T @ np.linalg.solve(K, Y)).item() - 0.5 * np.linalg.slogdet(2 * np.pi * K)[1]
    found = KernelEvidence(kernels.Matern(1.5), X, Y, None)(np.log([scale, noise, amplitude]))[0]
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", ["gaussian", "laplacian"])
def test_the_kernel_of_the_prior_is_found(name):
    # 300 rows tell a smooth process from a rough one by hundreds of nats
    unit = {"gaussian": kernels.Gaussian(), "laplacian": kernels.Laplacian()}[name]
    rows = RNG.uniform(-3, 3, (300, 2))
    y = np.linalg.cholesky(unit(rows) + 1e-4 * np.eye(300)) @ RNG.standard_normal((300, 1))
    candidates = [kernels.Gaussian(), kernels.Matern(1.5), kernels.Laplacian()]
    best = choose_process(candidates, rows, y, None, ard="auto", given=FREE, rng=np.random.default_rng(0))[0]
    assert type(best.kernel) is type(unit)


def test_rapid_changes_are_found():
    x = RNG.uniform(0, 1, (2000, 1))
    y = np.sin(100 * x[:, 0]) + 0.1 * RNG.standard_normal(2000)
    new = np.linspace(0, 1, 300)[:, None]
    gp = GaussianProcess(optimize_rows=400, n_components=300, random_state=0).fit(x, y)
    assert np.mean((gp.predict(new) - np.sin(100 * new[:, 0])) ** 2) < 0.01


def test_units_of_columns_do_not_matter():
    rows = RNG.standard_normal((150, 3))
    y, units = np.sin(2 * rows[:, 0]) + rows[:, 1], np.array([1e3, 1.0, 1e-3])
    one, other = (GaussianProcess(random_state=0).fit(rows * u, y).predict(rows[:20] * u) for u in (1.0, units))
    np.testing.assert_allclose(other, one, atol=1e-5)


@pytest.mark.parametrize("wild", [(0, slice(None)), (0, 1)], ids=["row", "entry"])
def test_one_wild_row_does_not_decide(wild):
    rng = np.random.default_rng(0)
    rows, new = rng.standard_normal((150, 2)), rng.standard_normal((300, 2))
    y = np.sin(2 * rows[:, 0]) + rows[:, 1] + 0.1 * rng.standard_normal(150)
    rows[wild] = 1e6
    gp = GaussianProcess(random_state=0).fit(rows, y)
    assert gp.score(new, np.sin(2 * new[:, 0]) + new[:, 1]) > 0.95


def test_the_classifier_has_no_units_either():
    rows = RNG.standard_normal((150, 2))
    y, units = rows[:, 0] > 0, np.array([1e4, 1.0])
    one, other = (
        GaussianProcessClassifier(random_state=0).fit(rows * u, y).predict_proba(rows[:9] * u) for u in (1, units)
    )
    np.testing.assert_allclose(other, one, atol=1e-4)


def test_few_rows_are_all_landmarks():
    gp = GaussianProcess(random_state=0).fit(X, Y[:, 0])
    assert gp.features_.n_features_out == 60
    assert gp.candidates_[0]["kernel"] == repr(gp.kernel_)


def test_what_is_told_is_not_searched():
    gp = GaussianProcess(kernels.Gaussian(2.0), map=None, n_components=16, optimize=False, random_state=0).fit(
        X, Y[:, 0]
    )
    assert gp.coordinates_ is None and gp.candidates_ == [] and gp.kernel_ == kernels.Gaussian(2.0)


@pytest.mark.parametrize(("scale", "wide"), [(0.1, True), (3.0, False)])
def test_more_landmarks_where_few_leave_out_much(scale, wide, monkeypatch):
    for name, value in (("EXACT_ROWS", 100), ("_WIDTH", 32), ("_MULTIPLICATIONS", 600 * 256**2)):
        monkeypatch.setattr(_gaussian_regression, name, value)
    rows = np.random.default_rng(3).uniform(-1, 1, (600, 2))
    y = np.sin(rows[:, 0] / scale) + np.cos(rows[:, 1] / scale)
    gp = GaussianProcess(optimize_rows=150, random_state=0).fit(rows, y)
    assert gp.features_.n_features_out == (256 if wide else 32)


class TestLandmarksThatLeaveOut:
    """A process with far fewer landmarks than it has degrees of freedom."""

    rows = np.random.default_rng(1).uniform(-3, 3, (2000, 2))
    target = np.linalg.cholesky(kernels.Gaussian(0.35)(rows) + 0.01 * np.eye(2000)) @ np.random.default_rng(
        2
    ).standard_normal(2000)
    options: ClassVar = {"kernel": kernels.Gaussian(0.35), "map": "landmarks", "n_components": 60, "random_state": 0}

    def test_intervals_cover_what_they_say(self):
        train, test = slice(0, 1000), slice(1000, 2000)
        gp = GaussianProcess(optimize=("noise", "amplitude"), **self.options).fit(self.rows[train], self.target[train])
        mean, std = gp.predict(self.rows[test], return_std=True, include_noise=True)
        covered = np.mean(np.abs(self.target[test] - mean) < 1.96 * std)
        assert 0.90 < covered < 0.985  # taking what landmarks leave out for noise as well covers 1.00

    def test_value_is_the_density_of_the_targets(self):
        rows, y = self.rows[:200], self.target[:200]
        gp = GaussianProcess(optimize=("noise", "amplitude"), fit_intercept=False, **self.options).fit(rows, y)
        Phi = gp.features_.queries(rows)
        left = 1 - np.einsum("nk,nk->n", Phi, Phi)
        C = gp.amplitude_ * (Phi @ Phi.T + np.diag(left)) + gp.noise_ * np.eye(200)
        expected = -0.5 * y @ np.linalg.solve(C, y) - 0.5 * np.linalg.slogdet(2 * np.pi * C)[1]
        assert gp.log_marginal_likelihood_value_ == pytest.approx(expected, rel=1e-6)

    def test_pieces_equal_the_whole(self):
        whole = GaussianProcess(optimize=False, noise=0.05, **self.options).fit(self.rows, self.target)
        parts = GaussianProcess(
            optimize=False,
            noise=0.05,
            **(self.options | {"map": maps.Landmarks(whole.features_.spec.map.points * 0.35)}),
        )
        for part in (slice(0, 900), slice(900, 2000)):
            parts.partial_fit(self.rows[part], self.target[part])
        np.testing.assert_allclose(parts.predict(self.rows[:9]), whole.predict(self.rows[:9]), atol=1e-4)

    def test_the_ratio_maximises_the_density(self):
        rows, y = self.rows[:200], self.target[:200, None]
        gp = GaussianProcess(optimize=False, **self.options).fit(rows, y)
        phi = gp.features_
        Phi = phi.queries(rows)
        left = 1 - np.einsum("nk,nk->n", Phi, Phi)

        def profile(ratio):
            C = Phi @ Phi.T + np.diag(left + ratio)
            a = (y.T @ np.linalg.solve(C, y)).item() / 200
            return -0.5 * np.linalg.slogdet(a * C)[1]

        found = best_ratio(phi, (rows, y, None), FREE)
        assert all(profile(found) > profile(found * factor) for factor in (0.8, 1.25))


def test_intervals_of_few_rows_with_many_columns_cover_what_they_say():
    """Lengthscales fitted to the same rows make errors of new rows larger: without widening, 0.87 are covered, z = -6."""

    def f(X: np.ndarray) -> np.ndarray:
        return np.asarray(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2])

    covered = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, new = rng.standard_normal((120, 12)), rng.standard_normal((1000, 12))
        gp = GaussianProcess("gaussian", random_state=0).fit(X, f(X) + 0.3 * rng.standard_normal(120))
        mean, deviation = gp.predict(new, return_std=True, include_noise=True)
        target = f(new) + 0.3 * rng.standard_normal(1000)
        covered.append(np.mean(np.abs(target - mean) <= 1.96 * deviation))
    z = (np.mean(covered) - 0.95) / (np.std(covered, ddof=1) / np.sqrt(len(covered)))
    assert abs(z) < 5


def test_left_out_errors_are_those_of_processes_without_the_row():
    """Standardised errors in closed form equal those of predictions from the other rows."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 2)), rng.standard_normal((20, 1))
    weights = rng.uniform(0.5, 2.0, 20)
    found = KernelEvidence(kernels.Matern(1.5), X, y, weights).left_out(np.log([0.7, 0.2, 1.3]))
    C = 1.3 * kernels.Matern(1.5, 0.7)(X) + np.diag(0.2 / weights)
    for i in range(20):
        others = np.arange(20) != i
        pull = np.linalg.solve(C[np.ix_(others, others)], C[others, i])
        expected = (y[i] - pull @ y[others]) / np.sqrt(C[i, i] - pull @ C[others, i])
        np.testing.assert_allclose(found[i], expected, rtol=1e-8)


def test_widening_keeps_the_mean_and_leaves_given_variances_alone():
    """Both variances grow by the same factor, and neither does where one of them is given."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 6))
    y = X[:, 0] + 0.3 * rng.standard_normal(100)
    wide = GaussianProcess("gaussian", random_state=0).fit(X, y)
    best = wide.candidates_[0]
    assert wide.noise_ / wide.amplitude_ == pytest.approx(best["noise"] / best["amplitude"], rel=0.05)
    given = GaussianProcess("gaussian", noise=0.09, optimize=("lengthscale", "amplitude"), random_state=0).fit(X, y)
    assert given.noise_ == 0.09


def test_copies_of_rows_count_once_and_repeated_measurements_do_not():
    rng = np.random.default_rng(3)
    X, new = rng.standard_normal((80, 2)), rng.standard_normal((50, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(80)
    once = GaussianProcess(random_state=0).fit(X, y)
    twice = GaussianProcess(random_state=0).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    for ours, theirs in zip(twice.predict(new, return_std=True), once.predict(new, return_std=True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert 0.05 < once.noise_ < 0.2
    measured = np.repeat(np.sin(2 * X[:, 0]), 2) + 0.3 * rng.standard_normal(160)
    again = GaussianProcess(random_state=0).fit(np.repeat(X, 2, axis=0), measured)
    assert again.statistics_.n_rows == 160
    assert 0.05 < again.noise_ < 0.2


@pytest.mark.parametrize("stream", [False, True], ids=["random features", "stream"])
def test_copies_count_once_with_any_features_and_in_pieces(stream):
    rng = np.random.default_rng(3)
    X, new = rng.standard_normal((80, 2)), rng.standard_normal((50, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(80)

    def fitted(k):
        gp = GaussianProcess("gaussian", ard=False, projection="orthogonal", n_components=64, random_state=0)
        pieces = [slice(None)] if not stream else [slice(60), slice(60, None)]
        for piece in pieces:
            rows = np.repeat(X[piece], k, axis=0), np.repeat(y[piece], k)
            gp = gp.partial_fit(*rows) if stream else gp.fit(*rows)
        return gp

    once, often = fitted(1), fitted(4)
    for ours, theirs in zip(often.predict(new, return_std=True), once.predict(new, return_std=True), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
