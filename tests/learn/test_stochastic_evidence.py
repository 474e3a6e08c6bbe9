"""The estimated marginal likelihood of wide features: right on average, and accurate enough to choose by."""

from __future__ import annotations

import numpy as np
import pytest

from bochner import Approximation, kernels
from bochner.learn import GaussianProcess, _gaussian_regression
from bochner.learn._lengthscale_search import ProcessSample, evidence_of
from bochner.learn._linear import stochastic_evidence as module
from bochner.learn._linear.evidence import Hyperparameters
from bochner.learn._linear.stochastic_evidence import Krylov, stochastic_evidence
from bochner.learn._row_source import ArrayRows, Chunk

RNG = np.random.default_rng(0)
N = 400
X = RNG.standard_normal((N, 2))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 0] * X[:, 1]]) + 0.2 * RNG.standard_normal((N, 2))
WEIGHTS = RNG.integers(0, 3, N).astype(float)
FREE = Hyperparameters(None, None)


def phi_of(width):
    return Approximation(kernels.Gaussian(), n_projections=width // 2).draw(2, rng=0)


def estimated(phi, weights=None, *, seed=0, rows=80, **options):
    few = Chunk(X[:rows], Y[:rows], None if weights is None else weights[:rows])
    return stochastic_evidence(phi, ArrayRows("x", X, Y, weights), few, FREE, np.random.default_rng(seed), **options)


def test_unbiased_over_probes(monkeypatch):
    """Mean of 40 estimates with two probes each, at |z| < 5; with all steps the quadrature itself is exact."""
    monkeypatch.setattr(module, "_SETTLED", 0.0)
    monkeypatch.setattr(module, "MOST_STEPS", 24)
    phi, amplitudes = phi_of(24), (0.005, 0.5, 50.0)
    exact = evidence_of(phi.queries(X), ProcessSample(X, Y, None))
    all_found = [estimated(phi, seed=seed, n_probes=2) for seed in range(40)]
    for amplitude in amplitudes:
        errors = np.array([found.value(0.05, amplitude) - exact.value(0.05, amplitude) for found in all_found])
        z = errors.mean() / (errors.std(ddof=1) / np.sqrt(len(errors)))
        assert abs(z) < 5 and errors.std() > 1e-3, (amplitude, z)


@pytest.mark.parametrize("weights", (None, WEIGHTS), ids=("plain", "weighted"))
def test_chooses_as_the_exact_likelihood_does(weights):
    phi = phi_of(200)
    exact, ours = evidence_of(phi.queries(X), ProcessSample(X, Y, weights)), estimated(phi, weights)
    best, chosen = exact.best(FREE), ours.best(FREE)
    assert exact.value(*best) - exact.value(*chosen) < 0.1  # nats, of 400 observations
    np.testing.assert_allclose(chosen[0], best[0], rtol=0.02)
    assert abs(ours.value(*best) - exact.value(*best)) < 0.02 * N
    np.testing.assert_allclose(ours.gradient(*best), exact.gradient(*best), atol=0.01 * N)


def test_the_sample_makes_it_more_accurate():
    phi = phi_of(60)
    exact = evidence_of(phi.queries(X), ProcessSample(X, Y, None)).value(0.05, 1.0)
    errors = [
        np.std([estimated(phi, seed=seed, rows=rows, n_probes=2).value(0.05, 1.0) - exact for seed in range(12)])
        for rows in (1, 200)
    ]
    assert errors[1] < errors[0] / 2, errors


def test_a_complete_space_adds_nothing():
    S = np.diag([1.0, 2.0, 2.0, 0.0])
    space = Krylov(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]))
    for _ in range(5):
        space.extend(S @ space.directions)
    values, weights = space.quadrature(0)
    assert np.isclose(weights @ np.log1p(values), np.log(2) + np.log(3))
    assert not space.quadrature(1).weights.any()


def test_a_process_by_conjugate_gradients_uses_all_rows(monkeypatch):
    """Where the sample does not hold them all, noise is still that of the direct fit, and so nearly is the likelihood."""
    options = {"kernel": kernels.Gaussian(), "optimize": ("noise", "amplitude"), "n_components": 100, "random_state": 0}
    direct = GaussianProcess(**options).fit(X, Y)
    monkeypatch.setattr(_gaussian_regression, "_SAMPLE_ROWS", 100)
    monkeypatch.setattr(_gaussian_regression, "_SAMPLE_NUMBERS", 1)
    iterated = GaussianProcess(solver="cg", **options).fit(X, Y)
    np.testing.assert_allclose(iterated.noise_, direct.noise_, rtol=0.02)
    np.testing.assert_allclose(iterated.amplitude_, direct.amplitude_, rtol=0.1)
    assert abs(iterated.log_marginal_likelihood_value_ - direct.log_marginal_likelihood_value_) < 0.02 * N
