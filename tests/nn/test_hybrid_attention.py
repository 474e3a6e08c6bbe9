"""Hybrids in attention: exponentials of the bases, multiplied with the coefficients, are the features of the map."""

from __future__ import annotations

import pytest
import torch

from bochner import Approximation, kernels, maps
from bochner.nn import RandomFeatureAttention, linear_attention
from bochner.nn import _attention_to_all as plain
from bochner.nn._tensor_features import HybridTensorFeatures, tensor_features

D, N = 6, 150
MAPS = {
    "angular": maps.AngularHybrid(3),
    "own projections": maps.AngularHybrid(2, shared=False),
    "gaussian": maps.GaussianHybrid(4, 1.0, 1.0),
    "nested base": maps.Hybrid(
        [maps.AngularHybrid(2)._hybrid(), maps.Trigonometric()], [maps.coefficients.AngularCoefficient(2)]
    ),
}


def drawn(name):
    return Approximation(kernels.Softmax(), MAPS[name], n_projections=8).draw(D, rng=0)


def rows(scale=0.5, dtype=torch.float64):
    q, k, v = torch.randn(3, 2, 3, N, D, dtype=dtype, generator=torch.Generator().manual_seed(0))
    return scale * q, scale * k, v


def explicit(phi, q, k, v, bias=None):
    """The ratio of sums, with all weights."""
    x, y = q * D**-0.25, k * D**-0.25
    (mantissa_q, log_q), (mantissa_k, log_k) = phi.features.scaled(x, key=False), phi.features.scaled(y, key=True)
    weights = (mantissa_q * log_q.exp()) @ (mantissa_k * log_k.exp()).mT
    weights = weights if bias is None else weights * bias.exp()[..., None, :]
    return (weights @ v) / weights.sum(-1, keepdim=True)


@pytest.fixture(params=["all rows", "tiles"])
def tiles(request, monkeypatch):
    if request.param == "tiles":
        monkeypatch.setattr(plain, "_PRODUCTS", 1)  # 64 rows at a time


@pytest.mark.parametrize("name", MAPS)
def test_attention_is_the_ratio_of_sums(name, tiles):
    phi, (q, k, v) = drawn(name), rows()
    out = linear_attention(q, k, v, features=phi)
    assert isinstance(tensor_features(phi, q), HybridTensorFeatures)
    torch.testing.assert_close(out, explicit(phi, q, k, v), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", MAPS)
def test_padding_and_bias_of_keys(name, tiles):
    phi, (q, k, v) = drawn(name), rows()
    bias = torch.randn(2, 1, N, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    bias[0, 0, :9] = -torch.inf
    out = linear_attention(q, k, v, features=phi, key_mask=bias)
    torch.testing.assert_close(out, explicit(phi, q, k, v, bias), rtol=1e-6, atol=1e-6)  # a bias is in single precision


def test_gradients_are_those_of_the_ratio(tiles):
    phi, tensors = drawn("angular"), [x.requires_grad_() for x in rows()]
    ours = torch.autograd.grad(linear_attention(*tensors, features=phi).square().sum(), tensors)
    theirs = torch.autograd.grad(explicit(phi, *tensors).square().sum(), tensors)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


def test_a_state_holds_the_keys_of_the_call(tiles):
    phi, (q, k, v) = drawn("angular"), rows()
    out, state = linear_attention(q, k, v, features=phi, return_state=True)
    torch.testing.assert_close(linear_attention(q, None, None, features=phi, state=state), out)
    _, state = linear_attention(q, k[..., :70, :], v[..., :70, :], features=phi, return_state=True)
    both = linear_attention(q, k[..., 70:, :], v[..., 70:, :], features=phi, state=state)
    torch.testing.assert_close(both, out)


@pytest.mark.parametrize("engine", ["auto", "plain"])
def test_long_vectors_do_not_overflow(engine, tiles):
    phi, (q, k, v) = drawn("angular"), rows(scale=30.0, dtype=torch.float32)
    out = linear_attention(q, k, v, features=phi, nonpositive="nan", engine=engine)
    assert not torch.isinf(out).any() and torch.isfinite(out).any()


def test_modules_use_the_bases():
    module = RandomFeatureAttention(
        12, 2, batch_first=True, spec=Approximation(kernels.Softmax(), MAPS["angular"], None, 8)
    )
    assert isinstance(module.features.current, HybridTensorFeatures)
