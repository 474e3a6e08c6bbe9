"""One call of multi-head attention: its arguments checked, and attention after the projections."""

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
import functools
import warnings
from typing import TYPE_CHECKING

from .._validation import check_count, check_flag, shown
from ._attention_checks import check_floating

OWNER = "RandomFeatureAttention"


def check_options(
    embed_dim: int, num_heads: int, dropout: float, kdim: int | None, vdim: int | None, **flags: bool
) -> None:
    """Refuse sizes that do not fit, and options of ``nn.MultiheadAttention`` that have no linear form."""
    for name, count in (("embed_dim", embed_dim), ("num_heads", num_heads), ("kdim", kdim), ("vdim", vdim)):
        if count is not None or name in ("embed_dim", "num_heads"):
            check_count(OWNER, name, count)
    for name, flag in flags.items():
        check_flag(OWNER, name, flag)
    if embed_dim % num_heads:
        raise ValueError(f"{OWNER}: embed_dim must be a multiple of num_heads, got {embed_dim} and {num_heads}.")
    if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout < 1:
        raise ValueError(f"{OWNER}: dropout must be a number of at least 0 and below 1, got {shown(dropout)}.")


@functools.cache
def _warn_of_dropout() -> None:
    warnings.warn(
        "bochner: dropout of attention weights is not applied, since linear attention does not form them; apply "
        "nn.Dropout to the output, or build the model without dropout of attention weights.",
        UserWarning,
        stacklevel=4,
    )


def warn_of_dropout(dropout: float, training: bool) -> None:
    """Warn, once, where dropout of attention weights would be applied."""
    if dropout and training and not torch.compiler.is_compiling():
        _warn_of_dropout()


def check_inputs(
    module: RandomFeatureAttention,
    query: Tensor,
    key: Tensor,
    value: Tensor | None,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
) -> None:
    """Refuse inputs and masks whose shapes do not belong together."""
    inputs = {"query": (query, module.embed_dim), "key": (key, module.kdim)}
    if value is not None:
        inputs["value"] = (value, module.vdim)
    batch = _check_axes(module, inputs)
    if value is not None and value.shape[:-1] != key.shape[:-1]:
        raise ValueError(
            f"{OWNER}: key and value must have the same length, got {tuple(key.shape)} and {tuple(value.shape)}."
        )
    n, p = (len(x) if not batch else x.shape[1 if module.batch_first else 0] for x in (query, key))
    _check_mask("key_padding_mask", key_padding_mask, [(*batch, p)], query.device)
    heads = (batch[0] if batch else 1) * module.num_heads
    _check_mask("attn_mask", attn_mask, [(n, p), (heads, n, p)], query.device)


def _check_axes(module: RandomFeatureAttention, inputs: dict[str, tuple[Tensor, int]]) -> tuple[int, ...]:
    """The batch, as a tuple that is empty where there is none."""
    check_floating(OWNER, "query", inputs["query"][0], meta=not module.features.waits)
    ndim = inputs["query"][0].ndim
    axes = "(batch, length, width)" if module.batch_first else "(length, batch, width)"
    batches = set()
    for name, (x, width) in inputs.items():
        _check_type(module, name, x)
        if x.ndim not in (2, 3) or x.ndim != ndim or x.shape[-1] != width:
            raise ValueError(
                f"{OWNER}: {name} must have shape {axes} or, like all of them, (length, width), with width {width}, "
                f"got {tuple(x.shape)}."
            )
        batches.add(() if ndim == 2 else (x.shape[0 if module.batch_first else 1],))
    if len(batches) > 1:
        shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, (x, _) in inputs.items())
        raise ValueError(
            f"{OWNER}: inputs {axes} must have the same batch, got {shapes}; batch_first is {module.batch_first}."
        )
    found: tuple[int, ...] = batches.pop()
    return found


def _check_type(module: RandomFeatureAttention, name: str, x: Tensor) -> None:
    """Refuse what the projections of the module cannot be applied to."""
    check_floating(OWNER, name, x, meta=not module.features.waits)
    own, device = module.out_proj.weight.dtype, module.out_proj.weight.device
    if x.device != device:
        raise ValueError(f"{OWNER}: {name} must be on the device of the parameters, {device}, got {x.device}.")
    if x.dtype != own and not torch.is_autocast_enabled(x.device.type):
        raise TypeError(f"{OWNER}: {name} must have the type of the parameters, {own}, got {x.dtype}.")


def _check_mask(name: str, mask: Tensor | None, shapes: list[tuple[int, ...]], device: torch.device) -> None:
    if mask is None:
        return
    if not isinstance(mask, Tensor):
        raise TypeError(f"{OWNER}: {name} must be a tensor, got {shown(mask)}.")
    if mask.device != device:
        raise ValueError(f"{OWNER}: {name} must be on the device of the inputs, {device}, got {mask.device}.")
    if tuple(mask.shape) not in shapes:
        allowed = " or ".join(str(shape) for shape in shapes)
        raise ValueError(f"{OWNER}: {name} must have shape {allowed}, got {tuple(mask.shape)}.")


def _hidden(name: str, mask: Tensor) -> Tensor:
    """What a mask hides, as bool: True, or minus infinity."""
    if mask.dtype == torch.bool:
        return mask
    if not mask.is_floating_point():
        raise TypeError(f"{OWNER}: {name} must be a bool or floating-point tensor, got {mask.dtype}.")
    return mask == -torch.inf


def key_mask(key_padding_mask: Tensor | None) -> Tensor | None:
    """Which keys there are, (batch, length), of a mask that says which are padding, with or without a batch."""
    if key_padding_mask is None:
        return None
    hidden = _hidden("key_padding_mask", torch.atleast_2d(key_padding_mask))
    return hidden.logical_not()


def key_bias(key_padding_mask: Tensor | None) -> Tensor | None:
    """What a mask adds to the logits of keys, (batch, length), with minus infinity for padding; None where it is of bool."""
    if key_padding_mask is None or not key_padding_mask.is_floating_point():
        return None
    bias: Tensor = torch.atleast_2d(key_padding_mask)
    return bias


def is_causal_mask(attn_mask: Tensor | None, is_causal: bool) -> bool:
    """Whether attention is causal; any mask but the causal one and the empty one is refused."""
    if attn_mask is None:
        return is_causal
    mask = _hidden("attn_mask", attn_mask)
    if attn_mask.is_floating_point() and not bool((mask | (attn_mask == 0)).all()):
        raise ValueError(
            f"{OWNER}: attn_mask adds numbers to the logits of pairs, which linear attention does not have; use 0 and "
            f"-inf, or numbers for keys in key_padding_mask."
        )
    if not bool(mask.any()):
        return is_causal
    n, p = mask.shape[-2:]
    causal = torch.ones(n, p, dtype=torch.bool, device=mask.device).triu(1)
    if n != p or not bool((mask == causal).all()):
        raise ValueError(
            f"{OWNER}: attn_mask of shape {tuple(attn_mask.shape)} is neither causal nor empty, and a mask of queries by "
            f"keys cannot be computed in linear time; supported are is_causal=True, key_padding_mask, and in "
            f"linear_attention prefix_lengths and cu_seqlens."
        )
    return True


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
