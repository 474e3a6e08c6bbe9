"""Options of nn.MultiheadAttention in RandomFeatureAttention: equal to torch's where a window makes all keys exact."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from bochner import mechanism
from bochner.nn import AttentionState, LayerPlan, RandomFeatureAttention, calibrate, linear_attention, replace_attention
from bochner.nn._multihead_call import _warn_of_dropout
from bochner.nn._recording import record
from support.attention import check_close
from support.attention_models import generator

L = 11
ROWS = torch.randn(3, L, 16, generator=generator(), dtype=torch.float64)
PADDING = torch.arange(L) >= torch.tensor([[L], [7], [9]])
NUMBERS = torch.randn(3, L, generator=generator(1), dtype=torch.float64).masked_fill(PADDING, -torch.inf)
MASKS = {"none": None, "padding": PADDING, "numbers": NUMBERS, "shared numbers": NUMBERS[:1].expand(3, -1)}
EXTRA = {
    "plain": {},
    "bias": {"add_bias_kv": True},
    "zero": {"add_zero_attn": True},
    "both": {"add_bias_kv": True, "add_zero_attn": True},
}


def pair(spec="dense", window=2 * L, **options):
    """Torch's attention, and ours with its parameters, loaded strictly."""
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(16, 2, batch_first=True, dtype=torch.float64, **options)
    ours = RandomFeatureAttention(
        16,
        2,
        batch_first=True,
        dtype=torch.float64,
        spec=mechanism(spec, n_projections=16),
        window=window,
        generator=generator(),
        **options,
    )
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("extra", EXTRA)
def test_options_are_those_of_torch(extra, mask, causal):
    theirs, ours = pair(**EXTRA[extra])
    options = {"key_padding_mask": MASKS[mask], "is_causal": causal, "average_attn_weights": False}
    triangle = torch.full((L, L), -torch.inf, dtype=torch.float64).triu(1) if causal else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, for masks of two types
        expected = theirs(ROWS, ROWS, ROWS, **options, attn_mask=triangle)
    found = ours(ROWS, ROWS, ROWS, **options)
    for a, b in zip(found, expected, strict=True):
        check_close(a, b, 1e-10, extra)


@pytest.mark.parametrize("extra", EXTRA)
def test_keys_and_values_of_other_widths(extra):
    theirs, ours = pair(window=0, kdim=5, vdim=7, **EXTRA[extra])
    ours.anchors = 40  # all keys
    inputs = ROWS, torch.randn(3, 6, 5, dtype=torch.float64), torch.randn(3, 6, 7, dtype=torch.float64)
    for a, b in zip(ours(*inputs), theirs(*inputs), strict=True):
        check_close(a, b, 1e-10, extra)


def test_a_bias_multiplies_features_of_keys():
    """By its definition: a key with the bias log 2 is there twice, and features do not see a difference."""
    _, ours = pair(window=0)
    ours.fit_statistics(ROWS)
    bias = torch.zeros(3, L, dtype=torch.float64)
    bias[:, 4] = torch.tensor(2.0).log()
    twice = torch.cat([ROWS, ROWS[:, 4:5]], dim=1)
    found = ours(ROWS, ROWS, ROWS, key_padding_mask=bias, need_weights=False)[0]
    check_close(found, ours(ROWS, twice, twice, need_weights=False)[0], 1e-6)


@pytest.mark.parametrize("extra", EXTRA)
@pytest.mark.parametrize("window", [0, 4])
def test_tokens_one_by_one_are_the_sequence(extra, window):
    _, ours = pair(window=window, **EXTRA[extra])
    ours.fit_statistics(ROWS)
    whole = ours(ROWS, ROWS, ROWS, is_causal=True, need_weights=False)[0]
    state, parts = AttentionState(), []
    for start, stop in ((0, 5), (5, 6), (6, L)):
        part = ROWS[:, start:stop]
        parts.append(ours(part, part, part, is_causal=True, need_weights=False, state=state)[0])
    check_close(torch.cat(parts, dim=1), whole, 1e-9)


@pytest.mark.parametrize("extra", EXTRA)
@pytest.mark.parametrize("causal", [False, True])
def test_recorded_attention_is_exact(extra, causal):
    """What calibration sees is what torch computes, with extra keys and numbers for keys too."""
    theirs, _ = pair(**EXTRA[extra])
    batch = {"query": ROWS, "key": ROWS, "value": ROWS, "key_padding_mask": NUMBERS, "is_causal": causal}
    call = record(theirs, batch)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mask = torch.full((L, L), -torch.inf, dtype=torch.float64).triu(1) if causal else None
        weights = theirs(**batch | {"attn_mask": mask}, average_attn_weights=False)[1]
    check_close(call.weights().roll(-(call.k.shape[-2] - L), dims=-1), weights, 1e-10)
    converted = replace_attention(theirs, calibrate(theirs, [batch], 16, window=3, anchors=1), copy=True)
    assert (converted.window, converted.anchors, converted.features.fitted) == (3, 1, True)
    assert converted(ROWS, ROWS, ROWS)[0].isfinite().all()


def test_plans_bring_their_window():
    plan = LayerPlan([mechanism("favor+", n_projections=8)] * 2, window=3, anchors=1)
    module = RandomFeatureAttention(8, 2, spec=plan, batch_first=True)
    x = torch.randn(2, 9, 8, generator=generator())
    q, k, v = (module._heads(x, part, 0) for part in range(3))
    heads = linear_attention(q, k, v, features=module.features.current, window=3, anchors=1)
    assert torch.equal(module(x, x, x)[0], module.out_proj(heads.transpose(1, 2).flatten(2)))
    assert RandomFeatureAttention(8, 2, spec=plan, window=0).window == 0


def test_dropout_warns_once_in_training():
    _warn_of_dropout.cache_clear()
    layer = nn.TransformerEncoderLayer(16, 2, 16, dropout=0.5, batch_first=True)
    replace_attention(layer, "favor+")
    x = ROWS.float()
    layer.eval()(x)
    with pytest.warns(UserWarning, match="dropout of attention weights is not applied"):
        layer.train()(x)
    layer(x)


def test_strict_loading_keeps_the_draw():
    theirs, ours = pair()
    before = {name: values.clone() for name, values in ours.features.state_dict().items()}
    ours.load_state_dict(theirs.state_dict())
    assert all(torch.equal(values, before[name]) for name, values in ours.features.state_dict().items())
    with pytest.raises(RuntimeError, match=r"Missing key.*in_proj_bias"):
        ours.load_state_dict({k: v for k, v in theirs.state_dict().items() if k != "in_proj_bias"})
