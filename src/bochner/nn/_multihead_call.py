"""One call of multi-head attention, after its projections, with keys beside those of the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

from ._attention import linear_attention
from ._attention_state import AttentionState

if TYPE_CHECKING:
    from ._multihead import RandomFeatureAttention


@dataclass(frozen=True)
class HeadCall:
    """One call of the attention, for values of any width."""

    module: RandomFeatureAttention
    q: Tensor
    k: Tensor
    extra: tuple[Tensor, Tensor] | None
    causal: bool
    mask: Tensor | None
    state: AttentionState | None

    def of(self, v: Tensor) -> Tensor:
        """Attention to values (batch, heads, length, e)."""
        return self._of(v, None if self.extra is None else self.extra[1], self.state)

    def weights(self, average: bool) -> Tensor:
        """Attention weights, as attention to the unit vectors; those of extra keys last."""
        n = self.k.shape[-2]
        units = torch.eye(n + (0 if self.extra is None else self.extra[0].shape[-2])).to(self.q)
        weights = self._of(
            units[:n].expand(*self.k.shape[:2], -1, -1), units[n:].expand(1, self.k.shape[1], -1, -1), None
        )
        return weights.mean(dim=1) if average else weights

    def _of(self, v: Tensor, extra: Tensor | None, held: AttentionState | None) -> Tensor:
        module, q, k, mask, state = self.module, self.q, self.k, self.mask, held
        options: dict[str, Any] = {
            "features": module.features.current,
            "scale": module.current_scale(),
            "window": module.window,
            "anchors": module.anchors,
        }
        if self.extra is not None and extra is not None:
            keys = self.extra[0].expand(len(k), -1, -1, -1)
            extra = extra.expand(len(k), -1, -1, -1)
            if self.causal or state is not None:  # what is in the state is seen by all queries
                if state is None or state.length == 0:
                    _, state = linear_attention(keys, keys, extra, causal=True, return_state=True, **options)
            else:
                n = keys.shape[-2]
                k, v = torch.cat([k, keys], dim=-2), torch.cat([v, extra], dim=-2)
                q = functional.pad(q, (0, 0, 0, n))  # a window wants as many queries
                mask = (
                    None
                    if mask is None
                    else functional.pad(mask.expand(len(k), -1), (0, n), value=mask.dtype == torch.bool)
                )
        there = None if mask is None else mask[:, None]  # the same for all heads
        options |= {"causal": self.causal, "key_mask": there, "state": state}
        out: Tensor
        if held is None:
            out = linear_attention(q, k, v, **options)
        else:
            out, after = linear_attention(q, k, v, return_state=True, **options)
            held.take(after)
        return out[..., : self.q.shape[-2], :]
