"""Large, tiny and vanishing numbers; rows below the fit; scales, threads and precisions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import bochner
from bochner import Approximation, kernels, maps, rotations
from bochner.projections import Orthogonal
from support.catalogue import DISCRETE_MAPS, MAPS, data, pairs, spec_of

every_map = pytest.mark.parametrize("feature_map", MAPS, ids=repr)


POSITIVE = [m for m in MAPS if (m.planned and spec_of(m).positive) or isinstance(m, maps.OptimalPositive)]


@pytest.mark.parametrize("feature_map", POSITIVE, ids=repr)
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_large_norms_give_finite_normalised_results(feature_map, dtype, seed):
    """|x|^2 = 400: the plain features overflow or vanish, the normalised Gram matrix is exact all the same."""
    A, B = data(seed)
    A, B = (20 * Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (A, B))
    phi = spec_of(feature_map, None, 16).fit(A, B, seed)
    weights = phi.gram(A.astype(dtype), B.astype(dtype), normalize=True)
    assert np.isfinite(weights).all() and weights.dtype == dtype
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-4)
    logs = np.logaddexp.reduce(phi.log_queries(A)[:, None, :] + phi.log_keys(B)[None, :, :], axis=-1)
    exact = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
    # a weight is a ratio of exponentials: its error is that of the logarithms, a few eps of their size on each side
    size = np.abs(phi.log_queries(A)).max() + np.abs(phi.log_keys(B)).max()
    np.testing.assert_allclose(weights, exact, atol=8 * np.finfo(dtype).eps * size)


@every_map
def test_single_rows_and_no_rows(feature_map, seed):
    A, B = data(seed)
    phi = spec_of(feature_map, None, 5).fit(A, B, seed)
    np.testing.assert_allclose(phi.queries(A[0]), phi.queries(A)[0], rtol=1e-12, atol=1e-12)
    assert phi.queries(A[:0]).shape == (0, phi.n_features_out)
    assert phi.gram(A[:1], B).shape == (1, len(B))


@every_map
@pytest.mark.parametrize("scale", (0.0, 1e-7, 1e-3))
def test_zero_and_tiny_data(feature_map, scale, seed):
    """Constants chosen from nothing are still good: estimates near zero are near the kernel."""
    if isinstance(feature_map, maps.ClusterHybrid) and not scale:
        pytest.skip("one point makes no clusters")
    A, B = (scale * Z for Z in data(seed))
    spec = spec_of(feature_map, None, 200)
    phi = spec.fit(A, B, seed)
    for dtype in (np.float32, np.float64):
        estimate = phi.gram(A.astype(dtype), B.astype(dtype))
        assert np.isfinite(estimate).all()
        if isinstance(spec.kernel, kernels.Softmax):
            # a mean of 200 terms of variance of order one, rates and shifts included
            np.testing.assert_allclose(estimate, spec.kernel(A, B), atol=0.5)


@pytest.mark.parametrize("feature_map", [maps.ClusterHybrid(3, 3, diagonal="real"), maps.Poisson(rate=20.0)], ids=repr)
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_features_that_vanish_do_not_spoil_the_stabiliser(feature_map, dtype, seed):
    A, B = data(seed)
    A, B = (20 * np.abs(Z) / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (A, B))
    B[:4, 0] = 0  # powers of zero vanish
    phi = Approximation(kernels.Softmax(), feature_map, n_projections=64).fit(A, B, seed)
    weights = phi.gram(A.astype(dtype), B.astype(dtype), normalize=True)
    assert np.isfinite(weights).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-4)


@pytest.mark.parametrize("feature_map", DISCRETE_MAPS, ids=repr)
def test_gradients_at_zero_coordinates(feature_map, seed):
    phi = Approximation(kernels.Softmax(), feature_map, n_projections=20).draw(3, seed)
    x = torch.tensor([[0.0, 0.5, 0.0], [0.0, 0.0, -0.4]], dtype=torch.float64, requires_grad=True)
    (jacobian,) = torch.autograd.functional.jacobian(lambda z: phi.queries(z), (x,))
    step = 1e-6
    for i, j in ((0, 0), (0, 2), (1, 1)):
        moved = [x.detach().clone() for _ in range(2)]
        moved[0][i, j], moved[1][i, j] = step, -step
        slope = (phi.queries(moved[0]) - phi.queries(moved[1])) / (2 * step)
        np.testing.assert_allclose(jacobian[..., i, j].numpy(), slope.numpy(), atol=1e-4)


def test_mixed_precisions_take_the_wider_one(seed):
    A, B = data(seed)
    phi = Approximation(kernels.Softmax(), maps.Positive(), n_projections=5).draw(3, seed)
    assert phi.gram(A.astype(np.float32), B).dtype == phi.gram(A, B.astype(np.float32)).dtype == np.float64
    half = torch.tensor(A, dtype=torch.bfloat16)
    shifted = Approximation(kernels.Gaussian(1.7), maps.Poisson(positive=True), n_projections=5).fit(half, rng=seed)
    assert torch.isfinite(shifted.log_queries(half)).all()


def test_positive_discrete_maps_stay_unbiased_below_their_shift():
    A, B = data()
    phi = Approximation(kernels.Gaussian(), maps.Poisson(positive=True), n_projections=50).fit(A, B, 0)
    low = A - 3
    assert (phi.queries(low) < 0).any()
    with pytest.raises(ValueError, match="some rows fall below the data"):
        phi.log_queries(low)


def test_lengthscale_and_scale_act_on_the_data():
    X, Y = pairs()
    wide = Approximation(kernels.Gaussian((0.5, 1.0, 2.0)), n_projections=6).draw(3, 0)
    unit = Approximation(kernels.Gaussian(), n_projections=6).draw(3, 0)
    np.testing.assert_allclose(wide.gram(X, Y), unit.gram(X / [0.5, 1.0, 2.0], Y / [0.5, 1.0, 2.0]), rtol=1e-12)
    scaled = Approximation(kernels.Softmax(0.25), maps.Positive(), n_projections=6).draw(3, 0)
    plain = Approximation(kernels.Softmax(), maps.Positive(), n_projections=6).draw(3, 0)
    np.testing.assert_allclose(scaled.gram(X, Y), plain.gram(X / 2, Y / 2), rtol=1e-12)


def test_results_do_not_depend_on_the_number_of_threads():
    X = np.random.default_rng(0).standard_normal((1500, 100)).astype(np.float32)
    phi = Approximation(kernels.Gaussian(10.0), projection=Orthogonal(rotations.StructuredGivens())).draw(100, 0)
    with bochner.threads(1):
        one = phi.queries(X)
    with bochner.threads(4):
        np.testing.assert_array_equal(phi.queries(X), one)
