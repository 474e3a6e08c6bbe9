"""Hybrid features are products of base features and coefficients, however they are computed."""

import numpy as np
import pytest

from bochner import Approximation, kernels, maps, projections
from bochner.maps._features import combine
from bochner.maps.coefficients import AngularCoefficient, GaussianCoefficient

D = 5
X = np.random.default_rng(0).standard_normal((7, D)) * 1.3
X.setflags(write=False)
BASES = (maps.Hyperbolic(), maps.ComplexExponential(0.8 + 0.3j), maps.Trigonometric())
HYBRIDS = {
    "angular": maps.AngularHybrid(3),
    "own rows": maps.AngularHybrid(3, shared=False),
    "gaussian": maps.GaussianHybrid(3, radius=1.0),
    "three bases": maps.Hybrid(BASES, (AngularCoefficient(2), GaussianCoefficient(1.0, -0.5, 3))),
}


@pytest.mark.parametrize("projection", [projections.Orthogonal(), projections.Quadrature()], ids=str)
@pytest.mark.parametrize("key", [False, True])
@pytest.mark.parametrize("name", HYBRIDS)
def test_products_of_base_features_are_the_exponentials_of_their_logarithms(name, key, projection):
    features = Approximation(kernels.Softmax(), HYBRIDS[name], projection, 6).draw(D, rng=1).features
    expected = combine(*features.scaled(X, key=key))
    out = np.empty((len(X), features.width))
    features.fill(X, out, key=key)
    np.testing.assert_allclose(features(X, key=key), expected, rtol=1e-12)
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_shared_rows_are_projected_once(monkeypatch):
    phi = Approximation(kernels.Softmax(), maps.AngularHybrid(3), n_projections=6).draw(D, rng=1)
    base = phi.features.bases[0].operator
    calls, apply = [], type(base).apply
    monkeypatch.setattr(type(base), "apply", lambda self, Z: calls.append(self) or apply(self, Z))
    phi.queries(X)
    assert calls.count(base) == 1


def test_float32_stays_float32():
    phi = Approximation(kernels.Softmax(), HYBRIDS["three bases"], n_projections=6).draw(D, rng=1)
    low = phi.queries(X.astype(np.float32))
    assert low.dtype == np.float32
    np.testing.assert_allclose(low, phi.queries(X), rtol=2e-4, atol=1e-6)
