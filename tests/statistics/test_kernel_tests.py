"""Kernel tests: exact size, power next to the quadratic tests, sums that merge, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bochner import Approximation, kernels
from bochner.kernels import median_distance
from bochner.statistics import IndependenceTest, TwoSampleTest, hsic_test, mmd_test

PERMUTATIONS = 39


def check_uniform(p_values):
    """P-values are uniform on k/40: the share of those up to 0.05 within 5 standard errors, and all by chi-squared."""
    found, n = np.mean(p_values <= 0.05), len(p_values)
    assert abs(found - 0.05) < 5 * (0.05 * 0.95 / n) ** 0.5, found
    counts = np.bincount(np.rint(p_values * (PERMUTATIONS + 1)).astype(int), minlength=PERMUTATIONS + 2)[1:]
    assert stats.chisquare(counts).pvalue > 1e-6


def test_size_of_the_two_sample_test_is_exact(seed):
    """Also for samples of different sizes, heavy tails, and blocks of permutations."""
    rng = np.random.default_rng(seed)
    p = [
        mmd_test(*rng.standard_t(3, (2, 30, 2)) if i % 2 else (rng.random((20, 2)), rng.random((45, 2))),
                 n_features=16, n_permutations=PERMUTATIONS, rng=rng).p_value
        for i in range(600)
    ]  # fmt: skip
    check_uniform(np.array(p))


def test_size_of_the_independence_test_is_exact(seed):
    rng = np.random.default_rng(seed)
    p = [
        hsic_test(
            rng.random((25, 2)), rng.standard_normal(25), n_features=8, n_permutations=PERMUTATIONS, rng=rng
        ).p_value
        for _ in range(600)
    ]
    check_uniform(np.array(p))


def test_size_of_streams_is_exact(seed):
    """Each update comes from another distribution, the same for both samples."""
    rng = np.random.default_rng(seed)
    features = Approximation(kernels.Gaussian(), n_projections=8).draw(1, rng=0)
    p = []
    for _ in range(400):
        test = TwoSampleTest(features, n_permutations=PERMUTATIONS, rng=rng)
        for day in range(3):
            test = test.update(rng.standard_normal((9, 1)) + day, rng.standard_normal((6, 1)) + day)
        p.append(test.result().p_value)
    check_uniform(np.array(p))


def quadratic_p_value(X, Y, rng):
    """The permutation test with the exact kernel matrix."""
    Z, n = np.concatenate([X, Y]), len(X)
    labels = np.full((PERMUTATIONS + 1, len(Z)), -1 / len(Y))
    labels[:, :n] = 1 / n
    labels[1:] = rng.permuted(labels[1:], axis=1)
    values = np.vecdot(labels @ kernels.Gaussian(median_distance(Z))(Z), labels)
    return (1 + np.count_nonzero(values[1:] >= values[0])) / len(values)


def test_power_is_that_of_the_quadratic_test(seed):
    """At least 95 % of it: a one-sided test of the difference at 5 standard errors."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(120):
        X, Y = rng.standard_normal((2, 120, 4))
        Y[:, 0] += 0.45
        ours = mmd_test(X, Y, n_permutations=PERMUTATIONS, rng=rng).p_value
        found.append([ours <= 0.05, quadratic_p_value(X, Y, rng) <= 0.05])
    found = np.array(found, dtype=float)
    assert 0.3 < found[:, 1].mean() < 0.99  # the alternative is neither trivial nor hopeless
    lack = 0.95 * found[:, 1] - found[:, 0]
    assert lack.mean() < 5 * lack.std() / len(lack) ** 0.5


def test_statistic_estimates_the_discrepancy_without_bias(seed):
    """Over draws of the features, at fixed samples: the unbiased estimate of the exact kernel."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((12, 2)), rng.standard_normal((15, 2)) + 0.5
    k = kernels.Gaussian(1.3)
    exact = (k(X).sum() - 12) / (12 * 11) + (k(Y).sum() - 15) / (15 * 14) - 2 * k(X, Y).mean()
    found = [mmd_test(X, Y, kernel=k, n_features=8, n_permutations=1, rng=rng).statistic for _ in range(600)]
    assert abs(np.mean(found) - exact) < 5 * np.std(found) / 600**0.5


def test_independence_statistic_is_the_criterion_of_the_features():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((50, 2)), rng.standard_normal((50, 1))
    a, b = (Approximation(kernels.Gaussian(), n_projections=8).draw(d, rng=0) for d in (2, 1))
    H = np.eye(50) - 1 / 50
    expected = np.trace(a.gram(X) @ H @ b.gram(Y) @ H) / 50**2
    found = IndependenceTest(a, b, n_permutations=1, rng=0).update(X, Y).result().statistic
    assert found == pytest.approx(expected, rel=1e-10)


def test_power_of_the_independence_test(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, 300)
    assert hsic_test(x, np.cos(2 * x) + 0.3 * rng.standard_normal(300), rng=rng).p_value == 0.005


def test_sums_of_two_machines_are_those_of_one():
    """The observed statistic does not depend on how rows came; permuted ones are of the same law."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 2)), rng.standard_normal((40, 2)) + 0.3
    features = Approximation(kernels.Gaussian(), n_projections=16).draw(2, rng=0)
    whole = TwoSampleTest(features, rng=0).update(X, Y)
    parts = [TwoSampleTest(features, rng=i).update(X[i::2], Y[i::2]) for i in range(2)]
    merged = parts[0].merge(parts[1])
    assert merged.n_rows == whole.n_rows == (60, 40) and parts[0].n_rows == (30, 20)
    assert merged.result().statistic == pytest.approx(whole.result().statistic, rel=1e-9)
    assert merged.result().null.mean() == pytest.approx(whole.result().null.mean(), rel=0.3)
    np.testing.assert_allclose(whole.witness(X), features.queries(X) @ (
        features.queries(X).mean(axis=0) - features.queries(Y).mean(axis=0)), atol=1e-12)  # fmt: skip
    pair = [IndependenceTest(features, features, rng=i).update(X[i::2], 2 * X[i::2]) for i in range(2)]
    both = IndependenceTest(features, features, rng=0).update(X, 2 * X).result()
    assert pair[0].merge(pair[1]).result().statistic == pytest.approx(both.statistic, rel=1e-9)


def test_directions_find_what_differs():
    """Samples of one spread but along an axis of their own: the first direction is that axis."""
    rng = np.random.default_rng(0)
    axis = np.array([3.0, 4.0, 0.0]) / 5
    X, Y = rng.standard_normal((2, 2000, 3))
    found = mmd_test(X, Y + 0.8 * (Y @ axis)[:, None] * axis, rng=0)
    assert abs(found.directions[0] @ axis) > 0.95 and found.shares[0] > 2 * found.shares[1]
    np.testing.assert_allclose(found.directions @ found.directions.T, np.eye(3), atol=1e-12)


def test_far_rows_and_equal_rows():
    """A common shift changes nothing, and samples without variation are no evidence."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((40, 2)), rng.standard_normal((50, 2)) + 0.4
    near, far = (mmd_test(X + s, Y + s, kernel=kernels.Gaussian(), rng=0) for s in (0.0, 1e7))
    assert far.statistic == pytest.approx(near.statistic, rel=1e-3)
    assert mmd_test(np.ones((20, 2)), np.ones((30, 2)), rng=0).p_value == 1


@pytest.mark.parametrize("scale", [1e-100, 1e-40, 1e40, 1e100])
def test_the_unit_of_the_columns_changes_nothing(scale):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((100, 2)), rng.standard_normal((100, 2)) + 1
    one, other = (mmd_test(c * X, c * Y, n_features=64, rng=0) for c in (1.0, scale))
    assert one.p_value == other.p_value == 0.005 and other.statistic == pytest.approx(one.statistic, rel=1e-4)
    one, other = (hsic_test(c * X, c * X**2, n_features=16, rng=0) for c in (1.0, scale))
    assert one.p_value == other.p_value == 0.005 and other.statistic == pytest.approx(one.statistic, rel=1e-4)


def test_results_do_not_depend_on_threads():
    from bochner.linalg.engine import threads

    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((300, 2)), rng.standard_normal((300, 3))
    for n in (1, 2):
        with threads(n):
            found = mmd_test(X, X[:200], rng=0), hsic_test(X, Y, n_permutations=9, rng=0)
        if n == 1:
            first = found
    for one, two in zip(first, found, strict=True):
        np.testing.assert_array_equal(one.null, two.null)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda X: mmd_test(X, X[:, :1]), r"^mmd_test: X and Y must have the same columns, got 2 and 1\.$"),
        (lambda X: mmd_test(X, X, kernel="softmax"), r"^mmd_test: kernel must be one of the difference x - y, .* got Soft"),
        (lambda X: mmd_test(X, X, kernel="gauss"), r"^mmd_test: unknown kernel 'gauss'\. Did you mean 'gaussian'"),
        (lambda X: mmd_test(X, X, n_permutations=0), r"n_permutations must be an integer of at least 1, got 0"),
        (lambda X: mmd_test(X[:1], X), r"^TwoSampleTest\.result: expected at least two rows of each sample, got 1 and 5"),
        (lambda X: mmd_test(X * np.nan, X), r"^mmd_test: expected finite numbers"),
        (lambda X: mmd_test(np.sign(X) * 1.7e308, X), r"^mmd_test: X holds numbers of up to 1\.7e\+308, whose sums over"),
        (lambda X: hsic_test(np.sign(X) * 1.7e308, X), r"^hsic_test: X holds numbers of up to 1\.7e\+308, whose sums over"),
        (lambda X: hsic_test(X, X[:3]), r"^hsic_test: X and Y must have the same number of rows, got 5 and 3\.$"),
        (lambda X: TwoSampleTest(phi(kernels.ArcCosine(1))), r"^TwoSampleTest: features must be pairs of cosines and sines"),
        (lambda X: TwoSampleTest(phi(), rng=0).update(X, X[:, :1]), r"update: Y must have 2 columns, .* got 1"),
        (lambda X: TwoSampleTest(phi()).merge(TwoSampleTest(phi(seed=1))), r"^TwoSampleTest\.merge: .* the same drawn feat"),
    ],
)  # fmt: skip
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.random.default_rng(0).standard_normal((5, 2)))


def phi(kernel=kernels.Gaussian(), seed=0):  # noqa: B008
    return Approximation(kernel, n_projections=4).draw(2, rng=seed)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e-300, 1e-30, 1e30, 1e300])
def test_the_unit_of_the_rows_changes_nothing(unit):
    X, Y = np.random.default_rng(0).standard_normal((2, 60, 2))
    one, other = mmd_test(X, Y, rng=0), mmd_test(X * unit, Y * unit, rng=0)
    assert one.p_value == other.p_value
    np.testing.assert_allclose(np.abs(np.vecdot(one.directions, other.directions)), 1, rtol=1e-3)
    np.testing.assert_allclose(one.shares, other.shares, rtol=1e-2)
