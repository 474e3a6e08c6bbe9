"""Graph random features: unbiased with every coupling and kernel, with less variance than independent walks."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import expm
from scipy.sparse.linalg import expm_multiply

from bochner.graphs import Diffusion, NodeRegression, RegularizedLaplacian, Series, Walks, WalkSteps
from bochner.graphs._walks import DIRECTIONS, LENGTHS

KERNELS = [Diffusion(1.5), RegularizedLaplacian(0.7, 1.5), WalkSteps(2), Series((1.0, 0.5, 0.3))]


def random_graph(n=12, seed=0, weighted=True):
    """A connected graph with unequal degrees, weights, a loop, and one node without edges."""
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) < 3 / n, 1) * (rng.random((n, n)) + 0.5 if weighted else 1.0)
    W[np.arange(n - 2), np.arange(1, n - 1)] += 1
    W[:, -1] = 0
    return sparse.csr_array(W + W.T + np.diag([1.0] + [0.0] * (n - 1)))


def laplacian(W):
    degree = np.asarray(W.sum(axis=1)).ravel()
    scale = np.where(degree > 0, 1 / np.sqrt(np.where(degree > 0, degree, 1)), 0)
    return np.eye(W.shape[0]) - scale[:, None] * W.toarray() * scale


def test_matrices_are_the_formulas():
    W = random_graph()
    L = laplacian(W)
    np.testing.assert_allclose(Diffusion(1.5).matrix(W), expm(-1.5 * L), atol=1e-12)
    np.testing.assert_allclose(
        RegularizedLaplacian(0.7, 2.0).matrix(W),
        np.linalg.inv(np.eye(12) + 0.7 * L) @ np.linalg.inv(np.eye(12) + 0.7 * L),
        atol=1e-12,
    )
    np.testing.assert_allclose(WalkSteps(2, 2.5).matrix(W), np.linalg.matrix_power(2.5 * np.eye(12) - L, 4), atol=1e-11)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_root_squared_is_the_kernel(kernel):
    s = np.linspace(-0.9, 0.9, 7)
    np.testing.assert_allclose(np.polyval(kernel.root(80)[::-1], s) ** 2, kernel.at(s), rtol=1e-6)
    np.testing.assert_allclose(np.polyval(kernel.series(80)[::-1], s), kernel.at(s), rtol=1e-6)


def estimates(walks, W, draws, rng, symmetric=False):
    """Gram matrices of independent draws: walks know their own nodes alone, so copies of a graph in one are draws."""
    phi, n = walks.draw(sparse.block_diag([W] * draws, format="csr"), rng=rng, symmetric=symmetric), W.shape[0]
    K, found = (phi.queries @ phi.keys.T).tocoo(), np.zeros((draws, n, n))
    found[K.row // n, K.row % n, K.col % n] = K.data
    assert (K.row // n == K.col // n).all()
    return found


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("directions", DIRECTIONS)
def test_estimates_are_unbiased(kernel, lengths, directions, seed):
    """|z| < 5.5 at all 144 entries, with independent queries and keys; three walks leave one without a partner."""
    W, walks = random_graph(), Walks(kernel, 3, 0.35, lengths, directions)
    K = estimates(walks, W, 1500, seed)
    error = K.std(axis=0) / 1500**0.5 + 1e-12
    assert np.abs((K.mean(axis=0) - kernel.matrix(W)) / error).max() < 5.5


def test_two_thousand_nodes_against_the_matrix_exponential(seed):
    """Entries at every distance of a graph of 2,000 nodes: z-scores of the mean of 40 draws."""
    graph = networkx.random_regular_graph(6, 2000, seed=1)
    L = sparse.eye_array(2000, format="csr") - networkx.to_scipy_sparse_array(graph, dtype=float) / 6
    rows = np.random.default_rng(seed).choice(2000, 40, replace=False)
    exact = expm_multiply(-2.0 * L, np.eye(2000)[:, rows]).T
    draws = np.array(
        [Walks(Diffusion(2.0)).draw(graph, rng=seed * 40 + i).gram(rows, np.arange(2000)) for i in range(40)]
    )
    mean, total = draws.mean(axis=0), np.abs(draws).sum(axis=0)
    seen = total > 0
    assert abs(mean.sum() - exact.sum()) < 5 * draws.sum(axis=(1, 2)).std() / 40**0.5
    close = exact > 1e-3
    z = (mean - exact)[close & seen] / (draws.std(axis=0, ddof=1)[close & seen] / 40**0.5)
    assert abs(z.mean()) < 0.2 and np.quantile(np.abs(z), 0.99) < 5


def test_couplings_lower_the_variance(seed):
    """Each below independent walks by more than two standard errors, in the order of the table of the guide."""
    W = random_graph(40, 3, weighted=False)
    K = Diffusion(2.0).matrix(W)

    def error(lengths, directions):
        walks = Walks(Diffusion(2.0), 4, 0.3, lengths, directions)
        found = np.square(estimates(walks, W, 300, seed) - K).mean(axis=(1, 2))
        return np.mean(found), np.std(found) / 300**0.5

    plain, plain_error = error("independent", "independent")
    for coupling in (("antithetic", "independent"), ("stratified", "independent"), ("independent", "repelling")):
        found, found_error = error(*coupling)
        assert found + 2 * np.hypot(found_error, plain_error) < plain, coupling
    assert error("stratified", "repelling")[0] < 0.85 * plain


def test_symmetric_features_are_positive_and_biased_on_the_diagonal_alone(seed):
    W, walks = random_graph(), Walks(Diffusion(1.5), 3, 0.35)
    drawn = walks.draw(W, rng=seed, symmetric=True)
    assert drawn.keys is drawn.queries and np.linalg.eigvalsh(drawn.gram(np.arange(12))).min() > -1e-12
    K = estimates(walks, W, 1000, seed, symmetric=True)
    z = (K.mean(axis=0) - Diffusion(1.5).matrix(W)) / (K.std(axis=0) / 1000**0.5 + 1e-12)
    off = ~np.eye(12, dtype=bool)
    assert np.abs(z[off]).max() < 5.5 and z.diagonal()[:-1].min() > 3


def test_draws_follow_the_rules_of_streams_and_blocks(monkeypatch):
    W = random_graph()
    first, again = (Walks(Diffusion()).draw(W, rng=0).queries.toarray() for _ in range(2))
    np.testing.assert_array_equal(first, again)
    rng = np.random.default_rng(0)
    assert (Walks(Diffusion()).draw(W, rng=rng).queries != Walks(Diffusion()).draw(W, rng=rng).queries).nnz
    monkeypatch.setattr("bochner.graphs._walks.BLOCK", 5)
    parts = Walks(Diffusion()).draw(W, rng=0).queries
    assert parts.shape == (12, 12) and np.isfinite(parts.data).all()


def test_regression_is_that_of_its_gram_matrix():
    """The prediction is ridge regression with the Gram matrix of the features."""
    W, rng = random_graph(), np.random.default_rng(0)
    nodes, y = np.arange(0, 12, 2), rng.standard_normal(6)
    model = NodeRegression(Walks(Diffusion(2.0)), noise=0.3, tolerance=1e-12, rng=0).fit(W, nodes, y)
    K = model.features_.gram(np.arange(12))
    exact = K[:, nodes] @ np.linalg.solve(K[np.ix_(nodes, nodes)] + 0.3 * np.eye(6), y - y.mean()) + y.mean()
    np.testing.assert_allclose(model.predict(np.arange(12)), exact, rtol=1e-8)


def test_samples_have_the_mean_and_the_covariance_of_the_posterior():
    """2000 functions at 12 nodes: 90 z-tests at 5, one false alarm in 20,000 runs."""
    W, rng = random_graph(), np.random.default_rng(0)
    nodes, y = np.arange(0, 12, 2), rng.standard_normal(6)
    model = NodeRegression(Walks(Diffusion(2.0)), noise=0.3, tolerance=1e-10, rng=0).fit(W, nodes, y)
    K, known = model.features_.gram(np.arange(12)), np.ix_(nodes, nodes)
    inverse = np.linalg.inv(K[known] + 0.3 * np.eye(6))
    assert model.amplitude_ == pytest.approx((y - y.mean()) @ inverse @ (y - y.mean()) / 6)
    exact = model.amplitude_ * (K - K[:, nodes] @ inverse @ K[nodes])
    drawn = model.sample(np.arange(12), 2000, rng=1)
    gaps = drawn - model.predict(np.arange(12))[:, None]
    some = np.diag(exact) > 1e-8  # a node without edges, whose value is known, is known exactly up to noise
    z = gaps.mean(axis=1)[some] / np.sqrt(np.diag(exact)[some] / 2000)
    products = gaps[:, None] * gaps[None]
    deviation = np.abs(products.mean(axis=2) - exact) / (products.std(axis=2) / 2000**0.5 + 1e-12)
    assert np.abs(z).max() < 5 and deviation.max() < 5


@pytest.mark.parametrize("call, error, message", [
    (lambda W: NodeRegression(Walks(Diffusion())).sample([0]), ValueError, r"^NodeRegression\.sample: call fit"),
    (lambda W: Walks(Diffusion()).draw(W.toarray()), TypeError, r"^Walks\.draw: graph must be a sparse matrix of scipy or"),
    (lambda W: Walks(Diffusion()).draw(W[:3]), ValueError, r"^Walks\.draw: graph must be a square matrix .* \(3, 12\)"),
    (lambda W: Walks(Diffusion()).draw(-W), ValueError, r"^Walks\.draw: weights of the graph must be finite and not neg"),
    (lambda W: Walks(Diffusion()).draw(sparse.triu(W)), ValueError, r"^Walks\.draw: graph must be symmetric; pass W\.max"),
    (lambda W: Walks(Diffusion(), lengths="long"), ValueError, r"^Walks: lengths must be one of .*stratified.* got 'long'"),
    (lambda W: Walks("diffusion"), TypeError, r"^Walks: kernel must be"),
    (lambda W: Series([0, 1]), ValueError, r"^Series: coefficients must start with a positive number"),
    (lambda W: WalkSteps(2, 1.5), ValueError, r"^WalkSteps: laziness must be at least 2, got 1\.5"),
    (lambda W: NodeRegression(Walks(Diffusion())).fit(W, [0, 12], [0.0, 1.0]), ValueError, r"nodes must be integers from 0"),
    (lambda W: NodeRegression(Walks(Diffusion())).fit(W, [0], [0.0, 1.0]), ValueError, r"nodes and y must be vectors"),
    (lambda W: NodeRegression(Walks(Diffusion())).predict([0]), ValueError, r"^NodeRegression\.predict: call fit"),
    (lambda W: Walks(Diffusion()).draw(W, 0).gram([-1]), ValueError, r"NodeFeatures\.gram: nodes must be integers"),
    (lambda W: Walks(Diffusion()).draw(W, 0).gram([0], [[1]]), ValueError, r"gram: nodes must be .* in a vector"),
    (lambda W: Series(None), TypeError, r"Series: coefficients must be a sequence of numbers, got None"),
    (lambda W: Walks(Diffusion()).draw(W * 1j, 0), TypeError, r"weights of the graph must be real, got complex128"),
    (lambda W: Diffusion().root(-1), ValueError, r"Diffusion\.root: n must be"),
])  # fmt: skip
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call(random_graph())
