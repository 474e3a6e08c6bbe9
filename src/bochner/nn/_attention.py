"""Attention in linear time: the public function, and checks of its arguments."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Literal, overload

import torch
from torch import Tensor

from .._validation import check_flag
from ..approximation import Approximation, FeatureMap
from ._attention_checks import (
    OWNER,
    borders_of,
    check_call,
    check_exclusive,
    check_features,
    check_floating,
    check_lengths,
    check_meta,
    check_near,
    check_state,
    check_state_type,
    check_tensors,
    root_of_scale,
    slices_of,
)
from ._attention_features import AttentionFeatures, SharedKeys, grouped
from ._attention_state import AttentionState
from ._one_sequence import OneSequence
from ._tensor_features import TensorFeatures, tensor_features

if TYPE_CHECKING:
    from ._process_groups import Group


@overload
def linear_attention(
    q: Tensor, k: Tensor | None, v: Tensor | None, *, return_state: Literal[False] = False, **options: Any
) -> Tensor: ...


@overload
def linear_attention(
    q: Tensor, k: Tensor | None, v: Tensor | None, *, return_state: Literal[True], **options: Any
) -> tuple[Tensor, AttentionState]: ...


def linear_attention(  # type: ignore[misc]  # the options of both forms are those of this signature
    q: Tensor,
    k: Tensor | None,
    v: Tensor | None,
    *,
    spec: Approximation | str = "dense",
    n_projections: int = 256,
    generator: torch.Generator | None = None,
    features: FeatureMap | AttentionFeatures | TensorFeatures | None = None,
    enable_gqa: bool = False,
    causal: bool = False,
    key_mask: Tensor | None = None,
    scale: float | Tensor | None = None,
    normalize: bool = False,
    state: AttentionState | None = None,
    chunk_size: int | None = None,
    prefix_lengths: Tensor | None = None,
    cu_seqlens: Tensor | tuple[Tensor, Tensor] | None = None,
    process_group: Group | None = None,
    window: int = 0,
    anchors: int = 0,
    nonpositive: str = "warn",
    return_state: bool = False,
    engine: str = "auto",
) -> Tensor | tuple[Tensor, AttentionState]:
    r"""Attention with random features, in linear time and memory.

    A replacement for ``torch.nn.functional.scaled_dot_product_attention`` on long sequences: keys and values are
    reduced to sums of M (e + 1) numbers for M features.  Half precisions are computed in float32 and cast back, also
    under autocast.

    Parameters
    ----------
    q, k, v : Tensor (..., Lq, d), (..., Lk, d), (..., Lk, e)
        Queries, keys, values; leading axes broadcast.  If k and v are None, queries attend to the keys in the state.
    spec : Approximation or str
        What to fit to these queries and keys and to draw, or the name of a mechanism, if there are no ``features``.
    n_projections : int
        Rows of W, if ``spec`` is a name.
    generator : torch.Generator, optional
        Source of that draw; by default one with the seed 0, so that equal arguments give equal results.
    features : AttentionFeatures or FeatureMap, optional
        `AttentionFeatures` that fit themselves to the first call and are kept for all others, or drawn features, from
        ``spec.draw(d, rng)`` or ``spec.fit(X, Y, rng)`` with X and Y the queries and keys times the root of the scale.
        Any map, projection and kernel can be used; `Softmax` must have scale 1, since ``scale`` is given here.
    enable_gqa : bool
        Whether each head of k and v, on the third axis from the end, serves a group of heads of q, as in
        ``scaled_dot_product_attention``.  Features that all heads share are computed once for each head of k.
    causal : bool
        Whether query i sees the keys up to i only; there must be as many queries as keys.
    key_mask : Tensor (..., Lk), (Lk,) or (..., 1, Lk), optional
        Of bool: True for keys, False for padding.  Of numbers: what is added to the logits of each key for all queries,
        minus infinity for padding; gradients flow to them.
    scale : float or Tensor, optional
        The scale s > 0, by default :math:`d^{-1/2}`.
    normalize : bool
        Whether queries and keys are divided by their lengths first, as HRF Section K does: the exponents are then at most s,
        which bounds the error of the features; a larger ``scale`` makes up for it.
    state : AttentionState, optional
        Keys of earlier calls, which all queries attend to.  It is not changed.
    chunk_size : int, optional
        Rows processed at a time; affects speed only.
    prefix_lengths : Tensor (Lq,) or (batch, Lq) of integers, optional
        Number of leading keys that each query sees, for causal cross-attention.  Use it in place of ``causal``.
    cu_seqlens : Tensor (n + 1,) of integers, or a pair of them, optional
        Cumulative lengths of n packed sequences, from 0 to the total length; a pair has those of queries and of keys.
        Sequences do not attend to each other.
    process_group : torch.distributed.ProcessGroup, optional
        Processes that hold consecutive pieces of a sequence, in the order of ranks.  Queries see the keys of all ranks,
        or with ``causal`` those of earlier ranks and earlier positions.  Only sums of M (e + 1) numbers are
        communicated.  All ranks must call the function, with the same features; gradients are those of the sum of the
        losses of all ranks.
    window : int
        Keys within this many positions of the query get their exact softmax weight: its own key and the ``window - 1``
        before it, and with ``causal=False`` as many after it.  There must be as many queries as keys.
    anchors : int
        Number of the first keys that are not masked, which have exact weights for all queries that see them.
    nonpositive : {"warn", "raise", "nan"}
        What to do with rows whose denominator is not positive, which can happen with signed features: warn
        (`DenominatorWarning`) and divide, raise ArithmeticError, or set the row to NaN, which needs no synchronisation.
    return_state : bool
        Whether to return the state with the keys of this call beside the output.
    engine : {"auto", "plain"}
        "plain" uses torch operations only, whose number does not depend on the length, on any device; "auto" uses a faster
        operator on the CPU where there is one.

    Returns
    -------
    out : Tensor (..., Lq, e)
        The output; zero for queries that see no key.
    state : AttentionState
        The keys of ``state`` and of this call, if ``return_state``.

    Notes
    -----
    .. math:: \mathrm{out}_i = \frac{\sum_j \phi_q(x_i)\cdot\phi_k(y_j)\, v_j}{\sum_j \phi_q(x_i)\cdot\phi_k(y_j)},
              \qquad x_i = \sqrt{s}\,q_i, \quad y_j = \sqrt{s}\,k_j,

    with s the scale, so that weights are proportional to the kernel of the features at :math:`\sqrt s q` and
    :math:`\sqrt s k`: :math:`e^{s\,q\cdot k}` for `kernels.Softmax()`, as in
    ``torch.nn.functional.scaled_dot_product_attention``.  Sums over keys are computed first.  Features are exponentials
    of logarithms from which maxima are subtracted where they cancel; no epsilon is added.  Keys that a query does not
    see change its result by rounding at most, however large they are.

    Keys in the window and anchors enter the same two sums with their exact weights :math:`e^{x_i\cdot y_j}`, so the
    features must be those of `kernels.Softmax()`.  A state then holds these keys besides the sums of all others, and all
    calls with it need the same ``window`` and ``anchors``.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import linear_attention
    >>> q, k, v = torch.randn(3, 2, 4, 100, 16, generator=torch.Generator().manual_seed(0))
    >>> q, k = q / 2, k / 2
    >>> exact = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    >>> error = linear_attention(q, k, v, n_projections=1024) - exact
    >>> bool(error.square().mean() < 0.05 * exact.square().mean())
    True
    """
    check_call(causal, nonpositive, chunk_size, window, anchors, engine)
    check_flag(OWNER, "enable_gqa", enable_gqa)
    check_flag(OWNER, "normalize", normalize)
    check_flag(OWNER, "return_state", return_state)
    k, v = _of_state(q, k, v, state)
    shared, given = SharedKeys(1, causal), q
    if enable_gqa:
        lead = features.lead if isinstance(features, TensorFeatures) else ()
        alike = isinstance(features, FeatureMap | TensorFeatures) and not lead and not isinstance(scale, Tensor)
        whole = prefix_lengths is None and cu_seqlens is None and process_group is None
        if alike and whole and not (window or anchors):
            shared = SharedKeys.of(q, k, v, causal)
        if shared.group > 1:
            q = shared.joined(q)
        else:
            k, v, key_mask = (grouped(q, x, name) for x, name in ((k, "k"), (v, "v"), (key_mask, "key_mask")))
    bias = check_tensors(q, k, v, key_mask)
    if normalize:
        q, k = (torch.nn.functional.normalize(x, dim=-1) for x in (q, k))
    if features is None:
        source = torch.Generator().manual_seed(0) if generator is None else generator
        features = AttentionFeatures(spec, n_projections, generator=source)
    fitted = features.of(q, k, bias, scale, alone=not window) if isinstance(features, AttentionFeatures) else features
    check_features(fitted, q.shape[-1])
    check_exclusive(k, causal, prefix_lengths, cu_seqlens, state, process_group, return_state)
    if window or anchors:
        kept = state is not None or return_state
        check_near(q, k, fitted, window, causal, prefix_lengths, cu_seqlens, kept, process_group)
    borders = None if cu_seqlens is None else borders_of(q, k, cu_seqlens, alike=causal or window > 0)
    check_lengths(given, k, causal and borders is None, prefix_lengths)
    root = root_of_scale(q, scale)
    dtype = torch.promote_types(torch.promote_types(q.dtype, k.dtype), v.dtype)
    plain = q.is_meta or not torch.is_autocast_enabled(q.device.type)
    with contextlib.nullcontext() if plain else torch.autocast(q.device.type, enabled=False):
        q, k, v = (x.to(torch.float64 if dtype == torch.float64 else torch.float32) for x in (q, k, v))
        drawn = fitted if isinstance(fitted, TensorFeatures) else tensor_features(fitted, q)
        check_meta(q, drawn, prefix_lengths)
        check_state(state, drawn, k, v, max(window - 1, 0) + anchors)
        work = OneSequence(
            drawn,
            q,
            k,
            v,
            bias,
            root,
            causal,
            chunk_size,
            nonpositive,
            process_group,
            window,
            anchors,
            shared.group,
            engine,
        )
        after = None
        if borders is not None and work.divisible:
            out = torch.cat([work.part(*pair).run(None)[0] for pair in slices_of(borders)], dim=-2)
        elif borders is not None:
            out = work.run_packed(borders)
        elif prefix_lengths is not None:
            out, after = work.run_prefixes(prefix_lengths, state, keep=return_state)
        else:
            out, after = work.run(state, keep=return_state)
    out = (out if shared.group == 1 else shared.divided(out)).to(dtype)
    return out if after is None else (out, after)


def _of_state(q: Tensor, k: Tensor | None, v: Tensor | None, state: AttentionState | None) -> tuple[Tensor, Tensor]:
    """Keys and values as given, or none at all where the state has them."""
    check_state_type(OWNER, state)
    if k is not None and v is not None:
        return k, v
    if k is not v or state is None or state.empty:
        raise ValueError(f"{OWNER}: k and v may only be left out together, and with a state that holds keys.")
    check_floating(OWNER, "q", q)
    lead, e = state.shape
    return q.new_empty(*lead, 0, q.shape[-1]), q.new_empty(*lead, 0, e)
