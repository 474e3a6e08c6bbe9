"""The error against exact attention: its law in m, and its order among mechanisms."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from bochner import Approximation, kernels, maps, projections
from bochner.nn import RandomFeatureAttention, linear_attention
from bochner.nn import _drawn as drawn
from support.attention import exact, tokens

DRAWS = 50


def errors(feature_map, projection, m, size, d=8, draws=DRAWS):
    """Mean squared errors of attention over independent draws."""
    q, k, v = tokens(2, length=30, d=d, size=size)
    root, truth = d**-0.25, exact(q, k, v)
    spec = Approximation(kernels.Softmax(), feature_map, projection, m)
    rng = np.random.default_rng(0)
    drawn = (spec.fit(q * root, k * root, rng=rng) for _ in range(draws))
    return np.array([(linear_attention(q, k, v, features=phi) - truth).square().mean().item() for phi in drawn])


def z_of_difference(a, b):
    return (a.mean() - b.mean()) / np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))


@pytest.mark.parametrize("feature_map", [maps.Positive(), maps.OptimalPositive(), maps.Trigonometric()], ids=str)
def test_error_falls_as_the_root_of_m(feature_map):
    """m times the squared error does not depend on m, beyond a bias of order 1/m that is below the noise here."""
    few, many = (m * errors(feature_map, projections.IID(), m, 0.3) for m in (128, 1024))
    assert abs(z_of_difference(few, many)) < 5
    assert z_of_difference(few / 128, many / 1024) > 10


IID, ORTHOGONAL, SIMPLEX = projections.IID(), projections.Orthogonal(), projections.Simplex()


@pytest.mark.parametrize(
    "better, worse, m, size",
    [
        ((maps.OptimalPositive(), IID), (maps.Positive(), IID), 64, 1.0),  # CRT Theorem 3.3
        ((maps.Hyperbolic(), ORTHOGONAL), (maps.Hyperbolic(), IID), 8, 0.3),  # CRT Theorem 4.1
        ((maps.Positive(), SIMPLEX), (maps.Positive(), IID), 8, 0.3),  # SimRF Theorem 3.4
        ((maps.OptimalPositive(), SIMPLEX), (maps.OptimalPositive(), ORTHOGONAL), 8, 0.3),
    ],
    ids=[
        "FAVOR++ below FAVOR+",
        "orthogonal below independent",
        "simplex below independent",
        "simplex below orthogonal",
    ],
)
def test_mechanisms_are_ordered_as_theory_says(better, worse, m, size):
    """One-sided exponentials of short vectors err by the mean of w . z, which simplex rows reduce, orthogonal ones not."""
    low, high = (np.log(errors(*mechanism, m, size, draws=100)) for mechanism in (better, worse))
    assert z_of_difference(high, low) > 5


def test_estimated_weights_are_unbiased_before_the_division():
    """The numerator over redraws has the mean of the kernel: |z| < 5."""
    q, k, _ = tokens(length=2, d=4, size=0.7)
    spec = Approximation(kernels.Softmax(), maps.Positive(), n_projections=160)
    rng, truth = np.random.default_rng(0), torch.exp(q @ k.mT)
    grams = torch.stack([spec.draw(4, rng=rng).gram(q, k) for _ in range(200)])
    z = (grams.mean(0) - truth) / (grams.std(0) / 200**0.5)
    assert z.abs().max() < 5


@pytest.mark.parametrize("call", ["function", "module"])
def test_a_large_error_is_predicted_and_said(call, monkeypatch):
    """Queries and keys of unit variance in 64 dimensions: features alone estimate nothing."""
    monkeypatch.setattr(drawn, "_warned", set())
    q, k, v = torch.randn(3, 1, 4, 40, 64, generator=torch.Generator().manual_seed(0))
    with pytest.warns(UserWarning, match=r"predicted relative error of attention is .*window=64, anchors=1") as caught:
        if call == "function":
            linear_attention(q, k, v)
        else:
            attention = RandomFeatureAttention(256, 4, spec="dense", batch_first=True)
            with torch.no_grad():
                attention.in_proj_weight.copy_(3 * torch.eye(256).repeat(3, 1))
            x = q.transpose(1, 2).flatten(2)
            attention(x, x, x, need_weights=False)
    assert caught[0].filename == __file__


def test_calls_of_a_loop_warn_once(monkeypatch):
    monkeypatch.setattr(drawn, "_warned", set())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for size in (1.0, 1.1, 1.2):  # the error, and so the text, is another one each time
            q, k, v = torch.randn(3, 1, 4, 40, 64, generator=torch.Generator().manual_seed(0)) * size
            linear_attention(q, k, v)
    assert len(caught) == 1


@pytest.mark.filterwarnings("error::UserWarning")
def test_a_small_error_or_a_window_is_not(monkeypatch):
    monkeypatch.setattr(drawn, "_warned", set())
    q, k, v = torch.randn(3, 2, 4, 100, 16, generator=torch.Generator().manual_seed(0))
    linear_attention(q / 2, k / 2, v, n_projections=512)
    linear_attention(2 * q, 2 * k, v, window=32)
