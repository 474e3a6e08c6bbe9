"""What the fused operator computes, by a walk over plain operations: for second derivatives."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..approximation.log_features import NOTHING, LogFeatures
from ._fused_call import Call
from ._tensor_features import LOG2E, Binary, TensorFeatures
from ._walk import Everything, Prefixes, Walk


class _Plain(TensorFeatures):
    """The features of a call by plain operations, without the squared norms of queries."""

    positive = True

    def __init__(self, call: Call) -> None:
        self.queries, self.keys = Binary.of(*call.tensors[4:7]), Binary.of(*call.tensors[7:])
        self.c, self.d, self.width = call.c, call.q.shape[-1], call.m
        self.lead = tuple(self.queries.slope.shape[:-2])

    def log(self, X: Tensor, *, key: bool) -> LogFeatures:
        side = self.keys if key else self.queries
        offsets = side.offsets(X)
        logs = offsets @ side.slope + side.constant
        if key:
            logs = logs + self.c * side.turned(offsets).square().sum(dim=-1, keepdim=True)
        return LogFeatures(None, logs / LOG2E)


def by_plain_operations(call: Call) -> tuple[Tensor, Tensor]:
    """The output of a call and the logarithms of its denominators."""
    n, p = call.q.shape[-2], call.k.shape[-2]
    lengths: Any = [max(i // call.group + 1 - call.lag, 0) for i in range(n)] if call.causal else Everything(p, n)
    bias = torch.zeros(p, dtype=call.k.dtype, device=call.k.device) if call.bias is None else call.bias / LOG2E
    counts = torch.nn.functional.pad((bias > -torch.inf).cumsum(dim=-1), (1, 0))
    seen = counts[..., torch.tensor(list(lengths), dtype=torch.int64, device=counts.device)] > 0
    walk = Walk(_Plain(call), call.q, call.k, call.v, bias, Prefixes(lengths), seen, 1.0)
    part = walk.run(None, call.rows)[0]
    den = torch.where(seen[..., None], part.sums[..., -1:], 1.0)
    log = (part.scale + den.log()) * LOG2E
    return part.sums[..., :-1] / den, torch.where(seen[..., None], log, 2 * NOTHING)
