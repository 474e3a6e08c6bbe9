"""Softmax attention as it is: what converted models are compared with."""

from __future__ import annotations

import torch
from torch import Tensor


def visible(q: Tensor, k: Tensor, *, causal: bool, key_mask: Tensor | None) -> Tensor | None:
    """Which keys each query sees, broadcasting to (batch, heads, Lq, Lk); None where all do.

    Causal queries are the last ones of the keys.
    """
    n, p = q.shape[-2], k.shape[-2]
    seen = None
    if causal and n > 1:
        seen = torch.ones(n, p, dtype=torch.bool, device=q.device).tril(p - n)
    if key_mask is not None:
        there = key_mask[:, None, None, :]
        seen = there if seen is None else seen & there
    return seen


def exact_weights(q: Tensor, k: Tensor, scale: float, seen: Tensor | None) -> Tensor:
    """Softmax of the scaled dot products over the keys that are seen; zero for a query that sees none."""
    logits = scale * (q @ k.mT)
    if seen is None:
        return logits.softmax(-1)
    weights = logits.masked_fill(~seen, -torch.inf).softmax(-1)
    return weights.masked_fill(~seen.any(-1, keepdim=True), 0.0)


def exact_attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool, key_mask: Tensor | None, scale: float) -> Tensor:
    """Softmax attention of tensors (batch, heads, length, d)."""
    seen = visible(q, k, causal=causal, key_mask=key_mask)
    return exact_weights(q, k, scale, seen) @ v
