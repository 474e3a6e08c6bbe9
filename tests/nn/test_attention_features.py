"""Linear attention that fits and draws by itself, and grouped heads."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

from bochner import mechanism
from bochner.nn import AttentionFeatures, linear_attention
from support.attention import check_close, in_parts, tokens
from support.attention_models import generator

OPTIONS = [
    {},
    {"causal": True},
    {"key_mask": torch.arange(23) < 20},
    {"scale": 0.3},
    {"window": 3, "anchors": 1, "causal": True},
]


@pytest.mark.parametrize("lead", [(), (1,), (3,), (2, 3)], ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_fitted_features_are_those_of_the_plans(lead, options):
    """Each head with the features of its plan, drawn by hand from queries and keys times the root of the scale."""
    q, k, v = tokens(*lead, d=4)
    features = AttentionFeatures("dense", 16, generator=generator())
    found = linear_attention(q, k, v, features=features, **options)
    heads = lead[-1] if lead else 1
    assert len(features.plans) == heads and all(plan.planned for plan in features.plans)
    once = linear_attention(q, k, v, spec="dense", n_projections=16, generator=generator(), **options)
    assert torch.equal(found, once)
    for h in range(heads):
        one = features._drawn.drawn()[h]
        part = [x if not lead else x[..., h, :, :] for x in (q, k, v)]
        check_close(found if not lead else found[..., h, :, :], linear_attention(*part, features=one, **options), 1e-6)


def test_more_rows_are_nearer_to_exact_attention():
    q, k, v = tokens(2, 4, d=8)
    few, many = (
        (linear_attention(q, k, v, n_projections=m, generator=generator()) - sdpa(q, k, v)).norm() for m in (16, 2048)
    )
    assert many < few / 4


def test_kept_features_serve_a_state():
    q, k, v = tokens(2, 3, d=4)
    features = AttentionFeatures(mechanism("favor++", n_projections=16))
    whole = linear_attention(q, k, v, features=features, causal=True)
    check_close(in_parts(q, k, v, [1] * 23, features=features, causal=True)[0], whole, 1e-9)
    features.redraw(generator(1))
    assert not torch.allclose(linear_attention(q, k, v, features=features, causal=True), whole)


def test_constants_come_from_what_is_there_times_the_root_of_the_scale():
    q, k, v = tokens(2, 3, d=4)
    mask = torch.arange(23) < 20
    features = AttentionFeatures("dense", 16)
    linear_attention(q, k.masked_fill(~mask[:, None], 1e3), v, features=features, key_mask=mask, scale=0.3)
    for h, plan in enumerate(features.plans):
        mean = (0.3**0.5 * k[:, h, :20]).flatten(0, 1).mean(0)
        check_close(torch.tensor(plan.map.frame.key_center), mean, 0.02)  # of 1024 rows drawn from these


@pytest.mark.parametrize("causal", [False, True])
def test_grouped_heads_are_those_of_torch(causal):
    q, k, v = tokens(2, 6, d=4)
    k, v = k[:, :2], v[:, :2]
    exact = sdpa(q, k, v, is_causal=causal, enable_gqa=True)
    found = linear_attention(q, k, v, causal=causal, enable_gqa=True, window=23, n_projections=8)
    check_close(found, exact, 1e-9)
    one = linear_attention(q, k[:, :1], v[:, :1], causal=causal, window=23, n_projections=8)  # broadcast as before
    check_close(one, sdpa(q, k[:, :1], v[:, :1], is_causal=causal, enable_gqa=True), 1e-9)


Q, K, V = tokens(2, 6, d=4)
ERRORS = [
    (
        lambda: linear_attention(Q, K[:, :4], V[:, :4], enable_gqa=True),
        ValueError,
        "6 heads of q must be a multiple of",
    ),
    (lambda: linear_attention(Q, K, V, enable_gqa=1), TypeError, "enable_gqa must be True or False"),
    (lambda: linear_attention(Q, K, V, spec="dens"), ValueError, "dense"),
    (lambda: linear_attention(Q, K, V, n_projections=0), ValueError, "n_projections must be an integer of at least 1"),
    (
        lambda: linear_attention(Q, K[..., :0, :], V[..., :0, :]),
        ValueError,
        "features must be given where there are no",
    ),
]


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS, ids=[words for *_, words in ERRORS])
def test_errors_in_words(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_features_of_other_heads_are_refused():
    features = AttentionFeatures(n_projections=8)
    linear_attention(Q, K, V, features=features)
    with pytest.raises(ValueError, match="features were fitted to 6 heads of width 4, and q has 2 of width 4"):
        linear_attention(Q[:, :2], K[:, :2], V[:, :2], features=features)
