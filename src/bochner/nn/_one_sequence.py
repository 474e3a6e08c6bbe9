"""Linear attention of one sequence: which keys use features, which have exact weights, and which engine computes them.

The plain engine (`bochner.nn._attention_plain`) computes everything, on any device.  What the fused operator
(`bochner.nn._fused`) is faster at on a CPU, `bochner.nn._engine_choice` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from ..approximation.log_features import NOTHING, KeySums, LogFeatures
from ._attention_parts import Part, divide, merged, to_base_e, to_base_two, with_ones
from ._attention_plain import causal, prefixes
from ._attention_state import AttentionState
from ._attention_to_all import absorbed, everything, everything_by_bases
from ._attention_window import SHORTEST, NearCall, behind, two_sided
from ._chunks import is_symbol
from ._engine_choice import eager_on_a_cpu, in_tiles, operator_pays, operator_takes, segments, tiles
from ._fused import attend, scale_of
from ._near import NearKeys, attend_anchors, attend_window, choose_anchors, packed_anchors
from ._packed import packed_causal, packed_everything
from ._process_groups import before, total
from ._tensor_features import LOG2E, HybridTensorFeatures, QuadraticFeatures, TensorFeatures

if TYPE_CHECKING:
    from ._process_groups import Group

_Keys: TypeAlias = tuple[Tensor, Tensor, Tensor | None]
"""Keys, values and what is added to the logarithms of their weights, as in `NearKeys`; None where that is nothing."""


@dataclass(frozen=True)
class OneSequence:
    """Checked tensors in working precision, with their features.

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
    engine: str = "auto"  # or "plain", or "fused" for parts of a call that the operator computes

    def part(self, queries: slice, keys: slice) -> OneSequence:
        """One of several sequences that lie one after the other."""
        q, k, v = self.q[..., queries, :], self.k[..., keys, :], self.v[..., keys, :]
        return replace(self, q=q, k=k, v=v, key_bias=None if self.key_bias is None else self.key_bias[..., keys])

    def run(self, state: AttentionState | None, *, keep: bool = False) -> tuple[Tensor, AttentionState | None]:
        """The output, and the state with the keys of this call, if it is to be kept."""
        if self.window or self.anchors:
            return self._run_segments(state, keep)
        keys = (*self._filled(), self.key_bias)
        sums = None if state is None else state.sums
        features = self._for_the_operator(keep, sums)
        if features is not None:
            out, _, sums = attend(features, self.q, *keys, self.root, sums=sums, keep=keep, **self._layout)
        elif self.group is not None:
            part, sums = self._with_others(keys, self.group)
            out = self._divided(part)
        elif self._tiled and self.features.positive and not isinstance(self.features, HybridTensorFeatures):
            (out,), sums = self._by_tiles(keys, to_base_two(sums), True, lambda part: (self._divided(part),))
            sums = to_base_e(sums)
        else:
            part, sums = self._by_plain_operations(keys, 0, sums, keep=keep, alone=True)
            out = self._divided(part)
        return out, _after(state, sums, self.k.shape[-2]) if keep else None

    def run_prefixes(
        self, lengths: Tensor, state: AttentionState | None, *, keep: bool = False
    ) -> tuple[Tensor, AttentionState | None]:
        """The output where query i sees that many keys, (Lq,) or (batch, Lq), in any order."""
        k, v = self._filled()
        sums = None if state is None else state.sums
        queries, keys = self._queries(alone=True), self._keys(k, self.key_bias)
        options: dict[str, Any] = {"chunk": self.chunk_size, "keep": keep}
        part, sums = prefixes(queries, keys, with_ones(v), lengths, to_base_two(sums), **options)
        return self._divided(part), _after(state, to_base_e(sums), self.k.shape[-2]) if keep else None

    def run_packed(self, borders: tuple[Tensor, Tensor]) -> Tensor:
        """The output of packed sequences with these cumulative lengths of queries and keys, by plain operations."""
        (k, v), bias, parts = self._filled(), self.key_bias, []
        if self.anchors:
            keys, x = NearKeys.of(k, v, bias), self.q * self.root
            part, bias = packed_anchors(x, keys, self.root, self.anchors, borders, causal=self.causal)
            parts.append(part)
        if self.window:
            call = NearCall(self.features, self.q, k, v, bias, self.root, alone=not parts)
            if self.causal:
                parts.append(behind(call, self.window, borders=borders[0])[0])
            else:
                parts.append(two_sided(call, self.window, borders[0]))
        else:
            rows = self._queries(alone=not parts), self._keys(k, bias), with_ones(v)
            if self.causal:
                parts.append(packed_causal(*rows, borders[0], self.chunk_size))
            else:
                parts.append(packed_everything(*rows, borders, self.chunk_size))
        return self._divided(merged(parts))

    def _run_segments(self, state: AttentionState | None, keep: bool) -> tuple[Tensor, AttentionState | None]:
        """The output where some keys have exact weights; long inputs by parts that stay in the cache, through a state."""
        n, outs = self.q.shape[-2], []
        before = () if state is None or state.sums is None else state.sums
        tiled = self.causal and self.window > 0 and self.engine == "auto"
        parts = segments(n) if tiled and in_tiles(self.features, (*self._tensors, *before)) else [slice(0, n)]
        if len(parts) == 1:
            return self._run_near(state, keep)
        with torch.no_grad():  # nothing here has a gradient, which the fused operator would not keep sums for
            engine = "plain" if self._for_the_operator(False, None) is None else "fused"
            for rows in parts:
                part = replace(self.part(rows, rows), engine=engine)
                out, state = part._run_near(state, keep or rows.stop < n)
                outs.append(out)
        return torch.cat(outs, dim=-2), state

    def _run_near(self, state: AttentionState | None, keep: bool) -> tuple[Tensor, AttentionState | None]:
        """The output where some keys have exact weights."""
        kept = keep or state is not None
        if not kept and not torch.compiler.is_compiling():  # no wider than the sequence
            self = replace(self, window=min(self.window, self.q.shape[-2]), anchors=min(self.anchors, self.k.shape[-2]))
        together = self._together(keep, None if state is None else state.sums)
        if together and not kept and not self.anchors:
            call = self._near_call((*self._filled(), self.key_bias), alone=True)
            return self._divided(behind(call, self.window)[0]), None
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
            parts.append(two_sided(self._near_call(others, alone=not parts), self.window))
        else:
            lag = self.window - ahead if self.window else 0
            if together:
                call, sums = self._near_call(others, alone=not parts), to_base_two(sums)
                part, sums = behind(call, self.window, before=ahead, sums=sums, keep=keep)
                sums = to_base_e(sums)
            else:
                if self.window:
                    parts.append(attend_window(x, others, self.root, self.window, before=ahead))
                far = others.rows(0, n if kept else torch.sym_max(n - lag, 0)) if self.window else others
                part, sums = self._by_features(far, lag, sums, keep=keep)
            parts.append(part)
        out = self._divided(merged(parts))
        if not keep:
            return out, None
        last = others.rows(n, None if reach else n)
        return out, _after(state, sums, n, last if chosen is None else chosen.keys.then(last))

    def _near_call(self, keys: _Keys | NearKeys, *, alone: bool) -> NearCall:
        k, v, bias = keys
        return NearCall(self.features, self.q, k, v, bias, self.root, alone)

    def _together(self, keep: bool, sums: KeySums | None) -> bool:
        """Whether the plain engine takes a causal window and its features together."""
        if not self.causal or self.window < SHORTEST or self.q.shape[-2] == 1:
            return False
        # lengths of the parts of the fused operator depend on the window, as graphs cannot
        return self._for_the_operator(keep, sums) is None or is_symbol(self.q.shape[-2])

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
        self, keys: _Keys | NearKeys, lag: int, sums: KeySums | None, *, keep: bool, alone: bool = False
    ) -> tuple[Part, KeySums | None]:
        """What queries see by features; ``alone`` says that no other keys are added to it."""
        (k, v, bias), sums = keys, to_base_two(sums)
        if isinstance(self.features, HybridTensorFeatures) and not self.causal and sums is None and k.shape[-2]:
            part, sums = self._by_bases(self.features, k, v, bias)
            return part, to_base_e(sums) if keep else None
        last = self.causal and lag == 0 and self.k.shape[-2] == 1  # a step of decoding sees all there is
        if self._tiled:
            found, sums = self._by_tiles(keys, sums, alone, tuple)
            return Part(*found), to_base_e(sums) if keep else None
        queries, of_keys, values = self._queries(alone), self._keys(k, bias), with_ones(v)
        if not self.causal or last:
            part, sums = everything(queries, of_keys, values, sums)
        elif lag == 1 and self.q.shape[-2] == 1:  # a step of decoding that sees what left the window before it
            part, _ = everything(queries, None, values, sums)
            sums = absorbed(of_keys, values, sums) if keep else None
        else:
            options: dict[str, Any] = {"lag": lag, "group": self.queries_per_key, "chunk": self.chunk_size}
            part, sums = causal(queries, of_keys, values, sums, keep=keep, **options)
        return part, to_base_e(sums) if keep else None

    def _by_tiles(
        self, keys: _Keys | NearKeys, sums: KeySums | None, alone: bool, finish: Callable[[Part], tuple[Tensor, ...]]
    ) -> tuple[list[Tensor], KeySums | None]:
        """What queries see of all keys, some rows at a time, in the form that is asked for; only this is held whole."""
        (k, v, bias), n, found = keys, self.q.shape[-2], list[Tensor]()
        heads = math.prod(torch.broadcast_shapes(*(x.shape[:-2] for x in self._tensors[:3]), self.features.lead))
        for rows in tiles(k.shape[-2], self.features, heads) if k.shape[-2] else ():
            own = None if bias is None else bias[..., rows]
            sums = absorbed(self._keys(k[..., rows, :], own), with_ones(v[..., rows, :]), sums)
        for rows in tiles(n, self.features, heads):
            part = replace(self, q=self.q[..., rows, :])
            seen, sums = everything(part._queries(alone), None, with_ones(v[..., :0, :]), sums)
            done = finish(seen)
            found = found or [x.new_empty(*x.shape[:-2], n, x.shape[-1]) for x in done]
            for whole, x in zip(found, done, strict=True):
                whole[..., rows, :] = x
        return found, sums

    @property
    def _tiled(self) -> bool:
        """Whether attention to all keys is computed by tiles."""
        return not self.causal and self.engine == "auto" and in_tiles(self.features, self._tensors)

    def _by_bases(
        self, features: HybridTensorFeatures, k: Tensor, v: Tensor, bias: Tensor | None
    ) -> tuple[Part, KeySums]:
        """What queries see of all keys by features of a hybrid, from those of its bases."""
        of_queries, of_keys = features.bases(self.q, self.root, key=False), features.bases(k, self.root, key=True)
        if bias is not None:
            added = (bias * LOG2E).clamp(min=2 * NOTHING)[..., None]
            of_keys = of_keys._replace(logs=tuple(log + added for log in of_keys.logs))
        tiled = self.engine == "auto" and eager_on_a_cpu(k)
        return everything_by_bases(features, (self.q, of_queries), (k, of_keys), self.root, with_ones(v), tiled=tiled)

    def _divided(self, part: Part) -> Tensor:
        return divide(part, positive=self.features.positive, nonpositive=self.nonpositive)

    def _queries(self, alone: bool) -> LogFeatures:
        """Features of queries to base two, without factors per row where there are no other keys."""
        return self.features.log2(self.q, self.root, key=False, norms=not alone)

    def _keys(self, k: Tensor, bias: Tensor | None) -> LogFeatures:
        """Features of keys to base two, finite, since a product of zero and infinity is undefined."""
        keys = self.features.log2(k, self.root, key=True)
        return keys if bias is None else keys._replace(log=keys.log + (bias * LOG2E).clamp(min=2 * NOTHING)[..., None])

    @property
    def _layout(self) -> dict[str, Any]:
        return {"causal": self.causal, "rows": self.chunk_size, "group": self.queries_per_key if self.causal else 1}

    @property
    def divisible(self) -> bool:
        """Whether packed sequences are computed one by one: numbers are on the host, and the fused operator takes them."""
        known = not torch.compiler.is_compiling() and not self.q.is_meta
        return known and self.group is None and operator_takes(self.features, self._tensors, self.engine)

    @property
    def _tensors(self) -> tuple[Tensor, ...]:
        """Queries, keys and values, and what else may have a gradient."""
        return self.q, self.k, self.v, *(x for x in (self.key_bias, self.root) if isinstance(x, Tensor))

    def _for_the_operator(self, keep: bool, sums: KeySums | None) -> QuadraticFeatures | None:
        """The features if the fused operator computes this; ``keep`` says that the sums remain in a state."""
        features = self.features
        if not isinstance(features, QuadraticFeatures) or self.group is not None:
            return None
        if not operator_takes(features, self._tensors, self.engine):
            return None
        if self.engine == "auto" and not operator_pays(features, self._tensors, causal=self.causal, window=self.window):
            return None
        if not keep and sums is None:
            return features
        if self.q.shape[-2] == 1 or torch.is_grad_enabled():  # a step of decoding; a gradient through the sums
            return None
        lead = torch.broadcast_shapes(self.k.shape[:-2], self.v.shape[:-2], features.lead)
        return features if lead == torch.broadcast_shapes(lead, self.q.shape[:-2]) else None

    def _filled(self) -> tuple[Tensor, Tensor]:
        """Keys and values with zeros in the padding: numbers there, even NaN, must not be multiplied by zero."""
        if self.key_bias is None:
            return self.k, self.v
        there = (self.key_bias > -torch.inf)[..., None]
        k, v = (x.masked_fill(~there, 0.0) for x in (self.k, self.v))
        return k, v

    def _with_others(self, keys: _Keys, group: Group) -> tuple[Part, KeySums]:
        """The result and the sums of all processes where a sequence is spread over them."""
        k, v, bias = keys
        own = to_base_e(absorbed(self._keys(k, bias), with_ones(v), None))
        assert own is not None
        if not self.causal:
            part, _ = everything(self._queries(alone=True), None, with_ones(v), to_base_two(total(own, group)))
        else:
            part, _ = self._by_plain_operations(keys, 0, before(own, group), keep=False, alone=True)
        return part, own


def _after(
    state: AttentionState | None, sums: KeySums | None, added: int, near: NearKeys | None = None
) -> AttentionState:
    """A new state, that many positions later."""
    after = AttentionState()
    after.update(sums, (0 if state is None else state.length) + added, near)
    return after
