"""Attention is causal to rounding, finite for large inputs and in half precision, and differentiable."""

from __future__ import annotations

import pytest
import torch

from bochner import maps
from bochner.nn import linear_attention
from support.attention import check_close, dense, exact, fitted, lower, positive, tokens

STABLE = [maps.Positive(), maps.OptimalPositive(), maps.Hyperbolic()]
SIGNED = [maps.Trigonometric(), maps.AngularHybrid(2), maps.ClusterHybrid(2, 2)]


@pytest.mark.filterwarnings("ignore::bochner.nn.DenominatorWarning")
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.float64, 1e-12)], ids=str)
@pytest.mark.parametrize("chunk", [4, 128])
@pytest.mark.parametrize("feature_map", STABLE + SIGNED, ids=str)
def test_no_output_sees_later_tokens(feature_map, chunk, dtype, tolerance):
    """Tokens from 11 on become 100 times larger: with one stabiliser for a chunk, all that came before would vanish."""
    q, k, v = tokens(2, d=8, size=0.3, dtype=dtype)
    phi = fitted(feature_map, q, k, m=64)
    before = linear_attention(q, k, v, features=phi, causal=True, chunk_size=chunk)
    for x in (q, k, v):
        x[:, 11:] *= 100
    after = linear_attention(q, k, v, features=phi, causal=True, chunk_size=chunk)
    check_close(after[:, :11], before[:, :11], tolerance)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-3), (torch.float64, 1e-10)], ids=str)
@pytest.mark.parametrize("chunk", [4, 128])
@pytest.mark.parametrize("feature_map", STABLE, ids=str)
def test_no_output_is_hidden_by_later_keys(feature_map, chunk, dtype, tolerance):
    """Features of long keys are small, of later short ones large: these would hide all that an earlier query sees.

    Logarithms of some hundreds are rounded to 1e-5 in float32.
    """
    q, k, v = tokens(2, d=8, size=10.0, dtype=dtype)
    k[:, 11:] /= 100
    phi = fitted(feature_map, q[:, :11], k[:, :11], m=64)
    alone = linear_attention(q[:, :11], k[:, :11], v[:, :11], features=phi, causal=True, chunk_size=1)
    found = linear_attention(q, k, v, features=phi, causal=True, chunk_size=chunk)
    check_close(found[:, :11], alone, tolerance)


@pytest.mark.parametrize("later", [1.0, 100.0])
def test_causal_in_float32_equals_float64(later):
    q, k, v = tokens(2, length=150, d=8, size=1.0)
    k[:, 70:] *= later
    phi = positive(8, 64)
    expected = linear_attention(q, k, v, features=phi, causal=True)
    check_close(linear_attention(q.float(), k.float(), v.float(), features=phi, causal=True), expected, 2e-4)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("feature_map", STABLE, ids=str)
def test_norms_of_thirty_are_finite(feature_map, dtype, causal):
    q, k, v = tokens(2, length=200, d=64, e=8, dtype=torch.float32)
    q, k = (30 * x / x.norm(dim=-1, keepdim=True) for x in (q, k))
    phi = fitted(feature_map, q, k, m=64)
    inputs = [x.to(dtype).requires_grad_() for x in (q, k, v)]
    with torch.autocast("cpu", dtype=torch.bfloat16 if dtype == torch.float32 else dtype):
        out = linear_attention(*inputs, features=phi, causal=causal)
    assert out.dtype == dtype and out.isfinite().all()
    out.float().square().sum().backward()
    assert all(x.grad.isfinite().all() for x in inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_sums_in_float32(dtype):
    """100000 equal keys: in half precision their sum would overflow or stop growing."""
    q, k, v = torch.zeros(1, 3, dtype=dtype), torch.zeros(100_000, 3, dtype=dtype), torch.ones(100_000, 2, dtype=dtype)
    v[::2] = 3
    assert torch.equal(linear_attention(q, k, v, features=positive()), torch.full((1, 2), 2, dtype=dtype))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("feature_map", [*STABLE, maps.AngularHybrid(2)], ids=str)
def test_gradients(feature_map, causal):
    q, k, v = (x.requires_grad_() for x in tokens(length=7, size=0.3))
    phi = fitted(feature_map, q.detach(), k.detach(), m=24)

    def attention(q, k, v):
        return linear_attention(q, k, v, features=phi, causal=causal, chunk_size=3)

    assert torch.autograd.gradcheck(attention, (q, k, v), fast_mode=True)


@pytest.mark.parametrize("causal", [False, True])
def test_second_gradients(causal):
    q, k, v = (x.requires_grad_() for x in tokens(length=5, size=0.5))
    options = {"features": positive(m=8), "causal": causal, "chunk_size": 2}
    assert torch.autograd.gradgradcheck(lambda *x: linear_attention(*x, **options), (q, k, v))


def test_gradients_are_those_of_the_definition():
    q, k, v = tokens(2, length=40)
    pairs = []
    for attention in (
        lambda *x: linear_attention(*x, features=positive(), causal=True, chunk_size=8),
        lambda *x: dense(positive(), *x, lower(40))[0],
    ):
        inputs = [x.clone().requires_grad_() for x in (q, k, v)]
        attention(*inputs).sin().sum().backward()
        pairs.append([x.grad for x in inputs])
    for found, expected in zip(*pairs, strict=True):
        check_close(found, expected, 1e-12)


def test_padding_has_no_gradient():
    q, k, v = (x.requires_grad_() for x in tokens(2))
    mask = (torch.arange(23) < 9).expand(2, 23)
    linear_attention(q, k, v, features=positive(), key_mask=mask).sum().backward()
    assert (k.grad[:, 9:] == 0).all() and (v.grad[:, 9:] == 0).all() and (k.grad[:, :9] != 0).any()


def test_many_features_reach_exact_attention():
    q, k, v = tokens(2, d=4, size=0.3)
    check_close(linear_attention(q, k, v, features=positive(4, 20000)), exact(q, k, v), 0.01)
