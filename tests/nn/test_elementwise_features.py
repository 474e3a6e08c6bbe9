"""Attention whose features are functions of coordinates, unit queries and keys, and constants of every call."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from bochner.nn import ElementwiseFeatures, RandomFeatureAttention, linear_attention


@pytest.fixture
def qkv():
    return torch.randn(3, 2, 3, 20, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


FUNCTIONS = {
    ("elu", 1e-3): lambda x: functional.elu(x) + 1,
    ("relu", 1e-3): lambda x: functional.relu(x) + 1e-3,
    ("relu", 0.0): functional.relu,
}


@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("function, epsilon", FUNCTIONS)
def test_attention_is_the_quadratic_form(qkv, function, epsilon, causal):
    q, k, v = qkv
    q, k = q + 0.5, k + 0.5  # with relu alone, vectors that share no positive coordinate would divide zero by zero
    out = linear_attention(q, k, v, features=ElementwiseFeatures(8, function, epsilon), scale=4.0, causal=causal)
    f = FUNCTIONS[function, epsilon]
    weights = f(2 * q) @ f(2 * k).mT
    weights = weights.tril() if causal else weights
    assert torch.allclose(out, weights @ v / weights.sum(-1, keepdim=True), atol=1e-10)


@pytest.mark.parametrize("function, epsilon", FUNCTIONS)
def test_gradients_are_those_of_the_function(qkv, function, epsilon):
    q, k, v = (x.detach() + 0.3 for x in qkv)
    q.requires_grad_()
    f = FUNCTIONS[function, epsilon]
    linear_attention(q, k, v, features=ElementwiseFeatures(8, function, epsilon), scale=1.0).square().sum().backward()
    found, q.grad = q.grad.clone(), None
    weights = f(q) @ f(k).mT
    (weights @ v / weights.sum(-1, keepdim=True)).square().sum().backward()
    assert torch.allclose(found, q.grad, atol=1e-8)


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="ElementwiseFeatures: function must be one of 'elu', 'relu', got 'gelu'"):
        ElementwiseFeatures(8, "gelu")
    with pytest.raises(ValueError, match="ElementwiseFeatures: epsilon must be a number that is not negative, got -1"):
        ElementwiseFeatures(8, "relu", -1)
    with pytest.raises(ValueError, match="drawn for width 4, but q and k have width 8"):
        linear_attention(*torch.ones(3, 2, 8), features=ElementwiseFeatures(4))


def test_unit_queries_and_keys(qkv):
    q, k, v = qkv
    unit = [x / x.norm(dim=-1, keepdim=True) for x in (q, k)]
    options = {"spec": "favor+", "n_projections": 16, "scale": 3.0}
    assert torch.allclose(
        linear_attention(7 * q, k, v, normalize=True, **options), linear_attention(*unit, v, **options), atol=1e-10
    )
    with pytest.raises(TypeError, match="linear_attention: normalize must be True or False, got 1"):
        linear_attention(q, k, v, normalize=1)


def test_a_module_with_unit_queries_ignores_their_lengths():
    torch.manual_seed(0)
    module = RandomFeatureAttention(
        16, 2, bias=False, batch_first=True, spec="favor+", normalize=True, add_bias_kv=True
    )
    plain = RandomFeatureAttention(16, 2, bias=False, batch_first=True, spec="favor+", add_bias_kv=True)
    plain.load_state_dict(module.state_dict())
    x = torch.randn(3, 10, 16)
    before = [one(x, x, x, need_weights=False)[0] for one in (module, plain)]
    with torch.no_grad():
        for one in (module, plain):
            one.in_proj_weight[:32] *= 2  # queries and keys
    after = [one(x, x, x, need_weights=False)[0] for one in (module, plain)]
    assert torch.allclose(before[0], after[0], atol=1e-5)
    assert not torch.allclose(before[1], after[1], atol=1e-2)


def test_constants_of_every_call():
    torch.manual_seed(0)
    modules = {
        constants: RandomFeatureAttention(16, 2, batch_first=True, spec="favor++", constants=constants)
        for constants in ("first", "input")
    }
    x = torch.randn(2, 12, 16)
    for constants, module in modules.items():
        found = []
        for factor in (1.0, 3.0):
            module(factor * x, factor * x, x, need_weights=False)
            found.append([plan.map for plan in module.features.plans])
        assert (found[0] == found[1]) == (constants == "first")
        fresh = RandomFeatureAttention(16, 2, batch_first=True, spec="favor++")
        fresh.load_state_dict({name: p for name, p in module.state_dict().items() if not name.startswith("features.")})
        fresh.fit_statistics(3 * x)
        expected = [plan.map for plan in fresh.features.plans]
        assert (found[1] == expected) == (constants == "input")


def test_constants_of_a_call_would_see_the_future():
    module = RandomFeatureAttention(8, 2, batch_first=True, spec="favor++", constants="input")
    x = torch.randn(1, 5, 8)
    with pytest.raises(
        ValueError, match='constants="input" are chosen from all keys of a call, which causal attention'
    ):
        module(x, x, x, is_causal=True, need_weights=False)
    with pytest.raises(
        ValueError, match="RandomFeatureAttention: constants must be one of 'first', 'input', got 'last'"
    ):
        RandomFeatureAttention(8, 2, constants="last")
