"""Which engine computes a call, and parts of long calls, which give what the whole gives."""

from __future__ import annotations

import pytest
import torch

from bochner import maps
from bochner.nn import _engine_choice as choice
from bochner.nn import _one_sequence, linear_attention
from support.attention import check_close, fitted, in_parts, positive, tokens


@pytest.fixture
def computed(monkeypatch):
    """How often the fused operator has been called."""
    calls = []

    def counted(*inputs, **options):
        calls.append(1)
        return attend(*inputs, **options)

    attend = _one_sequence.attend
    monkeypatch.setattr(_one_sequence, "attend", counted)
    return calls


RULE = [
    ({}, 512, False, False),
    ({}, 512, True, False),
    ({}, 8192, False, False),  # in tiles
    ({}, 8192, True, True),
    ({"causal": True}, 512, False, True),
    ({"causal": True, "window": 16}, 512, False, True),
    ({"causal": True, "window": 64}, 512, False, False),
    ({"causal": True, "window": 64}, 4096, False, True),
    ({"causal": True, "window": 128}, 4096, False, False),
    ({"causal": True, "window": 128}, 4096, True, True),
    ({"window": 16}, 4096, False, False),
]


@pytest.mark.parametrize("options, length, trained, fused", RULE, ids=str)
def test_the_operator_computes_what_it_is_faster_at(options, length, trained, fused, computed, monkeypatch):
    """The rule of the benchmarks, for inputs of an eighth of their size."""
    for name in ("_LARGE", "_LARGE_ALL", "_TILE"):
        monkeypatch.setattr(choice, name, getattr(choice, name) >> 9)
    q, k, v = tokens(2, length=length // 8, dtype=torch.float32)
    linear_attention(*(x.requires_grad_(trained) for x in (q, k, v)), features=positive(m=32), **options)
    assert bool(computed) == fused
    before = len(computed)
    linear_attention(q, k, v, features=positive(m=32), engine="plain", **options)
    assert len(computed) == before


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(choice, "_TILE", 1)  # 64 rows
    monkeypatch.setattr(choice, "_SEGMENT", 50)


@pytest.mark.parametrize("engine", ["plain", "fused"])
@pytest.mark.parametrize("window, anchors", [(0, 0), (0, 2), (13, 0), (60, 2)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_parts_give_what_the_whole_gives(causal, window, anchors, masked, engine, small_parts, monkeypatch):
    monkeypatch.setattr(choice, "NARROW", 0 if engine == "plain" else 1000)
    q, k, v = tokens(2, 3, length=170)
    mask = torch.rand(2, 1, 170, generator=torch.Generator().manual_seed(1)) < 0.6 if masked else None
    if masked:
        mask[..., :70] = False  # nothing is seen in the first tile
    options = {"features": fitted(maps.DenseExponential(), q, k), "causal": causal, "key_mask": mask}
    options |= {"window": window, "anchors": anchors}
    found = linear_attention(q, k, v, **options)
    check_close(found, linear_attention(q, k, v, engine="plain", **options), 1e-11)
    if causal:
        cut = [3, 130, 1, 36]
        del options["key_mask"]
        masks = None if mask is None else mask.split(cut, dim=-1)
        kept, state = in_parts(q, k, v, cut, masks, **options)
        check_close(kept, found, 1e-11)
        assert state.length == 170


@pytest.mark.parametrize("causal, window", [(False, 0), (True, 60)])
def test_gradients_of_what_is_not_a_query_or_a_key(causal, window, small_parts):
    q, k, v = tokens(2, 3, length=170)
    options = {"features": positive(), "causal": causal, "window": window}

    def gradients(engine):
        bias, scale = (
            torch.zeros(170, dtype=q.dtype).requires_grad_(),
            torch.ones(3, 1, 1, dtype=q.dtype).requires_grad_(),
        )
        out = linear_attention(q, k, v, key_mask=bias, scale=scale, engine=engine, **options)
        return torch.autograd.grad(out.sin().sum(), (bias, scale))

    for found, expected in zip(*map(gradients, ("auto", "plain")), strict=True):
        check_close(found, expected, 1e-11)


def test_no_rows(small_parts):
    q, k, v = tokens(2, length=20)
    options = {"features": positive()}
    assert linear_attention(q[:, :0], k, v, **options).shape == (2, 0, v.shape[-1])
    assert not linear_attention(q, k[:, :0], v[:, :0], **options).any()
