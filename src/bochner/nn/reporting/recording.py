"""Queries and keys of every attention of a model, while it computes exact attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..conversion.exact import exact_weights, visible
from ..conversion.families import family_of
from ..conversion.hugging_face import NAME, dispatch_to, register
from ..conversion.replace import attention_modules, no_attention
from ..listeners import listening
from ..masks import is_causal_mask, key_mask
from ..module import RandomFeatureAttention


@dataclass(frozen=True, eq=False)
class Recorded:
    """One call of an attention: queries and keys (batch, heads, length, d), and what each query sees."""

    name: str
    q: Tensor
    k: Tensor
    causal: bool
    key_mask: Tensor | None  # (batch, Lk)
    scale: float | Tensor
    prefixes: Tensor | None = None  # (Lq,)


@torch.no_grad()
def record(model: nn.Module, batch: Any) -> list[Recorded]:
    """Run the model on the batch with exact attention, converted or not, and catch its queries and keys."""
    modules = attention_modules(model)
    if not modules:
        raise no_attention("attention_report", model)
    names = {id(module): name for name, module in modules.items()}
    calls: list[Recorded] = []

    def listener(module: nn.Module, q: Tensor, k: Tensor, **options: Any) -> None:
        calls.append(Recorded(names[id(module)], q, k, **options))

    with ExitStack() as stack:
        stack.enter_context(_without_fast_path())
        stack.enter_context(listening(listener))
        for module in modules.values():
            stack.enter_context(_heard(module, listener))
        _run(model, batch)
    if not calls:
        raise ValueError("attention_report: the model ran without calling any of its attention.")
    return calls


def _run(model: nn.Module, batch: Any) -> None:
    training = model.training
    model.eval()
    try:
        if isinstance(batch, Mapping):
            model(**batch)
        elif isinstance(batch, tuple | list):
            model(*batch)
        else:
            model(batch)
    finally:
        model.train(training)


@contextmanager
def _without_fast_path() -> Iterator[None]:
    """Have torch's encoders call their attention also in evaluation."""
    enabled = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


@contextmanager
def _heard(module: nn.Module, listener: Callable[..., None]) -> Iterator[None]:
    """Have an attention tell of its queries and keys, and compute exactly."""
    if family_of(module) is not None:
        register()
        before = dispatch_to(module, NAME)
        try:
            yield
        finally:
            dispatch_to(module, before)
    else:
        module.forward = partial(_exact_multihead, module, listener, module.forward)
        try:
            yield
        finally:
            del module.forward


def _exact_multihead(
    module: nn.Module, listener: Callable[..., None], forward: Callable[..., Any], *arguments: Any, **options: Any
) -> tuple[Tensor, Tensor | None]:
    """Exact attention of torch's module or of ours, in place of its own forward."""
    given = signature(forward).bind(*arguments, **options).arguments
    rows = [given[name] for name in ("query", "key", "value")]
    batched = rows[0].ndim == 3
    rows = [x[None] if not batched else x if module.batch_first else x.transpose(0, 1) for x in rows]
    call: dict[str, Any] = {
        "causal": is_causal_mask(given.get("attn_mask"), given.get("is_causal", False)),
        "key_mask": key_mask(given.get("key_padding_mask")),
        "scale": _scale(module),
    }
    q, k, v = (_heads(module, x, part) for part, x in enumerate(rows))
    listener(module, q, k, **call)
    weights = exact_weights(q, k, call["scale"], visible(q, k, causal=call["causal"], key_mask=call["key_mask"]))
    out = module.out_proj((weights @ v).transpose(1, 2).flatten(2))
    weights = weights.mean(dim=1) if given.get("average_attn_weights", True) else weights
    out = out if not batched or module.batch_first else out.transpose(0, 1)
    found = (out, weights) if batched else (out[0], weights[0])
    return found if given.get("need_weights", True) else (found[0], None)


def _heads(module: nn.Module, x: Tensor, part: int) -> Tensor:
    """Projection of query (0), key (1) or value (2), (batch, heads, length, d)."""
    if module.in_proj_weight is not None:
        weight = module.in_proj_weight.chunk(3)[part]
    else:
        weight = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)[part]
    bias = None if module.in_proj_bias is None else module.in_proj_bias.chunk(3)[part]
    heads = F.linear(x, weight, bias).unflatten(-1, (module.num_heads, module.head_dim)).transpose(1, 2)
    rotary = getattr(module, "rotary", None)
    return heads if rotary is None or part == 2 else rotary(heads, 0)


def _scale(module: nn.Module) -> float | Tensor:
    """Factor of the dot products: a number, or one for each head, (heads, 1, 1)."""
    if not isinstance(module, RandomFeatureAttention):
        return float(module.head_dim) ** -0.5
    return float(module.scale) if module.log_scale is None else module.log_scale.exp()
