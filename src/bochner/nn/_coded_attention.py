r"""Attention to the keys that matter: random codes find them, and their weights are exact.

For a block of queries the keys are of four kinds: those *near* the block, the first ones (*anchors*), those that codes
*select* among all others, and the remainder.  The first three are gathered and meet the queries in one softmax with exact
scores; of the remainder nothing is read but sums of random features, and those only in heads that have features.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._validation import check_count, check_flag, check_instance, shown
from ..linalg.compiled.coding import select_for_blocks
from ._attention_checks import borders_of, check_tensors
from ._attention_features import grouped
from ._coded_remainder import Gathered, Remainder, in_blocks
from ._key_codes import Coded, KeyCodes, packed
from ._threads import run_all

OWNER = "coded_attention"
_STEP_BYTES = 1 << 26
"""Memory of the scores and of the gathered keys of one step over blocks of queries."""
_JUDGES = 8
"""Queries of a block by whose scores its keys are selected: equally spaced."""


class KeySelection(NamedTuple):
    """Which keys meet a query exactly.

    Attributes
    ----------
    window : int
        Keys next to the query: its own and the ``window - 1`` before it, and without causality as many after it.
    anchors : int
        First keys of the sequence.
    candidates, kept : tuple of int
        For each head, the keys that codes propose, and how many of them stay after their scores have been computed.
    block : int
        Queries that share candidates.
    """

    window: int
    anchors: int
    candidates: tuple[int, ...]
    kept: tuple[int, ...]
    block: int = 1


def coded_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    codes: KeyCodes | int = 64,
    *,
    window: int = 64,
    anchors: int = 1,
    kept: int | Sequence[int] = 64,
    candidates: int | Sequence[int] | None = None,
    block: int = 1,
    causal: bool = False,
    key_mask: Tensor | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    cu_seqlens: Tensor | tuple[Tensor, Tensor] | None = None,
    remainder: Remainder | None = None,
) -> Tensor:
    r"""Softmax attention to a window, the first keys, and the keys that random codes find.

    A replacement for ``torch.nn.functional.scaled_dot_product_attention`` where attention is carried by few keys, as in
    trained language models.  The weights of the keys that are used are exact; with ``kept`` as large as the number of keys
    it is exact attention.  Half precisions are computed in float32 and cast back.

    Parameters
    ----------
    q, k, v : Tensor (batch, heads, Lq, d), (batch, heads, Lk, d), (batch, heads, Lk, e)
        Queries, keys, values.
    codes : KeyCodes or int
        Drawn codes; a number of bits stands for codes that are fitted to this call and drawn here.
    window : int
        Keys next to each query: its own and the ``window - 1`` before it, and with ``causal=False`` as many after it.
        There is no window where queries and keys are not of the same sequence (``causal=False`` and other lengths).
    anchors : int
        The first keys that are not masked.
    kept : int or sequence of int
        Keys beyond these that each query uses, in all heads or in each.
    candidates : int or sequence of int, optional
        Keys that codes propose, of which the ``kept`` ones have the largest exact scores; by default three times ``kept``.
    block : int
        Number of neighbouring queries that share their candidates and their window, which then reaches from the first of
        them: faster for long inputs, and another result.  With ``causal`` a query still sees no later key, but which
        earlier keys are proposed to it depends on all queries of its block.
    causal : bool
        Whether a query sees the keys up to its own only.  With fewer queries than keys, the queries are the last ones.
    key_mask : Tensor (batch, Lk) or (batch, heads or 1, Lk), optional
        Of bool: True for keys, False for padding.  Of numbers: what is added to the scores of each key.
    scale : float, optional
        Factor of the dot products, by default :math:`d^{-1/2}`.
    enable_gqa : bool
        Whether each head of k and v serves a group of heads of q.
    cu_seqlens : Tensor (n + 1,) of integers, or a pair of them, optional
        Cumulative lengths of packed sequences, which do not attend to each other.
    remainder : Remainder, optional
        Features that estimate what the keys left out contribute, in the heads where they help.

    Returns
    -------
    Tensor (batch, heads, Lq, e)
        The output; zero for queries that see no key.

    See Also
    --------
    linear_attention : All keys by features, beside a window.
    calibrate : Frames and numbers of keys for each head of a model.

    Notes
    -----
    Codes cost as many bits per key, and two numbers, in place of d numbers.  Their estimates serve to choose keys only;
    gradients flow through the weights and values of the keys that were chosen.

    Examples
    --------
    >>> import torch
    >>> from bochner.nn import coded_attention
    >>> q, k, v = torch.randn(3, 1, 4, 200, 16, generator=torch.Generator().manual_seed(0))
    >>> exact = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    >>> all_kept = coded_attention(q, k, v, causal=True, window=8, kept=200)
    >>> torch.allclose(all_kept, exact, atol=1e-5)
    True
    """
    for name, flag in (("causal", causal), ("enable_gqa", enable_gqa)):
        check_flag(OWNER, name, flag)
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, Tensor) or x.ndim != 4:
            raise ValueError(f"{OWNER}: {name} must be a tensor (batch, heads, length, width), got {shown(x)}.")
    selection = checked_selection(OWNER, q.shape[1], window, anchors, candidates, kept, block)
    if isinstance(key_mask, Tensor) and key_mask.ndim == 2:
        key_mask = key_mask[:, None]
    if enable_gqa:
        k, v, key_mask = (grouped(q, x, name) for x, name in ((k, "k"), (v, "v"), (key_mask, "key_mask")))
    bias = check_tensors(q, k, v, key_mask)
    if causal and cu_seqlens is None and q.shape[-2] > k.shape[-2]:
        raise ValueError(
            f"{OWNER}: causal attention needs at least as many keys as queries, got {k.shape[-2]} and {q.shape[-2]}."
        )
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    if not isinstance(codes, KeyCodes):
        codes = KeyCodes.fitted(q, k, check_count(OWNER, "codes", codes), scale=scale)
    if (codes.heads, codes.d) != (q.shape[1], q.shape[-1]):
        raise ValueError(
            f"{OWNER}: codes are of {codes.heads} heads of width {codes.d}, and q has {q.shape[1]} of width {q.shape[-1]}."
        )
    if remainder is not None:
        check_instance(OWNER, "remainder", remainder, Remainder, "Remainder(features, heads, gates)")
    dtype = torch.promote_types(torch.promote_types(q.dtype, k.dtype), v.dtype)
    plain = not torch.is_autocast_enabled(q.device.type)
    with contextlib.nullcontext() if plain else torch.autocast(q.device.type, enabled=False):
        q, k, v = (x.to(torch.float64 if dtype == torch.float64 else torch.float32) for x in (q, k, v))
        root = math.sqrt(scale)
        bias = None if bias is None else bias.to(q).expand(len(k), k.shape[1], k.shape[2])
        if cu_seqlens is None:
            out = attend(q * root, k * root, v, bias, codes, selection, causal, remainder)
        else:
            parts = []
            for queries, keys in borders_of(q, k, cu_seqlens, causal):
                rows = (q[..., queries, :] * root, k[..., keys, :] * root, v[..., keys, :])
                parts.append(
                    attend(*rows, None if bias is None else bias[..., keys], codes, selection, causal, remainder)
                )
            out = torch.cat(parts, dim=-2)
    return out.to(dtype)


def checked_selection(
    owner: str, heads: int, window: Any, anchors: Any, candidates: Any, kept: Any, block: Any
) -> KeySelection:
    """The numbers of keys, checked."""
    most = _per_head(owner, "kept", kept, heads)
    proposed = tuple(3 * n for n in most) if candidates is None else _per_head(owner, "candidates", candidates, heads)
    least = min(c - n for c, n in zip(proposed, most, strict=True))
    if least < 0:
        raise ValueError(
            f"{owner}: candidates must not be fewer than kept, got {shown(candidates)} candidates and {shown(kept)} kept."
        )
    counts = {"window": check_count(owner, "window", window, 0), "anchors": check_count(owner, "anchors", anchors, 0)}
    return KeySelection(**counts, candidates=proposed, kept=most, block=check_count(owner, "block", block))


def _per_head(owner: str, name: str, value: Any, heads: int) -> tuple[int, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return (check_count(owner, name, value, 0),) * heads
    if len(value) != heads:
        raise ValueError(f"{owner}: {name} must have one number for each of the {heads} heads, got {len(value)}.")
    return tuple(check_count(owner, f"{name}[{h}]", n, 0) for h, n in enumerate(value))


def attend(
    x: Tensor,
    y: Tensor,
    v: Tensor,
    bias: Tensor | None,
    codes: KeyCodes,
    selection: KeySelection,
    causal: bool,
    remainder: Remainder | None = None,
) -> Tensor:
    """Attention of checked queries and keys (batch, heads, length, d), both times the root of the scale."""
    n, p = x.shape[-2], y.shape[-2]
    if not n or not p:
        return x.new_zeros(*x.shape[:-1], v.shape[-1])
    if selection.block == 1:
        return _attend_each(x, y, v, bias, codes, selection, causal, remainder)
    if remainder is not None or len(set(selection.candidates)) == 1:
        return _attend_blocks(x, y, v, bias, codes, selection, causal, remainder)
    out = x.new_empty(*x.shape[:-1], v.shape[-1])  # heads with as many candidates together, which are gathered alike
    for count in sorted(set(selection.candidates)):
        own = [h for h, candidates in enumerate(selection.candidates) if candidates == count]
        numbers = [tuple(part[h] for h in own) for part in (selection.candidates, selection.kept)]
        chosen = selection._replace(candidates=numbers[0], kept=numbers[1])
        own_bias = None if bias is None else bias[:, own]
        part = _attend_blocks(x[:, own], y[:, own], v[:, own], own_bias, codes.of_heads(own), chosen, causal, None)
        out = out.index_copy(1, torch.tensor(own, device=x.device), part)
    return out


def _attend_blocks(
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
    layout = _Layout.of(x, p, bias, selection, causal)
    found = codes.keys(y.detach()) if max(selection.candidates) else None
    if found is not None and _counts_bits(x):
        found = found._replace(packed=packed(found.signs))  # once for all steps
    totals = None if remainder is None else remainder.totals(x, y, v, bias, layout.limits(n))
    out = []
    for start in range(0, n, layout.step(x, y, v)):
        stop = min(start + layout.step(x, y, v), n)
        blocks = layout.blocks(x[..., start:stop, :])
        near = layout.near(start, stop)
        parts = [near.expand(*blocks.shape[:2], -1, -1), layout.first[:, None, None].expand(*blocks.shape[:3], -1)]
        if found is not None:
            parts.append(_selected(blocks.detach(), found, codes, layout, start, stop, bias))
        places = torch.cat(parts, dim=-1)
        there = layout.there(places, near, start, stop)
        gathered = _gathered(y, v, bias, places, there)
        scores = _scores(blocks, gathered)
        if causal:
            at = layout.positions(start, stop)
            scores = scores.masked_fill(places[..., None, :] > at[..., None], -torch.inf)
        if found is not None and selection.kept != selection.candidates:
            scores = _best(scores, scores.shape[-1] - parts[-1].shape[-1], selection.kept)
        top = scores.detach().amax(dim=-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min / 4)
        weights = (scores - top).exp()
        total = weights.sum(dim=-1, keepdim=True)
        exact = (weights @ gathered.v) / total.clamp(min=torch.finfo(scores.dtype).tiny)
        if remainder is not None and totals is not None:
            exact = remainder.added(exact, total, top, blocks, totals, start, gathered, scores.detach() > -torch.inf)
        out.append(exact.flatten(2, 3)[..., : stop - start, :])
    return torch.cat(out, dim=-2)


def _attend_each(
    x: Tensor,
    y: Tensor,
    v: Tensor,
    bias: Tensor | None,
    codes: KeyCodes,
    selection: KeySelection,
    causal: bool,
    remainder: Remainder | None,
) -> Tensor:
    """Attention in which each query has its own candidates: all scores are formed, and those of other keys masked.

    It defines what attention in blocks computes faster.  Gathering the keys of single queries would take longer than
    forming all scores, up to lengths at which blocks are used.
    """
    layout, found = _Layout.of(x, y.shape[-2], bias, selection, causal), codes.keys(y.detach())
    step = max(_STEP_BYTES // (2 * x.shape[0] * x.shape[1] * y.shape[-2] * x.element_size()), 1)
    out = []
    for start in range(0, x.shape[-2], step):
        rows = x[..., start : start + step, :]
        stop = start + rows.shape[-2]
        scores = rows @ y.mT
        if bias is not None:
            scores = scores + bias[:, :, None]
        if causal:
            later = torch.arange(y.shape[-2], device=x.device) > layout.positions(start, stop)
            scores = scores.masked_fill(later, -torch.inf)
        coded = codes.scores(codes.queries(rows.detach()), found)
        if bias is not None:
            coded += bias[:, :, None].detach()
        used = used_keys(scores.detach(), coded, ~layout.far(start, stop, y.shape[-2]), selection)
        seen = scores.detach() > -torch.inf
        exact = softmax(scores.masked_fill(~used, -torch.inf)) @ v
        if remainder is not None:
            exact = remainder.mixed(exact, scores, rows, y, v, bias, seen & ~used)
        out.append(exact)
    return torch.cat(out, dim=-2)


def used_keys(scores: Tensor, coded: Tensor, near: Tensor, selection: KeySelection) -> Tensor:
    """Which keys each query uses, (batch, heads, n, p) of bool, from exact scores, those of codes, and what is near."""
    seen = scores > -torch.inf
    used = near & seen
    count = min(max(selection.candidates), scores.shape[-1])
    if not count:
        return used
    far = seen & ~used
    order = coded.masked_fill(~far, -torch.inf).topk(count, dim=-1).indices
    best = scores.masked_fill(~far, -torch.inf).gather(-1, order)
    best = best.masked_fill(_from_rank(selection.candidates, best), -torch.inf)
    top = best.topk(min(max(selection.kept), count), dim=-1)
    chosen = (top.values > -torch.inf) & ~_from_rank(selection.kept, top.values)
    places = order.gather(-1, top.indices)
    return used.scatter(-1, places, used.gather(-1, places) | chosen)


def _from_rank(counts: tuple[int, ...], ranked: Tensor) -> Tensor:
    """Which members of a ranking (batch, heads, n, ranks) come after as many as its head takes."""
    most = torch.tensor(counts, device=ranked.device)
    return torch.arange(ranked.shape[-1], device=ranked.device) >= most[:, None, None]


def softmax(scores: Tensor) -> Tensor:
    """Softmax in which a row without keys is zero."""
    empty = (scores.detach() == -torch.inf).all(dim=-1, keepdim=True)
    return scores.masked_fill(empty, 0.0).softmax(dim=-1).masked_fill(empty, 0.0)


class _Layout(NamedTuple):
    """Where the queries of blocks stand among the keys.

    Attributes
    ----------
    offset : int
        Key that the first query stands at.
    keys : int
        Number of keys.
    reach : pair of int
        Keys before and after a block that are near it; -1 keys before where queries have no place among the keys.
    first : Tensor (batch, anchors)
        Places of the anchors; where there are fewer, the number of keys.
    is_first : Tensor (batch, keys) of bool
    """

    offset: int
    keys: int
    reach: tuple[int, int]
    first: Tensor
    is_first: Tensor
    selection: KeySelection
    causal: bool

    @classmethod
    def of(cls, x: Tensor, p: int, bias: Tensor | None, selection: KeySelection, causal: bool) -> _Layout:
        own = causal or x.shape[-2] == p
        before = max(selection.window - 1, 0) if own else -1
        there = x.new_ones(len(x), p, dtype=torch.bool) if bias is None else (bias > -torch.inf).any(dim=1)
        is_first = there & (there.cumsum(-1) <= selection.anchors)
        numbers = torch.arange(p, device=x.device).expand_as(there).masked_fill(~is_first, p)
        first = numbers.topk(min(selection.anchors, p), dim=-1, largest=False).values
        offset = p - x.shape[-2] if own else 0
        return cls(offset, p, (before, 0 if causal else before), first, is_first, selection, causal)

    def limits(self, n: int) -> Tensor | None:
        """Key that the first query of its block stands at, for each query; None where all keys are seen."""
        if not self.causal:
            return None
        b = self.selection.block
        return self.offset + torch.arange(n, device=self.first.device) // b * b

    def step(self, x: Tensor, y: Tensor, v: Tensor) -> int:
        """Queries of a step: whole blocks, whose scores and gathered keys take limited memory."""
        b = self.selection.block
        gathered = sum(max(r, 0) for r in self.reach) + b + self.first.shape[1] + max(self.selection.candidates)
        numbers = min(b, _JUDGES) * self.keys + gathered * (y.shape[-1] + v.shape[-1] + b)
        blocks = _STEP_BYTES // (x.shape[0] * x.shape[1] * numbers * x.element_size())
        return int(max(blocks, 1)) * b

    def blocks(self, x: Tensor) -> Tensor:
        """Queries in blocks (batch, heads, blocks, block, d); the last one is filled with its last query."""
        return in_blocks(x, self.selection.block)

    def near(self, start: int, stop: int) -> Tensor:
        """Places of the keys near each block, (blocks, width); outside of the sequence where there is none."""
        device, b = self.first.device, self.selection.block
        if self.reach[0] < 0:
            return torch.full((len(range(start, stop, b)), 0), self.keys, device=device)
        starts = self.offset + torch.arange(start, stop, b, device=device)
        return starts[:, None] + torch.arange(-self.reach[0], b + self.reach[1], device=device)

    def far(self, start: int, stop: int, p: int) -> Tensor:
        """Which of the first p keys may be selected for each block, (batch, 1, blocks, p)."""
        places, far = torch.arange(p, device=self.first.device), ~self.is_first[:, None, None, :p]
        if self.reach[0] < 0:
            return far
        b = self.selection.block
        starts = self.offset + torch.arange(start, stop, b, device=self.first.device)[:, None]
        outside = places < starts - self.reach[0]
        return far & (outside if self.causal else outside | (places >= starts + b + self.reach[1]))

    def there(self, places: Tensor, near: Tensor, start: int, stop: int) -> Tensor:
        """Which gathered places count: they are of keys, and anchors are not near as well."""
        there = (places >= 0) & (places < self.keys)
        width, count = near.shape[-1], self.first.shape[1]
        if width and count:
            first = places[..., width : width + count]
            twice = (first >= near[:, :1]) & (first <= near[:, -1:])
            there[..., width : width + count] &= ~twice
        return there

    def positions(self, start: int, stop: int) -> Tensor:
        """Key that each query stands at, (blocks, block)."""
        b = self.selection.block
        starts = self.offset + torch.arange(start, stop, b, device=self.first.device)
        return starts[:, None] + torch.arange(b, device=self.first.device)


def _selected(
    blocks: Tensor, keys: Coded, codes: KeyCodes, layout: _Layout, start: int, stop: int, bias: Tensor | None
) -> Tensor:
    """Places (batch, heads, blocks, candidates) of the far keys with the largest estimated scores; others out of range."""
    selection, p = layout.selection, layout.keys
    if layout.causal:  # no key after the last query
        p = min(p, layout.offset + stop)
    judges = torch.linspace(0, blocks.shape[-2] - 1, min(blocks.shape[-2], _JUDGES)).round().long()
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
    return top.indices.masked_fill(missing, layout.keys)


def _counts_bits(x: Tensor) -> bool:
    """Whether a compiled loop can do it."""
    return x.is_cpu and not torch.compiler.is_compiling()


def _selected_by_words(
    queries: Coded,
    judges: int,
    keys: Coded,
    codes: KeyCodes,
    layout: _Layout,
    start: int,
    stop: int,
    bias: Tensor | None,
) -> Tensor:
    """Return the shared candidates of all blocks, by counting bits in a compiled loop, a head at a time."""
    words, own = (part.words().numpy().view(np.uint64) for part in (keys, queries))
    norms, offsets = keys.norms.float().numpy(), (keys.offsets if bias is None else keys.offsets + bias.detach())
    blocks, p, most = len(range(start, stop, layout.selection.block)), layout.keys, max(layout.selection.candidates)
    starts = layout.offset + torch.arange(start, stop, layout.selection.block)
    seen = (starts + layout.selection.block).clamp(max=p) if layout.causal else torch.full_like(starts, p)
    low = starts - layout.reach[0] if layout.reach[0] >= 0 else torch.full_like(starts, p)
    high = starts + layout.selection.block - 1 + layout.reach[1]
    ranges = torch.stack([low, high, seen], dim=-1).numpy()
    places = torch.full((*queries.norms.shape[:2], blocks, most), p)
    lengths, cosines = queries.norms.float().numpy(), codes.cosines().numpy()
    numbers, first, limits = places.numpy(), layout.is_first.numpy(), offsets.float().numpy()

    def one(b: int, h: int) -> None:
        select_for_blocks(
            own[b, h].reshape(blocks, judges, -1), lengths[b, h].reshape(blocks, judges), cosines, words[b, h],
            norms[b, h], limits[b, h], ranges, first[b], layout.selection.candidates[h], numbers[b, h],
        )  # fmt: skip

    heads = [h for h, count in enumerate(layout.selection.candidates) if count]
    run_all([partial(one, b, h) for b in range(len(places)) for h in heads])
    return places


def _gathered(y: Tensor, v: Tensor, bias: Tensor | None, places: Tensor, there: Tensor) -> Gathered:
    """Keys, values and biases in these places."""
    at = places.clamp(0, y.shape[-2] - 1)
    own = None if bias is None else bias.gather(-1, at.flatten(2)).unflatten(-1, at.shape[2:])
    return Gathered(places, there, rows_at(y, at), rows_at(v, at), own)


def _scores(blocks: Tensor, gathered: Gathered) -> Tensor:
    """Exact scores (batch, heads, blocks, block, width) of the gathered keys."""
    scores = blocks @ gathered.y.mT
    if gathered.bias is not None:
        scores = scores + gathered.bias[..., None, :]
    return scores.masked_fill(~gathered.there[..., None, :], -torch.inf)


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
