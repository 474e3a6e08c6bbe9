"""The kernel for GPyTorch and the features for BoTorch, next to their own ones and to closed forms."""

from __future__ import annotations

import doctest
import importlib
import warnings
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")
with warnings.catch_warnings():  # of torch.jit.script, which linear_operator calls
    warnings.simplefilter("ignore")
    gpytorch = pytest.importorskip("gpytorch", reason="gpytorch is not installed")

from bochner import Approximation, kernels, maps, projections  # noqa: E402
from bochner.adapters import FeatureKernel  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def X():
    return torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def botorch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("botorch", reason="botorch is not installed")
        from bochner.adapters import path_features
    return path_features


@pytest.mark.parametrize("name", ["_gpytorch", "_botorch"])
def test_examples(name):
    if name == "_botorch":
        botorch()
    failed, tried = doctest.testmod(importlib.import_module(f"bochner.adapters.{name}"), optionflags=doctest.ELLIPSIS)
    assert tried and not failed


def test_matrix_is_the_product_of_the_features_at_the_lengthscale(X):
    kernel = FeatureKernel(3, Approximation(kernels.Matern(2.5), n_projections=32)).double()
    kernel.lengthscale = 1.7
    Z = kernel.features(X / 1.7)
    for got in (kernel(X), kernel(X, X.clone()), kernel(X, X + 0)):
        torch.testing.assert_close(got.to_dense(), Z @ Z.T)
    torch.testing.assert_close(kernel(X, X[:7]).to_dense(), Z @ Z[:7].T)
    torch.testing.assert_close(kernel(X, diag=True), (Z**2).sum(-1))


@pytest.mark.parametrize(
    "exact, theirs",
    [(kernels.Gaussian(), gpytorch.kernels.RBFKernel()), (kernels.Matern(1.5), gpytorch.kernels.MaternKernel(1.5))],
    ids=["RBF", "Matern"],
)
def test_mean_of_draws_is_their_kernel(exact, theirs, X):
    """|z| < 5 for each of 190 pairs, 200 draws: a false alarm in one of 10,000 runs."""
    theirs = theirs.double()
    theirs.lengthscale = 1.3
    draws = []
    for i in range(200):
        spec = Approximation(exact, projection=projections.Orthogonal(), n_projections=16)
        ours = FeatureKernel(3, spec, generator=torch.Generator().manual_seed(i)).double()
        ours.lengthscale = 1.3
        draws.append(ours(X[:20]).to_dense().detach().numpy()[np.triu_indices(20, 1)])
    expected = theirs(X[:20]).to_dense().detach().numpy()[np.triu_indices(20, 1)]
    draws = np.array(draws)
    z = (draws.mean(axis=0) - expected) / (draws.std(axis=0, ddof=1) / np.sqrt(len(draws)))
    assert np.abs(z).max() < 5


class Regression(gpytorch.models.ExactGP):
    def __init__(self, X, y, likelihood, kernel):
        super().__init__(X, y, likelihood)
        self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), gpytorch.kernels.ScaleKernel(kernel)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def test_posterior_is_that_of_a_linear_model_of_the_features(X):
    kernel = FeatureKernel(3, Approximation(kernels.Gaussian(), n_projections=8))
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    y = torch.sin(X[:, 0])
    model = Regression(X, y, likelihood, kernel).double()
    loss = -gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)(model(X), y)
    loss.backward()
    assert kernel.raw_lengthscale.grad.abs().item() > 0
    model.eval()
    new = X[:5] + 0.1
    with torch.no_grad():
        found = model(new)
        Z, Zn = (kernel.features(x / kernel.lengthscale) * model.covar_module.outputscale.sqrt() for x in (X, new))
        A = Z.T @ Z + likelihood.noise * torch.eye(16, dtype=torch.float64)
        torch.testing.assert_close(found.mean, Zn @ torch.linalg.solve(A, Z.T @ y), atol=1e-3, rtol=1e-3)
        variance = likelihood.noise * (Zn * torch.linalg.solve(A, Zn.T).T).sum(-1)
        torch.testing.assert_close(found.variance, variance, atol=1e-3, rtol=1e-2)


def test_a_checkpoint_holds_the_draw(X):
    one, other = (FeatureKernel(3, Approximation(kernels.Gaussian(), n_projections=8)).double() for _ in range(2))
    assert not torch.allclose(one(X).to_dense(), other(X).to_dense())
    other.load_state_dict(one.state_dict())
    torch.testing.assert_close(one(X).to_dense(), other(X).to_dense())


def test_refusals():
    one_sided = Approximation(kernels.Gaussian(), maps.Trigonometric(), projections.Quadrature(), n_projections=8)
    with pytest.raises(ValueError, match=r"^FeatureKernel: spec must have the same features for queries and keys"):
        FeatureKernel(3, one_sided)
    path_features = botorch()
    with pytest.raises(TypeError, match=r"^path_features: the kernel must be an RBFKernel, .* got LinearKernel"):
        path_features()(gpytorch.kernels.LinearKernel(), 3, 64)
    with pytest.raises(ValueError, match=r"^path_features: kernels must have no batch, got batch_shape \(2,\)"):
        path_features()(gpytorch.kernels.RBFKernel(batch_shape=torch.Size([2])), 3, 64)
    with pytest.raises(TypeError, match=r"^path_features: map must be a map such as maps.Trigonometric"):
        path_features(map="cosines")


def test_prior_paths_have_the_covariance_of_the_kernel(X):
    """Each entry of the covariance of 4000 paths within five standard errors of that of the features themselves."""
    path_features = botorch()
    from botorch.models import SingleTaskGP
    from botorch.sampling.pathwise import draw_kernel_feature_paths

    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=3))
    model = SingleTaskGP(X, torch.sin(X[:, :1]), covar_module=kernel, outcome_transform=None)
    kernel.base_kernel.lengthscale, kernel.outputscale = torch.tensor([1.0, 2.0, 3.0]), 2.0
    model.mean_module.constant = 0.0
    generator = path_features(generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        paths = draw_kernel_feature_paths(model, torch.Size([4000]), num_features=1024, map_generator=generator)
        values, Z = paths(X[:6]).numpy(), paths.feature_map(X[:6]).numpy()
        K, exact = Z @ Z.T, kernel(X[:6]).to_dense().numpy()
    assert values.shape == (4000, 6) and Z.shape == (6, 1024)
    assert np.all(np.abs(values.T @ values / 4000 - K) < 5 * np.sqrt((K**2 + np.outer(np.diag(K), np.diag(K))) / 4000))
    np.testing.assert_allclose(np.diag(K), 2)
    assert np.abs(K - exact).max() < 5 * 2 / np.sqrt(512)  # one pair has a variance of at most one, times the scale


def test_posterior_paths_meet_the_data(X):
    path_features = botorch()
    from botorch.models import SingleTaskGP
    from botorch.sampling.pathwise import draw_kernel_feature_paths, draw_matheron_paths

    y = torch.sin(X[:, :1])
    model = SingleTaskGP(X, y)
    model.likelihood.noise = 1e-4
    prior = partial(draw_kernel_feature_paths, map_generator=path_features(projection=projections.Simplex()))
    with torch.no_grad():
        paths = draw_matheron_paths(model, torch.Size([8]), prior_sampler=prior)
        assert (paths(X) - y[:, 0]).abs().max() < 0.1
