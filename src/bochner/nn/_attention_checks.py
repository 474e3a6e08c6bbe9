"""Validation of the arguments of linear attention."""

from __future__ import annotations

import math
import numbers
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from .._validation import check_count, check_flag, check_option, shown
from ..approximation import Approximation, FeatureMap
from ..kernels import Softmax
from ._attention_parts import ENGINES, NONPOSITIVE
from ._attention_state import AttentionState
from ._process_groups import check_group
from ._tensor_features import TensorFeatures

OWNER = "linear_attention"

_PRECISIONS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_SCALES = 1e-60, 1e60  # their roots are numbers of float32


def check_call(causal: bool, nonpositive: str, chunk_size: int | None, window: int, anchors: int, engine: str) -> None:
    """Refuse options of another kind."""
    check_option(OWNER, "engine", engine, ENGINES)
    check_count(OWNER, "window", window, minimum=0)
    check_count(OWNER, "anchors", anchors, minimum=0)
    check_flag(OWNER, "causal", causal)
    check_option(OWNER, "nonpositive", nonpositive, NONPOSITIVE)
    if chunk_size is not None:
        check_count(OWNER, "chunk_size", chunk_size)


def check_state_type(owner: str, state: Any) -> None:
    """Refuse a state that is not one."""
    if state is not None and not isinstance(state, AttentionState):
        raise TypeError(f"{owner}: state must be an AttentionState, got {shown(state)}.")


def check_generator(owner: str, generator: Any) -> None:
    """Refuse a source of randomness of another kind."""
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(
            f"{owner}: generator must be a torch.Generator or None, got {shown(generator)}; "
            f"for a seed pass torch.Generator().manual_seed(seed)."
        )


def check_place(owner: str, device: Any, dtype: Any) -> None:
    """Refuse a device that torch does not have here, and a dtype that parameters cannot have."""
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise TypeError(
            f"{owner}: dtype must be a floating-point torch.dtype such as torch.float32, got {shown(dtype)}."
        )
    try:
        torch.empty(0, device=device)
    except Exception:  # torch raises RuntimeError, TypeError or AssertionError
        raise ValueError(
            f"{owner}: device must be one that torch has here, such as 'cpu', got {shown(device)}."
        ) from None


def check_floating(owner: str, name: str, x: Any, *, meta: bool = False) -> None:
    """Refuse anything but a floating-point tensor with numbers in all places, or with none if ``meta`` allows it."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = str(x.dtype) if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"{owner}: {name} must be a floating-point tensor, got {kind}.")
    if x.dtype not in _PRECISIONS:
        raise TypeError(
            f"{owner}: {name} must be of float16, bfloat16, float32 or float64, got {x.dtype}; "
            f"convert it with {name}.float()."
        )
    if (x.is_meta and not meta) or x.layout != torch.strided or x.is_nested:
        kind = "a nested one; pad it and pass a mask" if x.is_nested else f"one of layout {x.layout}"
        kind = "a meta tensor, which holds no numbers" if x.is_meta else kind
        raise TypeError(f"{owner}: {name} must be a dense tensor, got {kind}.")


def readable(x: Tensor) -> bool:
    """Whether numbers are on the host: a look at others would wait for all that their device still has to do."""
    return bool(x.is_cpu)


def check_tensors(q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None) -> Tensor | None:
    """Refuse anything but floating tensors of fitting shapes, and return the mask as what is added to the logits."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        check_floating(OWNER, name, x, meta=True)
        if x.ndim < 2 or (x is not v and not x.shape[-1]):
            raise ValueError(f"{OWNER}: {name} must have shape (..., length, width), got {tuple(x.shape)}.")
    if len({x.device for x in (q, k, v)}) > 1:
        raise ValueError(f"{OWNER}: q, k and v must be on one device, got {q.device}, {k.device} and {v.device}.")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"{OWNER}: q and k must have the same width, k and v the same length, got q {tuple(q.shape)}, "
            f"k {tuple(k.shape)}, v {tuple(v.shape)}."
        )
    try:
        if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
            torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    except RuntimeError:
        raise ValueError(
            f"{OWNER}: the leading axes of q {tuple(q.shape)}, k {tuple(k.shape)} and v {tuple(v.shape)} must broadcast; "
            f"for grouped heads pass enable_gqa=True."
        ) from None
    return _checked_mask(k, key_mask)


def check_features(features: Any, d: int) -> None:
    """Raise an error for features that are not drawn, drawn for another width, or that have their own scale."""
    if isinstance(features, Approximation):
        raise TypeError(f"{OWNER}: features must be drawn; pass spec.draw({d}, rng) or spec.fit(q, k, rng).")
    if not isinstance(features, FeatureMap | TensorFeatures):
        raise TypeError(f"{OWNER}: features must be drawn features such as spec.draw({d}, rng), got {shown(features)}.")
    width = features.d if isinstance(features, TensorFeatures) else features.n_features_in
    if width != d:
        raise ValueError(f"{OWNER}: the features were drawn for width {width}, but q and k have width {d}.")
    kernel = features.spec.kernel if isinstance(features, FeatureMap) else None
    if isinstance(kernel, Softmax) and kernel.scale != 1:
        raise ValueError(
            f"{OWNER}: features of {kernel!r} would be scaled twice; draw them with kernels.Softmax() and pass "
            f"scale={kernel.scale:g} here."
        )


def root_of_scale(q: Tensor, scale: Any) -> float | Tensor:
    """The factor of queries and of keys."""
    if scale is None:
        root: float = float(q.shape[-1]) ** -0.25
        return root
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
        raise ValueError(f"{OWNER}: scale must be a positive number or tensor, got {shown(scale)}.")
    check_scale(OWNER, float(scale))
    return math.sqrt(float(scale))


def check_scale(owner: str, scale: float) -> None:
    """Refuse a factor of dot products whose root, by which queries and keys are multiplied, is none in float32."""
    low, high = _SCALES
    if not low <= scale <= high:
        raise ValueError(f"{owner}: scale must be a number between {low:g} and {high:g}, got {shown(scale)}.")


def check_meta(q: Tensor, features: TensorFeatures, prefix_lengths: Tensor | None) -> None:
    """Refuse tensors without numbers where something depends on the numbers."""
    if q.is_meta and not (features.traceable and features.positive):
        raise TypeError(
            f"{OWNER}: q must be a dense tensor, got a meta tensor, which holds no numbers; these have an answer for "
            f"positive exponential features such as OptimalPositive."
        )


def check_exclusive(
    k: Tensor, causal: bool, prefix_lengths: Any, cu_seqlens: object, state: object, process_group: object, kept: bool
) -> None:
    """Raise an error for options that exclude each other."""
    if prefix_lengths is not None and not _are_integers(prefix_lengths):
        kind = str(prefix_lengths.dtype) if isinstance(prefix_lengths, Tensor) else type(prefix_lengths).__name__
        raise TypeError(f"{OWNER}: prefix_lengths must be a tensor of integers (int32 or int64), got {kind}.")
    if prefix_lengths is not None and (causal or cu_seqlens is not None):
        raise ValueError(f"{OWNER}: prefix_lengths cannot be combined with causal or cu_seqlens.")
    several = cu_seqlens is not None or (prefix_lengths is not None and prefix_lengths.ndim > 1)
    if several and (kept or state is not None):
        raise ValueError(f"{OWNER}: a state belongs to one sequence; call once for each sequence with its own state.")
    if process_group is not None:
        check_group(OWNER, process_group)
        if any(other is not None for other in (prefix_lengths, cu_seqlens, state)) or kept or not k.shape[-2]:
            raise ValueError(
                f"{OWNER}: with a process_group each rank holds at least one position of one sequence; prefix_lengths, "
                f"cu_seqlens and state cannot be combined with it."
            )


def check_near(
    q: Tensor,
    k: Tensor,
    features: FeatureMap | TensorFeatures,
    window: int,
    causal: bool,
    prefix_lengths: Any,
    cu_seqlens: object,
    kept: bool,
    process_group: object,
) -> None:
    """Refuse keys with exact weights where these weights, or their positions, are not defined."""
    kernel = features.spec.kernel if isinstance(features, FeatureMap) else Softmax()
    if kernel != Softmax():
        raise ValueError(
            f"{OWNER}: window and anchors compute weights of softmax, which the features must estimate; draw them with "
            f"kernels.Softmax() instead of {kernel!r}."
        )
    if prefix_lengths is not None or process_group is not None:
        raise ValueError(
            f"{OWNER}: window and anchors cannot be combined with prefix_lengths or a process_group; leave them 0."
        )
    if window and kept and not causal:
        raise ValueError(f"{OWNER}: a window with a state needs causal=True, since a state holds no later keys.")
    if window and cu_seqlens is None and q.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"{OWNER}: a window needs as many queries as keys, got {q.shape[-2]} and {k.shape[-2]}; use anchors alone for "
            f"other keys than those of the queries."
        )


def _are_integers(lengths: Any) -> bool:
    return isinstance(lengths, Tensor) and lengths.dtype in (torch.int32, torch.int64)


def _checked_mask(k: Tensor, key_mask: Tensor | None) -> Tensor | None:
    """What is added to the logarithms of keys, (..., Lk), with as many axes as k has before its width, or one."""
    if key_mask is None:
        return None
    if not isinstance(key_mask, Tensor) or not (key_mask.dtype == torch.bool or key_mask.is_floating_point()):
        kind = str(key_mask.dtype) if isinstance(key_mask, Tensor) else type(key_mask).__name__
        raise TypeError(
            f"{OWNER}: key_mask must be a tensor of bool, True for keys and False for padding, or of numbers that "
            f"are added to the logits, got {kind}."
        )
    one_row = key_mask.ndim == k.ndim > 1 and key_mask.shape[-2] == 1  # as scaled_dot_product_attention takes it
    given, key_mask = key_mask, key_mask.squeeze(-2) if one_row else key_mask
    fits = key_mask.ndim in (1, k.ndim - 1) and key_mask.shape[-1] == k.shape[-2]
    if not fits or any(a not in (1, b) for a, b in zip(key_mask.shape[:-1], k.shape[:-2], strict=False)):
        raise ValueError(
            f"{OWNER}: key_mask must have the shape of k without its width, {tuple(k.shape[:-1])}, axes of length 1 "
            f"allowed, got {tuple(given.shape)}; for a (batch, length) mask pass mask[:, None, :].  A mask of queries by "
            f"keys cannot be computed in linear time: see causal and prefix_lengths."
        )
    dtype = torch.float64 if k.dtype == torch.float64 else torch.float32
    if key_mask.dtype == torch.bool:
        return torch.zeros((), dtype=dtype, device=k.device).masked_fill(~key_mask, -torch.inf)
    return key_mask.to(dtype)


def check_state(state: AttentionState | None, features: TensorFeatures, k: Tensor, v: Tensor, slots: int) -> None:
    """Refuse keys that cannot be added to those of a state; ``slots`` of them have exact weights."""
    if state is None or state.empty:
        return
    held = 0 if state.near is None else state.near.seen.shape[-1]
    if held != slots:
        raise ValueError(
            f"{OWNER}: the state holds {held} keys with exact weights, but window and anchors ask for {slots}; give "
            f"the same ones in all calls with a state."
        )
    lead, e = state.shape
    width = features.width if state.sums is None else state.sums.values.shape[-2]
    if width != features.width:
        raise ValueError(f"{OWNER}: the state was made with {width} features, these features have {features.width}.")
    if e != v.shape[-1]:
        raise ValueError(f"{OWNER}: the state holds values of width {e}, got v of shape {tuple(v.shape)}.")
    here = torch.broadcast_shapes(k.shape[:-2], v.shape[:-2], features.lead if state.near is None else ())
    if here[-len(lead) :] != lead if lead else False:
        raise ValueError(
            f"{OWNER}: the state holds keys with leading axes {lead}, but k {tuple(k.shape)} and v "
            f"{tuple(v.shape)} have {tuple(here)}; a state belongs to one batch (see its select)."
        )


def check_lengths(q: Tensor, k: Tensor, causal: bool, prefix_lengths: Tensor | None) -> None:
    """Refuse numbers of queries and keys that do not fit."""
    if prefix_lengths is not None:
        _check_prefix_lengths(q, k, prefix_lengths)
    if causal and q.shape[-2] != k.shape[-2]:
        raise ValueError(
            f"{OWNER}: causal attention needs as many queries as keys, got {q.shape[-2]} and {k.shape[-2]}; pass "
            f"prefix_lengths, the number of keys that each query sees, or past keys as a state."
        )


def borders_of(
    q: Tensor, k: Tensor, cu_seqlens: Tensor | tuple[Tensor, Tensor], *, alike: bool
) -> tuple[Tensor, Tensor]:
    """Cumulative lengths of queries and of keys of packed sequences, on their device; ``alike`` if they must be the same.

    Their numbers are checked where they are on the host, and no device is waited for.
    """
    pair = cu_seqlens if isinstance(cu_seqlens, tuple) else (cu_seqlens, cu_seqlens)
    if len(pair) != 2:
        raise ValueError(f"{OWNER}: cu_seqlens must be a tensor, or a pair for queries and keys, got {len(pair)}.")
    for offsets, x in zip(pair, (q, k), strict=True):
        _check_offsets(offsets, x.shape[-2])
    of_q, of_k = pair
    if len(of_q) != len(of_k):
        raise ValueError(f"{OWNER}: cu_seqlens has {len(of_q) - 1} sequences of queries, {len(of_k) - 1} of keys.")
    if alike and of_q is not of_k and _on_host(of_q) and _on_host(of_k) and of_q.tolist() != of_k.tolist():
        raise ValueError(
            f"{OWNER}: causal attention and windows need as many queries as keys in each sequence, got cu_seqlens "
            f"{of_q.tolist()} and {of_k.tolist()}."
        )
    return of_q.to(q.device), of_k.to(q.device)


def slices_of(borders: tuple[Tensor, Tensor]) -> list[tuple[slice, slice]]:
    """Rows of queries and of keys of each packed sequence, whose cumulative lengths the host reads."""
    slices = [[slice(a, b) for a, b in pairwise(of.tolist())] for of in borders]
    return list(zip(*slices, strict=True))


def _check_offsets(offsets: Any, length: int) -> None:
    """Refuse borders of packed sequences that are none."""
    if not isinstance(offsets, Tensor) or offsets.ndim != 1 or offsets.is_floating_point() or len(offsets) < 2:
        raise ValueError(f"{OWNER}: cu_seqlens must be a tensor of at least two integers, got {shown(offsets)}.")
    if not _on_host(offsets):
        return
    borders: list[int] = offsets.tolist()
    if borders[0] != 0 or borders[-1] != length or any(a > b for a, b in pairwise(borders)):
        raise ValueError(f"{OWNER}: cu_seqlens must not decrease and run from 0 to the length {length}, got {borders}.")


def _on_host(x: Tensor) -> bool:
    """Whether numbers can be checked: they are on the host, and no graph is traced."""
    return readable(x) and not torch.compiler.is_compiling()


def _check_prefix_lengths(q: Tensor, k: Tensor, lengths: Tensor) -> None:
    """Refuse lengths that do not lie between zero and the number of keys, one for each query."""
    batch = q.shape[:1] if q.ndim > 2 else ()
    if tuple(lengths.shape) not in {(q.shape[-2],), (*batch, q.shape[-2])}:
        raise ValueError(
            f"{OWNER}: prefix_lengths must have shape ({q.shape[-2]},), or one row for each member of the first axis of q, "
            f"got {tuple(lengths.shape)}; an arbitrary mask of queries by keys cannot be computed in linear "
            f"time."
        )
    if readable(lengths) and lengths.numel() and (lengths.min() < 0 or lengths.max() > k.shape[-2]):
        raise ValueError(f"{OWNER}: prefix_lengths must lie between 0 and the number of keys {k.shape[-2]}.")
