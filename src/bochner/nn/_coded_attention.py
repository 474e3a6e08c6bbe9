r"""Attention to the keys that matter: random codes find them, and their weights are exact.

For a block of queries the keys are of four kinds: those *near* the block, the first ones (*anchors*), those that codes
*select* among all others, and the remainder.  The first three are gathered and meet the queries in one softmax with exact
scores; of the remainder nothing is read but sums of random features, and those only in heads that have features.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from .._validation import check_count, check_flag, check_instance, check_positive, shown
from ._attention_checks import borders_of, check_scale, check_tensors, slices_of
from ._attention_features import grouped
from ._chunks import is_symbol, padded
from ._coded_blocks import attend_blocks, attend_compiled, is_compiled
from ._coded_layout import STEP_BYTES, BlockLayout, KeySelection
from ._coded_remainder import Remainder, attend_with_draws
from ._key_codes import KeyCodes
from ._score_rule import AS_THEY_ARE, ScoreRule, checked_rule

OWNER = "coded_attention"


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
    sampled: int | Sequence[int] = 0,
    block: int = 1,
    causal: bool = False,
    key_mask: Tensor | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    cu_seqlens: Tensor | tuple[Tensor, Tensor] | None = None,
    remainder: Remainder | None = None,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    sinks: Tensor | None = None,
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
    sampled : int or sequence of int
        Draws from the keys that are left out then, in all heads or in each.  A key that is drawn is weighted by one
        over its probability, so that the sums of softmax attention are estimated without bias; where attention is
        broad, as in encoders, a few draws are worth many more kept keys.
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
    position_bias : Tensor that broadcasts to (batch, heads, Lq, Lk), optional
        What is added to the scores of each pair, as T5 does; minus infinity hides a key from a query.  ALiBi needs less:
        its bias of pairs is one of keys, ``key_mask = slopes[:, None] * torch.arange(Lk)``, up to a number for each query.
    softcap : float, optional
        Scores s become ``softcap * tanh(s / softcap)`` before biases are added, as in Gemma 2.
    sinks : Tensor (heads,), optional
        Logits of a key without a value, as in GPT-OSS: they take weight from the others.

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
    Codes cost as many bits per key, and two numbers, in place of d numbers.  Their estimates serve to choose and to draw
    keys only; gradients flow through the weights and values of the keys that were chosen or drawn.  Key j is drawn with
    probability :math:`c_j \propto e^{\hat s_j/2}` from its estimated score, by systematic sampling, and counts
    :math:`1/(sc_j)` times for s draws.

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
    selection = checked_selection(OWNER, q.shape[1], window, anchors, candidates, kept, sampled, block)
    if isinstance(key_mask, Tensor) and key_mask.ndim == 2:
        key_mask = key_mask[:, None]
    if enable_gqa:
        k, v, key_mask = (grouped(q, x, name) for x, name in ((k, "k"), (v, "v"), (key_mask, "key_mask")))
    bias = check_tensors(q, k, v, key_mask)
    q, k, v = (
        x.expand(max(len(q), len(k)), -1, -1, -1) for x in (q, k, v)
    )  # one batch of keys may serve many of queries
    if causal and cu_seqlens is None and q.shape[-2] > k.shape[-2]:
        raise ValueError(
            f"{OWNER}: causal attention needs at least as many keys as queries, got {k.shape[-2]} and {q.shape[-2]}."
        )
    scale = q.shape[-1] ** -0.5 if scale is None else check_positive(OWNER, "scale", scale)
    check_scale(OWNER, scale)
    if not isinstance(codes, KeyCodes):
        codes = KeyCodes.fitted(q, k, check_count(OWNER, "codes", codes), scale=scale)
    if (codes.heads, codes.d) != (q.shape[1], q.shape[-1]):
        raise ValueError(
            f"{OWNER}: codes are of {codes.heads} heads of width {codes.d}, and q has {q.shape[1]} of width {q.shape[-1]}."
        )
    if remainder is not None:
        check_instance(OWNER, "remainder", remainder, Remainder, "Remainder(features, heads, gates)")
    rule = checked_rule(OWNER, q, k, position_bias, softcap, sinks)
    if not rule.plain and (remainder is not None or block > 1 or cu_seqlens is not None):
        raise ValueError(
            f"{OWNER}: position_bias, softcap and sinks are computed with block=1, without remainder and cu_seqlens; a "
            f"position_bias of minus infinity keeps packed sequences apart."
        )
    dtype = torch.promote_types(torch.promote_types(q.dtype, k.dtype), v.dtype)
    plain = not torch.is_autocast_enabled(q.device.type)
    with contextlib.nullcontext() if plain else torch.autocast(q.device.type, enabled=False):
        q, k, v = (x.to(torch.float64 if dtype == torch.float64 else torch.float32) for x in (q, k, v))
        root = math.sqrt(scale)
        bias = None if bias is None else bias.to(q).expand(len(k), k.shape[1], k.shape[2])
        if cu_seqlens is None:
            out = attend(q * root, k * root, v, bias, codes, selection, causal, remainder, rule)
        else:
            parts = []
            for queries, keys in slices_of(borders_of(q, k, cu_seqlens, alike=causal)):
                rows = (q[..., queries, :] * root, k[..., keys, :] * root, v[..., keys, :])
                parts.append(
                    attend(*rows, None if bias is None else bias[..., keys], codes, selection, causal, remainder)
                )
            out = torch.cat(parts, dim=-2)
    return out.to(dtype)


def checked_selection(
    owner: str, heads: int, window: Any, anchors: Any, candidates: Any, kept: Any, sampled: Any, block: Any
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
    drawn = _per_head(owner, "sampled", sampled, heads)
    return KeySelection(
        **counts, candidates=proposed, kept=most, block=check_count(owner, "block", block), sampled=drawn
    )


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
    rule: ScoreRule = AS_THEY_ARE,
) -> Tensor:
    """Attention of checked queries and keys (batch, heads, length, d), both times the root of the scale."""
    n, p = x.shape[-2], y.shape[-2]
    if not n or not p:
        return x.new_zeros(*x.shape[:-1], v.shape[-1])
    if selection.block == 1:
        if rule.plain and remainder is None and is_compiled(x, y, v, bias):
            return attend_compiled(x, y, v, bias, codes, selection, causal)
        return _attend_each(x, y, v, bias, codes, selection, causal, remainder, rule)
    if is_symbol(n) or is_symbol(p):
        raise ValueError(f"{OWNER}: a graph for any length is exported with block=1, got block={selection.block}.")
    drawn = selection.sampled or (0,) * len(selection.candidates)
    pairs = list(zip(selection.candidates, drawn, strict=True))
    if remainder is not None or len(set(pairs)) == 1:
        return attend_blocks(x, y, v, bias, codes, selection, causal, remainder)
    out = x.new_empty(*x.shape[:-1], v.shape[-1])  # heads with as many candidates together, which are gathered alike
    for pair in sorted(set(pairs)):
        own = [h for h, found in enumerate(pairs) if found == pair]
        numbers = [tuple(part[h] for h in own) for part in (selection.candidates, selection.kept, drawn)]
        chosen = selection._replace(candidates=numbers[0], kept=numbers[1], sampled=numbers[2])
        own_bias = None if bias is None else bias[:, own]
        part = attend_blocks(x[:, own], y[:, own], v[:, own], own_bias, codes.of_heads(own), chosen, causal, None)
        out = out.index_copy(1, torch.tensor(own, device=x.device), part)
    return out


def _attend_each(
    x: Tensor,
    y: Tensor,
    v: Tensor,
    bias: Tensor | None,
    codes: KeyCodes,
    selection: KeySelection,
    causal: bool,
    remainder: Remainder | None,
    rule: ScoreRule,
) -> Tensor:
    """Attention in which each query has its own candidates: all scores are formed, and those of other keys masked.

    It defines what a compiled loop and attention in blocks compute faster, and has gradients.
    """
    layout, found = BlockLayout.of(x, y.shape[-2], bias, selection, causal), codes.keys(y.detach())
    n, room = x.shape[-2], (4 if selection.draws else 2) * x.shape[0] * x.shape[1] * y.shape[-2] * x.element_size()
    # a graph for any length has all queries in one step: a loop would ask for their number
    steps = [(0, n)] if is_symbol(n) else list(_steps(n, max(STEP_BYTES // room, 1)))
    out = []
    for start, stop in steps:
        rows = x if len(steps) == 1 else x[..., start:stop, :]
        scores = rule.changed(rows @ y.mT, slice(start, stop))
        if bias is not None:
            scores = scores + bias[:, :, None]
        if causal:
            later = torch.arange(y.shape[-2], device=x.device) > layout.positions(start, stop)
            scores = scores.masked_fill(later, -torch.inf)
        coded = rule.changed(codes.scores(codes.queries(rows.detach()), found), slice(start, stop)).detach()
        if bias is not None:
            coded = coded + bias[:, :, None].detach()
        used = used_keys(scores.detach(), coded, ~layout.far(start, stop, y.shape[-2]), selection)
        if selection.draws:
            phases = layout.phases(codes, start, stop)
            exact = attend_with_draws(scores, used, coded, selection.sampled, phases, rule.weights) @ v
        else:
            exact = rule.weights(scores.masked_fill(~used, -torch.inf)) @ v
        if remainder is not None:
            exact = remainder.mixed(exact, scores, rows, y, v, bias, (scores.detach() > -torch.inf) & ~used)
        out.append(exact)
    return torch.cat(out, dim=-2)


def _steps(n: int, size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + size, n)) for start in range(0, n, size))


def used_keys(scores: Tensor, coded: Tensor, near: Tensor, selection: KeySelection) -> Tensor:
    """Which keys each query uses, (batch, heads, n, p) of bool, from exact scores, those of codes, and what is near."""
    seen = scores > -torch.inf
    used = near & seen
    if not max(selection.candidates):
        return used
    far, count, p = seen & ~used, max(selection.candidates), scores.shape[-1]
    if is_symbol(p):  # places behind the last key, so that a graph need not ask whether there are as many keys
        used, far = (padded(x, (0, count), False) for x in (used, far))
        scores, coded = (padded(x, (0, count), -torch.inf) for x in (scores, coded))
    else:
        count = min(count, p)
    order = coded.masked_fill(~far, -torch.inf).topk(count, dim=-1).indices
    best = scores.masked_fill(~far, -torch.inf).gather(-1, order)
    best = best.masked_fill(_from_rank(selection.candidates, best), -torch.inf)
    top = best.topk(min(max(selection.kept), count), dim=-1)
    chosen = (top.values > -torch.inf) & ~_from_rank(selection.kept, top.values)
    places = order.gather(-1, top.indices)
    return used.scatter(-1, places, used.gather(-1, places) | chosen)[..., :p]


def _from_rank(counts: tuple[int, ...], ranked: Tensor) -> Tensor:
    """Which members of a ranking (batch, heads, n, ranks) come after as many as its head takes."""
    most = torch.tensor(counts, device=ranked.device)
    return torch.arange(ranked.shape[-1], device=ranked.device) >= most[:, None, None]
