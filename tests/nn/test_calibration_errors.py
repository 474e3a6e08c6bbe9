"""Calibration that cannot be done says why, and leaves the model as it is."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bochner import Approximation, kernels, mechanism
from bochner.maps import DenseExponential, Frame
from bochner.nn import RandomFeatureAttention, calibrate, replace_attention
from support.attention_models import encoder

ROWS = torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(0))
ERRORS = [
    (lambda: calibrate(3, [ROWS]), TypeError, r"^calibrate: model must be a torch.nn.Module, got 3\."),
    (lambda: calibrate(nn.Linear(2, 2), [ROWS]), ValueError, "^calibrate: found no attention in Linear"),
    (lambda: calibrate(encoder(), ROWS), TypeError, r"^calibrate: batches must be a list .*such as \[batch\]"),
    (lambda: calibrate(encoder(), {"src": ROWS}), TypeError, "^calibrate: batches must be a list"),
    (lambda: calibrate(encoder(), None), TypeError, "^calibrate: batches must be a list"),
    (lambda: calibrate(encoder(), []), ValueError, "^calibrate: there is nothing to calibrate"),
    (lambda: calibrate(encoder(), [ROWS], select=lambda *_: False), ValueError, "select and keep left no attention"),
    (
        lambda: calibrate(encoder(), [ROWS], keep="layers.0"),
        TypeError,
        "^calibrate: keep must be a list of names of attention",
    ),
    (
        lambda: calibrate(encoder(), [ROWS], keep=["a"]),
        ValueError,
        "^calibrate: keep names 'a', but attention is at lay",
    ),
    (lambda: calibrate(encoder(), [ROWS], window=5), ValueError, "attends to no key beyond the window of 5 and 0 anch"),
    (lambda: calibrate(encoder(), [ROWS], by_loss=True, loss=1), TypeError, "^calibrate: loss must be a function of a"),
    (
        lambda: calibrate(encoder(), [ROWS], by_loss=True, loss=lambda *_: 0.0),
        ValueError,
        "^calibrate: the loss of the model with exact attention must be positive",
    ),
    (
        lambda: calibrate(encoder(), [ROWS], by_loss=True, loss=lambda *_: ROWS),
        ValueError,
        "^calibrate: loss must return one number",
    ),
    (lambda: calibrate(encoder(), [ROWS], select=1), TypeError, "^calibrate: select must be a function"),
    (lambda: calibrate(encoder(), [ROWS], 0), ValueError, "^calibrate: n_projections must be"),
    (lambda: calibrate(encoder(), [ROWS[..., :3]]), ValueError, "^calibrate: the model cannot be run on the batch"),
    (lambda: calibrate(encoder(), [ROWS * torch.nan]), ValueError, "has no finite attention weights"),
    (lambda: calibrate(encoder(), [ROWS * torch.nan], cost=8), ValueError, "has no finite attention weights"),
    (lambda: calibrate(encoder(), [ROWS], spec="favor++"), ValueError, "spec must use maps.DenseExponential"),
    (lambda: calibrate(encoder(), [ROWS], spec="dens"), ValueError, "^calibrate: .*dense"),
    (
        lambda: calibrate(encoder(), [ROWS], spec=Approximation(kernels.Gaussian(), DenseExponential())),
        ValueError,
        "^calibrate: spec must use kernels.Softmax",
    ),
    (
        lambda: RandomFeatureAttention(8, 2, spec=[mechanism("favor+")]),
        ValueError,
        "^RandomFeatureAttention: spec must have one plan for each of the 2 heads, got 1",
    ),
    (
        lambda: RandomFeatureAttention(8, 2, spec=[mechanism("favor+"), mechanism("favor++")]),
        ValueError,
        r"^RandomFeatureAttention: spec\[1\] must be planned.*nn.calibrate",
    ),
    (lambda: RandomFeatureAttention(8, 2, spec=[1, 2]), TypeError, "spec must be an Approximation such as"),
    (lambda: Frame.of_moments([0.0], [0.0], [[1.0]], [[1.0]], [1.0]), ValueError, "^Frame: C must be a 1 x 1 matrix"),
]


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS, ids=[words for *_, words in ERRORS])
def test_errors_in_words(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_a_wrong_plan_leaves_the_model_as_it_is():
    model = encoder()
    plans = calibrate(model, [ROWS])
    plans["layers.1.self_attn"] = plans["layers.1.self_attn"][:1]
    with pytest.raises(ValueError, match="one plan for each of the 4 heads, got 1"):
        replace_attention(model, plans)
    assert all(type(layer.self_attn) is nn.MultiheadAttention for layer in model.layers)
