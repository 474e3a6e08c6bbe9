"""Numbers added to the logits of keys, and keys that several heads share: equal to the definition on every path."""

from __future__ import annotations

import pytest
import torch

from bochner import maps
from bochner.nn import linear_attention
from support.attention import check_close, fitted, in_parts, lower, positive, tokens

NEAR = [{}, {"window": 4, "anchors": 2}]


def numbers(*shape, seed=3):
    """A bias of keys, with padding."""
    bias = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return bias.masked_fill(bias < -1.2, -torch.inf)


def definition(phi, q, k, v, bias, causal, window=0, anchors=0):
    """Attention by its definition: exact weights of near keys and of the first ones, features of all others."""
    root = q.shape[-1] ** -0.25
    weights = phi.queries(q * root) @ phi.keys(k * root).mT
    n = q.shape[-2]
    places = torch.arange(n)
    near = (places[:, None] - places).abs() < window
    first = ((bias > -torch.inf).cumsum(-1) <= anchors)[..., None, :] if anchors else torch.zeros(n, dtype=torch.bool)
    weights = torch.where(near | first, (q @ k.mT * root**2).exp(), weights) * bias.exp()[..., None, :]
    weights = weights * lower(n) if causal else weights
    total = weights.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, weights / total, 0.0) @ v


@pytest.mark.parametrize("near", NEAR, ids=["features", "near"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("engine", ["auto", "plain"])
def test_equals_the_definition_with_gradients(engine, causal, near):
    q, k, v = tokens(2, 3)
    phi, bias = fitted(maps.DenseExponential(), q, k), numbers(2, 1, 23)

    def of(attention):
        inputs = [x.clone().requires_grad_() for x in (q, k, v, bias)]
        out = attention(*inputs)
        return (out, *torch.autograd.grad(out.sin().sum(), inputs))

    expected = of(lambda *x: definition(phi, *x, causal, **near))
    options = {"features": phi, "causal": causal, "chunk_size": 6, "engine": engine, **near}
    found = of(lambda *x: linear_attention(*x[:3], key_mask=x[3], **options))
    for a, b in zip(found, expected, strict=True):
        check_close(a, b.nan_to_num(0.0), 1e-10)  # a masked key has no gradient


@pytest.mark.filterwarnings("ignore::bochner.nn.DenominatorWarning")
@pytest.mark.parametrize("causal", [False, True])
def test_signed_features(causal):
    q, k, v = tokens(2, 3)
    phi, bias = fitted(maps.Trigonometric(), q, k, m=512), numbers(2, 1, 23)
    found = linear_attention(q, k, v, features=phi, key_mask=bias, causal=causal)
    check_close(found, definition(phi, q, k, v, bias, causal), 1e-8)


def test_a_mask_of_scaled_dot_product_attention():
    """One row for all queries, and no larger than float32 sums can hold without a stabiliser."""
    q, k, v = tokens(2, 3, dtype=torch.float32)
    bias = 300 * numbers(2, 1, 1, 23).float()
    found = linear_attention(q, k, v, features=positive(), key_mask=bias, window=23)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    check_close(found, expected, 1e-4)
    check_close(linear_attention(q, k, v, features=positive(), key_mask=bias), expected, 0.5)


@pytest.mark.parametrize("near", NEAR, ids=["features", "near"])
def test_decoding(near):
    q, k, v = tokens(2, 3)
    options, bias = {"features": positive(), "causal": True, **near}, numbers(2, 1, 23)
    whole, cut = linear_attention(q, k, v, key_mask=bias, **options), [9, 1, 12, 1]
    with torch.no_grad():
        found, _ = in_parts(q, k, v, cut, bias.split(cut, dim=-1), **options)
    check_close(found, whole, 1e-12)


@pytest.mark.parametrize("feature_map", [maps.Positive(), maps.Trigonometric()], ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_keys_that_heads_share(causal, feature_map):
    """Features of keys are computed once; the result and all gradients are those of repeated keys, also in a state."""
    q, k, v = tokens(2, 6, d=4, size=0.3)
    k, v, mask = k[:, :2], v[:, :2], torch.rand(2, 2, 23, generator=torch.Generator().manual_seed(1)) < 0.7
    options = {"features": fitted(feature_map, q, k, m=256), "causal": causal, "chunk_size": 6}

    def of(attention):
        inputs = [x.clone().requires_grad_() for x in (q, k, v)]
        out = attention(*inputs)
        return (out, *torch.autograd.grad(out.sin().sum(), inputs))

    def repeated(q, k, v):
        k, v, there = (x.repeat_interleave(3, dim=1) for x in (k, v, mask))
        return linear_attention(q, k, v, key_mask=there, **options)

    expected = of(repeated)
    found = of(lambda *x: linear_attention(*x, key_mask=mask, enable_gqa=True, **options))
    for a, b in zip(found, expected, strict=True):
        check_close(a, b, 1e-9)
    with torch.no_grad():
        parts, state = in_parts(q, k, v, [9, 14], mask.split([9, 14], dim=2), enable_gqa=True, **options)
    assert state.sums.values.shape[1] == 2
    first = 0 if causal else 9  # what comes later is not seen before it comes
    check_close(parts[:, :, first:], expected[0][:, :, first:], 1e-9)


def test_second_derivatives_of_shared_keys():
    q, k, v = tokens(4, length=3, d=2, e=1)
    bias = numbers(3)

    def call(*x):
        return linear_attention(*x[:3], key_mask=x[3], features=positive(2, 2), causal=True, enable_gqa=True)

    inputs = [x.requires_grad_() for x in (q, k[:2], v[:2], bias.clamp(min=-1.0))]
    assert torch.autograd.gradgradcheck(call, inputs)
