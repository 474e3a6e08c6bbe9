"""Sequences as chunks of equal length, eagerly and in graphs that hold for any length."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import pad

_CHUNK = 32
"""Positions of a chunk: with more, products within it cost more; with fewer, the sums of chunks take more memory."""

_GROUP = 16
"""Chunks whose sums are added in one product, at least; the square root of their number where there are many."""


def is_symbol(length: object) -> bool:
    """Whether a length stands for any, as in graphs that hold for all lengths; torch's annotations call both ``int``."""
    return isinstance(length, torch.SymInt)


def chunk_size(chunk: int | None, length: int) -> int:
    """Positions of a chunk, a power of two, and not far beyond the length where that is known."""
    size = _CHUNK if chunk is None else chunk
    if not is_symbol(length):
        size = min(size, length)
    return 1 << max(int(size) - 1, 1).bit_length()


def padded(x: Tensor, sides: tuple[int, ...], value: float = 0.0) -> Tensor:
    """A tensor with more of this value around it, or itself where there is nothing to add."""
    if not any(is_symbol(side) or side for side in sides):
        return x
    return pad(x, sides, value=value)


def pieces(x: Tensor, before: int, after: int, size: int, value: float = 0.0) -> Tensor:
    """Rows with that many more before and after them, whole pieces (..., pieces, size, width)."""
    return in_pieces(padded(x, (0, 0, before, after), value), size)


def in_pieces(x: Tensor, size: int) -> Tensor:
    """Rows (..., L, width) as pieces, (..., L / size, size, width); by places where a graph holds for any length."""
    if not is_symbol(x.shape[-2]):
        whole: Tensor = x.unflatten(-2, (-1, size))
        return whole
    starts = torch.arange(x.shape[-2] // size, device=x.device)[:, None] * size
    return x[..., starts + torch.arange(size, device=x.device), :]


def rows_of(x: Tensor, start: int, count: int) -> Tensor:
    """Rows of a tensor (..., L, width); graphs for any length have them by places, since slices compare lengths."""
    if is_symbol(count):
        return x.index_select(-2, torch.arange(start, start + count, device=x.device))
    return x[..., start : start + count, :]


def count_of(length: int, size: int) -> int:
    """Number of pieces of a length; in graphs for any length there is one to spare, so that it is never one."""
    return length // size + 2 if is_symbol(length) else -(-length // size)


def chunk_count(length: int, size: int, more: int = 0) -> int:
    """Number of chunks of a length; with that many ``more`` they are whole groups, as `running` needs them."""
    if is_symbol(length):  # at least two groups, since graphs for any length have no axis that may be one
        return (length // (size * _GROUP) + 2) * _GROUP - more
    groups, each = grouping(count_of(length, size) + more)
    return groups * each - more


def grouping(chunks: int) -> tuple[int, int]:
    """Number of groups, and of the chunks of each, that hold so many chunks with few to spare."""
    if is_symbol(chunks):
        return chunks // _GROUP, _GROUP
    groups = -(-chunks // max(_GROUP, math.isqrt(chunks)))
    return groups, -(-chunks // groups)


_tables: dict[tuple[object, ...], tuple[Tensor, ...]] = {}


def table(place: tuple[object, ...], make: Callable[[], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Tensors that depend on sizes alone, made once: making them takes as long as other steps, a copy to a device longer."""
    if place in _tables:
        return _tables[place]
    if torch.compiler.is_compiling():
        return make()
    with torch.inference_mode(False):  # later calls may need them for gradients
        made = make()
    if all(type(x) is Tensor for x in made):  # no tensors of a tracer
        _tables[place] = made
    return made
