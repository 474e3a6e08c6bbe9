"""Coded attention of whole sequences by a compiled loop: each query scans codes and reads the keys that it uses."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import Tensor

from ..linalg.loops import attend_coded
from ._coded_layout import BlockLayout, KeySelection
from ._key_codes import KeyCodes
from ._threads import run_all


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
    phases, cosines = layout.phases(codes, 0, n).numpy(), codes.cosines().numpy()
    draws = selection.sampled or (0,) * heads
    numbers = list(zip(selection.candidates, selection.kept, draws, strict=True))
    span, first = (layout.offset, causal, layout.reach[0] >= 0), layout.first.numpy()
    out = torch.empty(batch, heads, n, v.shape[-1], dtype=x.dtype)
    rows, results = [z.numpy() for z in (x, y, v)], out.numpy()

    def one(b: int, h: int) -> None:
        attend_coded(
            *(z[b, h] for z in rows), there[b], span, cosines, (own[b, h], lengths[b, h]),
            (words[b, h], norms[b, h], offsets[b, h]), (selection.window, first[b]), numbers[h], phases[b, h],
            results[b, h],
        )  # fmt: skip

    run_all([partial(one, b, h) for b in range(batch) for h in range(heads)])
    return out
