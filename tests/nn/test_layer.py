"""The layer of random features."""

from __future__ import annotations

import pytest
import torch

from bochner import Approximation, kernels, maps
from bochner.nn import RandomFeatures
from support.attention import check_close

SPECS = [
    Approximation(kernels.Gaussian(2.0), n_projections=16),
    Approximation(kernels.Softmax(), maps.Positive(), n_projections=16),
    Approximation(kernels.Softmax(), maps.OptimalPositive(), n_projections=16),
    Approximation(kernels.Softmax(), maps.AngularHybrid(2), n_projections=8),
    Approximation(None, maps.Pointwise(torch.tanh), n_projections=16),
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_features_are_those_of_the_draw(spec):
    layer = RandomFeatures(3, spec, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = torch.randn(2, 7, 3, dtype=torch.float64)
    layer.fit_statistics(x)
    phi = layer.features.drawn()[0]
    check_close(layer(x), phi.queries(x), 1e-12)
    check_close(layer.keys(x), phi.keys(x), 1e-12)
    assert layer(x).shape == (2, 7, layer.out_features)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_state_round_trip(spec):
    one, two = RandomFeatures(3, spec), RandomFeatures(3, spec)
    x = torch.randn(5, 3)
    expected = one(x)
    assert not torch.equal(two(x), expected)
    two.load_state_dict(one.state_dict())
    assert torch.equal(two(x), expected)
    two.redraw(torch.Generator().manual_seed(1))
    assert not torch.equal(two(x), expected)


def test_learned_scale():
    layer = RandomFeatures(3, SPECS[0], learned_scale=True)
    layer(torch.randn(5, 3)).cos().sum().backward()
    assert layer.log_scale.grad != 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_type_of_the_output(dtype):
    assert RandomFeatures(3)(torch.ones(2, 3, dtype=dtype)).dtype == dtype
