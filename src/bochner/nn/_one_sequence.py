"""Linear attention of one sequence: which keys are met by features, which ones exactly, and by which code.

Positive features whose logarithms are quadratic, which are all real exponential maps, go through the fused operator on
the CPU.  Other features, prefixes of any length, sequences spread over processes and gradients through a state go through
the walk over plain operations, which a graph could not follow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn.functional import pad

from ..approximation.log_features import KeySums
from ._attention_state import AttentionState
from ._fused import attend, scale_of
from ._near import NearKeys, attend_anchors, attend_window, choose_anchors
from ._process_groups import before, total
from ._tensor_features import QuadraticFeatures, TensorFeatures
from ._walk import Everything, Part, Prefixes, Walk, divide, merged

if TYPE_CHECKING:
    from ._process_groups import Group

_CAUSAL_CHUNK = 128
"""Rows per step of a causal walk: products within the step cost about as much as those with the sums."""
_NUMBERS = 1 << 21
"""Features held at a time where all see all: few enough for the cache, enough for matrix products."""


@dataclass(frozen=True)
class OneSequence:
    """Checked tensors in working precision, with the features that meet them.

    ``group`` holds the sequence in pieces; with ``causal``, there are ``queries_per_key`` queries of each position.
    """

    features: TensorFeatures
    q: Tensor
    k: Tensor
    v: Tensor
    key_bias: Tensor | None
    root: float | Tensor
    causal: bool
    chunk_size: int | None
    nonpositive: str
    group: Group | None = None
    window: int = 0
    anchors: int = 0
    queries_per_key: int = 1

    def part(self, queries: slice, keys: slice) -> OneSequence:
        """One of several sequences that lie one after the other."""
        q, k, v = self.q[..., queries, :], self.k[..., keys, :], self.v[..., keys, :]
        return replace(self, q=q, k=k, v=v, key_bias=None if self.key_bias is None else self.key_bias[..., keys])

    def run(self, state: AttentionState | None) -> Tensor:
        """The output; keys are added to the state."""
        if self.window or self.anchors:
            return self._run_near(state)
        k, v = self._filled()
        sums = None if state is None else state.sums
        features = self._for_the_operator(kept=state is not None)
        if features is not None:
            keep = state is not None
            out, _, sums = attend(
                features, self.q, k, v, self.key_bias, self.root, sums=sums, keep=keep, **self._layout
            )
        else:
            out, sums = self._walk(k, v, self._lengths(), self._seen(sums), sums)
        if state is not None:
            state.update(sums, self.k.shape[-2])
        return out

    def run_prefixes(self, lengths: Tensor, state: AttentionState | None) -> Tensor:
        """The output where query i sees that many keys, (Lq,) or (batch, Lq), in any order; keys are added to the state."""
        if lengths.ndim == 2:
            return self._member_by_member(lengths)
        lengths, order = lengths.sort(stable=True)
        numbers, sums = lengths.tolist(), None if state is None else state.sums
        work = replace(self, q=self.q[..., order, :])
        out, sums = work._walk(*self._filled(), numbers, work._seen_of(numbers, sums), sums)
        if state is not None:
            state.update(sums, self.k.shape[-2])
        return out[..., order.argsort(), :]

    def _member_by_member(self, lengths: Tensor) -> Tensor:
        """Each member of the first axis by itself, since its queries see other prefixes."""
        q, k, v = (x.expand(len(lengths), *x.shape[1:]) for x in (self.q, self.k, self.v))
        biases = [None] * len(lengths) if self.key_bias is None else self.key_bias.expand(*k.shape[:-1])
        parts = [
            replace(self, q=q[b], k=k[b], v=v[b], key_bias=bias).run_prefixes(row, None)
            for b, (row, bias) in enumerate(zip(lengths, biases, strict=True))
        ]
        return torch.stack(parts)

    def _run_near(self, state: AttentionState | None) -> Tensor:
        """The output where some keys are met exactly."""
        if state is None and not torch.compiler.is_compiling():  # no wider than the sequence
            self = replace(self, window=min(self.window, self.q.shape[-2]), anchors=min(self.anchors, self.k.shape[-2]))
        new, x = NearKeys.of(*self._filled(), self.key_bias), self.q * self.root
        reach, n = max(self.window - 1, 0), self.k.shape[-2]
        held = NearKeys.empty(new.k, new.v, self.anchors + (reach if state is not None else 0))
        if state is not None and state.near is not None:
            held = state.near
        sums = None if state is None else state.sums
        seen = self._seen(sums)
        if seen is not None:
            seen = seen | held.seen.any(dim=-1, keepdim=True)
        chosen = choose_anchors(held.rows(0, self.anchors), new)
        others = held.rows(self.anchors).then(new.without(chosen.chosen))
        ahead = reach if state is not None else 0
        parts = [attend_anchors(x, chosen, self.root, causal=self.causal)] if self.anchors else []
        if self.window:
            parts.append(attend_window(x, others, self.root, self.window, before=ahead, causal=self.causal))
        far, sums = self._far(others, ahead, sums, kept=state is not None)
        out = divide(merged(parts + far), seen, positive=self.features.positive, nonpositive=self.nonpositive)
        if state is not None:
            state.update(sums, n, chosen.keys.then(others.rows(n, None if reach else n)))
        return out

    def _far(
        self, others: NearKeys, ahead: int, sums: KeySums | None, *, kept: bool
    ) -> tuple[list[Part], KeySums | None]:
        """What queries see by features: keys that left the window on one side, or on both; and the sums of these.

        ``ahead`` of the keys stand before the first query.
        """
        lag, n = self.window - ahead, self.q.shape[-2]
        if not self.window:
            part, sums = self._by_features(others, 0, sums, kept=kept)
            return [part], sums
        keys = others.rows(0, n if kept else torch.sym_max(n - lag, 0))
        if self.causal:
            part, sums = self._by_features(keys, lag, sums, kept=kept)
            return [part], sums
        last = others.flip().rows(0, torch.sym_max(n - lag, 0))
        work = replace(self, causal=True)
        behind = work._by_features(keys, lag, None, kept=False)[0]
        before_it = replace(work, q=self.q.flip(-2))._by_features(last, lag, None, kept=False)[0]
        return [behind, before_it.flip()], None

    def _by_features(
        self, keys: NearKeys, lag: int, sums: KeySums | None, *, kept: bool
    ) -> tuple[Part, KeySums | None]:
        """What queries see of keys by features: all of them, or where attention is causal key j up to ``i - lag``."""
        features = self._for_the_operator(kept=kept)
        if features is not None:
            out, log, sums = attend(features, self.q, *keys, self.root, sums=sums, keep=kept, lag=lag, **self._layout)
            return Part(pad(out, (0, 1), value=1.0), scale_of(features, self.q, self.root, log)), sums
        n, p = self.q.shape[-2], keys.k.shape[-2]
        lengths = [min(max(t + 1 - lag, 0), p) for t in range(n)] if self.causal else Everything(p, n)
        seen = replace(self, k=keys.k, key_bias=keys.bias)._seen_of(lengths, sums)
        walk = Walk(self.features, self.q, *keys, Prefixes(lengths), seen, self.root)
        found: tuple[Part, KeySums | None] = _outside_of_graphs()(walk, sums, self._chunk)
        return found

    @property
    def _layout(self) -> dict[str, Any]:
        return {"causal": self.causal, "rows": self.chunk_size, "group": self.queries_per_key if self.causal else 1}

    def _for_the_operator(self, *, kept: bool) -> QuadraticFeatures | None:
        """The features if the fused operator computes this; ``kept`` says that the sums remain in a state."""
        features, tensors = self.features, (self.q, self.k, self.v)
        if not isinstance(features, QuadraticFeatures) or not features.positive or self.group is not None:
            return None
        if self.q.device.type not in ("cpu", "meta"):
            return None
        if not torch.compiler.is_compiling() and any(forward_ad.unpack_dual(x).tangent is not None for x in tensors):
            return None
        if not kept:
            return features
        if self.q.shape[-2] == 1 or torch.is_grad_enabled():  # a step of decoding; a gradient through the sums
            return None
        lead = torch.broadcast_shapes(self.k.shape[:-2], self.v.shape[:-2], features.lead)
        return features if lead == torch.broadcast_shapes(lead, self.q.shape[:-2]) else None

    def _lengths(self) -> Sequence[int]:
        """How many keys each query sees."""
        n, p = self.q.shape[-2], self.k.shape[-2]
        if self.causal and self.queries_per_key > 1:
            return [i // self.queries_per_key + 1 for i in range(n)]
        return range(1, n + 1) if self.causal else Everything(p, n)

    @property
    def _chunk(self) -> int:
        """Rows per step of a walk."""
        if self.chunk_size is not None:
            return self.chunk_size
        if self.causal:
            return _CAUSAL_CHUNK
        heads = max(self.q.shape[:-2].numel(), 1)
        return int(min(max(_NUMBERS // (self.features.width * heads), 128), 4096))

    def _filled(self) -> tuple[Tensor, Tensor]:
        """Keys and values with zeros in the padding: numbers there, even NaN, must not meet a zero."""
        there = self._there
        if there is None:
            return self.k, self.v
        k, v = (x.masked_fill(~there[..., None], 0.0) for x in (self.k, self.v))
        return k, v

    @property
    def _there(self) -> Tensor | None:
        """Which keys there are, (..., Lk); None means all."""
        return None if self.key_bias is None else self.key_bias > -torch.inf

    def _walk(
        self, k: Tensor, v: Tensor, lengths: Sequence[int], seen: Tensor | None, sums: KeySums | None
    ) -> tuple[Tensor, KeySums | None]:
        walk = Walk(self.features, self.q, k, v, self.key_bias, Prefixes(lengths), seen, self.root)
        if self.group is not None:
            walk, sums = self._with_others(walk, lengths, self.group)
        # nothing that is done depends on numbers in tensors where all see all, by plain operations
        traceable = isinstance(lengths, Everything) and self.features.traceable and self.group is None
        part, sums = (Walk.run if traceable else _outside_of_graphs())(walk, sums, self._chunk)
        return divide(part.sums, walk.seen, positive=self.features.positive, nonpositive=self.nonpositive), sums

    def _with_others(self, walk: Walk, lengths: Sequence[int], group: Group) -> tuple[Walk, KeySums]:
        """The walk that remains, and the sums to start from, where a sequence is spread over processes."""
        own = replace(walk, q=walk.q[..., :0, :], prefixes=Prefixes([]), seen=None).run(None, self._chunk)[1]
        assert own is not None  # each rank holds a key
        if self.causal:
            sums = before(own, group)
            return replace(walk, seen=self._seen(sums)), sums
        sums = total(own, group)
        nothing = Prefixes(Everything(0, len(lengths)))
        k, v = walk.k[..., :0, :], walk.v[..., :0, :]
        return replace(walk, k=k, v=v, prefixes=nothing, seen=self._seen(sums)), sums

    def _seen(self, sums: KeySums | None) -> Tensor | None:
        """Which queries see any key or the sums, (..., Lq); None means all."""
        there = self._there
        if there is None and (self.causal or self.k.shape[-2]):
            return None
        if there is None:
            seen = self.k.new_zeros(self.q.shape[-2], dtype=torch.bool)
        elif self.causal:
            seen = (there.cumsum(dim=-1) > 0).repeat_interleave(self.queries_per_key, dim=-1)
        else:
            seen = there.any(dim=-1, keepdim=True).expand(*there.shape[:-1], self.q.shape[-2])
        return seen if sums is None else seen | sums.seen

    def _seen_of(self, lengths: Sequence[int], sums: KeySums | None) -> Tensor:
        """The same where query i sees that many keys."""
        there = self._there
        there = self.k.new_ones(self.k.shape[-2], dtype=torch.bool) if there is None else there
        counts = pad(there.cumsum(dim=-1), (1, 0))
        seen = counts[..., torch.tensor(list(lengths), dtype=torch.int64, device=counts.device)] > 0
        return seen if sums is None else seen | sums.seen


def _outside_of_graphs() -> Callable[..., Any]:
    """A walk excluded from `torch.compile`, since it depends on values; does not load torch's compiler."""
    if "torch._dynamo" not in sys.modules:
        return Walk.run
    disabled: Callable[..., Any] = torch.compiler.disable(Walk.run)
    return disabled
