"""What the fused operator computes, by plain operations: for second derivatives."""

from __future__ import annotations

import torch
from torch import Tensor

from ..approximation.log_features import NOTHING, LogFeatures
from ._attention_plain import causal, everything, with_ones
from ._fused_call import Call
from ._tensor_features import LOG2E, Binary, TensorFeatures


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
    features, bias = _Plain(call), call.bias
    queries, keys = features.log(call.q, key=False), features.log(call.k, key=True)
    if bias is not None:
        keys = keys._replace(log=keys.log + bias[..., None] / LOG2E)
    values = with_ones(call.v)
    if call.causal:
        part, _ = causal(queries, keys, values, lag=call.lag, group=call.group)
    else:
        part, _ = everything(queries, keys, values, None)
    seen = part.scale > NOTHING / 2
    den = torch.where(seen, part.sums[..., -1:], 1.0)
    log = (part.scale + den.log()) * LOG2E
    return part.sums[..., :-1] / den, torch.where(seen, log, 2 * NOTHING)
