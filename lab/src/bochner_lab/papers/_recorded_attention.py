"""Queries and keys of every attention of a transformer of this laboratory, and the error of features on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bochner import FeatureMap


@dataclass(frozen=True, eq=False)
class Call:
    """One call of self-attention.

    Attributes
    ----------
    name : str
        Where the attention is in the model.
    q, k : Tensor (batch, heads, length, d)
    scale : float
        Factor of the dot products.
    causal : bool
        Whether a query sees the keys up to its own place only.
    """

    name: str
    q: Tensor
    k: Tensor
    scale: float
    causal: bool

    def weights(self) -> Tensor:
        """Exact attention weights (batch, heads, length, length)."""
        logits = self.scale * (self.q @ self.k.mT)
        if self.causal:
            n = logits.shape[-1]
            logits = logits.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
        return logits.softmax(-1)

    def error_of(self, head: int, phi: FeatureMap) -> float:
        """Relative Frobenius error of the attention weights of a head, estimated by features; all keys are seen."""
        X, Y = ((x[:, head].double() * self.scale**0.5).numpy() for x in (self.q, self.k))
        exact = self.weights()[:, head].double().numpy()
        return float(np.linalg.norm(phi.gram(X, Y, normalize=True) - exact) / np.linalg.norm(exact))


@torch.no_grad()
def record(model: nn.Module, batch: Tensor) -> list[Call]:
    """Run a model whose attention is `torch.nn.MultiheadAttention`, and catch the queries and keys of each call."""
    calls: list[Call] = []
    hooks = [
        module.register_forward_pre_hook(partial(_caught, calls, name), with_kwargs=True)
        for name, module in model.named_modules()
        if isinstance(module, nn.MultiheadAttention)
    ]
    training = model.training
    model.train()  # in evaluation, torch takes a fast path around its modules; there is no dropout here
    try:
        model(batch)
    finally:
        model.train(training)
        for hook in hooks:
            hook.remove()
    return calls


def _caught(calls: list[Call], name: str, module: nn.Module, arguments: Any, options: Any) -> None:
    assert isinstance(module, nn.MultiheadAttention)
    queries, keys = arguments[0], arguments[1]
    e, bias = module.embed_dim, module.in_proj_bias
    heads = [
        F.linear(x, module.in_proj_weight[part], None if bias is None else bias[part]).unflatten(
            -1, (module.num_heads, -1)
        )
        for x, part in ((queries, slice(0, e)), (keys, slice(e, 2 * e)))
    ]
    q, k = (x.transpose(1, 2).detach() for x in heads)
    causal = bool(options.get("is_causal")) or options.get("attn_mask") is not None
    calls.append(Call(name, q, k, q.shape[-1] ** -0.5, causal))
