"""A window and anchors: exact weights of some keys, in one normalisation with the features of all others."""

from __future__ import annotations

import pytest
import torch

from bochner import Approximation, kernels, maps
from bochner.nn import AttentionState, linear_attention
from support.attention import check_close, exact, fitted, in_parts, lower, mixed, positive, tokens

NEAR = [(1, 0), (4, 0), (0, 3), (5, 2), (30, 0), (2, 40)]


@pytest.mark.parametrize("window, anchors", NEAR)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("feature_map", [maps.Positive(), maps.DenseExponential(), maps.AngularHybrid(2)], ids=str)
def test_equals_the_definition(feature_map, causal, window, anchors):
    q, k, v = tokens(2, 3, size=0.3)
    phi = fitted(feature_map, q, k, m=64)
    found = linear_attention(q, k, v, features=phi, causal=causal, window=window, anchors=anchors, chunk_size=5)
    check_close(found, mixed(phi, q, k, v, window, anchors, causal), 1e-10)


@pytest.mark.parametrize("causal", [False, True])
def test_long_windows_are_cut_into_blocks(causal):
    q, k, v = tokens(2, length=200)
    found = linear_attention(q, k, v, features=positive(), causal=causal, window=70, anchors=2)
    check_close(found, mixed(positive(), q, k, v, 70, 2, causal), 1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_padding_changes_nothing(causal, left):
    q, k, v = tokens(2, 2)
    mask = torch.ones(2, 1, 23, dtype=torch.bool)
    rows = slice(0, 6) if left else slice(17, 23)
    mask[1, :, rows] = False
    expected = mixed(positive(), q, k, v, 4, 3, causal, mask)
    k[1, :, rows], v[1, :, rows] = torch.nan, torch.inf
    found = linear_attention(q, k, v, features=positive(), causal=causal, key_mask=mask, window=4, anchors=3)
    check_close(found, expected, 1e-12)


def test_left_padding_does_not_shift_the_anchors():
    q, k, v = tokens(1)
    q2, k2, v2 = (torch.cat([torch.randn(1, 5, x.shape[-1]).double(), x], dim=1) for x in (q, k, v))
    mask = torch.arange(28)[None] >= 5
    options = {"features": positive(), "causal": True, "window": 4, "anchors": 3}
    whole = linear_attention(q, k, v, **options)
    check_close(linear_attention(q2, k2, v2, key_mask=mask, **options)[:, 5:], whole, 1e-12)


@pytest.mark.parametrize("window, anchors", NEAR)
@pytest.mark.parametrize("cut", [[1] * 23, [5, 1, 10, 7]], ids=["steps", "pieces"])
@pytest.mark.parametrize("masked", [False, True])
def test_decoding_equals_the_parallel_result(cut, window, anchors, masked):
    q, k, v = tokens(2, 2)
    mask = (torch.arange(23) >= torch.tensor([0, 7])[:, None])[:, None] if masked else None
    options = {"features": positive(), "causal": True, "window": window, "anchors": anchors}
    whole = linear_attention(q, k, v, key_mask=mask, **options)
    found, state = in_parts(q, k, v, cut, None if mask is None else mask.split(cut, dim=-1), **options)
    check_close(found, whole, 1e-12)
    assert state.length == 23 and state.near.k.shape[-2] == max(window - 1, 0) + anchors


def test_state_of_beams():
    q, k, v = tokens(3)
    options, order = {"features": positive(), "causal": True, "window": 3, "anchors": 1}, [2, 2, 0]
    _, state = linear_attention(q[:, :20], k[:, :20], v[:, :20], return_state=True, **options)
    chosen = state.select(torch.tensor(order))
    found = linear_attention(q[order, 20:], k[order, 20:], v[order, 20:], state=chosen, **options)
    check_close(found, linear_attention(q, k, v, **options)[order, 20:], 1e-12)
    assert state.clone().length == 20 and "3 keys with exact weights" in repr(chosen)


def test_anchors_of_a_memory():
    q, k, v = tokens(2, length=5, keys=9)
    options = {"features": positive(), "anchors": 4}
    _, state = linear_attention(q[:, :0], k, v, return_state=True, **options)
    expected = mixed(positive(), q, k, v, 0, 4, False)
    check_close(linear_attention(q, None, None, state=state, **options), expected, 1e-12)
    check_close(linear_attention(q, k, v, **options), expected, 1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_all_keys_near_is_exact_attention(causal):
    q, k, v = tokens(2, 2, size=3.0)
    found = linear_attention(q, k, v, features=positive(), causal=causal, window=23)
    check_close(found, exact(q, k, v, lower(23) if causal else None), 1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences(causal):
    q, k, v = tokens(2)
    options = {"features": positive(), "causal": causal, "window": 3, "anchors": 1}
    found = linear_attention(q, k, v, cu_seqlens=torch.tensor([0, 9, 23]), **options)
    check_close(found[:, 9:], linear_attention(q[:, 9:], k[:, 9:], v[:, 9:], **options), 1e-13)


def test_grouped_heads_and_features_of_heads():
    q, k, v = tokens(2, 4)
    shared = k[:, :1], v[:, :1]
    found = linear_attention(q, *shared, features=positive(), causal=True, window=3, anchors=1)
    check_close(found, mixed(positive(), q, *shared, 3, 1, True), 1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_those_of_the_definition(causal):
    q, k, v = tokens(2, length=30)
    pairs = []
    for attention in (
        lambda *x: linear_attention(*x, features=positive(), causal=causal, window=4, anchors=2, chunk_size=8),
        lambda *x: mixed(positive(), *x, 4, 2, causal),
    ):
        inputs = [x.clone().requires_grad_() for x in (q, k, v)]
        attention(*inputs).sin().sum().backward()
        pairs.append([x.grad for x in inputs])
    for found, expected in zip(*pairs, strict=True):
        check_close(found, expected, 1e-11)


def test_large_keys_in_float32():
    """Squared norms of hundreds; later tokens, 100 times larger, change nothing before them."""
    q, k, v = tokens(2, length=150, d=8, size=3.0)
    phi = fitted(maps.OptimalPositive(), q, k, m=64)
    options = {"features": phi, "causal": True, "window": 5, "anchors": 1}
    expected = linear_attention(q, k, v, **options)
    found = linear_attention(q.float(), k.float(), v.float(), **options)
    check_close(found, expected, 2e-3)
    for x in (q, k, v):
        x[:, 70:] *= 100
    check_close(linear_attention(q, k, v, **options)[:, :70], expected[:, :70], 1e-12)


def test_errors():
    q, k, v = tokens(2)
    gaussian = Approximation(kernels.Gaussian(), maps.Positive(), n_projections=8).draw(3, rng=0)
    with pytest.raises(ValueError, match="weights of softmax"):
        linear_attention(q, k, v, features=gaussian, window=2)
    with pytest.raises(ValueError, match="window must be an integer of at least 0"):
        linear_attention(q, k, v, features=positive(), window=-1)
    with pytest.raises(ValueError, match="cannot be combined with prefix_lengths"):
        linear_attention(q, k, v, features=positive(), anchors=1, prefix_lengths=torch.arange(23))
    with pytest.raises(ValueError, match="needs causal=True"):
        linear_attention(q, k, v, features=positive(), window=2, state=AttentionState())
    with pytest.raises(ValueError, match="as many queries as keys, got 4 and 23"):
        linear_attention(q[:, :4], k, v, features=positive(), window=2)
    _, state = linear_attention(q, k, v, features=positive(), causal=True, window=3, return_state=True)
    with pytest.raises(ValueError, match=r"holds 2 keys with exact weights, but .* ask for 4"):
        linear_attention(q, k, v, features=positive(), causal=True, window=5, state=state)
