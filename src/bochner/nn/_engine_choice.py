"""Which engine computes a call of linear attention, and how many rows of it at a time.

The plain engine computes everything.  The fused operator is for positive features whose logarithms are quadratic, which are
all real exponential maps, on a CPU; it knows neither gradients through a state nor prefixes of any length.  It computes what
it is at least 1.5 times as fast at: `bochner-lab bench engines` measures each case of the rule below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ._chunks import is_symbol
from ._tensor_features import QuadraticFeatures, TensorFeatures

NARROW, WIDE = 24, 96
"""Causal attention without a window, or with one below the first, is left to it: small chunks cost the plain engine
most, 5 times as much at 2048 positions with a window of 16.  From there on it pays for long inputs only, and from
the second on, where products of the window outweigh the features, only if gradients are asked for."""

_LARGE, _LARGE_ALL = 1 << 17, 1 << 23
"""Features of a long input, per key of a causal window, and without a mask: what the plain engine keeps of so many no longer
stays in the cache.  Below, the operator is 1.0 to 1.5 times as fast, above 1.6 to 3 times."""

_TILE = 1 << 19
"""Features of a tile where no gradient is asked for: they stay in the cache of a core; all at once take twice as long."""

_SEGMENT = 1024
"""Positions that a window is computed for at a time: at 8192 of them, all at once and segments of 256 take longer."""


def operator_takes(features: TensorFeatures, tensors: tuple[Tensor, ...], engine: str) -> bool:
    """Whether the fused operator can compute a call with these queries, keys, values and other tensors."""
    if engine == "plain" or not isinstance(features, QuadraticFeatures) or not features.positive:
        return False
    if tensors[0].device.type != "cpu":
        return False
    if torch.compiler.is_compiling():
        return True
    # torch has no public way to ask whether vmap or grad of torch.func is active: the operator has no rules for them
    if torch._C._are_functorch_transforms_active():
        return False
    return not any(forward_ad.unpack_dual(x).tangent is not None for x in tensors)


def operator_pays(features: TensorFeatures, tensors: tuple[Tensor, ...], *, causal: bool, window: int) -> bool:
    """Whether it is fast enough to be used, by the rule above, for a call as a whole."""
    if causal and window < NARROW:
        return True
    if in_tiles(features, tensors) and (not causal or window >= WIDE):
        return False
    q, k, v = tensors[:3]
    lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2], features.lead)
    sizes = (*lead, q.shape[-2], k.shape[-2])
    if any(map(is_symbol, sizes)):  # a graph for any length, which has no tiles
        return True
    count: int = math.prod(lead) * max(sizes[-2:]) * features.width
    return count >= (_LARGE * window if causal else _LARGE_ALL)


def eager_on_a_cpu(x: Tensor) -> bool:
    """Whether there are numbers of a processor with caches, and no graph that would unroll a loop."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def in_tiles(features: TensorFeatures, tensors: tuple[Tensor, ...]) -> bool:
    """Whether rows may be computed some at a time: nothing is traced, and no gradient asks for all of them again."""
    if not eager_on_a_cpu(tensors[0]):
        return False
    if not torch.is_grad_enabled():
        return True
    if not isinstance(features, QuadraticFeatures):
        return False  # maps may have parameters of their own
    parts = [x for side in (features.queries, features.keys) for x in side if x is not None]
    return not any(x.requires_grad for x in (*tensors, *parts))


def tiles(n: int, features: TensorFeatures, heads: int) -> Iterator[slice]:
    """Rows of n, as many at a time as a tile holds for that many heads."""
    yield from _slices(n, max(_TILE // max(features.width * heads, 1), 64))


def segments(n: int) -> list[slice]:
    """Positions of n that a window is computed for at a time; nearly all at once where there are few."""
    return list(_slices(n, _SEGMENT)) if n >= 2 * _SEGMENT else [slice(0, n)]


def _slices(n: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, n)) for start in range(0, max(n, 1), size))
