"""Attention of heads that are already there: features that a foreign module carries along."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ...approximation import Approximation
from ..drawn import DrawnFeatures
from ..linear import linear_attention
from .hugging_face import register


class HeadAttention(nn.Module):
    """Linear attention of queries, keys and values that another module has projected.

    Parameters
    ----------
    spec : Approximation
        What to draw.
    heads, d : int
        Number of heads, and their width.
    per_head : bool
        Whether each head draws its own rows.
    dtype : torch.dtype
        float32 or float64.
    generator : torch.Generator, optional
        Source of the draw.
    """

    def __init__(self, spec: Approximation, heads: int, d: int, *, per_head: bool, dtype: torch.dtype,
                 generator: torch.Generator | None) -> None:  # fmt: skip
        super().__init__()
        self.drawn = DrawnFeatures(spec, d, heads, per_head, dtype=dtype, generator=generator)

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        causal: bool,
        prefixes: Tensor | None,
        key_mask: Tensor | None,
        scale: float,
    ) -> Tensor:
        """Attention of tensors (batch, heads, length, d); prefixes (Lq,) say how many keys each query sees."""
        if self.drawn.waits:
            self.drawn.fit_call(q, k, key_mask, scale)
        mask = None if key_mask is None else key_mask.expand(len(k), -1)[:, None, :]
        return linear_attention(
            q, k, v, features=self.drawn.features, causal=causal, key_mask=mask, scale=scale, prefix_lengths=prefixes
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        register()  # a model unpickled in another process is dispatched to our function there too
