"""Softmax attention as it is: what converted models are compared with."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def visible(
    q: Tensor, k: Tensor, *, causal: bool, prefixes: Tensor | None = None, key_mask: Tensor | None
) -> Tensor | None:
    """Which keys each query sees, broadcasting to (batch, heads, Lq, Lk); None where all do."""
    n, p = q.shape[-2], k.shape[-2]
    seen = None
    if causal:
        prefixes = torch.arange(1, n + 1, device=q.device)
    if prefixes is not None:
        seen = torch.arange(p, device=q.device) < prefixes[:, None]
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


def exact_attention(q: Tensor, k: Tensor, v: Tensor, *, scale: float, **seen: Any) -> Tensor:
    """Softmax attention of tensors (batch, heads, length, d); ``seen`` as in `visible`."""
    return exact_weights(q, k, scale, visible(q, k, **seen)) @ v
