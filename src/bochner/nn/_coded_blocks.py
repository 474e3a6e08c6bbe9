"""Coded attention of whole sequences.

Blocks of queries share candidates, whose keys are gathered once for a block; or a compiled loop scans codes for each query.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Tensor

from ..linalg.loops import attend_coded, select_for_blocks
from ._coded_layout import JUDGES, BlockLayout, KeySelection
from ._coded_remainder import Gathered, Remainder, draw_keys
from ._key_codes import Coded, KeyCodes, packed
from ._threads import run_all

CACHED_BYTES = 1 << 22  # memory of the scores and gathered keys that are computed at once on the CPU


def attend_blocks(
    x: Tensor,
    y: Tensor,
    v: Tensor,
    bias: Tensor | None,
    codes: KeyCodes,
    selection: KeySelection,
    causal: bool,
    remainder: Remainder | None,
) -> Tensor:
    """Attention in which blocks of queries share candidates, whose keys are gathered."""
    n, p = x.shape[-2], y.shape[-2]
    layout = BlockLayout.of(x, p, bias, selection, causal)
    found = codes.keys(y.detach()) if selection.searches else None
    if found is not None and _counts_bits(x):
        found = found._replace(packed=packed(found.signs))  # once for all steps
    totals = None if remainder is None else remainder.totals(x, y, v, bias, layout.limits(n))
    out = []
    for start in range(0, n, layout.step(x, y, v)):
        stop = min(start + layout.step(x, y, v), n)
        blocks = layout.blocks(x[..., start:stop, :])
        near = layout.near(start, stop)
        parts = [near.expand(*blocks.shape[:2], -1, -1), layout.first[:, None, None].expand(*blocks.shape[:3], -1)]
        shifts = None
        if found is not None:
            places, drawn, shifts = _selected(blocks.detach(), found, codes, layout, start, stop, bias)
            parts += [places, drawn]
        places = torch.cat(parts, dim=-1)
        there = layout.there(places, near, start, stop)
        known, selected = near.shape[-1] + layout.first.shape[1], parts[2].shape[-1] if found is not None else 0
        for first in range(0, blocks.shape[2], few := _few(blocks, places, v)):
            part = slice(first, first + few)
            gathered = _gathered(y, v, bias, places[:, :, part], there[:, :, part])
            scores = blocks[:, :, part] @ gathered.y.mT  # changed in place: each pass takes as long as a product
            if causal:  # what is selected comes before the block
                at = layout.positions(start, stop)[part]
                scores[..., :known].masked_fill_(gathered.places[..., None, :known] > at[..., None], -torch.inf)
            drawn_too = shifts is not None and shifts.shape[-1] > 0
            scores += _added(gathered, None if shifts is None else shifts[:, :, part]).to(scores)
            if selected and not drawn_too and selection.kept != selection.candidates:  # draws are from all others
                scores = _best(scores, known, selection.kept)
            used = None if remainder is None else scores.detach() > -torch.inf
            top = scores.detach().amax(dim=-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min / 4)
            weights = scores.sub_(top).exp_()
            total = weights.sum(dim=-1, keepdim=True)
            exact = (weights @ gathered.v) / total.clamp(min=torch.finfo(scores.dtype).tiny)
            if remainder is not None and totals is not None and used is not None:
                at_first = start + first * selection.block
                exact = remainder.added(exact, total, top, blocks[:, :, part], totals, at_first, gathered, used)
            out.append(exact.flatten(2, 3)[..., : stop - start - first * selection.block, :])
    return torch.cat(out, dim=-2)


def _few(blocks: Tensor, places: Tensor, v: Tensor) -> int:
    """Blocks that are computed at once: on the CPU as many as stay in the cache of a core, elsewhere all."""
    if not _counts_bits(blocks):
        return blocks.shape[2]
    numbers = places.shape[-1] * (blocks.shape[-2] + blocks.shape[-1] + v.shape[-1])
    return max(CACHED_BYTES // (blocks.shape[0] * blocks.shape[1] * numbers * blocks.element_size()), 1)


def _selected(
    blocks: Tensor, keys: Coded, codes: KeyCodes, layout: BlockLayout, start: int, stop: int, bias: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Places (batch, heads, blocks, candidates) of the far keys with the largest estimated scores; others out of range.

    Then the places (batch, heads, blocks, draws) of keys that are drawn from the others, and what is added to their scores,
    (batch, heads, blocks, 1, draws).
    """
    selection, p = layout.selection, layout.keys
    if layout.causal:  # no key after the last query
        p = min(p, layout.offset + stop)
    judges = torch.linspace(0, blocks.shape[-2] - 1, min(blocks.shape[-2], JUDGES)).round().long()
    found = codes.queries(blocks[..., judges, :].flatten(2, 3))
    if _counts_bits(blocks):
        return _selected_by_words(found, len(judges), keys, codes, layout, start, stop, bias)
    scores: Tensor = codes.scores(found, Coded(keys.signs[..., :p, :], keys.norms[..., :p], keys.offsets[..., :p]))
    if bias is not None:
        scores += bias[:, :, None, :p].detach()
    scores = scores.unflatten(2, (-1, len(judges)))
    if layout.causal:
        last = layout.positions(start, stop)[:, -1:, None]
        scores = scores.masked_fill(torch.arange(p, device=scores.device) > last, -torch.inf)
    # a key matters by its score below the best one of some query, and not by the score itself
    scores = scores - scores.amax(dim=-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
    score = scores.amax(dim=-2).masked_fill_(~layout.far(start, stop, p), -torch.inf)
    most = torch.tensor(selection.candidates, device=score.device)
    top = score.topk(min(max(selection.candidates), p), dim=-1)
    rank = torch.arange(top.indices.shape[-1], device=score.device)
    missing = (top.values == -torch.inf) | (rank >= most[:, None])[:, None]
    places = top.indices.masked_fill(missing, layout.keys)
    if not selection.draws:
        return places, places[..., :0], scores.new_zeros(*places.shape[:-1], 1, 0)
    left = (score > -torch.inf).scatter(-1, top.indices, (top.values > -torch.inf) & missing)
    phases = layout.phases(codes, start, stop)
    drawn, shifts = draw_keys(score, left, selection.sampled, phases)
    return places, drawn.masked_fill(shifts == -torch.inf, layout.keys), shifts[..., None, :]


def _counts_bits(x: Tensor) -> bool:
    """Whether a compiled loop can do it."""
    return x.is_cpu and not torch.compiler.is_compiling()


def _selected_by_words(
    queries: Coded,
    judges: int,
    keys: Coded,
    codes: KeyCodes,
    layout: BlockLayout,
    start: int,
    stop: int,
    bias: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the shared candidates and draws of all blocks, by counting bits in a compiled loop, a head at a time."""
    words, own = (part.words().numpy().view(np.uint64) for part in (keys, queries))
    norms, offsets = keys.norms.float().numpy(), (keys.offsets if bias is None else keys.offsets + bias.detach())
    blocks, p, most = len(range(start, stop, layout.selection.block)), layout.keys, max(layout.selection.candidates)
    starts = layout.offset + torch.arange(start, stop, layout.selection.block)
    seen = (starts + layout.selection.block).clamp(max=p) if layout.causal else torch.full_like(starts, p)
    low = starts - layout.reach[0] if layout.reach[0] >= 0 else torch.full_like(starts, p)
    high = starts + layout.selection.block - 1 + layout.reach[1]
    ranges = torch.stack([low, high, seen], dim=-1).numpy()
    places = torch.full((*queries.norms.shape[:2], blocks, most), p)
    lengths = queries.norms.float().numpy()
    numbers, first, limits = places.numpy(), layout.is_first.numpy(), offsets.float().numpy()
    draws = layout.selection.sampled or (0,) * codes.heads
    drawn = torch.full((*places.shape[:3], max(draws)), p)
    shifts = torch.full((*places.shape[:3], max(draws)), -torch.inf, dtype=torch.float64)
    others, added, phases = drawn.numpy(), shifts.numpy(), layout.phases(codes, start, stop).numpy()

    def one(b: int, h: int) -> None:
        select_for_blocks(
            own[b, h].reshape(blocks, judges, -1), lengths[b, h].reshape(blocks, judges), codes.bits, words[b, h],
            norms[b, h], limits[b, h], ranges, first[b], layout.selection.candidates[h], numbers[b, h], phases[b, h],
            others[b, h, :, : draws[h]], added[b, h, :, : draws[h]],
        )  # fmt: skip

    heads = [h for h, count in enumerate(layout.selection.candidates) if count or draws[h]]
    run_all([partial(one, b, h) for b in range(len(places)) for h in heads])
    return places, drawn, shifts[..., None, :]


def _gathered(y: Tensor, v: Tensor, bias: Tensor | None, places: Tensor, there: Tensor) -> Gathered:
    """Keys, values and biases in these places."""
    at = places.clamp(0, y.shape[-2] - 1)
    own = None if bias is None else bias.gather(-1, at.flatten(2)).unflatten(-1, at.shape[2:])
    return Gathered(places, there, rows_at(y, at), rows_at(v, at), own)


def _added(gathered: Gathered, shifts: Tensor | None) -> Tensor:
    """What is added to the scores of gathered keys, (batch, heads, blocks, 1, width): minus infinity where there is none."""
    added = torch.zeros_like(gathered.there, dtype=gathered.y.dtype) if gathered.bias is None else gathered.bias
    added = added.masked_fill(~gathered.there, -torch.inf)[..., None, :]
    if shifts is None or not shifts.shape[-1]:
        return added
    count = shifts.shape[-1]
    return torch.cat([added[..., :-count], added[..., -count:] + shifts.to(added)], dim=-1)


def rows_at(x: Tensor, at: Tensor) -> Tensor:
    """Rows of (batch, heads, n, d) at places (batch, heads, ...)."""
    lead = torch.arange(x.shape[0] * x.shape[1], device=x.device).view(*x.shape[:2], *[1] * (at.ndim - 2))
    flat = (at + x.shape[2] * lead).flatten()
    return x.reshape(-1, x.shape[-1]).index_select(0, flat).view(*at.shape, x.shape[-1])  # whole rows, 5 times gather


def _best(scores: Tensor, first: int, kept: tuple[int, ...]) -> Tensor:
    """Scores in which only the best candidates, those from place ``first`` on, stay."""
    part = scores[..., first:]
    count = min(max(kept), part.shape[-1])
    if not count or not part.shape[-1]:
        return scores
    order = part.detach().topk(count, dim=-1).values
    last = torch.tensor([min(max(n, 1), count) - 1 for n in kept], device=scores.device)
    least = order.gather(-1, last[:, None, None, None].expand(*order.shape[:-1], 1))
    return torch.cat([scores[..., :first], part.masked_fill(part.detach() < least, -torch.inf)], dim=-1)


def is_compiled(x: Tensor, y: Tensor, v: Tensor, bias: Tensor | None) -> bool:
    """Whether a compiled loop can do it: on the CPU, without gradients, and with masks that hide keys from all heads."""
    wanted = torch.is_grad_enabled() and any(z.requires_grad for z in (x, y, v))
    if not x.is_cpu or wanted or torch.compiler.is_compiling():
        return False
    return bias is None or bool(((bias == 0) | (bias == -torch.inf)).all() and (bias == bias[:, :1]).all())


def attend_compiled(
    x: Tensor, y: Tensor, v: Tensor, bias: Tensor | None, codes: KeyCodes, selection: KeySelection, causal: bool
) -> Tensor:
    """Attention in which each query has its own candidates, on the CPU."""
    batch, heads, n, _ = x.shape
    p = y.shape[-2]
    layout = BlockLayout.of(x, p, bias, selection, causal)
    x, y, v = (z.detach().contiguous() for z in (x, y, v))
    queries, keys = codes.queries(x), codes.keys(y)
    own, words = (part.words().numpy().view(np.uint64) for part in (queries, keys))
    lengths, norms = queries.norms.float().numpy(), keys.norms.float().numpy()
    offsets = (keys.offsets if bias is None else keys.offsets + bias).float().numpy()
    there = np.ones((batch, p), dtype=bool) if bias is None else (bias[:, 0] > -torch.inf).numpy()
    phases = layout.phases(codes, 0, n).numpy()
    draws = selection.sampled or (0,) * heads
    numbers = list(zip(selection.candidates, selection.kept, draws, strict=True))
    span, first = (layout.offset, causal, layout.reach[0] >= 0), layout.first.numpy()
    out = torch.empty(batch, heads, n, v.shape[-1], dtype=x.dtype)
    rows, results = [z.numpy() for z in (x, y, v)], out.numpy()

    def one(b: int, h: int) -> None:
        attend_coded(
            *(z[b, h] for z in rows), there[b], span, codes.bits, (own[b, h], lengths[b, h]),
            (words[b, h], norms[b, h], offsets[b, h]), (selection.window, first[b]), numbers[h], phases[b, h],
            results[b, h],
        )  # fmt: skip

    run_all([partial(one, b, h) for b in range(batch) for h in range(heads)])
    return out
