"""Linear attention with positive features as one operator, which graphs, exports, `vmap` and meta tensors can hold.

The operator is a pure function of tensors: what it does between steps may depend on numbers, and no graph sees it.  Heads
are divided among threads; nothing else runs in parallel.  Second derivatives go through the plain walk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..approximation.log_features import NOTHING, KeySums, LogFeatures
from ._fused_backward import Gradients, Saved, backward
from ._fused_forward import TILE, Heads, Layout, Output, forward
from ._tensor_features import LOG2E, Binary, QuadraticFeatures, TensorFeatures
from ._threads import run_all
from ._walk import Everything, Prefixes, Walk

_LN2 = 1 / LOG2E
_CAUSAL_ROWS = 64
"""Rows of a causal step: products within it cost less than those with the sums."""


class Fused(NamedTuple):
    """The result of `attend`.

    Attributes
    ----------
    out : Tensor (..., n, e)
        Normalised over the keys that were met; zero for queries that saw none.
    log : Tensor (..., n, 1)
        Logarithm of the denominator to base two, but for the squared norm of the query.
    sums : KeySums
        Over all keys.
    """

    out: Tensor
    log: Tensor
    sums: KeySums


def attend(
    features: QuadraticFeatures,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_mask: Tensor | None,
    root: float | Tensor,
    *,
    causal: bool,
    lag: int = 0,
    rows: int | None = None,
    sums: KeySums | None = None,
) -> Fused:
    """Attend to all keys, or with ``causal`` to key j up to ``i - lag``, and to those in the sums.

    Gradients flow to queries, keys, values and features, but not to or from the sums.
    """
    if isinstance(root, Tensor):
        q, k, root = q * root, k * root, 1.0
    (of_queries, _), (of_keys, c) = (features.binary(root, q, key=key) for key in (False, True))
    values, shift = (None, None) if sums is None else (sums.values, _rescaled(sums.shift, LOG2E))
    if rows is None:
        rows = _CAUSAL_ROWS if causal else min(max(TILE // features.width, 64), 1024)
    inputs = (q, k, v, key_mask, *of_queries[:3], *of_keys)
    save = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)
    operator: Callable[..., Any] = _forward if torch.compiler.is_compiling() else _Attention.apply
    out, log, values, shift, *_ = operator(*inputs, c, causal, lag, rows, save, values, shift)
    return Fused(out, log, KeySums(values, _rescaled(shift, _LN2)))


def scale_of(features: QuadraticFeatures, q: Tensor, root: float | Tensor, log: Tensor) -> Tensor:
    """Logarithms of denominators to base e with the squared norms of the queries, which cancel in the output."""
    if isinstance(root, Tensor):
        q, root = q * root, 1.0
    side, c = features.binary(root, q, key=False)
    norms = side.turned(side.offsets(q)).square().sum(dim=-1, keepdim=True)
    return torch.where(log > NOTHING, (log + c * norms) * _LN2, log)


def _rescaled(shift: Tensor, factor: float) -> Tensor:
    """A stabiliser to another base."""
    return torch.where(shift > NOTHING, shift * factor, NOTHING)


class _Call(NamedTuple):
    """The inputs that both operators begin with, in their order."""

    q: Tensor
    k: Tensor
    v: Tensor
    key_mask: Tensor | None
    query_slope: Tensor
    query_constant: Tensor
    query_centre: Tensor | None
    key_slope: Tensor
    key_constant: Tensor
    key_centre: Tensor | None
    key_turn: Tensor | None
    c: float
    causal: bool
    lag: int
    rows: int

    @property
    def lead(self) -> tuple[int, ...]:
        """The leading axes of all inputs together."""
        axes = {tuple(x.shape[: -1 if i == 3 else -2]) for i, x in enumerate(self[:11]) if x is not None} - {()}
        return axes.pop() if len(axes) == 1 else tuple(torch.broadcast_shapes(*axes))

    def results(self, save: bool) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Room for the output, its logarithms, the sums and their stabiliser, and these two before each step."""
        lead, n, m, e = self.lead, self.q.shape[-2], self.query_slope.shape[-1], self.v.shape[-1]
        steps = (n - self.lag + self.rows - 1) // self.rows if save and self.causal else 0
        shapes = ((n, e), (n, 1), (m, e + 1), (1, m), (steps, m, e + 1), (steps, 1, m))
        out, log, sums, shift, before, shifts = (self.v.new_empty(*lead, *shape) for shape in shapes)
        return out, log, sums, shift, before, shifts

    def gradients(self, coefficients: bool) -> list[Tensor]:
        """Room for the gradients of all tensors but the mask, with all leading axes; empty ones where none is asked for."""
        tensors = [x for i, x in enumerate(self[:11]) if i != 3]
        wanted = [x is not None and (i < 3 or coefficients) for i, x in enumerate(tensors)]
        lead = self.lead
        return [
            self.v.new_zeros(*lead, *x.shape[-2:]) if ask else self.v.new_empty(0)
            for x, ask in zip(tensors, wanted, strict=True)
        ]

    def groups(self) -> _Groups:
        """Heads that are computed side by side: as many as fill a tile, and enough groups for all threads."""
        lead = self.lead or (1,)
        rows = min(self.rows, max(self.q.shape[-2], self.k.shape[-2], 1))
        most = min(TILE // (rows * self.query_slope.shape[-1]), lead[-1] // torch.get_num_threads())
        return _Groups(lead, next(size for size in range(max(most, 1), 0, -1) if lead[-1] % size == 0))

    def heads(self, groups: _Groups) -> Iterator[Heads]:
        """The inputs of each group."""
        parts = [groups.split(x, 1 if i == 3 else 2) for i, x in enumerate(self[:11])]
        for q, k, v, key_mask, *sides in zip(*parts, strict=True):
            queries, keys = Binary.of(*sides[:3]), Binary.of(*sides[3:])
            yield Heads(q, k, v, key_mask, queries, keys, self.c, Layout(*self[12:]))


class _Groups(NamedTuple):
    """How heads are divided: all leading axes, and heads of a group, which divide the last of them."""

    lead: tuple[int, ...]
    size: int

    def split(self, x: Tensor | None, axes: int = 2) -> list[Any]:
        """Views (size, ...) of a tensor whose last ``axes`` are not leading ones."""
        if x is None or x.ndim == axes:
            same = x if x is None else x.expand(self.size, *x.shape)
            return [same] * (math.prod(self.lead) // self.size)
        parts = [x.expand(*self.lead, *x.shape[x.ndim - axes :])]
        for _ in self.lead[1:]:
            parts = [part for whole in parts for part in whole.unbind()]
        return [part for whole in parts for part in whole.split(self.size)]

    def split_results(self, results: list[Tensor]) -> Iterator[tuple[Tensor, ...]]:
        """Views of `_Call.results`."""
        return zip(*(self.split(x, axes) for x, axes in zip(results, (2, 2, 2, 2, 3, 3), strict=True)), strict=True)


@torch.library.custom_op("bochner::linear_attention", mutates_args=())
def _forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_mask: Tensor | None,
    query_slope: Tensor,
    query_constant: Tensor,
    query_centre: Tensor | None,
    key_slope: Tensor,
    key_constant: Tensor,
    key_centre: Tensor | None,
    key_turn: Tensor | None,
    c: float,
    causal: bool,
    lag: int,
    rows: int,
    save: bool,
    sums: Tensor | None,
    shift: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    call = _Call(
        q, k, v, key_mask, query_slope, query_constant, query_centre, key_slope, key_constant, key_centre, key_turn,
        c, causal, lag, rows,
    )  # fmt: skip
    results = call.results(save)
    results[2].zero_() if sums is None else results[2].copy_(sums)
    results[3].fill_(NOTHING) if shift is None else results[3].copy_(shift)
    groups = call.groups()
    rooms = groups.split_results(list(results))
    run_all(
        [partial(forward, heads, Output(*room), save) for heads, room in zip(call.heads(groups), rooms, strict=True)]
    )
    return results


@_forward.register_fake
def _(*inputs: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    return _Call(*inputs[:15]).results(inputs[15])


@torch.library.custom_op("bochner::linear_attention_backward", mutates_args=())
def _backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_mask: Tensor | None,
    query_slope: Tensor,
    query_constant: Tensor,
    query_centre: Tensor | None,
    key_slope: Tensor,
    key_constant: Tensor,
    key_centre: Tensor | None,
    key_turn: Tensor | None,
    c: float,
    causal: bool,
    lag: int,
    rows: int,
    coefficients: bool,
    results: list[Tensor],
    d_out: Tensor,
    d_log: Tensor,
) -> list[Tensor]:
    call = _Call(
        q, k, v, key_mask, query_slope, query_constant, query_centre, key_slope, key_constant, key_centre, key_turn,
        c, causal, lag, rows,
    )  # fmt: skip
    gradients, groups = call.gradients(coefficients), call.groups()
    rooms = zip(*(groups.split(x if x.ndim > 1 else None) for x in gradients), strict=True)
    saved = (
        Saved(*s, *d)
        for s, *d in zip(groups.split_results(results), groups.split(d_out), groups.split(d_log), strict=True)
    )
    tasks = [
        partial(backward, heads, left, Gradients.of(*room))
        for heads, left, room in zip(call.heads(groups), saved, rooms, strict=True)
    ]
    run_all(tasks)
    return gradients


@_backward.register_fake
def _(*inputs: Any) -> list[Tensor]:
    return _Call(*inputs[:15]).gradients(inputs[15])


class _Attention(torch.autograd.Function):
    """The operator with its gradient."""

    @staticmethod
    def forward(*inputs: Any) -> Any:
        return _forward(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[:11], *output)
        ctx.constants = inputs[11:15]
        ctx.mark_non_differentiable(*output[2:])

    @staticmethod
    def backward(ctx: Any, d_out: Tensor, d_log: Tensor, *_: Any) -> Any:
        return _gradients(ctx, _Gradient.apply, d_out, d_log)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> Any:
        return _Attention.apply(*_batched((*_AXES, 0, 2, 2), inputs, in_dims, info.batch_size)), (0,) * 6


def _gradients(ctx: Any, gradient: Callable[..., Any], d_out: Tensor, d_log: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of the inputs of an operator, in their own shapes."""
    inputs, results = ctx.saved_tensors[:11], ctx.saved_tensors[11:]
    needed, (_, causal, *_) = ctx.needs_input_grad, ctx.constants
    if causal and not results[4].shape[-3]:  # the forward pass did not expect gradients
        results = _forward(*inputs, *ctx.constants, True, None, None)
    found = list(gradient(*inputs, *ctx.constants, any(needed[4:11]), *results, d_out, d_log))
    found.insert(3, d_out)  # the mask has none
    own = (x.sum_to_size(y.shape) if ask else None for x, y, ask in zip(found, inputs, needed, strict=False))
    return (*own, *(None,) * 7)


# within a graph the operator has its gradient from here: dynamo does not follow one function inside of another
_forward.register_autograd(
    lambda ctx, d_out, d_log, *_: _gradients(ctx, _gradient_of, d_out, d_log), setup_context=_Attention.setup_context
)


def _gradient_of(*inputs: Any) -> Any:
    *call, a, b, c, d, e, f, d_out, d_log = inputs
    return tuple(_backward(*call, [a, b, c, d, e, f], d_out.contiguous(), d_log.contiguous()))


class _Gradient(torch.autograd.Function):
    """The operator of the gradient; its own gradient goes through plain operations."""

    @staticmethod
    def forward(*inputs: Any) -> Any:
        return _gradient_of(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[:11], *inputs[-2:])
        ctx.constants = inputs[11:15]
        ctx.mark_non_differentiable(*(x for x in output if x.ndim < 2))

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> Any:
        needed = [*ctx.needs_input_grad[:11], *ctx.needs_input_grad[-2:]]
        with torch.enable_grad():
            tensors: list[Any] = [
                x if x is None else x.detach().requires_grad_(x.is_floating_point()) for x in ctx.saved_tensors
            ]
            call, ends = _Call(*tensors[:11], *ctx.constants), tensors[11:]
            inputs = [x for i, x in enumerate(tensors[:11]) if i != 3]
            asked = [(x, y) for x, y in zip(inputs, given, strict=True) if x is not None and y.ndim > 1]
            first = torch.autograd.grad(_walked(call), [x for x, _ in asked], ends, create_graph=True)
            wanted = [x for x, ask in zip(tensors, needed, strict=True) if ask]
            whole = [y.sum_to_size(x.shape) for x, y in asked]
            found = iter(torch.autograd.grad(first, wanted, whole, allow_unused=True))
        second = [next(found) if ask else None for ask in needed]
        return (*second[:11], *(None,) * (len(ctx.needs_input_grad) - 13), *second[11:])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> Any:
        axes = (*_AXES, 0, 2, 2, 2, 2, 3, 3, 2, 2)
        found = _Gradient.apply(*_batched(axes, inputs, in_dims, info.batch_size))
        return found, tuple(0 if x.ndim > 1 else None for x in found)


class _Plain(TensorFeatures):
    """The features of a call by plain operations, without the squared norms of queries."""

    positive = True

    def __init__(self, call: _Call) -> None:
        self.call, self.d, self.width = call, call.q.shape[-1], call.query_slope.shape[-1]
        self.lead = tuple(call.query_slope.shape[:-2])

    def log(self, X: Tensor, *, key: bool) -> LogFeatures:
        side = Binary.of(*self.call[7:11]) if key else Binary.of(*self.call[4:7])
        offsets = side.offsets(X)
        logs = offsets @ side.slope + side.constant
        if key:
            logs = logs + self.call.c * side.turned(offsets).square().sum(dim=-1, keepdim=True)
        return LogFeatures(None, logs * _LN2)


def _walked(call: _Call) -> tuple[Tensor, Tensor]:
    """What the operator computes, by a walk over plain operations: the output and its logarithms."""
    n, p = call.q.shape[-2], call.k.shape[-2]
    lengths: Any = [max(i + 1 - call.lag, 0) for i in range(n)] if call.causal else Everything(p, n)
    there = torch.ones(p, dtype=torch.bool, device=call.k.device) if call.key_mask is None else call.key_mask
    counts = torch.nn.functional.pad(there.cumsum(dim=-1), (1, 0))
    seen = counts[..., torch.tensor(list(lengths), dtype=torch.int64, device=counts.device)] > 0
    walk = Walk(_Plain(call), call.q, call.k, call.v, call.key_mask, Prefixes(lengths), seen, 1.0)
    part = walk.run(None, call.rows)[0]
    den = torch.where(seen[..., None], part.sums[..., -1:], 1.0)
    log = (part.scale + den.log()) * LOG2E
    return part.sums[..., :-1] / den, torch.where(seen[..., None], log, 2 * NOTHING)


_AXES = (2, 2, 2, 1, *(2,) * 7, 0, 0, 0, 0)
"""Axes that are not leading ones, of the tensors that both operators begin with."""


def _batched(axes: tuple[int, ...], inputs: tuple[Any, ...], in_dims: tuple[Any, ...], size: int) -> list[Any]:
    """Inputs with one more leading axis before all others, where `torch.vmap` has put one somewhere."""
    tensors = [(x, n, dim) for x, n, dim in zip(inputs, axes, in_dims, strict=True) if isinstance(x, Tensor)]
    rank = max(x.ndim - n - (dim is not None) for x, n, dim in tensors)

    def moved(x: Any, n: int, dim: int | None) -> Any:
        if dim is None:
            return x
        x = x.movedim(dim, 0)
        return x.reshape(size, *(1,) * (rank - x.ndim + 1 + n), *x.shape[1:])

    q, *rest = (moved(*each) for each in zip(inputs, axes, in_dims, strict=True))
    return [q.expand(size, *(1,) * (rank - q.ndim + 2), *q.shape) if in_dims[0] is None else q, *rest]
