"""Attention in linear time: the public function, and how its work is divided into single sequences."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .._validation import check_flag
from ..approximation import Approximation, FeatureMap
from ..approximation.log_features import KeySums
from ._attention_checks import (
    OWNER,
    borders_of,
    check_call,
    check_exclusive,
    check_features,
    check_floating,
    check_near,
    check_state,
    check_state_type,
    check_tensors,
    lengths_of,
    root_of_scale,
)
from ._attention_features import AttentionFeatures, grouped
from ._attention_state import AttentionState
from ._near import NearKeys, attend_anchors, attend_window, choose_anchors
from ._process_groups import before, total
from ._tensor_features import TensorFeatures, tensor_features
from ._walk import Everything, Part, Prefixes, Walk, divide, merged

if TYPE_CHECKING:
    from ._process_groups import Group

_CAUSAL_CHUNK = 128
"""Rows per step of a causal walk: products within the step cost about as much as those with the sums."""
_NUMBERS = 1 << 21
"""Features held at a time where all see all: few enough for the cache, enough for matrix products."""


def linear_attention(
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
    state: AttentionState | None = None,
    chunk_size: int | None = None,
    prefix_lengths: Tensor | None = None,
    cu_seqlens: Tensor | tuple[Tensor, Tensor] | None = None,
    process_group: Group | None = None,
    window: int = 0,
    anchors: int = 0,
    nonpositive: str = "warn",
) -> Tensor:
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
        Source of that draw; by default torch's global generator.
    features : AttentionFeatures or FeatureMap, optional
        `AttentionFeatures` that fit themselves to the first call and are kept for all others, or drawn features, from
        ``spec.draw(d, rng)`` or ``spec.fit(X, Y, rng)`` with X and Y the queries and keys times the root of the scale.
        Any map, projection and kernel can be used; `Softmax` must have scale 1, since ``scale`` is given here.
    enable_gqa : bool
        Whether each head of k and v, on the third axis from the end, serves a group of heads of q, as in
        ``scaled_dot_product_attention``.
    causal : bool
        Whether query i sees the keys up to i only; there must be as many queries as keys.
    key_mask : Tensor (..., Lk) or (Lk,) of bool, optional
        True for keys, False for padding; it has one axis less than k.
    scale : float or Tensor, optional
        The scale s > 0, by default :math:`d^{-1/2}`.
    state : AttentionState, optional
        Keys of earlier calls, which all queries attend to; the keys of this call are added to it.
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
        Query i meets the keys at distance less than ``window`` exactly, without features: its own key and the
        ``window - 1`` before it, and with ``causal=False`` as many after it.  There must be as many queries as keys.
    anchors : int
        The first keys that are not masked, which all queries that see them meet exactly.
    nonpositive : {"warn", "raise", "nan"}
        What to do with rows whose denominator is not positive, which can happen with signed features: warn
        (`DenominatorWarning`) and divide, raise ArithmeticError, or set the row to NaN, which needs no synchronisation.

    Returns
    -------
    Tensor (..., Lq, e)
        The output; zero for queries that see no key.

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
    check_call(causal, nonpositive, chunk_size, window, anchors)
    check_flag(OWNER, "enable_gqa", enable_gqa)
    if enable_gqa:
        k, v, key_mask = (grouped(q, x, name) for x, name in ((k, "k"), (v, "v"), (key_mask, "key_mask")))
    k, v = _of_state(q, k, v, state)
    mask = check_tensors(q, k, v, key_mask)
    if features is None:
        features = AttentionFeatures(spec, n_projections, generator=generator)
    fitted = features.of(q, k, mask, scale) if isinstance(features, AttentionFeatures) else features
    check_features(fitted, q.shape[-1])
    check_exclusive(k, causal, prefix_lengths, cu_seqlens, state, process_group)
    if window or anchors:
        check_near(q, k, fitted, window, causal, prefix_lengths, cu_seqlens, state, process_group)
    borders = None if cu_seqlens is None else borders_of(q, k, cu_seqlens, causal)
    lengths = lengths_of(q, k, causal and borders is None, prefix_lengths)
    root = root_of_scale(q, scale)
    dtype = torch.promote_types(torch.promote_types(q.dtype, k.dtype), v.dtype)
    with torch.autocast(q.device.type, enabled=False):
        q, k, v = (x.to(torch.float64 if dtype == torch.float64 else torch.float32) for x in (q, k, v))
        drawn = fitted if isinstance(fitted, TensorFeatures) else tensor_features(fitted, q)
        check_state(state, drawn, k, v, max(window - 1, 0) + anchors)
        chunk = chunk_size or (_CAUSAL_CHUNK if causal or window else _chunk(q, drawn))
        work = _Work(drawn, q, k, v, mask, root, chunk, nonpositive, process_group, window, anchors)
        if borders is not None:
            out = torch.cat([work.part(*pair, causal) for pair in borders], dim=-2)
        elif window or anchors:
            out = work.run_near(causal, state)
        else:
            out, sums = work.run(lengths, None if state is None else state.sums)
            if state is not None:
                state.update(sums, k.shape[-2])
    return out.to(dtype)


def _chunk(q: Tensor, features: TensorFeatures) -> int:
    heads: int = max(q.shape[:-2].numel(), 1)
    return min(max(_NUMBERS // (features.width * heads), 128), 4096)


def _of_state(q: Tensor, k: Tensor | None, v: Tensor | None, state: AttentionState | None) -> tuple[Tensor, Tensor]:
    """Keys and values as given, or none at all where the state has them."""
    check_state_type(OWNER, state)
    if k is not None and v is not None:
        return k, v
    if k is not v or state is None or state.empty:
        raise ValueError(f"{OWNER}: k and v may be left out together, and only with a state that holds keys already.")
    check_floating(OWNER, "q", q)
    lead, e = state.shape
    return q.new_empty(*lead, 0, q.shape[-1]), q.new_empty(*lead, 0, e)


@dataclass(frozen=True)
class _Work:
    """Checked tensors in working precision, with the features that meet them; ``group`` holds the sequence in pieces."""

    features: TensorFeatures
    q: Tensor
    k: Tensor
    v: Tensor
    key_mask: Tensor | None
    root: float | Tensor
    chunk: int
    nonpositive: str
    group: Group | None = None
    window: int = 0
    anchors: int = 0

    def run(self, lengths: Sequence[int] | Tensor, sums: KeySums | None) -> tuple[Tensor, KeySums | None]:
        """The output, and the sums with all keys.

        Parameters
        ----------
        lengths : sequence of int, or Tensor (Lq,) or (batch, Lq)
            How many keys each query sees: a sequence that does not decrease, or a tensor in any order.
        sums : KeySums or None
            What all queries see before these keys.
        """
        if not isinstance(lengths, Tensor):
            return self._walk(lengths, sums)
        if lengths.ndim == 2:
            return self._member_by_member(lengths), None
        if not bool((lengths.diff() < 0).any()):
            return self._walk(lengths.tolist(), sums)
        lengths, order = lengths.sort(stable=True)
        out, sums = replace(self, q=self.q[..., order, :])._walk(lengths.tolist(), sums)
        return out[..., order.argsort(), :], sums

    def part(self, queries: slice, keys: slice, causal: bool) -> Tensor:
        """The attention of one of several sequences that lie one after the other."""
        q, k, v = self.q[..., queries, :], self.k[..., keys, :], self.v[..., keys, :]
        mask = None if self.key_mask is None else self.key_mask[..., keys]
        work = replace(self, q=q, k=k, v=v, key_mask=mask)
        return work.run_near(causal, None) if self.window or self.anchors else work.run(work._lengths(causal), None)[0]

    def run_near(self, causal: bool, state: AttentionState | None) -> Tensor:
        """The output where some keys are met exactly; the state is updated."""
        if state is None and not torch.compiler.is_compiling():  # no wider than the sequence
            self = replace(self, window=min(self.window, self.q.shape[-2]), anchors=min(self.anchors, self.k.shape[-2]))
        new, x = NearKeys.of(*self._filled(), self.key_mask), self.q * self.root
        reach, n = max(self.window - 1, 0), self.k.shape[-2]
        held = NearKeys.empty(new.k, new.v, self.anchors + (reach if state is not None else 0))
        if state is not None and state.near is not None:
            held = state.near
        sums = None if state is None else state.sums
        seen = self._seen(self._lengths(causal), sums)
        if seen is not None:
            seen = seen | held.seen.any(dim=-1, keepdim=True)
        chosen = choose_anchors(held.rows(0, self.anchors), new)
        others = held.rows(self.anchors).then(new.without(chosen.chosen))
        before = others.seen.shape[-1] - n
        parts = [attend_anchors(x, chosen, self.root, causal=causal)] if self.anchors else []
        if self.window:
            parts.append(attend_window(x, others, self.root, self.window, before=before, causal=causal))
        far, sums = self._far(others, before, causal, sums)
        out = divide(merged(parts + far), seen, positive=self.features.positive, nonpositive=self.nonpositive)
        if state is not None:
            state.update(sums, n, chosen.keys.then(others.rows(n, None if reach else n)))
        return out

    def _far(
        self, others: NearKeys, before: int, causal: bool, sums: KeySums | None
    ) -> tuple[list[Part], KeySums | None]:
        """What queries see by features: keys that left the window on one side, or on both; and the sums of these."""
        n = self.q.shape[-2]
        if not self.window:
            part, sums = self._features_of(others, self._lengths(causal), sums)
            return [part], sums
        lengths = [max(before + t + 1 - self.window, 0) for t in range(n)]
        if causal:
            part, sums = self._features_of(others.rows(0, n) if before else others, lengths, sums)
            return [part], sums
        behind = self._features_of(others, lengths, None)[0]
        ahead = replace(self, q=self.q.flip(-2))._features_of(others.flip(), lengths, None)[0]
        return [behind, ahead.flip()], None

    def _features_of(self, keys: NearKeys, lengths: Sequence[int], sums: KeySums | None) -> tuple[Part, KeySums | None]:
        seen = replace(self, k=keys.k, key_mask=keys.seen)._seen(lengths, sums)
        walk = Walk(self.features, self.q, keys.k, keys.v, keys.seen, Prefixes(lengths), seen, self.root)
        found: tuple[Part, KeySums | None] = _outside_of_graphs()(walk, sums, self.chunk)
        return found

    def _lengths(self, causal: bool) -> Sequence[int]:
        n, p = self.q.shape[-2], self.k.shape[-2]
        return range(1, n + 1) if causal else Everything(p, n)

    def _filled(self) -> tuple[Tensor, Tensor]:
        """Keys and values with zeros in the padding: numbers there, even NaN, must not meet a zero."""
        if self.key_mask is None:
            return self.k, self.v
        k, v = (x.masked_fill(~self.key_mask[..., None], 0.0) for x in (self.k, self.v))
        return k, v

    def _member_by_member(self, lengths: Tensor) -> Tensor:
        """Each member of the first axis by itself, since its queries see other prefixes."""
        q, k, v = (x.expand(len(lengths), *x.shape[1:]) for x in (self.q, self.k, self.v))
        masks = [None] * len(lengths) if self.key_mask is None else self.key_mask.expand(*k.shape[:-1])
        parts = [
            replace(self, q=q[b], k=k[b], v=v[b], key_mask=mask).run(row, None)[0]
            for b, (row, mask) in enumerate(zip(lengths, masks, strict=True))
        ]
        return torch.stack(parts)

    def _walk(self, lengths: Sequence[int], sums: KeySums | None) -> tuple[Tensor, KeySums | None]:
        k, v = self._filled()
        seen = self._seen(lengths, sums)
        walk = Walk(self.features, self.q, k, v, self.key_mask, Prefixes(lengths), seen, self.root)
        if self.group is not None:
            walk, sums = self._with_others(walk, lengths, self.group)
        # nothing that is done depends on numbers in tensors where all see all, by plain operations
        traceable = isinstance(lengths, Everything) and self.features.traceable and self.group is None
        part, sums = (Walk.run if traceable else _outside_of_graphs())(walk, sums, self.chunk)
        return divide(part.sums, walk.seen, positive=self.features.positive, nonpositive=self.nonpositive), sums

    def _with_others(self, walk: Walk, lengths: Sequence[int], group: Group) -> tuple[Walk, KeySums]:
        """The walk that remains, and the sums to start from, where a sequence is spread over processes."""
        own = replace(walk, q=walk.q[..., :0, :], prefixes=Prefixes([]), seen=None).run(None, self.chunk)[1]
        assert own is not None  # each rank holds a key
        if not isinstance(lengths, Everything):
            sums = before(own, group)
            return replace(walk, seen=self._seen(lengths, sums)), sums
        sums = total(own, group)
        nothing = Prefixes(Everything(0, len(lengths)))
        k, v = walk.k[..., :0, :], walk.v[..., :0, :]
        return replace(walk, k=k, v=v, prefixes=nothing, seen=self._seen(lengths, sums)), sums

    def _seen(self, lengths: Sequence[int], sums: KeySums | None) -> Tensor | None:
        """Which queries see any key, (..., Lq); None means all."""
        if self.key_mask is None and (not len(lengths) or lengths[0] > 0):
            return None
        mask = self.key_mask if self.key_mask is not None else self.k.new_ones(self.k.shape[-2], dtype=torch.bool)
        counts = torch.nn.functional.pad(mask.cumsum(dim=-1), (1, 0))
        seen = counts[..., torch.tensor(list(lengths), dtype=torch.int64, device=counts.device)] > 0
        return seen if sums is None else seen | sums.seen


def _outside_of_graphs() -> Callable[..., Any]:
    """A walk excluded from `torch.compile`, since it depends on values; does not load torch's compiler."""
    if "torch._dynamo" not in sys.modules:
        return Walk.run
    disabled: Callable[..., Any] = torch.compiler.disable(Walk.run)
    return disabled
