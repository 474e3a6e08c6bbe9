"""The plain engine: the same number of operations for any length, no synchronisation, the same result as by definition."""

from __future__ import annotations

import pathlib
import re

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import bochner.nn
from bochner import maps
from bochner.nn import RandomFeatureAttention, linear_attention, replace_attention
from support.attention import check_close, dense, fitted, lower, positive, tokens

CASES = {
    "all": {},
    "causal": {"causal": True},
    "causal with a window": {"causal": True, "window": 64},
    "two-sided window and anchors": {"window": 16, "anchors": 2},
    "causal with a mask": {"causal": True, "key_mask": True},
    "prefixes": {"prefix_lengths": True},
    "kept": {"causal": True, "window": 8, "anchors": 1, "return_state": True},
}


class Counted(TorchDispatchMode):
    """Counts operations that compute something: views cost nothing."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += not (function.is_view or "view" in str(function) or "promote" in str(function))
        return function(*args, **(kwargs or {}))


def call(length, device, options):
    q, k, v = (x.to(device) for x in tokens(2, 2, length=length, d=8, e=4, dtype=torch.float32))
    options = dict(options)
    if "key_mask" in options:
        options["key_mask"] = (torch.arange(length) % 3 > 0).to(device)
    if "prefix_lengths" in options:
        options["prefix_lengths"] = torch.arange(length).to(device)
    return linear_attention(q, k, v, features=positive(8), engine="plain", **options)


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_as_many_operations_at_any_length(options):
    found = []
    for length in (512, 4096):
        call(length, "cpu", options)  # tables that do not depend on the length are made once
        with Counted() as counted:
            call(length, "cpu", options)
        found.append(counted.count)
    assert found[0] == found[1] <= 180


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_nothing_asks_for_numbers(options):
    """A meta tensor has none: a synchronisation would raise, and so would a tensor on another device."""
    out = call(100, "meta", options)
    out = out[0] if isinstance(out, tuple) else out
    assert out.is_meta and out.shape == (2, 2, 100, 4)


@pytest.mark.parametrize("is_causal", [False, True])
def test_modules_without_numbers(is_causal):
    attention = RandomFeatureAttention(16, 2, batch_first=True, spec="favor+", window=4, anchors=1).to("meta")
    x = torch.empty(2, 30, 16, device="meta", requires_grad=True)
    out, _ = attention(x, x, x, is_causal=is_causal, need_weights=False)
    out.sum().backward()
    assert out.is_meta and x.grad.shape == x.shape


def test_converted_models_and_caches_without_numbers():
    transformers = pytest.importorskip("transformers")
    from bochner.nn import LayerPlan, LinearCache, calibrate

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.LlamaConfig(vocab_size=20, num_key_value_heads=1, **sizes)
    model = transformers.LlamaForCausalLM(config).eval()
    plans = calibrate(model, [torch.randint(20, (2, 24), generator=torch.Generator().manual_seed(0))], 8)
    plans = {name: LayerPlan(plan, window=4, anchors=1) for name, plan in plans.items()}
    model = replace_attention(model, plans).to("meta")
    tokens = torch.zeros(2, 12, dtype=torch.int64, device="meta")
    mask = torch.ones(2, 12, dtype=torch.int64, device="meta")
    assert model(tokens, attention_mask=mask, use_cache=False).logits.shape == (2, 12, 20)
    cache = LinearCache(model)
    with torch.no_grad():
        for n in (12, 13):  # a prompt, then a token
            rows = tokens if n == 12 else tokens[:, :1]
            mask = torch.ones(2, n, dtype=torch.int64, device="meta")
            positions = torch.arange(n - rows.shape[1], n, device="meta")[None]
            out = model(rows, attention_mask=mask, past_key_values=cache, position_ids=positions)
    assert out.logits.shape == (2, 1, 20) and cache.get_seq_length() == 13


def test_only_the_choice_of_an_engine_asks_for_a_device():
    """No name of a device, and no question for one, but where an engine is chosen."""
    asked = re.compile(r"device\.type\s*[!=]=|\.is_cuda|\.is_cpu|is_mps|is_xpu")
    allowed = {
        "_one_sequence.py": "chooses the engine",
        "_decoding_step.py": "chooses the engine",
        "_linear_layer.py": "chooses the engine",
        "_coded_attention.py": "chooses the engine",
        "_coded_cache.py": "chooses the engine",
        "_attention_checks.py": "reads numbers that are on the host already",
        "_class_logits.py": "reads numbers that are on the host already",
    }
    found = {
        path.name for path in pathlib.Path(bochner.nn.__file__).parent.glob("*.py") if asked.search(path.read_text())
    }
    assert found <= allowed.keys()


@pytest.mark.parametrize("length", [1, 2, 31, 32, 33, 600])
@pytest.mark.parametrize("feature_map", [maps.Positive(), maps.DenseExponential()], ids=str)
def test_causal_equals_the_definition(feature_map, length):
    q, k, v = tokens(2, length=length)
    phi = fitted(feature_map, q, k)
    found = linear_attention(q, k, v, features=phi, causal=True, engine="plain")
    check_close(found, dense(phi, q, k, v, lower(length))[0], 1e-10)


def test_sums_of_chunks_that_grow_beyond_all_numbers():
    """Features grow by a factor of e^6 per key, e^3600 in all: no sum is under a maximum that is not seen."""
    q, k, v = tokens(length=600, dtype=torch.float32)
    bias = 6.0 * torch.arange(600)
    found = linear_attention(q, k, v, features=positive(), causal=True, key_mask=bias, engine="plain")
    start = 10  # e^-60 remains of what is further back
    for i in (0, 1, 40, 333, 599):
        rows = slice(max(i - start, 0), i + 1)
        part = linear_attention(q[i, None], k[rows], v[rows], features=positive(), key_mask=bias[rows] - bias[i])
        check_close(found[i, None], part, 1e-5)
