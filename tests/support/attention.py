"""Queries, keys and values for the tests of attention, and attention by its definition."""

from __future__ import annotations

import torch

from bochner import Approximation, kernels, maps
from bochner.nn import AttentionState, linear_attention


def tokens(*lead, length=23, keys=None, d=3, e=4, size=0.5, seed=0, dtype=torch.float64):
    """q, k, v with these leading axes; queries and keys of that standard deviation."""
    generator = torch.Generator().manual_seed(seed)
    keys = length if keys is None else keys
    q = size * torch.randn(*lead, length, d, generator=generator, dtype=torch.float64)
    k = size * torch.randn(*lead, keys, d, generator=generator, dtype=torch.float64)
    v = torch.randn(*lead, keys, e, generator=generator, dtype=torch.float64)
    return q.to(dtype), k.to(dtype), v.to(dtype)


def positive(d=3, m=32, rng=0):
    return Approximation(kernels.Softmax(), maps.Positive(), n_projections=m).draw(d, rng=rng)


def fitted(feature_map, q, k, m=32, rng=0):
    """Features of softmax drawn for those queries and keys at the usual scale."""
    root = q.shape[-1] ** -0.25
    return Approximation(kernels.Softmax(), feature_map, n_projections=m).fit(q * root, k * root, rng=rng)


def dense(phi, q, k, v, visible=None, scale=None):
    """Attention in quadratic time and float64, without any stabiliser; and how much of each denominator cancels."""
    root = q.shape[-1] ** -0.25 if scale is None else scale**0.5
    weights = phi.queries(q.double() * root) @ phi.keys(k.double() * root).mT
    if visible is not None:
        weights = weights * visible
    total = weights.sum(dim=-1, keepdim=True)
    return weights @ v.double() / total, (total.abs() / weights.abs().sum(dim=-1, keepdim=True)).squeeze(-1)


def mixed(phi, q, k, v, window, anchors, causal, mask=None):
    """Attention in quadratic time: weights of softmax where they are exact, of the features elsewhere."""
    root = q.shape[-1] ** -0.25
    x, y = q * root, k * root
    n, p = q.shape[-2], k.shape[-2]
    there = torch.ones(p, dtype=torch.bool) if mask is None else mask
    distance = torch.arange(n)[:, None] - torch.arange(p)
    near = distance.abs() < window
    near = near | (there & (there.cumsum(-1) <= anchors))[..., None, :]
    weights = torch.where(near, (x @ y.mT).exp(), phi.queries(x) @ phi.keys(y).mT)
    visible = there[..., None, :] & (distance >= 0 if causal else torch.tensor(True))
    weights = weights * visible
    return torch.nan_to_num(weights @ v / weights.sum(-1, keepdim=True))


def exact(q, k, v, visible=None):
    mask = None if visible is None else visible.bool()
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def lower(n, p=None):
    return torch.ones(n, n if p is None else p, dtype=torch.float64).tril()


def check_close(found, expected, tolerance, label=""):
    assert found.shape == expected.shape, f"{label} {found.shape} {expected.shape}"
    if not found.numel():
        return
    error = (found.double() - expected.double()).abs().max().item()
    if not error <= tolerance * max(1.0, expected.abs().max().item()):
        raise AssertionError(f"{label} differs by {error:.2g}, more than {tolerance:g}")


def in_parts(q, k, v, cut, masks=None, **options):
    """Output of parts of that many positions, one after the other, and the last state."""
    state, out = AttentionState(), []
    masks = [None] * len(cut) if masks is None else masks
    for a, b, c, there in zip(*(x.split(cut, dim=-2) for x in (q, k, v)), masks, strict=True):
        part, state = linear_attention(a, b, c, key_mask=there, state=state, return_state=True, **options)
        out.append(part)
    return torch.cat(out, dim=-2), state
