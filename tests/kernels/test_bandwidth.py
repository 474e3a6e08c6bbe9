"""Bandwidths: what gamma means for each kernel, the two rules, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist

from bochner import kernels
from bochner.kernels import Cauchy, Gaussian, Laplacian, Linear, Matern, RationalQuadratic, Softmax, resolve_bandwidth

STRETCHED = [Gaussian(), Matern(1.5), RationalQuadratic(2.0), Cauchy(), Laplacian(), Softmax()]
X = np.random.default_rng(0).standard_normal((40, 3)) * [1.0, 2.0, 0.5]
X.flags.writeable = False
PAIR = (np.array([[0.3, -0.2]]), np.array([[0.1, 0.5]]))


class Elsewhere:
    """Rows that are not an array."""

    shape = X.shape

    def variance(self, weights=None):
        return float(X.var())

    def sample(self, n, rng):
        return X[:n]


@pytest.mark.parametrize(
    "kernel, expected",
    [
        (Gaussian(), np.exp(-0.7 * 0.53)),
        (Cauchy(), 1 / (1 + 0.7 * 0.53)),
        (Laplacian(), np.exp(-0.7 * 0.9)),
        (Softmax(), np.exp(0.7 * -0.07)),
    ],
    ids=repr,
)
def test_gamma_is_that_of_scikit_learn(kernel, expected):
    assert kernel.from_gamma(0.7)(*PAIR)[0, 0] == pytest.approx(expected)


@pytest.mark.parametrize("kernel", [Matern(0.5), RationalQuadratic(3.0)], ids=repr)
def test_families_around_the_gaussian_kernel_share_its_lengthscale(kernel):
    assert kernel.from_gamma(0.7).lengthscale == Gaussian().from_gamma(0.7).lengthscale


@pytest.mark.parametrize("kernel", STRETCHED, ids=repr)
def test_a_bandwidth_can_be_read_back(kernel):
    assert kernel.has_bandwidth and kernel.bandwidth == 1.0
    assert kernel.with_bandwidth(2.5).bandwidth == pytest.approx(2.5)


@pytest.mark.parametrize("kernel", STRETCHED, ids=repr)
def test_a_bandwidth_stretches_the_inputs(kernel):
    np.testing.assert_allclose(kernel.with_bandwidth(2.5)(2.5 * X), kernel(X), rtol=1e-12)


def test_bandwidths_of_columns():
    kernel = Gaussian().with_bandwidth((1.0, 2.0, 3.0))
    assert kernel.bandwidth == (1.0, 2.0, 3.0)


@pytest.mark.parametrize("kernel", STRETCHED, ids=repr)
def test_scale_is_one_over_the_total_variance(kernel):
    spread = X.std() if isinstance(kernel, Laplacian) else X.var()
    assert resolve_bandwidth(kernel, "scale", X) == kernel.from_gamma(1 / (3 * spread))


@pytest.mark.parametrize("kernel", STRETCHED, ids=repr)
def test_median_is_in_the_metric_of_the_kernel(kernel):
    found = resolve_bandwidth(kernel, "median", X)
    assert found.bandwidth == pytest.approx(np.median(pdist(X, kernel.metric)))


@pytest.mark.parametrize("rule", ["scale", "median"])
@pytest.mark.parametrize(
    "rows", [sparse.csr_array(X), Elsewhere(), X.astype(np.float32)], ids=["sparse", "rows", "float32"]
)
def test_the_rules_see_the_same_rows_wherever_they_are(rule, rows):
    found, expected = (resolve_bandwidth(Gaussian(), rule, where).bandwidth for where in (rows, X))
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("rule", ["scale", "median"])
def test_rows_of_weight_zero_count_nowhere(rule):
    weights = np.repeat([1.0, 0.0], 20)
    found = resolve_bandwidth(Gaussian(), rule, X, weights=weights)
    assert found.bandwidth == pytest.approx(resolve_bandwidth(Gaussian(), rule, X[:20]).bandwidth)


@pytest.mark.parametrize("rule", ["scale", "median"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e8])
def test_constant_data_have_a_bandwidth(rule, value):
    gamma = resolve_bandwidth(Softmax(), rule, np.full((10, 3), value)).scale
    assert gamma == 1.0


def test_no_rule_leaves_a_kernel_as_it_is():
    assert resolve_bandwidth(Gaussian(3.0), None, X) == Gaussian(3.0)
    assert resolve_bandwidth(Linear(), None, X) == Linear()


def test_one_default_for_all_kernels():
    assert {kernel.default_rule for kernel in STRETCHED} == {"scale"}
    assert Linear().default_rule is None


@pytest.mark.parametrize(
    "kernel, rule, message",
    [
        (Linear(), "scale", r"Owner: Linear\(\) has no bandwidth for gamma='scale' to set; pass gamma=None"),
        (Gaussian(2.0), 0.5, r"Owner: gamma=0\.5 and Gaussian\(lengthscale=2\.0\) both set the bandwidth"),
        (Gaussian(), "wide", "Owner: gamma must be 'scale', 'median' or a positive number, got 'wide'"),
        (Gaussian(), -1.0, "Owner: gamma must be a positive number, got -1"),
    ],
)
def test_what_cannot_be_is_refused(kernel, rule, message):
    with pytest.raises(ValueError, match=message):
        resolve_bandwidth(kernel, rule, X, owner="Owner")


def test_kernels_without_a_bandwidth_refuse_one():
    with pytest.raises(ValueError, match=r"Linear: Linear\(\) has no bandwidth to set"):
        Linear().with_bandwidth(2.0)
    with pytest.raises(ValueError, match=r"Linear: Linear\(\) has no bandwidth for gamma=2\.0 to set"):
        Linear().from_gamma(2.0)


@pytest.mark.parametrize(
    "X, error, message",
    [
        (7, ValueError, r"median_distance: expected points as rows.*got shape \(\)"),
        (None, TypeError, "median_distance: expected an array of real numbers"),
        ([[1.0, np.nan]], ValueError, "median_distance: expected finite numbers, got nan"),
        (
            np.ones((2, 3, 4)),
            ValueError,
            r"median_distance: X must be a matrix of points as rows, got shape \(2, 3, 4\)",
        ),
        (sparse.csr_array([[1.0, np.inf]]), ValueError, "median_distance: expected finite numbers, got inf"),
    ],
)
def test_median_distance_refuses_what_has_no_distances(X, error, message):
    with pytest.raises(error, match=message):
        kernels.median_distance(X)


def test_median_distance_of_one_point_is_one():
    assert kernels.median_distance([[1.0, 2.0]]) == 1.0


def test_median_distance_of_huge_numbers_does_not_overflow():
    assert kernels.median_distance([[0.0], [1e200], [3e200]]) == pytest.approx(2e200)


def test_median_distance_knows_two_metrics():
    with pytest.raises(ValueError, match="metric must be one of 'euclidean', 'cityblock', got 'cosine'"):
        kernels.median_distance(X, metric="cosine")
