"""A cache for ``generate`` of models with coded attention: keys, values and codes, of which a step scans the codes.

This module imports ``transformers``; `bochner.nn` imports it when `CodedCache` is asked for.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer

from .._validation import check_instance, shown
from ..linalg.loops import append_codes, decode_coded
from ._attention_features import grouped
from ._coded_module import CodedAttention, exact
from ._coded_remainder import Gathered, draw_keys, phases_at
from ._families import changes_cached
from ._hugging_face import ATTRIBUTE, LAYER
from ._key_codes import KeyCodes, packed
from ._threads import run_all

_OWNER = "CodedCache"
_LEAST = 64  # places that a new cache has room for; it doubles when they are used up
DECODED_BELOW = 4096
"""Keys below which a step is exact: there it is faster, and faster than with a cache that copies what it holds.

Measured with SmolLM2 (9 heads of 64, 3 of keys) and plans of 128 keys on one thread of a CPU."""
_SHARED = 4096  # keys from which the heads of a step are divided among threads: below, starting them takes longer


class CodedCache(Cache):
    r"""A cache for ``generate`` of models with coded attention, which reads codes and few keys per step.

    ``generate`` creates one automatically for a model converted by a `CodedPlan`.  Layers with coded attention hold
    keys, values, and the codes of keys; all other layers behave as in ``transformers.DynamicCache``.  Greedy
    decoding, sampling, beams, padding on either side, prompts in several parts and removal of tokens work as with other
    caches.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        A decoder, some of whose attention is converted by a `CodedPlan`.

    See Also
    --------
    LinearCache : A cache of constant size, for attention by features.

    Notes
    -----
    A step costs 8 bytes and two numbers per key and head of keys with codes of 64 bits, and the few keys that it uses;
    memory grows in doublings, so that a step does not copy what is held.  On CPUs a step in float32 or float64 is a
    compiled loop; elsewhere, and in half precisions, it uses torch operations.

    Examples
    --------
    >>> import numpy as np, torch, transformers
    >>> from bochner.maps import Frame
    >>> from bochner.nn import CodedCache, CodedHead, CodedPlan, replace_attention
    >>> sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    >>> model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=50, eos_token_id=None, **sizes)).eval()
    >>> head = CodedHead(Frame(np.zeros(8), np.zeros(8), np.eye(8)), kept=16)
    >>> model = replace_attention(model, CodedPlan([head] * 4, window=16))
    >>> cache = CodedCache(model)
    >>> out = model.generate(torch.tensor([[3, 1, 4]]), past_key_values=cache, max_new_tokens=8, do_sample=False)
    >>> out.shape, cache.get_seq_length()
    (torch.Size([1, 11]), 10)
    """

    def __init__(self, model: nn.Module) -> None:
        check_instance(_OWNER, "model", model, nn.Module, "a model of transformers after replace_attention")
        config: Any = getattr(model, "config", None)
        if not hasattr(config, "get_text_config"):
            raise TypeError(f"{_OWNER}: model must be one of transformers, got {shown(type(model))}.")
        usual = DynamicCache(config=config).layers
        # a layer of another kind holds something else besides, such as the state of a convolution; its attention is exact
        places = coded_layers(model) & {i for i, layer in enumerate(usual) if type(layer) is DynamicLayer}
        if not places or config.is_encoder_decoder:
            raise ValueError(
                f"{_OWNER}: {type(model).__name__} has no decoder with coded attention that uses a cache; convert it by "
                f"replace_attention(model, calibrate(model, batches, cost=128)), or use the usual cache."
            )
        super().__init__(layers=[CodedLayer() if i in places else layer for i, layer in enumerate(usual)])


def coded_layers(model: nn.Module) -> set[int]:
    """Places of the layers with coded attention."""
    return {
        int(place)
        for module in model.modules()
        if isinstance(getattr(module, ATTRIBUTE, None), CodedAttention)
        and (place := getattr(module, "layer_idx", None)) is not None
        and not changes_cached(type(module))  # type: ignore[arg-type]  # classes are hashable
    }


class CodedLayer(DynamicLayer):
    """The layer of a cache that holds keys, values, masks, and codes as far as they have been computed.

    Attributes
    ----------
    keys, values : Tensor (batch, key heads, length, d or e)
        What is held, as in ``DynamicLayer``: views of larger tensors.
    bias : Tensor (batch, length)
        Zero, or minus infinity where there is no key.
    coded : int
        Number of keys with codes.
    """

    step: _CodedStep | None

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()
        self._clear()

    def _clear(self) -> None:
        self.length, self.coded, self.step = 0, 0, None
        self.room: list[Tensor] = []
        self.codes: list[Tensor] = []
        self.totals: tuple[int, Tensor, Tensor] | None = None

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Make room for keys like these."""
        self.dtype, self.device = key_states.dtype, key_states.device
        shape = key_states.shape[:2]
        self.room = [
            key_states.new_empty(*shape, _LEAST, key_states.shape[-1]),
            value_states.new_empty(*shape, _LEAST, value_states.shape[-1]),
            torch.zeros(shape[0], 1, _LEAST, dtype=_working(key_states.dtype), device=self.device)[:, 0],
        ]
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Add keys and values; return those of this step, with a mark by which attention finds this layer."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        stop = self.length + key_states.shape[-2]
        self._grow(stop)
        for held, new in zip(self.room, (key_states, value_states), strict=False):
            held[..., self.length : stop, :] = new
        self.room[2][..., self.length : stop] = 0
        self.length = stop
        self._show()
        marked = key_states[...]
        setattr(marked, LAYER, self)
        return marked, value_states

    def _grow(self, length: int) -> None:
        """Room for as many keys; what is held is copied when it doubles."""
        capacity = self.room[0].shape[-2]
        if length <= capacity:
            return
        capacity, self.step = max(length + length // 8, 2 * capacity), None

        def larger(x: Tensor, dim: int) -> Tensor:
            shape = list(x.shape)
            shape[dim] = capacity
            new = x.new_empty(shape)
            new.narrow(dim, 0, x.shape[dim]).copy_(x)
            return new

        keys, values, bias = self.room
        self.room = [larger(keys, -2), larger(values, -2), larger(bias, -1)]
        self.codes = [larger(x, 2) for x in self.codes]

    def _show(self) -> None:
        keys, values, bias = self.room
        self.keys, self.values = keys[..., : self.length, :], values[..., : self.length, :]
        self.bias = bias[:, : self.length]

    def attend(self, computed_by: nn.Module, q: Tensor, k: Tensor, v: Tensor, **call: Any) -> Tensor:
        """Attention of queries to everything held, of which the keys of this step are the last."""
        n, p = q.shape[-2], self.length
        self._mask(call["key_mask"], k.shape[-2])
        prefixes = torch.arange(p - n + 1, p + 1, device=q.device) if n != p else None
        mask = None if not self._masked else self.bias > -torch.inf
        options = call | {"causal": n == p, "prefixes": prefixes, "key_mask": mask}
        out: Tensor = computed_by(q, self.keys, self.values, **options)
        return out

    def _mask(self, key_mask: Tensor | None, count: int) -> None:
        """Hide the last keys where a mask says so."""
        if key_mask is None:
            return
        there = key_mask if key_mask.dtype == torch.bool else key_mask > -1e4
        there = there.any(dim=1) if there.ndim == 3 else there
        self.bias[:, self.length - count :].masked_fill_(~there.expand(len(self.bias), -1)[:, -count:], -torch.inf)

    @property
    def _masked(self) -> bool:
        return bool((self.bias == -torch.inf).any())

    def single_step(
        self, computed_by: Any, q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, scale: float
    ) -> Tensor | None:
        """Attention of one query of each sequence to everything held; None if it is another case."""
        if not isinstance(computed_by, CodedAttention) or q.shape[-2] != 1 or torch.is_grad_enabled():
            return None
        self._mask(key_mask, 1)
        if self.length < min(DECODED_BELOW, computed_by.exact_below) or torch.is_autocast_enabled(q.device.type):
            masked = self.bias > -torch.inf if key_mask is not None or self._masked else None
            return exact(q, self.keys, self.values, False, None, masked, scale)
        if self.step is None or self.step.scale != scale:
            self.step = _CodedStep(computed_by, self, scale)
        return self.step(q)

    def get_seq_length(self) -> int:
        """Number of positions, with padding."""
        return self.length

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._clear()

    def crop(self, tokens_to_remove: int) -> None:
        """Remove the last tokens.

        Parameters
        ----------
        tokens_to_remove : int
            Their number, as a negative number; 0 keeps all.
        """
        if tokens_to_remove > 0:
            raise ValueError(f"{_OWNER}: tokens_to_remove must be a negative number or 0, got {tokens_to_remove}.")
        if not self.is_initialized or not tokens_to_remove:
            return
        self.length = max(self.length + tokens_to_remove, 0)
        self.coded, self.totals = min(self.coded, self.length), None
        self._show()

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Select the members of beams."""
        self.batch_select_indices(beam_idx)

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeat each member of the batch."""
        if self.is_initialized:
            self.batch_select_indices(torch.arange(len(self.keys)).repeat_interleave(repeats))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Select members of the batch."""
        if not self.is_initialized:
            return
        indices = indices.to(self.device)
        self.room, self.codes = [x[indices] for x in self.room], [x[indices] for x in self.codes]
        self.totals, self.step = None, None
        self._show()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"step": None}  # of a copy, or elsewhere, it is made again


class _CodedStep:
    """One step of decoding with the keys of a layer."""

    def __init__(self, attention: CodedAttention, layer: CodedLayer, scale: float) -> None:
        self.attention, self.layer, self.scale = attention, layer, scale
        codes, selection = attention.codes, attention.selection
        heads, key_heads = codes.heads, layer.room[0].shape[1]
        self.group = heads // key_heads if _shared(codes, heads // key_heads) else 1
        work = _working(layer.dtype)
        self.queries = [codes.query_center[:, 0].to(work), codes.query_turn.to(work), codes.rows.to(work)]
        self.keys = [x[:: self.group].contiguous() for x in (codes.key_center[:, 0].to(work), codes.key_turn.to(work))]
        self.keys += [self.queries[2], self.queries[0][:: self.group].contiguous()]
        self.compiled = layer.room[0].is_cpu and layer.dtype in (torch.float32, torch.float64)
        self.cosines = codes.cosines().to(layer.device)
        drawn = selection.sampled or (0,) * heads
        self.counts = [np.array(x, dtype=np.int64) for x in (selection.candidates, selection.kept, drawn)]
        self.width = max(selection.window, 1) + selection.anchors + max(selection.kept) + max(drawn)
        if not layer.codes:
            batch, capacity = len(layer.room[0]), layer.room[0].shape[-2]
            lead, device = (batch, heads // self.group, capacity), layer.device
            layer.codes = [
                torch.zeros(*lead, -(-codes.bits // 64), dtype=torch.int64, device=device),
                torch.zeros(lead, dtype=torch.float32, device=device),
                torch.zeros(lead, dtype=torch.float32, device=device),
            ]
            layer.coded = 0
        self.first = self._anchors()
        if self.compiled:
            self.room = [x.numpy() for x in layer.room]
            words, norms, offsets = (x.numpy() for x in layer.codes)
            self.coded = words.view(np.uint64), norms, offsets
        self.numbers = [tuple(x.numpy() for x in side) for side in (self.queries, self.keys)] if self.compiled else []

    def _anchors(self) -> Tensor:
        """Places of the first keys that are there, (batch, anchors)."""
        anchors, bias = self.attention.selection.anchors, self.layer.bias
        there = bias > -torch.inf
        places = torch.arange(bias.shape[-1], device=bias.device).expand_as(there)
        places = places.masked_fill(~there | (there.cumsum(-1) > anchors), 2**62)
        return places.topk(min(anchors, bias.shape[-1]), dim=-1, largest=False).values.contiguous()

    def __call__(self, q: Tensor) -> Tensor:
        """Attention of queries (batch, heads, 1, d)."""
        layer = self.layer
        if self.compiled:
            out, sums, used = self._compiled(q)
        else:
            out, sums, used = self._plain(q)
        layer.coded = layer.length
        if self.attention.remainder is not None:
            out = self._with_remainder(q, out, sums, used)
        return out.to(q.dtype)

    def _compiled(self, q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        layer, n = self.layer, self.layer.length
        keys, values, bias = self.room
        coded = self.coded
        append_codes(keys, bias, layer.coded, n, self.scale, self.numbers[1], coded)
        out = torch.empty(*q.shape[:2], values.shape[-1], dtype=q.dtype)
        sums = torch.empty(*q.shape[:2], 2, dtype=torch.float64)
        used = torch.empty(*q.shape[:2], self.width, dtype=torch.int64)
        sides = (*self.numbers[0], self.cosines.numpy())
        near = max(self.attention.selection.window, 1), self.first.numpy()
        rows = q[:, :, 0].contiguous().numpy()
        results = [x.numpy() for x in (out, sums, used)]
        phases = self._phases()[..., 0].numpy()

        def part(heads: tuple[int, int]) -> None:
            decode_coded(
                rows, keys, values, bias, n, heads, sides, coded, near, tuple(self.counts), phases, self.scale, *results
            )

        total, threads = q.shape[1], torch.get_num_threads()
        if n < _SHARED or threads == 1:
            part((0, total))
        else:
            cuts = [total * i // threads for i in range(threads + 1)]
            run_all([partial(part, pair) for pair in pairwise(cuts) if pair[0] < pair[1]])
        return out[:, :, None], sums, used

    def _phases(self) -> Tensor:
        """Phases of the draws of this step, (batch, heads, 1)."""
        return phases_at(self.attention.codes.phases, (self.layer.bias > -torch.inf).sum(dim=-1, keepdim=True))

    def _plain(self, q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the step in torch operations, on any device."""
        layer, codes, n = self.layer, self.attention.codes, self.layer.length
        selection, work = self.attention.selection, _working(q.dtype)
        keys, values = (grouped(q, x.to(work), "k") for x in (layer.keys, layer.values))
        new = keys[:, :: self.group, layer.coded :] * self.scale**0.5
        words, norms, offsets = layer.codes
        here = slice(layer.coded, n)
        found = codes.of_heads(range(0, codes.heads, self.group)).keys(new)
        words[:, :, here], norms[:, :, here] = packed(found.signs), found.norms.float()
        offsets[:, :, here] = found.offsets.float() + layer.bias[:, None, here].float()
        low = max(n - max(selection.window, 1), 0)
        own = codes.queries(q.to(work) * self.scale**0.5)
        places = torch.arange(low, n, device=q.device).expand(*q.shape[:2], -1)
        anchors = self.first.masked_fill(self.first >= low, n)[:, None].expand(*q.shape[:2], -1)
        parts, shifts = [places, anchors], None
        if low and selection.searches:
            different = unequal_bits(packed(own.signs)[:, :, 0, None], _wide(words[:, :, :low], self.group))
            scores = own.norms * _wide(norms[:, :, :low], self.group) * self.cosines[different]
            scores = scores + _wide(offsets[:, :, :low], self.group)
            held = anchors.clamp(max=low - 1)  # anchors are used already
            own_scores = torch.where(anchors < low, -torch.inf, scores.gather(-1, held))
            scores = scores.scatter(-1, held, own_scores)
            parts.append(_best_places(scores, q, keys, selection, n))
            if selection.draws:
                chosen = parts[-1]
                left = torch.cat(
                    [scores > -torch.inf, scores.new_zeros(*scores.shape[:2], 1, dtype=torch.bool)], dim=-1
                )
                left = left.scatter(-1, chosen.clamp(max=low), False)[..., None, :low]
                drawn, shifts = draw_keys(scores[..., None, :], left, selection.sampled, self._phases())
                shifts = shifts[..., 0, :].to(work)
                parts.append(drawn[..., 0, :].masked_fill(shifts == -torch.inf, n))
        used = torch.cat(parts, dim=-1)
        at = used.clamp(max=n - 1)
        rows = [x.gather(2, at[..., None].expand(*at.shape, x.shape[-1])) for x in (keys, values)]
        logits = self.scale * (q.to(work) @ rows[0].mT)[:, :, 0]
        hidden = (used == n) | (layer.bias[:, None].expand(*q.shape[:2], -1).gather(-1, at) == -torch.inf)
        logits = logits.masked_fill(hidden, -torch.inf)
        if shifts is not None:
            count = shifts.shape[-1]
            logits = torch.cat([logits[..., :-count], logits[..., -count:] + shifts], dim=-1)
        top = logits.amax(dim=-1, keepdim=True).clamp(min=torch.finfo(work).min / 4)
        weights = (logits - top).exp()
        total = weights.sum(dim=-1, keepdim=True)
        out = (weights[:, :, None] @ rows[1]) / total[:, :, None].clamp(min=torch.finfo(work).tiny)
        return out, torch.cat([top, total], dim=-1).double(), used.masked_fill(hidden, n)

    def _with_remainder(self, q: Tensor, out: Tensor, sums: Tensor, used: Tensor) -> Tensor:
        """Add what features estimate of the keys that were not used, from sums over all earlier keys."""
        layer, n, remainder = self.layer, self.layer.length, self.attention.remainder
        assert remainder is not None
        work, root = _working(q.dtype), self.scale**0.5
        keys, values = (grouped(q, x, "k") for x in (layer.keys, layer.values))
        done, state, shift = layer.totals or (0, None, None)
        y, v = keys[:, :, done : n - 1].to(work) * root, values[:, :, done : n - 1].to(work)
        bias = layer.bias[:, None, done : n - 1].expand(*y.shape[:3]).to(work)
        state, shift = remainder.absorbed(state, shift, y, v, bias)
        layer.totals = n - 1, state, shift
        x = q.to(work) * root
        totals = remainder.read(x, state, shift, n - 1)
        at = used.clamp(max=n - 1)
        rows = [z.gather(2, at[..., None].expand(*at.shape, z.shape[-1])).to(work)[:, :, None] for z in (keys, values)]
        gathered = Gathered(at[:, :, None], (used < n)[:, :, None], rows[0] * root, rows[1], None)
        top, total = (part.to(work)[:, :, None, None] for part in sums.unbind(-1))
        shaped = out.to(work)[:, :, None], total[..., None], top[..., None], x[:, :, None]
        return remainder.added(*shaped, totals, 0, gathered, (used < n)[:, :, None, None])[:, :, 0]


_COUNTS = torch.tensor([number.bit_count() for number in range(256)], dtype=torch.int64)


def unequal_bits(one: Tensor, other: Tensor) -> Tensor:
    """Number of different bits of words (..., words)."""
    found = torch.bitwise_xor(one, other).contiguous().view(torch.uint8)
    return _COUNTS.to(found.device)[found.long()].sum(dim=-1)


def _best_places(scores: Tensor, q: Tensor, keys: Tensor, selection: Any, n: int) -> Tensor:
    """Places of the kept keys, (batch, heads, most), from estimated scores of far keys; n where there are fewer."""
    proposed = scores.topk(min(max(selection.candidates), scores.shape[-1]), dim=-1)
    rank = torch.arange(proposed.indices.shape[-1], device=q.device)
    most, kept = (torch.tensor(x, device=q.device)[:, None] for x in (selection.candidates, selection.kept))
    rows = keys.gather(2, proposed.indices[..., None].expand(*proposed.indices.shape, keys.shape[-1]))
    exact_scores = (q.to(keys) @ rows.mT)[:, :, 0].masked_fill(
        (proposed.values == -torch.inf) | (rank >= most), -torch.inf
    )
    best = exact_scores.topk(min(max(selection.kept), exact_scores.shape[-1]), dim=-1)
    missing = (best.values == -torch.inf) | (rank[: best.indices.shape[-1]] >= kept)
    return proposed.indices.gather(-1, best.indices).masked_fill(missing, n)


def _wide(x: Tensor, group: int) -> Tensor:
    return x if group == 1 else x.repeat_interleave(group, dim=1)


def _shared(codes: KeyCodes, group: int) -> bool:
    """Whether heads that share keys share frames, so that a key needs one code for all of them."""
    frames = (codes.query_center, codes.query_turn, codes.key_center, codes.key_turn)
    return all(torch.equal(x, x[::group].repeat_interleave(group, dim=0)) for x in frames)


def _working(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32
