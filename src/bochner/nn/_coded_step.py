"""One step of decoding with codes: scan the codes of all keys, read few of them.

On the CPU, in float32 and float64, it is one compiled call, in parts of heads for threads; elsewhere torch operations.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..linalg.loops import append_codes, decode_coded
from ._attention_features import grouped
from ._coded_module import CodedAttention
from ._coded_remainder import Gathered, draw_keys, phases_at
from ._key_codes import KeyCodes, packed
from ._threads import run_all

_SHARED = 1 << 18
"""Heads times keys from which the heads of a step are divided among threads.

Starting them takes some 40 microseconds, and a step with 9 heads and 16384 keys 100 on one thread."""


class CodedStep:
    """One step of decoding with the keys of a layer, a `bochner.nn._coded_cache.CodedLayer`."""

    def __init__(self, attention: CodedAttention, layer: Any, scale: float) -> None:
        self.attention, self.layer, self.scale = attention, layer, scale
        codes, selection = attention.codes, attention.selection
        heads, key_heads = codes.heads, layer.room[0].shape[1]
        self.group = heads // key_heads if _shared(codes, heads // key_heads) else 1
        work = working(layer.dtype)
        self.queries = [codes.query_center[:, 0].to(work), codes.query_turn.to(work), codes.rows.to(work)]
        self.keys = [x[:: self.group].contiguous() for x in (codes.key_center[:, 0].to(work), codes.key_turn.to(work))]
        self.keys += [self.queries[2], self.queries[0][:: self.group].contiguous()]
        self.compiled = layer.room[0].is_cpu and layer.dtype in (torch.float32, torch.float64)
        self.cosines = codes.cosines().to(layer.device)
        drawn = selection.sampled or (0,) * heads
        self.counts = tuple(np.array(x, dtype=np.int64) for x in (selection.candidates, selection.kept, drawn))
        self.no_phases = np.zeros((len(layer.room[0]), heads))
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
        near = max(self.attention.selection.window, 1), self.first.numpy()
        rows = q[:, :, 0].contiguous().numpy()
        results = [x.numpy() for x in (out, sums, used)]
        phases = self._phases()[..., 0].numpy() if self.attention.selection.draws else self.no_phases

        def part(heads: tuple[int, int]) -> None:
            decode_coded(
                rows,
                keys,
                values,
                bias,
                n,
                heads,
                self.numbers[0],
                coded,
                near,
                self.counts,
                phases,
                self.scale,
                *results,
            )

        total, threads = q.shape[1], torch.get_num_threads()
        if len(q) * total * n < _SHARED or threads == 1:
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
        selection, work = self.attention.selection, working(q.dtype)
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
        work, root = working(q.dtype), self.scale**0.5
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


def working(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32
