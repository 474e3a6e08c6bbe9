"""JAX arrays go in and out, inside and outside of its transformations, in any order."""

from __future__ import annotations

import numpy as np
import pytest

from bochner.projections import IID, Orthogonal, Quadrature, Simplex, SimplexPlus
from bochner.projections import _structured as structured
from bochner.rotations import Butterfly, Haar, Hadamard, Kac, StructuredGivens

jax = pytest.importorskip("jax")

PROJECTIONS = [
    IID(),
    Simplex(Kac()),
    SimplexPlus(Butterfly("tree", products=2)),
    Orthogonal(Hadamard(3)),
    Quadrature(StructuredGivens()),
]


@pytest.fixture(autouse=True)
def float64():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
def test_transformations_in_any_order(projection):
    """A grad or vmap after a jit, and the other way round: nothing made inside one trace is met in another."""
    P = projection.sample(6, 9, 0)
    X = np.random.default_rng(0).standard_normal((3, 6))
    x, gradient = jax.numpy.asarray(X), P.adjoint(np.ones((3, 9)))

    def total(v):
        return P(v).sum()

    for _ in range(2):
        np.testing.assert_allclose(jax.jit(P)(x), P(X), atol=1e-10)
        np.testing.assert_allclose(jax.jit(lambda: P(x))(), P(X), atol=1e-10)
        np.testing.assert_allclose(jax.grad(total)(x), gradient, atol=1e-10)
        np.testing.assert_allclose(jax.vmap(P)(x), P(X), atol=1e-10)
        np.testing.assert_allclose(P(x), P(X), atol=1e-10)
        np.testing.assert_allclose(jax.jit(P.adjoint)(jax.numpy.ones((3, 9))), gradient, atol=1e-10)


@pytest.mark.parametrize("rotation", [Hadamard(1), Kac(0.2), Butterfly(mix=False)], ids=repr)
def test_transforms_where_the_matrix_is_too_large(rotation, monkeypatch):
    monkeypatch.setattr(structured, "LARGEST_MATRIX", 0)
    P = Simplex(rotation).sample(4, 5, 0)
    X = np.random.default_rng(0).standard_normal((3, 4))
    np.testing.assert_allclose(jax.jit(P)(X), P(X), atol=1e-10)
    gradient = jax.grad(lambda x: P(x).sum())(jax.numpy.asarray(X))
    np.testing.assert_allclose(gradient, P.adjoint(np.ones((3, 5))), atol=1e-10)


@pytest.mark.parametrize("rotation", [Haar(), Hadamard(1), Kac(0.2), Butterfly(mix=False, products=2)], ids=repr)
def test_rotations(rotation):
    R = rotation.sample(4, 2, 0)
    X = np.random.default_rng(0).standard_normal((3, R.dim))
    np.testing.assert_allclose(jax.jit(lambda x: R(x, 1))(X), R(X, 1), atol=1e-10)
    np.testing.assert_allclose(R.adjoint(jax.numpy.asarray(X), 1), R.adjoint(X, 1), atol=1e-10)
