"""Linear attention with positive features as one operator, which graphs, exports, `vmap` and meta tensors can hold.

The operator is a pure function of tensors: what it does between steps may depend on numbers, and no graph sees it.  Heads
are divided among threads; nothing else runs in parallel.  Second derivatives go through the plain walk.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..approximation.log_features import NOTHING, KeySums
from ._fused_backward import Gradients, Saved, backward
from ._fused_call import RESULT_AXES, TENSORS, TILE, Call
from ._fused_forward import Output, forward
from ._fused_plain import by_plain_operations
from ._tensor_features import LOG2E, QuadraticFeatures
from ._threads import run_all

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
    sums : KeySums or None
        Over all keys, if they are to be kept.
    """

    out: Tensor
    log: Tensor
    sums: KeySums | None


def attend(
    features: QuadraticFeatures,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_bias: Tensor | None,
    root: float | Tensor,
    *,
    causal: bool,
    lag: int = 0,
    group: int = 1,
    rows: int | None = None,
    sums: KeySums | None = None,
    keep: bool = False,
) -> Fused:
    """Attend to all keys, or with ``causal`` to key j up to ``i - lag``, and to those in the sums; see `Layout`.

    Gradients flow to queries, keys, values, the bias of keys (..., p) and features, but not to or from the sums.
    """
    if isinstance(root, Tensor):
        q, k, root = q * root, k * root, 1.0
    (of_queries, _), (of_keys, c) = (features.binary(root, q, key=key) for key in (False, True))
    values, shift = (None, None) if sums is None else (sums.values, _rescaled(sums.shift, LOG2E))
    if rows is None:
        rows = _CAUSAL_ROWS if causal else min(max(TILE // features.width, 64), 1024)
    if key_bias is not None:
        key_bias = key_bias.to(v.dtype) * LOG2E
    inputs = (q, k, v, key_bias, *of_queries[:3], *of_keys)
    save = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)
    operator: Callable[..., Any] = _Attention.apply
    if torch.compiler.is_compiling():
        operator = _forward
    elif not save and _here(q) and not torch._C._are_functorch_transforms_active():
        operator = _forward_here
    out, log, values, shift, *_ = operator(*inputs, c, causal, lag, group, rows, save, keep, values, shift)
    return Fused(out, log, KeySums(values, _rescaled(shift, _LN2)) if keep else None)


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


def _forward_here(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_bias: Tensor | None,
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
    group: int,
    rows: int,
    save: bool,
    keep: bool,
    sums: Tensor | None,
    shift: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    call = Call(
        q, k, v, key_bias, query_slope, query_constant, query_centre, key_slope, key_constant, key_centre, key_turn,
        c, causal, lag, group, rows,
    )  # fmt: skip
    results, groups = call.results(save, keep), call.groups()
    if groups.single:
        to = Output(*(groups.whole(x, axes) for x, axes in zip(results, RESULT_AXES, strict=True)))
        run_all([partial(forward, call.all_heads(groups), to, groups.whole(sums), groups.whole(shift))])
        return results
    heads, room, start = call.heads(groups), groups.result_parts(results), [groups.parts(x) for x in (sums, shift)]

    def task(a: int, b: int) -> None:
        forward(heads(a, b), Output(*room(a, b)), *(part(a, b) for part in start))

    run_all([partial(task, *ends) for ends in groups.ends()])
    return results


_forward = torch.library.custom_op("bochner::linear_attention", _forward_here, mutates_args=())


@_forward.register_fake
def _(*inputs: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    return Call(*inputs[:_CALL]).results(*inputs[_CALL : _CALL + 2])


def _backward_here(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_bias: Tensor | None,
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
    group: int,
    rows: int,
    biased: bool,
    coefficients: bool,
    results: list[Tensor],
    d_out: Tensor,
    d_log: Tensor,
) -> list[Tensor]:
    call = Call(
        q, k, v, key_bias, query_slope, query_constant, query_centre, key_slope, key_constant, key_centre, key_turn,
        c, causal, lag, group, rows,
    )  # fmt: skip
    gradients, groups = call.gradients(biased, coefficients), call.groups()
    heads, left = call.heads(groups), groups.result_parts(results)
    given = [groups.parts(x) for x in (d_out, d_log)]
    rooms = [groups.parts(x if x.numel() else None, 1 if i == 3 else 2) for i, x in enumerate(gradients)]

    def task(a: int, b: int) -> None:
        saved = Saved(*left(a, b), *(part(a, b) for part in given))
        backward(heads(a, b), saved, Gradients.of(*(part(a, b) for part in rooms)))

    run_all([partial(task, *ends) for ends in groups.ends()])
    return gradients


_backward = torch.library.custom_op("bochner::linear_attention_backward", _backward_here, mutates_args=())


@_backward.register_fake
def _(*inputs: Any) -> list[Tensor]:
    return Call(*inputs[:_CALL]).gradients(*inputs[_CALL : _CALL + 2])


def _here(q: Tensor) -> bool:
    """Whether there are numbers to work on at once: the dispatcher is for graphs, and would load torch's compiler."""
    return type(q) in (Tensor, torch.nn.Parameter) and not q.is_meta and not torch.compiler.is_compiling()


class _Attention(torch.autograd.Function):
    """The operator with its gradient."""

    @staticmethod
    def forward(*inputs: Any) -> Any:
        return (_forward_here if _here(inputs[0]) else _forward)(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[:TENSORS], *output)
        ctx.constants = inputs[TENSORS:_CALL]
        ctx.mark_non_differentiable(*output[2:])

    @staticmethod
    def backward(ctx: Any, d_out: Tensor, d_log: Tensor, *_: Any) -> Any:
        return _gradients(ctx, _Gradient.apply, d_out, d_log)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> Any:
        return _Attention.apply(*_batched((*_AXES, 0, 0, 2, 2), inputs, in_dims, info.batch_size)), (0,) * 6


def _gradients(ctx: Any, gradient: Callable[..., Any], d_out: Tensor, d_log: Tensor) -> tuple[Tensor | None, ...]:
    """The gradients of the inputs of an operator, in their own shapes."""
    saved = ctx.saved_tensors  # once: under checkpointing they are computed again
    inputs, results = saved[:TENSORS], saved[TENSORS:]
    needed, (_, causal, *_) = ctx.needs_input_grad, ctx.constants
    if not (results[4].shape[-3] if causal else results[3].shape[-1]):  # the forward pass did not expect gradients
        results = _forward(*inputs, *ctx.constants, True, False, None, None)
    found = gradient(*inputs, *ctx.constants, needed[3], any(needed[4:TENSORS]), *results, d_out, d_log)
    own = (x.sum_to_size(y.shape) if ask else None for x, y, ask in zip(found, inputs, needed, strict=False))
    return (*own, *(None,) * (len(needed) - TENSORS))


# within a graph the operator has its gradient from here: dynamo does not follow one function inside of another
_forward.register_autograd(
    lambda ctx, d_out, d_log, *_: _gradients(ctx, _gradient_of, d_out, d_log), setup_context=_Attention.setup_context
)


def _gradient_of(*inputs: Any) -> Any:
    *call, a, b, c, d, e, f, d_out, d_log = inputs
    operator: Callable[..., Any] = _backward_here if _here(inputs[0]) else _backward
    return tuple(operator(*call, [a, b, c, d, e, f], d_out.contiguous(), d_log.contiguous()))


class _Gradient(torch.autograd.Function):
    """The operator of the gradient; its own gradient goes through plain operations."""

    @staticmethod
    def forward(*inputs: Any) -> Any:
        return _gradient_of(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs[:TENSORS], *inputs[-2:])
        ctx.constants = inputs[TENSORS:_CALL]
        ctx.mark_non_differentiable(*(x for x in output if not x.numel()))

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> Any:
        needed = [*ctx.needs_input_grad[:TENSORS], *ctx.needs_input_grad[-2:]]
        with torch.enable_grad():
            tensors: list[Any] = [None if x is None else x.detach().requires_grad_() for x in ctx.saved_tensors]
            inputs, ends = tensors[:TENSORS], tensors[TENSORS:]
            # gradients have all leading axes, so that those of inputs that are shared can be given others for each head
            inputs = [x.expand(y.shape) if y.numel() else x for x, y in zip(inputs, given, strict=True)]
            asked = [(x, y) for x, y in zip(inputs, given, strict=True) if y.numel()]
            out = by_plain_operations(Call(*inputs, *ctx.constants))
            first = torch.autograd.grad(out, [x for x, _ in asked], ends, create_graph=True)
            wanted = [x for x, ask in zip(tensors, needed, strict=True) if ask]
            found = iter(torch.autograd.grad(first, wanted, [y for _, y in asked], allow_unused=True))
        second = [next(found) if ask else None for ask in needed]
        return (*second[:-2], *(None,) * (len(ctx.needs_input_grad) - len(needed)), *second[-2:])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> Any:
        axes = (*_AXES, 0, 0, 2, 2, 2, 2, 3, 3, 2, 2)
        found = _Gradient.apply(*_batched(axes, inputs, in_dims, info.batch_size))
        return found, tuple(0 if x.ndim > 1 else None for x in found)


_AXES = (2, 2, 2, 1, *(2,) * 7, 0, 0, 0, 0, 0)
"""Axes that are not leading ones, of the inputs that both operators begin with."""
_CALL = len(_AXES)


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
