"""What may come into the attention module, and what is said when it may not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from .._validation import check_count
from ..approximation import Approximation
from ..kernels import Softmax

if TYPE_CHECKING:
    from .module import RandomFeatureAttention

OWNER = "RandomFeatureAttention"


def check_options(embed_dim: int, num_heads: int, dropout: float, add_bias_kv: bool, add_zero_attn: bool,
                  features: Approximation | None) -> None:  # fmt: skip
    """Refuse sizes that do not fit, and options of ``nn.MultiheadAttention`` that have no linear form."""
    check_count(OWNER, "embed_dim", embed_dim)
    check_count(OWNER, "num_heads", num_heads)
    if embed_dim % num_heads:
        raise ValueError(f"{OWNER}: embed_dim must be a multiple of num_heads, got {embed_dim} and {num_heads}.")
    if dropout:
        raise ValueError(
            f"{OWNER}: dropout must be 0, since linear attention forms no weights to drop, got {dropout}; "
            f"put nn.Dropout on the output."
        )
    if add_bias_kv or add_zero_attn:
        raise ValueError(f"{OWNER}: add_bias_kv and add_zero_attn must be False; append such keys to the inputs.")
    if features is not None and not isinstance(features, Approximation):
        raise TypeError(
            f"{OWNER}: features must be an Approximation such as Approximation(kernels.Softmax(), maps.Positive()), which "
            f"the module draws itself, got {features!r}."
        )
    if features is not None and isinstance(features.kernel, Softmax) and features.kernel.scale != 1:
        raise ValueError(
            f"{OWNER}: features must be of kernels.Softmax() with scale 1; pass scale={features.kernel.scale:g}."
        )


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
    _check_mask("key_padding_mask", key_padding_mask, {(*batch, p)})
    heads = (batch[0] if batch else 1) * module.num_heads
    _check_mask("attn_mask", attn_mask, {(n, p), (heads, n, p)})


def _check_axes(module: RandomFeatureAttention, inputs: dict[str, tuple[Tensor, int]]) -> tuple[int, ...]:
    """The batch, as a tuple that is empty where there is none."""
    ndim = inputs["query"][0].ndim
    axes = "(batch, length, width)" if module.batch_first else "(length, batch, width)"
    batches = set()
    for name, (x, width) in inputs.items():
        if x.ndim not in (2, 3) or x.ndim != ndim or x.shape[-1] != width:
            raise ValueError(
                f"{OWNER}: {name} must have shape {axes} or, like all of them, (length, width), with width {width}, "
                f"got {tuple(x.shape)}."
            )
        batches.add(() if ndim == 2 else (x.shape[0 if module.batch_first else 1],))
    if len(batches) > 1:
        shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, (x, _) in inputs.items())
        raise ValueError(f"{OWNER}: inputs {axes} must have the same batch, got {shapes}; batch_first is "
                         f"{module.batch_first}.")  # fmt: skip
    found: tuple[int, ...] = batches.pop()
    return found


def _check_mask(name: str, mask: Tensor | None, shapes: set[tuple[int, ...]]) -> None:
    if mask is not None and tuple(mask.shape) not in shapes:
        allowed = " or ".join(str(shape) for shape in sorted(shapes, key=len))
        raise ValueError(f"{OWNER}: {name} must have shape {allowed}, got {tuple(mask.shape)}.")
