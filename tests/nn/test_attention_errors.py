"""What linear attention refuses, and how it says so."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from bochner import Approximation, kernels, maps, mechanism
from bochner.nn import (
    AttentionState,
    RandomFeatureAttention,
    RandomFeatures,
    Rotary,
    SampledSoftmax,
    attention_report,
    linear_attention,
    replace_attention,
)
from support.attention import positive, tokens

Q, K, V = tokens(2)
PHI = positive()
SPEC = Approximation(kernels.Softmax(), maps.Positive())


@pytest.mark.parametrize(
    "options, error, match",
    [
        ({"q": Q.int()}, TypeError, r"q must be a floating-point tensor, got torch.int32"),
        (
            {"q": Q.to(torch.float8_e4m3fn)},
            TypeError,
            r"must be of float16, .* got torch.float8_e4m3fn; convert it with",
        ),
        (
            {"q": torch.nested.nested_tensor([Q[0], Q[1]], layout=torch.jagged)},
            TypeError,
            r"q must be a dense tensor, got",
        ),
        ({"q": Q.numpy()}, TypeError, r"q must be a floating-point tensor, got ndarray"),
        ({"q": Q[0, 0]}, ValueError, r"q must have shape \(\.\.\., length, width\), got \(3,\)"),
        ({"k": K[..., :2]}, ValueError, r"q and k must have the same width, k and v the same length"),
        ({"v": V[:, :5]}, ValueError, r"k and v the same length"),
        (
            {"q": Q.expand(3, 2, 23, 3), "k": K[:, None].expand(2, 5, 23, 3)},
            ValueError,
            r"must broadcast; for grouped heads pass enable_gqa=True",
        ),
        ({"features": SPEC}, TypeError, r"features must be drawn; pass spec\.draw\(3, rng\)"),
        (
            {"features": "favor"},
            TypeError,
            r"features must be drawn features such as spec\.draw\(3, rng\), got 'favor'",
        ),
        ({"features": SPEC.draw(4, 0)}, ValueError, r"drawn for width 4, but q and k have width 3"),
        (
            {"features": Approximation(kernels.Softmax(0.5), maps.Positive()).draw(3, 0)},
            ValueError,
            r"Softmax\(scale=0\.5\) would be scaled twice; .* pass scale=0\.5 here",
        ),
        ({"scale": -1.0}, ValueError, r"scale must be a positive number or tensor, got -1\.0"),
        ({"scale": 1e-300}, ValueError, r"scale must be a number between 1e-60 and 1e\+60, got 1e-300"),
        ({"causal": 1}, TypeError, r"causal must be True or False"),
        (
            {"causal": True, "q": Q[:, :5]},
            ValueError,
            r"as many queries as keys, got 5 and 23; pass prefix_lengths",
        ),
        ({"chunk_size": 0}, ValueError, r"chunk_size must be an integer of at least 1"),
        (
            {"key_mask": torch.ones(2, 23, dtype=torch.int64)},
            TypeError,
            r"key_mask must be a tensor of bool, True for keys and False for padding, or of numbers .* got torch.int64",
        ),
        (
            {"key_mask": torch.ones(2, 23, 23, dtype=torch.bool)},
            ValueError,
            r"mask of queries by keys cannot be computed in linear time",
        ),
        (
            {"key_mask": torch.ones(5, 23, dtype=torch.bool)},
            ValueError,
            r"key_mask must have the shape of k without its width",
        ),
        ({"prefix_lengths": torch.ones(23)}, TypeError, r"prefix_lengths must be a tensor of integers"),
        ({"prefix_lengths": torch.ones(4, dtype=torch.int64)}, ValueError, r"prefix_lengths must have shape \(23,\)"),
        ({"prefix_lengths": torch.full((23,), 24)}, ValueError, r"between 0 and the number of keys 23"),
        (
            {"prefix_lengths": torch.ones(23, dtype=torch.int64), "causal": True},
            ValueError,
            r"cannot be combined with causal",
        ),
        (
            {"prefix_lengths": torch.ones(2, 23, dtype=torch.int64), "state": AttentionState()},
            ValueError,
            r"state belongs to one sequence",
        ),
        (
            {"cu_seqlens": torch.tensor([0, 5])},
            ValueError,
            r"cu_seqlens must not decrease and run from 0 to the length 23",
        ),
        (
            {"cu_seqlens": torch.tensor([0.0, 23.0])},
            ValueError,
            r"cu_seqlens must be a tensor of at least two integers",
        ),
        (
            {"cu_seqlens": (torch.tensor([0, 23]), torch.tensor([0, 3, 23]))},
            ValueError,
            r"1 sequences of queries, 2 of keys",
        ),
        (
            {"cu_seqlens": torch.tensor([0, 23]), "state": AttentionState()},
            ValueError,
            r"state belongs to one sequence",
        ),
        ({"state": {}}, TypeError, r"state must be an AttentionState"),
        (
            {"k": None, "v": None},
            ValueError,
            r"k and v may only be left out together, and with a state that holds keys",
        ),
        ({"prefix_lengths": [1] * 23}, TypeError, r"prefix_lengths must be a tensor of integers .* got list"),
        (
            {"cu_seqlens": (torch.tensor([0, 3, 23]), torch.tensor([0, 4, 23])), "causal": True},
            ValueError,
            r"as many queries as keys in each sequence, got cu_seqlens \[0, 3, 23\] and \[0, 4, 23\]",
        ),
        (
            {"scale": torch.ones(3)},
            ValueError,
            r"a scale for each head must broadcast to \(2, 1, 1\), .* got shape \(3,\)",
        ),
        ({"nonpositive": "hide"}, ValueError, r"nonpositive must be one of 'warn', 'raise', 'nan', got 'hide'"),
        ({"process_group": "gloo"}, TypeError, r"process_group must be a torch\.distributed process group"),
    ],
)
def test_linear_attention_refuses(options, error, match):
    arguments = {"q": Q, "k": K, "v": V, "features": PHI} | options
    q, k, v = (arguments.pop(name) for name in "qkv")
    with pytest.raises(error, match=match):
        linear_attention(q, k, v, **arguments)


@pytest.mark.parametrize(
    "options, match",
    [
        ({"features": positive(m=5)}, r"the state was made with 32 features, these features have 5"),
        ({"v": V[..., :1]}, r"the state holds values of width \d, got v of shape \(2, 23, 1\)"),
        ({"q": Q[:1], "k": K[:1], "v": V[:1]}, r"the state holds keys with leading axes \(2,\), .* have \(1,\)"),
    ],
)
def test_a_state_refuses_what_does_not_belong_to_it(options, match):
    _, state = linear_attention(Q, K, V, features=PHI, causal=True, return_state=True)
    arguments = {"q": Q, "k": K, "v": V, "features": PHI} | options
    q, k, v = (arguments.pop(name) for name in "qkv")
    with pytest.raises(ValueError, match=match):
        linear_attention(q, k, v, causal=True, state=state, **arguments)
    assert state.length == 23


@pytest.mark.parametrize(
    "arguments, options, error, match",
    [
        ((30, 4), {}, ValueError, r"embed_dim must be a multiple of num_heads, got 30 and 4"),
        ((32, 4), {"dropout": 1.5}, ValueError, r"dropout must be a number of at least 0 and below 1"),
        ((32, 4), {"window": -1}, ValueError, r"window must be an integer of at least 0, got -1"),
        ((32, 4), {"spec": SPEC.draw(8, 0)}, TypeError, r"spec must be an Approximation .* which is drawn here"),
        ((32, 4), {"spec": Approximation(kernels.Softmax(0.5))}, ValueError, r"with scale 1, .* got scale 0\.5"),
        ((32, 4), {"batch_first": "no"}, TypeError, r"batch_first must be True or False, got 'no'"),
        ((32, 4), {"generator": 1.5}, TypeError, r"generator must be a torch\.Generator or None, got 1\.5"),
        ((32, 4), {"spec": "favour"}, ValueError, r"favor"),
        ((32, 4), {"scale": -1.0, "learned_scale": True}, ValueError, r"scale must be a positive number, got -1\.0"),
    ],
)
def test_module_refuses(arguments, options, error, match):
    with pytest.raises(error, match=match):
        RandomFeatureAttention(*arguments, **options)


@pytest.mark.parametrize("make", [RandomFeatureAttention, RandomFeatures, SampledSoftmax])
def test_modules_refuse_devices_and_types_that_there_are_not(make):
    arguments = (8,) if make is RandomFeatures else (8, 2)
    for device in (4, "nowhere", 1.5):
        with pytest.raises(ValueError, match=rf"^{make.__name__}: device must be one that torch has here, .* got"):
            make(*arguments, device=device)
    for dtype in (torch.int64, "float32"):
        with pytest.raises(TypeError, match=rf"^{make.__name__}: dtype must be a floating-point torch.dtype .* got"):
            make(*arguments, dtype=dtype)


@pytest.mark.parametrize(
    "options, match",
    [
        ({"attn_mask": torch.eye(5, dtype=torch.bool)}, r"neither causal nor empty, .* supported are is_causal=True"),
        ({"attn_mask": torch.full((5, 5), 0.3)}, r"attn_mask adds numbers to the logits"),
        ({"state": AttentionState()}, r"pass need_weights=False"),
        (
            {"attn_mask": torch.ones(4, 4, dtype=torch.bool).triu(1)},
            r"attn_mask must have shape \(5, 5\) or \(8, 5, 5\)",
        ),
        (
            {"key_padding_mask": torch.zeros(5, 2, dtype=torch.bool)},
            r"key_padding_mask must have shape \(2, 5\), got \(5, 2\)",
        ),
        (
            {"key_padding_mask": torch.zeros(2, 5, dtype=torch.bool, device="meta")},
            r"key_padding_mask must be on the device of the inputs, cpu, got meta",
        ),
        ({"key": torch.ones(2, 5, 31)}, r"key must have shape \(batch, length, width\) .* width 32, got \(2, 5, 31\)"),
        ({"value": torch.ones(5, 32)}, r"value must have shape \(batch, length, width\) or, like all of them,"),
        ({"value": torch.ones(2, 6, 32)}, r"key and value must have the same length"),
        (
            {"key": torch.ones(1, 5, 32), "value": torch.ones(1, 5, 32)},
            r"must have the same batch, .* batch_first is True",
        ),
    ],
)
def test_module_call_refuses(options, match):
    x = torch.randn(2, 5, 32)
    with pytest.raises(ValueError, match=match):
        RandomFeatureAttention(32, 4, batch_first=True)(**{"query": x, "key": x, "value": x} | options)


@pytest.mark.parametrize(
    "options, match",
    [
        (
            {"state": True, "need_weights": False},
            r"RandomFeatureAttention: state must be an AttentionState, got True",
        ),
        ({"query": np.ones((2, 5, 32))}, r"RandomFeatureAttention: query must be a floating-point tensor, got ndarray"),
        ({"value": torch.ones(2, 5, 32).double()}, r"value must have the type of the parameters, torch.float32"),
        ({"need_weights": "no"}, r"need_weights must be True or False"),
    ],
)
def test_module_call_refuses_other_types(options, match):
    x = torch.randn(2, 5, 32)
    with pytest.raises(TypeError, match=match):
        RandomFeatureAttention(32, 4, batch_first=True)(**{"query": x, "key": x, "value": x} | options)


def test_names_of_mechanisms_are_specifications():
    assert RandomFeatures(3, "rff").features.spec == mechanism("rff")
    assert RandomFeatureAttention(32, 4, spec="favor++").features.spec == mechanism("favor++")


@pytest.mark.parametrize(
    "draw",
    [
        lambda source: RandomFeatures(3, generator=source),
        lambda source: RandomFeatures(3).redraw(source),
        lambda source: RandomFeatureAttention(32, 4).redraw(source),
        lambda source: SampledSoftmax(3, 10, generator=source),
        lambda source: SampledSoftmax(3, 10).redraw(generator=source),
        lambda source: replace_attention(torch.nn.MultiheadAttention(8, 2), generator=source),
        lambda source: attention_report(torch.nn.MultiheadAttention(8, 2), [1, 2], generator=source),
    ],
    ids=["layer", "layer redraw", "attention redraw", "loss", "loss redraw", "conversion", "report"],
)
def test_generators_of_another_kind(draw):
    with pytest.raises(TypeError, match=r"generator must be a torch\.Generator or None, got 3; .*manual_seed\(seed\)"):
        draw(3)


def test_layer_and_rotary_refuse():
    with pytest.raises(ValueError, match=r"RandomFeatures: expected inputs with last axis 3, got shape \(5, 4\)"):
        RandomFeatures(3)(torch.ones(5, 4))
    with pytest.raises(TypeError, match="RandomFeatures: x must be a floating-point tensor, got ndarray"):
        RandomFeatures(3)(np.ones((5, 3)))
    with pytest.raises(TypeError, match="RandomFeatures: spec must be an Approximation"):
        RandomFeatures(3, 2.5)
    with pytest.raises(ValueError, match="Rotary: d must be even"):
        Rotary(3)


def test_without_torch_the_extra_is_named():
    script = "import sys; sys.modules['torch'] = None; import bochner; bochner.nn"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert 'bochner.nn needs PyTorch: pip install "torch>=2.4".' in done.stderr


def test_import_of_bochner_loads_no_torch():
    script = "import sys, bochner; dir(bochner); assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
