"""The plain engine: the same number of operations for any length, no synchronisation, the same result as by definition."""

from __future__ import annotations

import contextlib
import itertools
import pathlib
import re

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import bochner.nn
from bochner import maps
from bochner.nn import RandomFeatureAttention, _attention_window, linear_attention, replace_attention
from support.attention import check_close, dense, fitted, in_parts, lower, mixed, positive, tokens

FEATURES = positive(8)
CASES = {
    "all": {},
    "causal": {"causal": True},
    "causal with a window": {"causal": True, "window": 64},
    "causal with a short window": {"causal": True, "window": 8},
    "two-sided window and anchors": {"window": 16, "anchors": 2},
    "causal with a mask": {"causal": True, "key_mask": True},
    "prefixes": {"prefix_lengths": True},
    "kept": {"causal": True, "window": 8, "anchors": 1, "return_state": True},
    "packed": {"cu_seqlens": True},
    "packed, causal": {"causal": True, "cu_seqlens": True},
    "packed, causal with a window": {"causal": True, "window": 64, "cu_seqlens": True},
    "packed, two-sided window and anchors": {"window": 16, "anchors": 2, "cu_seqlens": True},
}


class Counted(TorchDispatchMode):
    """Counts operations that compute something: views cost nothing."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += not (function.is_view or "view" in str(function) or "promote" in str(function))
        return function(*args, **(kwargs or {}))


MOST = {"all": 18, "causal": 56, "causal with a window": 40, "packed, two-sided window and anchors": 185}
"""Operations of the cases that matter, which the page on attention names."""


def call(length, device, options, counted=None):
    q, k, v = (x.to(device) for x in tokens(2, 2, length=length, d=8, e=4, dtype=torch.float32))
    options = dict(options)
    if "key_mask" in options:
        options["key_mask"] = (torch.arange(length) % 3 > 0).to(device)
    if "prefix_lengths" in options:
        options["prefix_lengths"] = torch.arange(length).to(device)
    if "cu_seqlens" in options:
        options["cu_seqlens"] = torch.tensor([0, 7, 7, length // 2, length]).to(device)
    with counted or contextlib.nullcontext():
        return linear_attention(q, k, v, features=FEATURES, engine="plain", **options)


@pytest.mark.parametrize("name", CASES)
def test_as_many_operations_at_any_length(name):
    found = []
    for length in (509, 4001):  # primes: everything needs padding
        call(length, "cpu", CASES[name])  # tables that do not depend on the length are made once
        counted = Counted()
        call(length, "cpu", CASES[name], counted)
        found.append(counted.count)
    assert found[0] == found[1] <= MOST.get(name, 150)


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
        "_engine_choice.py": "chooses the engine",
        "_decoding_step.py": "chooses the engine",
        "_linear_layer.py": "chooses the engine",
        "_coded_blocks.py": "chooses the engine",
        "_coded_step.py": "chooses the engine",
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


WINDOWS = [(12, 1), (17, 2), (64, 1), (75, 0)]


@pytest.mark.parametrize("window, anchors", WINDOWS)
@pytest.mark.parametrize("feature_map", [maps.Positive(), maps.AngularHybrid(2)], ids=str)
def test_windows_over_chunks_equal_the_definition(feature_map, window, anchors):
    q, k, v = tokens(2, 2, length=150, size=0.3)
    phi = fitted(feature_map, q, k, m=64)
    options = {"features": phi, "causal": True, "window": window, "anchors": anchors, "engine": "plain"}
    expected = mixed(phi, q, k, v, window, anchors, True)
    check_close(linear_attention(q, k, v, **options), expected, 1e-10)
    found, state = in_parts(q, k, v, [20, 1, 64, 65], **options)
    check_close(found, expected, 1e-10)
    assert state.near.k.shape[-2] == window - 1 + anchors


@pytest.mark.parametrize("window", [13, 33])
@pytest.mark.parametrize("borders", [None, [0, 4, 4, 15, 100, 101, 150]], ids=["one sequence", "packed"])
def test_windows_of_several_chunks_that_do_not_divide_them(borders, window, monkeypatch):
    monkeypatch.setattr(_attention_window, "_LONGEST", 10)
    q, k, v = tokens(2, 2, length=150)
    options = {"features": positive(), "causal": True, "window": window, "engine": "plain"}
    packed = {} if borders is None else {"cu_seqlens": torch.tensor(borders)}
    found = linear_attention(q, k, v, **options, **packed)
    for a, b in itertools.pairwise(borders or [0, 150]):
        rows = (x[..., a:b, :] for x in (q, k, v))
        if a < b:
            check_close(found[..., a:b, :], mixed(positive(), *rows, window, 0, True), 1e-12)
    kept, _ = in_parts(q, k, v, [20, 1, 64, 65], **options)
    check_close(kept, mixed(positive(), q, k, v, window, 0, True), 1e-12)


def test_masks_beside_a_window_over_chunks():
    q, k, v = tokens(2, 2, length=90)
    mask = (torch.arange(90) >= torch.tensor([0, 37])[:, None])[:, None]
    expected = mixed(positive(), q, k, v, 20, 0, True, mask)
    k[1, :, :37], v[1, :, :37] = torch.nan, torch.inf
    options = {"features": positive(), "causal": True, "window": 20, "engine": "plain"}
    check_close(linear_attention(q, k, v, key_mask=mask, **options), expected, 1e-12)


def test_a_window_that_reaches_before_the_first_key():
    """There is no key there, and its weight of one would hide all weights that vanish beside it."""
    _, k, v = tokens(2, length=100, d=8, size=6.0, dtype=torch.float32)
    found = linear_attention(-k, k, v, features=positive(8), causal=True, window=64, scale=1.0, engine="plain")
    check_close(found[:, 0], v[:, 0], 1e-6)


def test_tables_that_are_made_without_gradients_serve_with_them():
    q, k, v = tokens(2, length=90)
    for window in (0, 18):
        options = {"features": positive(), "causal": True, "window": window, "engine": "plain", "chunk_size": 16}
        with torch.inference_mode():
            linear_attention(q, k, v, **options)
        q.requires_grad_()
        linear_attention(q, k, v, **options).sum().backward()
        assert q.grad.isfinite().all()
        q = q.detach()


PACKED = [(causal, window) for causal in (False, True) for window in (0, 1, 3, 16, 33)]
BORDERS = torch.tensor([0, 4, 4, 15, 100, 101, 150])


@pytest.mark.parametrize("causal, window", PACKED)
@pytest.mark.parametrize("feature_map", [maps.Positive(), maps.DenseExponential(), maps.AngularHybrid(2)], ids=str)
@pytest.mark.parametrize("anchors, masked", [(0, False), (2, True)])
def test_packed_sequences_are_computed_as_each_by_itself(feature_map, causal, window, anchors, masked):
    q, k, v = tokens(2, 2, length=150)
    mask = torch.rand(2, 1, 150, generator=torch.Generator().manual_seed(1)) < 0.7 if masked else None
    options = {"causal": causal, "window": window, "anchors": anchors, "engine": "plain"}
    options["features"] = fitted(feature_map, q, k, m=64)
    found = linear_attention(q, k, v, cu_seqlens=BORDERS, key_mask=mask, **options)
    for a, b in itertools.pairwise(BORDERS.tolist()):
        rows = (x[..., a:b, :] for x in (q, k, v))
        if a < b:
            alone = linear_attention(*rows, key_mask=None if mask is None else mask[..., a:b], **options)
            check_close(found[..., a:b, :], alone, 1e-10)


@pytest.mark.parametrize("causal, window", [(False, 0), (True, 0), (True, 16), (False, 16)])
def test_a_packed_sequence_is_not_hidden_by_another(causal, window):
    """Features of the first sequence are e^500 times those of the second one, whose stabiliser starts anew."""
    q, k, v = tokens(2, length=90, dtype=torch.float32)
    bias = torch.where(torch.arange(90) < 40, 500.0, 0.0)
    options = {"features": positive(), "causal": causal, "window": window, "engine": "plain"}
    found = linear_attention(q, k, v, key_mask=bias, cu_seqlens=torch.tensor([0, 40, 90]), **options)
    check_close(found[:, 40:], linear_attention(q[:, 40:], k[:, 40:], v[:, 40:], **options), 1e-5)


@pytest.mark.parametrize("causal, window", [(False, 0), (True, 0), (True, 16), (False, 3)])
def test_gradients_of_packed_sequences(causal, window):
    inputs = [x.requires_grad_() for x in tokens(2, length=70)]
    options = {"features": positive(), "causal": causal, "window": window, "engine": "plain"}
    found = linear_attention(*inputs, cu_seqlens=torch.tensor([0, 33, 70]), **options)
    parts = [linear_attention(*(x[:, a:b] for x in inputs), **options) for a, b in ((0, 33), (33, 70))]
    pairs = (torch.autograd.grad(out.sin().sum(), inputs) for out in (found, torch.cat(parts, dim=1)))
    for a, b in zip(*pairs, strict=True):
        check_close(a, b, 1e-11)


@pytest.mark.filterwarnings("ignore")  # torch's compiler warns of itself
@pytest.mark.parametrize("options", [{}, {"causal": True}, {"causal": True, "window": 16}], ids=str)
def test_packed_sequences_in_one_graph(options):
    torch._dynamo.reset()
    (q, k, v), features = tokens(2, length=70), positive()

    def attention(q, k, v, borders):
        return linear_attention(q, k, v, features=features, cu_seqlens=borders, **options)

    compiled = torch.compile(attention, backend="eager", fullgraph=True)
    for borders in (torch.tensor([0, 33, 70]), torch.tensor([0, 5, 70])):  # other numbers, the same graph
        check_close(compiled(q, k, v, borders), attention(q, k, v, borders), 1e-12)


@pytest.mark.parametrize("window", [0, 16])
def test_gradients_of_chunks(window):
    q, k, v = tokens(2, length=70)
    pairs = []
    for attention in (
        lambda *x: linear_attention(*x, features=positive(), causal=True, window=window, engine="plain"),
        lambda *x: mixed(positive(), *x, window, 0, True),
    ):
        inputs = [x.clone().requires_grad_() for x in (q, k, v)]
        attention(*inputs).sin().sum().backward()
        pairs.append([x.grad for x in inputs])
    for found, expected in zip(*pairs, strict=True):
        check_close(found, expected, 1e-11)


@pytest.mark.parametrize("window", [0, 1, 20])
def test_later_keys_change_nothing(window):
    """Keys a hundred times larger, behind a position: not even a stabiliser sees them."""
    q, k, v = tokens(2, length=150, d=8, size=3.0)
    options = {"features": fitted(maps.OptimalPositive(), q, k, m=64), "causal": True, "window": window}
    expected = linear_attention(q, k, v, engine="plain", **options)
    single = linear_attention(q.float(), k.float(), v.float(), engine="plain", **options)
    check_close(single, expected, 2e-3)
    for x in (q, k, v):
        x[:, 70:] *= 100
    check_close(linear_attention(q, k, v, engine="plain", **options)[:, :70], expected[:, :70], 1e-12)
