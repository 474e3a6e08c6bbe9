"""Quadratic forms: the same logarithms as the map itself, on both sides, in and out of frames."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from bochner import Approximation, kernels, maps, mechanism, projections
from bochner.approximation.log_features import log_features
from bochner.nn import RandomFeatureAttention, linear_attention
from bochner.nn._drawn import DrawnFeatures
from bochner.nn._tensor_features import HeadFeatures, MapFeatures, QuadraticFeatures, tensor_features
from support.attention import check_close

PROJECTIONS = [projections.Orthogonal(), projections.Simplex(), projections.Quadrature(origin="signed")]
MAPS = [
    maps.Positive(),
    maps.Hyperbolic(),
    maps.OptimalPositive(),
    maps.Framed(maps.Positive()),
    maps.Framed(maps.Hyperbolic(), balance=False),
    maps.Framed(maps.OptimalPositive(), center=False),
    maps.DenseExponential(),
    maps.DenseExponential(center=False),
    maps.DenseExponential(False, False, A=(-0.3, 0.05, -0.1, -0.2)),
]
WITHOUT = [
    maps.Trigonometric(),
    maps.Framed(maps.Trigonometric()),
    maps.AngularHybrid(2),
    maps.DenseExponential(s=(1, -1, 1, 1)),
    maps.DenseExponential(A=(-0.1 + 0.1j, 0, 0, 0)),
]


def points(dtype=torch.float64, lead=()):
    """Queries and keys far from zero that differ in scale."""
    g = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, *lead, 30, 4, generator=g, dtype=torch.float64)
    scales = torch.tensor([1.5, 0.7, 0.4, 0.2], dtype=torch.float64)
    return (q * scales + 1.0).to(dtype), (k * scales.flip(0) - 1.0).to(dtype)


def fitted(feature_map, projection=None):
    q, k = points()
    spec = Approximation(kernels.Softmax(), feature_map, projection or projections.Orthogonal(), 12)
    return spec.fit(q.numpy(), k.numpy(), rng=0)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 2e-5)], ids=str)
@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
@pytest.mark.parametrize("feature_map", MAPS, ids=repr)
def test_logarithms_are_those_of_the_map(feature_map, projection, dtype, tolerance):
    phi, sides = fitted(feature_map, projection), points(dtype)
    features = tensor_features(phi, sides[0])
    assert isinstance(features, QuadraticFeatures) and features.positive is phi.positive
    for X, key in zip(sides, (False, True), strict=True):
        found, expected = features.log(X, key=key), log_features(phi.features, X.double(), key=key)
        check_close(found.log.double(), expected.log.expand_as(found.log), tolerance * 30)
        signs = torch.ones(phi.n_features_out) if expected.mantissa is None else expected.mantissa[0]
        assert np.array_equal(np.ones(phi.n_features_out) if found.mantissa is None else found.mantissa, signs)


@pytest.mark.parametrize("feature_map", WITHOUT, ids=repr)
def test_maps_of_another_form_have_none(feature_map):
    assert fitted(feature_map).features.quadratic() is None


def test_norms_of_the_gaussian_kernel_are_not_quadratic_in_a_frame():
    q, k = (x.numpy() for x in points())
    spec = Approximation(kernels.Gaussian(), maps.DenseExponential(), n_projections=12)
    assert spec.fit(q, k, rng=0).features.quadratic() is None


@pytest.mark.parametrize("causal", [False, True])
def test_attention_equals_that_of_the_map(causal):
    phi, (q, k) = fitted(maps.DenseExponential()), points(torch.float32, (2, 3))
    fast, slow = (linear_attention(q, k, k, features=f, causal=causal) for f in (phi, MapFeatures(phi)))
    check_close(fast, slow, 1e-4)


@pytest.mark.parametrize("heads", [1, 3])
def test_heads_of_a_module_equal_those_of_their_maps(heads):
    q, k = points(torch.float32, (2, heads))
    spec = Approximation(kernels.Softmax(), maps.DenseExponential(), n_projections=12)
    drawn = DrawnFeatures(spec, 4, heads, generator=torch.Generator().manual_seed(0))
    drawn.fit_call(q, k, None, 1.0)
    members = HeadFeatures([MapFeatures(phi) for phi in drawn.drawn()])
    assert isinstance(drawn.current, QuadraticFeatures)
    for X, key in ((q, False), (k, True)):
        check_close(drawn.current.log(X, key=key).log, members.log(X, key=key).log, 1e-4)


def dense_attention(seed, shift=0.0):
    torch.manual_seed(seed)
    module = RandomFeatureAttention(8, 2, spec="dense", batch_first=True)
    x = torch.randn(2, 20, 8) + shift
    return module, x, module(x, x, x, need_weights=False)[0]


def test_a_checkpoint_holds_the_arrays_and_the_form_follows_them():
    module, x, out = dense_attention(0)
    other, _, elsewhere = dense_attention(1, shift=1.0)
    assert not torch.allclose(out, elsewhere)
    stored = module.state_dict()
    assert not any("queries" in name or "keys" in name or "matrix" in name for name in stored)
    other.load_state_dict(stored)
    assert torch.equal(other(x, x, x, need_weights=False)[0], out)
    module.redraw(torch.Generator().manual_seed(2))
    assert not torch.allclose(module(x, x, x, need_weights=False)[0], out)


def test_the_form_keeps_its_precision():
    module, _, _ = dense_attention(0)
    module.half()
    assert module.features.queries_matrix.dtype == torch.float32


@pytest.mark.parametrize("name", ["favor+", "dense"])
def test_features_of_buffers_are_kept_until_a_number_changes(name):
    drawn = DrawnFeatures(mechanism(name, n_projections=8), 4, 2, dtype=torch.float64)
    q, k, v = torch.randn(3, 1, 2, 6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    with torch.inference_mode():
        first = linear_attention(q, k, v, features=drawn.current)
    assert drawn.current is drawn.current
    kept = drawn.current
    drawn.redraw(torch.Generator().manual_seed(1))
    assert drawn.current is not kept
    other = linear_attention(q.requires_grad_(), k, v, features=drawn.current)  # after a call in inference mode
    assert not torch.allclose(first, other)
    assert copy.deepcopy(drawn).current is not drawn.current
    other.sum().backward()
    again = linear_attention(q, k, v, features=copy.deepcopy(drawn).current)
    assert torch.equal(again, other)
