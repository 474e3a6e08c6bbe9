"""What may come into linear attention, and what is said when it may not."""

from __future__ import annotations

import math
import numbers
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ..approximation import Approximation, FeatureMap
from ..kernels import Softmax
from .features import TensorFeatures
from .sums import Sums

OWNER = "linear_attention"


def check_tensors(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Refuse anything but floating tensors of fitting shapes."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, Tensor) or not x.is_floating_point():
            kind = str(x.dtype) if isinstance(x, Tensor) else type(x).__name__
            raise TypeError(f"{OWNER}: {name} must be a floating-point tensor, got {kind}.")
        if x.ndim < 2 or (x is not v and not x.shape[-1]):
            raise ValueError(f"{OWNER}: {name} must have shape (..., length, width), got {tuple(x.shape)}.")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"{OWNER}: q and k must have the same width, k and v the same length, got q {tuple(q.shape)}, "
            f"k {tuple(k.shape)}, v {tuple(v.shape)}."
        )
    try:
        torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    except RuntimeError:
        raise ValueError(
            f"{OWNER}: the leading axes of q {tuple(q.shape)}, k {tuple(k.shape)} and v {tuple(v.shape)} must broadcast; "
            f"for grouped heads write q as (batch, key heads, group, length, width) and k as (batch, key heads, 1, ...)."
        ) from None


def check_features(features: Any, d: int) -> None:
    """Refuse what is not drawn, is drawn for another width, or has a scale of its own."""
    if isinstance(features, Approximation):
        raise TypeError(f"{OWNER}: features must be drawn; pass spec.draw({d}, rng) or spec.fit(q, k, rng).")
    if not isinstance(features, FeatureMap | TensorFeatures):
        raise TypeError(f"{OWNER}: features must be drawn features such as spec.draw({d}, rng), got {features!r}.")
    width = features.d if isinstance(features, TensorFeatures) else features.n_features_in
    if width != d:
        raise ValueError(f"{OWNER}: the features were drawn for width {width}, but q and k have width {d}.")
    kernel = features.spec.kernel if isinstance(features, FeatureMap) else None
    if isinstance(kernel, Softmax) and kernel.scale != 1:
        raise ValueError(
            f"{OWNER}: features of {kernel!r} would be scaled twice; draw them with kernels.Softmax() and pass "
            f"scale={kernel.scale:g} here."
        )


def root_of_scale(q: Tensor, scale: float | Tensor | None) -> float | Tensor:
    """The factor of queries and of keys."""
    if scale is None:
        return float(q.shape[-1]) ** -0.25
    if isinstance(scale, Tensor):  # a learned scale: its owner keeps it positive
        if scale.ndim > q.ndim or any(
            a not in (1, b) for a, b in zip(scale.shape[::-1], (1, 1, *q.shape[-3::-1]), strict=False)
        ):
            raise ValueError(
                f"{OWNER}: a scale for each head must broadcast to {(*q.shape[:-2], 1, 1)}, such as (heads, 1, 1), "
                f"got shape {tuple(scale.shape)}."
            )
        return scale.sqrt()
    if isinstance(scale, bool) or not isinstance(scale, numbers.Real) or not 0 < float(scale) < math.inf:
        raise ValueError(f"{OWNER}: scale must be a positive number or tensor, got {scale!r}.")
    return math.sqrt(float(scale))


def check_integers(lengths: Tensor | None) -> None:
    """Refuse lengths of prefixes that are no tensor of integers."""
    if lengths is not None and not (isinstance(lengths, Tensor) and lengths.dtype in (torch.int32, torch.int64)):
        kind = str(lengths.dtype) if isinstance(lengths, Tensor) else type(lengths).__name__
        raise TypeError(f"{OWNER}: prefix_lengths must be a tensor of integers (int32 or int64), got {kind}.")


def check_key_mask(k: Tensor, key_mask: Tensor | None) -> Tensor | None:
    """A boolean mask of the keys, (..., Lk), with as many axes as k has before its width, or one."""
    if key_mask is None:
        return None
    if not isinstance(key_mask, Tensor) or key_mask.dtype != torch.bool:
        kind = str(key_mask.dtype) if isinstance(key_mask, Tensor) else type(key_mask).__name__
        raise TypeError(f"{OWNER}: key_mask must be a tensor of bool, True for keys that are there, got {kind}.")
    fits = key_mask.ndim in (1, k.ndim - 1) and key_mask.shape[-1] == k.shape[-2]
    if not fits or any(a not in (1, b) for a, b in zip(key_mask.shape[:-1], k.shape[:-2], strict=False)):
        raise ValueError(
            f"{OWNER}: key_mask must have the shape of k without its width, {tuple(k.shape[:-1])}, axes of length 1 "
            f"allowed, got {tuple(key_mask.shape)}; of (batch, length) make mask[:, None, :].  A mask of queries by keys "
            f"has no linear form: see causal and prefix_lengths."
        )
    return key_mask


def check_state(sums: Sums | None, features: TensorFeatures, k: Tensor, v: Tensor) -> None:
    """Refuse keys that cannot be added to the sums of a state."""
    if sums is None:
        return
    *lead, width, columns = sums.values.shape
    if width != features.width:
        raise ValueError(f"{OWNER}: the state was made with {width} features, these features have {features.width}.")
    if columns != v.shape[-1] + 1:
        raise ValueError(f"{OWNER}: the state holds values of width {columns - 1}, got v of shape {tuple(v.shape)}.")
    here = torch.broadcast_shapes(k.shape[:-2], v.shape[:-2], features.lead)
    if list(here[-len(lead) :] if lead else here[:0]) != lead:
        raise ValueError(
            f"{OWNER}: the state holds keys with leading axes {tuple(lead)}, but k {tuple(k.shape)} and v "
            f"{tuple(v.shape)} have {tuple(here)}; a state belongs to one batch (see its select)."
        )


def check_offsets(name: str, offsets: Tensor, length: int) -> list[int]:
    """Borders of packed sequences as a list."""
    if not isinstance(offsets, Tensor) or offsets.ndim != 1 or offsets.is_floating_point() or len(offsets) < 2:
        raise ValueError(f"{OWNER}: {name} must be a tensor of at least two integers, got {offsets!r}.")
    borders: list[int] = offsets.tolist()
    if borders[0] != 0 or borders[-1] != length or any(a > b for a, b in pairwise(borders)):
        raise ValueError(f"{OWNER}: {name} must not decrease and run from 0 to the length {length}, got {borders}.")
    return borders


def check_prefix_lengths(q: Tensor, k: Tensor, lengths: Tensor) -> None:
    """Refuse lengths that are no integers between zero and the number of keys, one for each query."""
    batch = q.shape[:1] if q.ndim > 2 else ()
    if tuple(lengths.shape) not in {(q.shape[-2],), (*batch, q.shape[-2])}:
        raise ValueError(
            f"{OWNER}: prefix_lengths must have shape ({q.shape[-2]},), or one row for each member of the first axis of q, "
            f"got {tuple(lengths.shape)}; an arbitrary mask of queries by keys has no linear form."
        )
    if lengths.numel() and (lengths.min() < 0 or lengths.max() > k.shape[-2]):
        raise ValueError(f"{OWNER}: prefix_lengths must lie between 0 and the number of keys {k.shape[-2]}.")
