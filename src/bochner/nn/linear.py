"""Attention in linear time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .._validation import check_count, check_flag, check_option
from ..approximation import FeatureMap
from .checks import (
    OWNER,
    check_features,
    check_integers,
    check_key_mask,
    check_offsets,
    check_prefix_lengths,
    check_state,
    check_tensors,
    root_of_scale,
)
from .denominators import NONPOSITIVE
from .features import TensorFeatures, tensor_features
from .job import Job
from .parallel import check_group
from .state import AttentionState
from .steps import Everything

if TYPE_CHECKING:
    from .parallel import Group

_CAUSAL_CHUNK = 128
"""Rows met at a time where each sees others: products within the chunk cost as much as those with the sums."""
_NUMBERS = 1 << 21
"""Features held at a time where all see all: few enough for the cache, enough for matrix products."""


def linear_attention(
    q: Tensor,
    k: Tensor | None,
    v: Tensor | None,
    *,
    features: FeatureMap | TensorFeatures,
    causal: bool = False,
    key_mask: Tensor | None = None,
    scale: float | Tensor | None = None,
    state: AttentionState | None = None,
    chunk_size: int | None = None,
    prefix_lengths: Tensor | None = None,
    cu_seqlens: Tensor | tuple[Tensor, Tensor] | None = None,
    process_group: Group | None = None,
    nonpositive: str = "warn",
) -> Tensor:
    r"""Attention with random features, in linear time and memory.

    Notes
    -----
    .. math:: \mathrm{out}_i = \frac{\sum_j \phi_q(x_i)\cdot\phi_k(y_j)\, v_j}{\sum_j \phi_q(x_i)\cdot\phi_k(y_j)},
              \qquad x_i = \sqrt{s}\,q_i, \quad y_j = \sqrt{s}\,k_j,

    with s the scale, so that weights are proportional to the kernel of the features at :math:`\sqrt s q` and
    :math:`\sqrt s k`: :math:`e^{s\,q\cdot k}` for `kernels.Softmax()`, as in
    ``torch.nn.functional.scaled_dot_product_attention``.  Sums over keys are taken first.  Features are exponentials of
    logarithms from which maxima are subtracted where they cancel; nothing is added to them.  The result does not
    depend on what a query does not see, beyond rounding, however large that is.

    Half precisions are computed in float32 and cast back, under autocast too.

    Parameters
    ----------
    q, k, v : Tensor (..., Lq, d), (..., Lk, d), (..., Lk, e)
        Queries, keys, values; leading axes broadcast.  Without k and v, queries read what the state holds.
    features : FeatureMap
        Drawn features, ``spec.draw(d, rng)`` or ``spec.fit(X, Y, rng)`` with X and Y the queries and keys times the root
        of the scale; any map, projection and kernel; of `Softmax` the one with scale 1, since the scale is given here.
    causal : bool
        Whether query i sees the keys up to i only; there must be as many queries as keys.
    key_mask : Tensor (..., Lk) or (Lk,) of bool, optional
        True for keys that are there, False for padding; it has one axis less than k.
    scale : float or Tensor, optional
        s > 0; :math:`d^{-1/2}` without it.
    state : AttentionState, optional
        Keys of earlier calls, which all queries see; the keys of this call are added to it.
    chunk_size : int, optional
        Rows met at a time; a matter of speed.
    prefix_lengths : Tensor (Lq,) or (batch, Lq) of integers, optional
        How many keys, from the first on, each query sees: causal cross-attention.  In place of ``causal``.
    cu_seqlens : Tensor (n + 1,) of integers, or a pair of them, optional
        Borders of n sequences that lie one after the other, from 0 to the length; a pair has those of queries and of keys.
        No sequence sees another.
    process_group : torch.distributed.ProcessGroup, optional
        Processes that hold one piece each of a sequence, in the order of ranks: queries see the keys of all of them, or
        with ``causal`` those of earlier ranks and their own up to them.  Only sums of M (e + 1) numbers cross the network.
        All ranks must call, with the same features; gradients are those of the sum of all ranks' losses.
    nonpositive : {"warn", "raise", "nan"}
        What to do with rows whose denominator is not positive, which signed features can have: warn (`DenominatorWarning`)
        and divide, raise ArithmeticError, or make the row NaN, which needs no look at the numbers.

    Returns
    -------
    Tensor (..., Lq, e)
        Zero for queries that see no key.

    Examples
    --------
    >>> import torch
    >>> from bochner import Approximation, kernels, maps
    >>> from bochner.nn import linear_attention
    >>> q, k, v = torch.randn(3, 2, 4, 100, 16, generator=torch.Generator().manual_seed(0))
    >>> q, k = q / 2, k / 2
    >>> spec = Approximation(kernels.Softmax(), maps.OptimalPositive(), n_projections=1024)
    >>> phi = spec.fit(q / 2, k / 2, rng=0)                     # d = 16: the root of the scale is 1/2
    >>> exact = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    >>> error = linear_attention(q, k, v, features=phi) - exact
    >>> bool(error.square().mean() < 0.05 * exact.square().mean())
    True
    """
    check_flag(OWNER, "causal", causal)
    check_option(OWNER, "nonpositive", nonpositive, NONPOSITIVE)
    if chunk_size is not None:
        check_count(OWNER, "chunk_size", chunk_size)
    k, v = _of_state(q, k, v, state)
    check_tensors(q, k, v)
    check_features(features, q.shape[-1])
    check_integers(prefix_lengths)
    _check_exclusive(causal, prefix_lengths, cu_seqlens, state)
    _check_spread(k, process_group, prefix_lengths, cu_seqlens, state)
    borders = None if cu_seqlens is None else _borders(q, k, cu_seqlens, causal)
    lengths = _lengths(q, k, causal and borders is None, prefix_lengths)
    mask, root = check_key_mask(k, key_mask), root_of_scale(q, scale)
    dtype = torch.promote_types(torch.promote_types(q.dtype, k.dtype), v.dtype)
    with torch.autocast(q.device.type, enabled=False):
        q, k, v = (x.to(torch.float64 if dtype == torch.float64 else torch.float32) for x in (q, k, v))
        drawn = features if isinstance(features, TensorFeatures) else tensor_features(features, q)
        check_state(None if state is None else state.sums, drawn, k, v)
        chunk = chunk_size or (_CAUSAL_CHUNK if causal else _chunk(q, drawn))
        job = Job(drawn, q, k, v, mask, lengths, root, chunk, nonpositive, process_group)
        if borders is not None:
            out = torch.cat([job.part(*pair, causal).run(None)[0] for pair in borders], dim=-2)
        else:
            out, sums = job.run(None if state is None else state.sums)
            if state is not None:
                state.update(sums, k.shape[-2])
    return out.to(dtype)


def _chunk(q: Tensor, features: TensorFeatures) -> int:
    heads: int = max(q.shape[:-2].numel(), 1)
    return min(max(_NUMBERS // (features.width * heads), 128), 4096)


def _of_state(q: Tensor, k: Tensor | None, v: Tensor | None, state: AttentionState | None) -> tuple[Tensor, Tensor]:
    """Keys and values as given, or none at all where the state has them."""
    if state is not None and not isinstance(state, AttentionState):
        raise TypeError(f"{OWNER}: state must be an AttentionState, which is updated by the call, got {state!r}.")
    if k is not None and v is not None:
        return k, v
    if k is not v or state is None or state.sums is None:
        raise ValueError(f"{OWNER}: k and v may be left out together, and only with a state that holds keys already.")
    values = state.sums.values
    lead = values.shape[:-2]
    return q.new_empty(*lead, 0, q.shape[-1]), q.new_empty(*lead, 0, values.shape[-1] - 1)


def _check_exclusive(causal: bool, prefix_lengths: Tensor | None, cu_seqlens: object, state: object) -> None:
    if prefix_lengths is not None and (causal or cu_seqlens is not None):
        raise ValueError(f"{OWNER}: prefix_lengths says what each query sees, in place of causal and of cu_seqlens.")
    several = cu_seqlens is not None or (prefix_lengths is not None and prefix_lengths.ndim > 1)
    if several and state is not None:
        raise ValueError(f"{OWNER}: a state belongs to one sequence; call once for each sequence with its own state.")


def _check_spread(k: Tensor, group: object, *others: object) -> None:
    if group is None:
        return
    check_group(OWNER, group)
    if any(other is not None for other in others) or not k.shape[-2]:
        raise ValueError(
            f"{OWNER}: with a process_group each rank holds at least one position of one sequence; prefix_lengths, "
            f"cu_seqlens and state do not go with it."
        )


def _lengths(q: Tensor, k: Tensor, causal: bool, prefix_lengths: Tensor | None) -> Sequence[int] | Tensor:
    """How many keys each query sees."""
    n, p = q.shape[-2], k.shape[-2]
    if prefix_lengths is not None:
        check_prefix_lengths(q, k, prefix_lengths)
        return prefix_lengths
    if causal and n != p:
        raise ValueError(
            f"{OWNER}: causal attention needs as many queries as keys, got {n} and {p}; say with prefix_lengths how many "
            f"keys each query sees, or give past keys as a state."
        )
    return range(1, n + 1) if causal else Everything(p, n)


def _borders(
    q: Tensor, k: Tensor, cu_seqlens: Tensor | tuple[Tensor, Tensor], causal: bool
) -> list[tuple[slice, slice]]:
    """Rows of queries and of keys of each packed sequence."""
    pair = cu_seqlens if isinstance(cu_seqlens, tuple) else (cu_seqlens, cu_seqlens)
    of_q, of_k = (check_offsets("cu_seqlens", b, x.shape[-2]) for b, x in zip(pair, (q, k), strict=True))
    if len(of_q) != len(of_k):
        raise ValueError(f"{OWNER}: cu_seqlens has {len(of_q) - 1} sequences of queries, {len(of_k) - 1} of keys.")
    if causal and of_q != of_k:
        raise ValueError(
            f"{OWNER}: causal attention needs as many queries as keys in each sequence, got cu_seqlens {of_q} and {of_k}."
        )
    slices = [[slice(a, b) for a, b in pairwise(of)] for of in (of_q, of_k)]
    return list(zip(*slices, strict=True))
