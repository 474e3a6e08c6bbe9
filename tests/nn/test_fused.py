"""The fused operator: equal to the plain engine, with all gradients, in graphs, exports and under vmap."""

from __future__ import annotations

import threading

import pytest
import torch
import torch.utils.checkpoint

from bochner import maps
from bochner.nn import _fused as fused_call
from bochner.nn import _one_sequence, linear_attention
from bochner.nn import _threads as nn_threads
from bochner.nn._fused import attend
from bochner.nn._tensor_features import QuadraticFeatures, Side, tensor_features
from bochner.nn._threads import run_all
from support.attention import check_close, fitted, in_parts, positive, tokens


@pytest.fixture(autouse=True)
def in_all_cases(monkeypatch):
    """The operator computes short inputs and wide windows too, which it is not fast enough for to be chosen."""
    monkeypatch.setattr(_one_sequence, "operator_pays", lambda *_, **__: True)
    monkeypatch.setattr(_one_sequence, "in_tiles", lambda *_: False)


def plain(*inputs, **options):
    return linear_attention(*inputs, engine="plain", **options)


def gradients(attention, inputs):
    inputs = [x.clone().requires_grad_() for x in inputs]
    out = attention(*inputs)
    return out, torch.autograd.grad(out.sin().sum(), inputs)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-11), (torch.float32, 2e-4)], ids=str)
@pytest.mark.parametrize("window, anchors", [(0, 0), (5, 2)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_the_plain_engine(causal, masked, window, anchors, dtype, tolerance):
    q, k, v = tokens(2, 3, length=70, dtype=dtype)
    phi = fitted(maps.DenseExponential(), q, k)
    mask = torch.rand(2, 1, 70, generator=torch.Generator().manual_seed(1)) < 0.6 if masked else None
    options = {
        "features": phi,
        "causal": causal,
        "key_mask": mask,
        "window": window,
        "anchors": anchors,
        "chunk_size": 16,
    }
    found, of_found = gradients(lambda *x: linear_attention(*x, **options), (q, k, v))
    expected, of_expected = gradients(lambda *x: plain(*x, **options), (q, k, v))
    check_close(found, expected, tolerance)
    for a, b in zip(of_found, of_expected, strict=True):
        check_close(a, b, tolerance)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 5e-3)], ids=str)
def test_gradients_where_later_keys_would_hide_earlier_ones(dtype, tolerance):
    """Steps are divided in both directions: squared norms of hundreds, then short keys with far larger features."""
    q, k, v = tokens(2, length=40, d=8, size=10.0, dtype=dtype)
    k[:, 11:] /= 100
    options = {"features": fitted(maps.Positive(), q[:, :11], k[:, :11], m=64), "causal": True}
    alone, of_alone = gradients(lambda *x: plain(*x, **options, chunk_size=1), (q, k, v))
    found, of_found = gradients(lambda *x: linear_attention(*x, **options), (q, k, v))
    check_close(found, alone, tolerance)
    for a, b in zip(of_found, of_alone, strict=True):
        check_close(a, b, tolerance)


@pytest.mark.parametrize("scales", [(1e5, 1.0), (1.0, 1e5), (1e7, 1e7)])
@pytest.mark.parametrize("causal", [False, True])
def test_long_queries_and_keys_give_numbers(causal, scales):
    """Logarithms of 1e10 are rounded by hundreds in float32, in another way for each number of rows."""
    q, k, v = tokens(2, length=64, d=16, dtype=torch.float32)
    q, k = q * scales[0], k * scales[1]
    options = {"features": fitted(maps.Positive(), q, k, m=64), "causal": causal}
    found, of_found = gradients(lambda *x: linear_attention(*x, **options), (q, k, v))
    assert all(x.isfinite().all() for x in (found, *of_found))
    assert found.amax() <= v.amax() + 1e-3  # a mean of values


@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_features_and_of_the_scale(causal):
    q, k, v = tokens(2, 3, length=20)
    drawn = tensor_features(fitted(maps.DenseExponential(), q, k), q)
    scale = torch.rand(3, 1, 1, dtype=torch.float64) + 0.5

    def through(attention):
        def call(scale, *parts):
            features = QuadraticFeatures(Side(*parts[:3]), Side(*parts[3:]), drawn.c, None)
            return attention(q, k, v, features=features, causal=causal, scale=scale, chunk_size=6)

        return gradients(call, (scale, *drawn.queries, *drawn.keys))

    (found, of_found), (expected, of_expected) = through(linear_attention), through(plain)
    check_close(found, expected, 1e-12)
    for a, b in zip(of_found, of_expected, strict=True):
        check_close(a[..., :3, :], b[..., :3, :], 1e-11)  # the row of ones of a matrix is a constant


@pytest.mark.parametrize("causal", [False, True])
def test_checkpointing(causal):
    inputs = tokens(2, 3, length=9)

    def attention(*x):
        return linear_attention(*x, features=positive(), causal=causal)

    def checkpointed(*x):
        return torch.utils.checkpoint.checkpoint(attention, *x, use_reentrant=False)

    (found, of_found), (expected, of_expected) = (gradients(each, inputs) for each in (checkpointed, attention))
    check_close(found, expected, 1e-14)
    for a, b in zip(of_found, of_expected, strict=True):
        check_close(a, b, 1e-14)


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=["torch", "own"])
def runtime(request, monkeypatch):
    """Threads of torch's runtime, or a pool of our own where it has no such entry."""
    if request.param == "own":
        monkeypatch.setattr(nn_threads, "_torch_threads", lambda: None)
    elif nn_threads._torch_threads() is None:
        pytest.skip("torch has another runtime here")


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("short", [0, 1 << 18])
def test_any_number_of_threads(short, causal, runtime, two_threads, monkeypatch):
    monkeypatch.setattr(fused_call, "SHORT", short)
    q, k, v = tokens(2, 6, length=30)
    torch.set_num_threads(1)
    expected = linear_attention(q, k, v, features=positive(), causal=causal)
    torch.set_num_threads(2)
    with torch.inference_mode():
        found = linear_attention(q, k, v, features=positive(), causal=causal)
    assert torch.get_num_threads() == 2
    check_close(found, expected, 1e-13)


def test_errors_of_threads_reach_the_caller(runtime, two_threads):
    done = []
    with pytest.raises(ZeroDivisionError):
        run_all([lambda: done.append(1 / 0)] + [lambda: done.append(1)] * 3)
    run_all([lambda: done.append(2)] * 3)
    assert done[-3:] == [2, 2, 2]


def test_a_forked_child_has_threads_of_its_own(two_threads, monkeypatch):
    monkeypatch.setattr(nn_threads, "_forked", threading.Event())
    nn_threads._after_fork()
    names = []
    run_all([lambda: names.append(threading.current_thread().name)] * 3)
    assert {name[:13] for name in names} == {"bochner-torch"}


def test_tasks_have_the_mode_of_the_caller(runtime, two_threads):
    modes = []
    with torch.inference_mode():
        run_all([lambda: modes.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))] * 7)
    assert modes == [(False, True)] * 7


def test_prefill_of_a_state_then_steps():
    q, k, v = tokens(2, 2, length=40)
    for options in ({}, {"window": 4, "anchors": 1}):
        options |= {"features": positive(), "causal": True}
        with torch.no_grad():
            found, _ = in_parts(q, k, v, [25, 1, 13, 1], **options)
        check_close(found, linear_attention(q, k, v, **options), 1e-12)


def test_gradients_through_a_state():
    q, k, v = (x.requires_grad_() for x in tokens(2, length=12))
    options = {"features": positive(), "causal": True}
    expected = torch.autograd.grad(linear_attention(q, k, v, **options).sin().sum(), (q, k, v))
    found = torch.autograd.grad(in_parts(q, k, v, [7, 5], **options)[0].sin().sum(), (q, k, v))
    for a, b in zip(found, expected, strict=True):
        check_close(a, b, 1e-12)


class Attention(torch.nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, q, k, v):
        return linear_attention(q, k, v, **self.options)


NEAR = [{}, {"window": 4, "anchors": 2}]


@pytest.mark.filterwarnings("ignore")  # torch's compiler warns of itself
@pytest.mark.parametrize(
    "causal, options, engine",
    [(False, NEAR[0], "auto"), (True, NEAR[1], "auto"), (False, NEAR[1], "plain"), (True, NEAR[1], "plain")],
    ids=["all", "causal with a window", "two-sided window, plain", "causal with a window, plain"],
)
def test_one_graph(causal, options, engine):
    torch._dynamo.reset()
    q, k, v = tokens(2, 2)
    module = Attention(features=positive(), causal=causal, engine=engine, **options)
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    for a, b in zip(gradients(compiled, (q, k, v)), gradients(module, (q, k, v)), strict=True):
        for x, y in zip(a, b, strict=True):
            check_close(x, y, 1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "options",
    [*NEAR, {"window": 20}, {"window": 64, "anchors": 1}],
    ids=["features", "short window", "window", "window and anchor"],
)
@pytest.mark.parametrize("causal, engine", [(False, "auto"), (True, "auto"), (False, "plain"), (True, "plain")])
@pytest.mark.swept(4)
def test_export_with_any_length(engine, causal, options):
    module = Attention(features=positive(), causal=causal, engine=engine, **options)
    length = torch.export.Dim("length", min=8, max=4096)
    shapes = {name: {1: length} for name in "qkv"}
    exported = torch.export.export(module, tokens(2, length=150), dynamic_shapes=shapes).module()
    for n in (8, 64, 200):
        inputs = tokens(2, length=n)
        check_close(exported(*inputs), module(*inputs), 1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_vmap(causal):
    q, k, v = tokens(3, 2)
    options = {"features": positive(), "causal": causal}
    found = torch.vmap(lambda *x: linear_attention(*x, **options), in_dims=(0, None, 0))(q, k[0], v)
    expected = linear_attention(q, k[0], v, **options)
    check_close(found, expected, 1e-13)

    def loss(q, k, v):
        return linear_attention(q, k, v, **options).sin().sum()

    of_each = torch.vmap(torch.func.grad(loss, argnums=(0, 1, 2)))(q, k, v)
    whole = torch.func.grad(loss, argnums=(0, 1, 2))(q, k, v)
    for a, b in zip(of_each, whole, strict=True):
        check_close(a, b, 1e-12)


@pytest.mark.filterwarnings("ignore")  # torch compiles some of its own rules
@pytest.mark.parametrize("causal", [False, True])
def test_directional_derivatives(causal):
    q, k, v = tokens(length=9)
    directions = tokens(length=9, seed=1)
    _, found = torch.func.jvp(
        lambda *x: linear_attention(*x, features=positive(), causal=causal), (q, k, v), directions
    )
    step = 1e-6
    ahead, back = (
        linear_attention(
            *(x + s * d for x, d in zip((q, k, v), directions, strict=True)), features=positive(), causal=causal
        )
        for s in (step, -step)
    )
    check_close(found, (ahead - back) / (2 * step), 1e-7)


@pytest.mark.parametrize("options", NEAR, ids=["features", "window"])
def test_meta_tensors(options):
    q, k, v = (x.to("meta") for x in tokens(2, 3))
    out = linear_attention(q, k, v, features=positive(), causal=True, **options)
    assert out.is_meta and out.shape == (2, 3, 23, 4)
    with pytest.raises(TypeError, match=r"meta tensor, which holds no numbers; .* positive exponential features"):
        linear_attention(q, k, v, features=fitted(maps.Trigonometric(), *tokens(2)[:2]))


def test_the_operator_is_well_formed():
    q, k, v = tokens(2, 2, length=12)
    features = tensor_features(positive(), q)
    (queries, _), (keys, _) = (features.binary(0.7, q, key=key) for key in (False, True))
    sides = (x.expand(2, 2, *x.shape[-2:]) for x in (*queries[:2], *keys[:2]))
    inputs = (
        q.requires_grad_(),
        k,
        v,
        torch.zeros_like(k[..., :1]),
        *sides,
        True,
        False,
        0,
        1,
        5,
        True,
        False,
        None,
        None,
    )
    tests = ("test_schema", "test_faketensor")
    torch.library.opcheck(torch.ops.bochner.linear_attention.default, inputs, test_utils=tests)
    assert attend(features, q, k, v, None, 0.7, causal=True)[1].shape == (2, 2, 12, 1)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("contiguous", [False, True])
@pytest.mark.parametrize("tile", [1, 5, 300, 1 << 17])
def test_groups_of_heads_across_a_batch(monkeypatch, tile, contiguous, shared):
    """Parts of the heads of a sequence, and all heads of several ones, of which the last group has fewer."""
    q, k, v = tokens(5, 3, length=20)
    if not contiguous:
        q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v))
    mask = torch.rand(5, 1, 20, generator=torch.Generator().manual_seed(1)) < 0.8
    features = tensor_features(positive(), q)
    if not shared:
        sides = [Side(side.matrix * torch.tensor([0.5, 1.0, 1.5])[:, None, None]) for side in (features.queries,) * 2]
        features = QuadraticFeatures(*sides, features.c, None)

    def of(causal):
        options = {"features": features, "causal": causal, "key_mask": mask, "chunk_size": 7}
        return gradients(lambda *x: linear_attention(*x, **options), (q, k, v))

    expected = [of(causal) for causal in (False, True)]
    monkeypatch.setattr(fused_call, "TILE", tile * features.width)
    for (a, of_a), (b, of_b) in zip(expected, map(of, (False, True)), strict=True):
        for x, y in zip((a, *of_a), (b, *of_b), strict=True):
            check_close(x, y, 1e-12)
