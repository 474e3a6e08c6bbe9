"""Linear attention of one sequence: which keys use features, which have exact weights, and which engine computes them.

The plain engine (`bochner.nn._attention_plain`) computes everything, on any device.  On the CPU, positive features whose
logarithms are quadratic, which are all real exponential maps, go through the fused operator (`bochner.nn._fused`), which is
faster there; it knows neither gradients through a state nor prefixes of any length.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ..approximation.log_features import KeySums, LogFeatures
from ._attention_plain import Part, causal, divide, everything, is_symbol, merged, prefixes, with_ones
from ._attention_state import AttentionState
from ._attention_window import behind, chunk_of, two_sided
from ._fused import attend, scale_of
from ._near import NearKeys, attend_anchors, attend_window, choose_anchors
from ._process_groups import before, total
from ._tensor_features import QuadraticFeatures, TensorFeatures

if TYPE_CHECKING:
    from ._process_groups import Group

_Keys: TypeAlias = tuple[Tensor, Tensor, Tensor | None]
"""Keys, values and what is added to the logarithms of their weights, as in `NearKeys`; None where that is nothing."""


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
    engine: str = "auto"

    def part(self, queries: slice, keys: slice) -> OneSequence:
        """One of several sequences that lie one after the other."""
        q, k, v = self.q[..., queries, :], self.k[..., keys, :], self.v[..., keys, :]
        return replace(self, q=q, k=k, v=v, key_bias=None if self.key_bias is None else self.key_bias[..., keys])

    def run(self, state: AttentionState | None, *, keep: bool = False) -> tuple[Tensor, AttentionState | None]:
        """The output, and the state with the keys of this call, if it is to be kept."""
        if self.window or self.anchors:
            return self._run_near(state, keep)
        keys = (*self._filled(), self.key_bias)
        sums = None if state is None else state.sums
        features = self._for_the_operator(keep, sums)
        if features is not None:
            out, _, sums = attend(features, self.q, *keys, self.root, sums=sums, keep=keep, **self._layout)
        elif self.group is not None:
            part, sums = self._with_others(keys, self.group)
            out = self._divided(part)
        else:
            part, sums = self._by_plain_operations(keys, 0, sums, keep=keep)
            out = self._divided(part)
        return out, _after(state, sums, self.k.shape[-2]) if keep else None

    def run_prefixes(
        self, lengths: Tensor, state: AttentionState | None, *, keep: bool = False
    ) -> tuple[Tensor, AttentionState | None]:
        """The output where query i sees that many keys, (Lq,) or (batch, Lq), in any order."""
        k, v = self._filled()
        sums = None if state is None else state.sums
        queries, keys = self._queries(), self._keys(k, self.key_bias)
        part, sums = prefixes(queries, keys, with_ones(v), lengths, sums, chunk=self.chunk_size, keep=keep)
        return self._divided(part), _after(state, sums, self.k.shape[-2]) if keep else None

    def _run_near(self, state: AttentionState | None, keep: bool) -> tuple[Tensor, AttentionState | None]:
        """The output where some keys are met exactly."""
        kept = keep or state is not None
        if not kept and not torch.compiler.is_compiling():  # no wider than the sequence
            self = replace(self, window=min(self.window, self.q.shape[-2]), anchors=min(self.anchors, self.k.shape[-2]))
        chunk = self._chunk(keep, None if state is None else state.sums)
        if chunk is not None and not kept and not self.anchors:
            return self._divided(self._behind_alone(chunk)), None
        new, x = NearKeys.of(*self._filled(), self.key_bias), self.q * self.root
        reach, n = max(self.window - 1, 0), self.k.shape[-2]
        ahead = reach if kept else 0
        held = NearKeys.empty(new.k, new.v, self.anchors + ahead)
        if state is not None and state.near is not None:
            held = state.near
        sums, parts = None if state is None else state.sums, []
        others = held.rows(self.anchors).then(new)
        chosen = None
        if self.anchors:
            chosen = choose_anchors(held.rows(0, self.anchors), new)
            parts.append(attend_anchors(x, chosen, self.root, causal=self.causal))
            others = held.rows(self.anchors).then(new.without(chosen.chosen))
        if self.window and not self.causal:
            parts.append(self._two_sided(x, others))
        else:
            lag = self.window - ahead if self.window else 0
            whole = kept or (chunk is not None and is_symbol(n))
            far = others.rows(0, n if whole else torch.sym_max(n - lag, 0)) if self.window else others
            if chunk is not None:
                near = x, others.k * self.root, with_ones(others.v), others.bias
                part, sums = self._behind(near, far.k.shape[-2], chunk, sums, before=ahead, keep=keep)
            else:
                if self.window:
                    parts.append(attend_window(x, others, self.root, self.window, before=ahead))
                part, sums = self._by_features(far, lag, sums, keep=keep)
            parts.append(part)
        out = self._divided(merged(parts))
        if not keep:
            return out, None
        last = others.rows(n, None if reach else n)
        return out, _after(state, sums, n, last if chosen is None else chosen.keys.then(last))

    def _two_sided(self, x: Tensor, keys: NearKeys) -> Part:
        features, y = self._keys(keys.k, keys.bias), keys.k * self.root
        return two_sided(self._queries(), features, with_ones(keys.v), self.window, x, y, keys.bias)

    def _chunk(self, keep: bool, sums: KeySums | None) -> int | None:
        """Positions of a chunk where the plain engine takes window and features together."""
        if not self.window or not self.causal or self.q.shape[-2] == 1:
            return None
        fused = self._for_the_operator(keep, sums) is not None
        if fused and not is_symbol(self.q.shape[-2]):  # lengths of its parts depend on the window, as graphs cannot
            return None
        return chunk_of(self.window, self.features.width)

    def _behind_alone(self, chunk: int) -> Part:
        """What queries see of all keys behind them, without anchors and states, which need more tables."""
        (k, v), n = self._filled(), self.k.shape[-2]
        near = self.q * self.root, k * self.root, with_ones(v), self.key_bias
        far = n if is_symbol(n) else max(n - self.window, 0)  # graphs for any length must not ask whether there are any
        return self._behind(near, far, chunk, None, before=0, keep=False)[0]

    def _behind(
        self,
        near: tuple[Tensor, Tensor, Tensor, Tensor | None],
        far: int,
        chunk: int,
        sums: KeySums | None,
        *,
        before: int,
        keep: bool,
    ) -> tuple[Part, KeySums | None]:
        """Exact weights in the window, and features of the first ``far`` keys."""
        x, y, v, bias = near
        keys = self.features.log(y[..., :far, :], key=True)
        if bias is not None:
            keys = keys._replace(log=keys.log + bias[..., :far, None])
        queries = self.features.log(x, key=False)
        return behind(queries, keys, v[..., :far, :], near, self.window, chunk, before=before, sums=sums, keep=keep)

    def _by_features(
        self, keys: NearKeys, lag: int, sums: KeySums | None, *, keep: bool
    ) -> tuple[Part, KeySums | None]:
        """What queries see of keys by features: all of them, or where attention is causal key j up to ``i - lag``."""
        features = self._for_the_operator(keep, sums)
        if features is None:
            return self._by_plain_operations(keys, lag, sums, keep=keep)
        out, log, sums = attend(features, self.q, *keys, self.root, sums=sums, keep=keep, lag=lag, **self._layout)
        return Part(with_ones(out), scale_of(features, self.q, self.root, log)), sums

    def _by_plain_operations(
        self, keys: _Keys, lag: int, sums: KeySums | None, *, keep: bool
    ) -> tuple[Part, KeySums | None]:
        k, v, bias = keys
        queries, of_keys, values = self._queries(), self._keys(k, bias), with_ones(v)
        last = self.causal and lag == 0 and self.k.shape[-2] == 1  # a step of decoding sees all there is
        if not self.causal or last:
            return everything(queries, of_keys, values, sums)
        if lag == 1 and self.q.shape[-2] == 1:  # a step of decoding that sees what left the window before it
            part, _ = everything(queries, None, values, sums)
            return part, KeySums.of(of_keys, values) if sums is None else sums.absorb(of_keys, values)
        options: dict[str, Any] = {"lag": lag, "group": self.queries_per_key, "chunk": self.chunk_size}
        return causal(queries, of_keys, values, sums, keep=keep, **options)

    def _divided(self, part: Part) -> Tensor:
        return divide(part, positive=self.features.positive, nonpositive=self.nonpositive)

    def _queries(self) -> LogFeatures:
        return self.features.log(self.q * self.root, key=False)

    def _keys(self, k: Tensor, bias: Tensor | None) -> LogFeatures:
        keys = self.features.log(k * self.root, key=True)
        return keys if bias is None else keys._replace(log=keys.log + bias[..., None])

    @property
    def _layout(self) -> dict[str, Any]:
        return {"causal": self.causal, "rows": self.chunk_size, "group": self.queries_per_key if self.causal else 1}

    def _for_the_operator(self, keep: bool, sums: KeySums | None) -> QuadraticFeatures | None:
        """The features if the fused operator computes this; ``keep`` says that the sums remain in a state."""
        features, tensors = self.features, (self.q, self.k, self.v)
        if self.engine == "plain" or not isinstance(features, QuadraticFeatures) or not features.positive:
            return None
        if self.q.device.type != "cpu" or self.group is not None:
            return None
        if not torch.compiler.is_compiling() and any(forward_ad.unpack_dual(x).tangent is not None for x in tensors):
            return None
        if not keep and sums is None:
            return features
        if self.q.shape[-2] == 1 or torch.is_grad_enabled():  # a step of decoding; a gradient through the sums
            return None
        lead = torch.broadcast_shapes(self.k.shape[:-2], self.v.shape[:-2], features.lead)
        return features if lead == torch.broadcast_shapes(lead, self.q.shape[:-2]) else None

    def _filled(self) -> tuple[Tensor, Tensor]:
        """Keys and values with zeros in the padding: numbers there, even NaN, must not meet a zero."""
        if self.key_bias is None:
            return self.k, self.v
        there = (self.key_bias > -torch.inf)[..., None]
        k, v = (x.masked_fill(~there, 0.0) for x in (self.k, self.v))
        return k, v

    def _with_others(self, keys: _Keys, group: Group) -> tuple[Part, KeySums]:
        """The result and the sums of all processes where a sequence is spread over them."""
        k, v, bias = keys
        own = KeySums.of(self._keys(k, bias), with_ones(v))
        if not self.causal:
            return everything(self._queries(), None, with_ones(v), total(own, group))
        part, _ = self._by_plain_operations(keys, 0, before(own, group), keep=False)
        return part, own


def _after(
    state: AttentionState | None, sums: KeySums | None, added: int, near: NearKeys | None = None
) -> AttentionState:
    """A new state, that many positions later."""
    after = AttentionState()
    after.update(sums, (0 if state is None else state.length) + added, near)
    return after
