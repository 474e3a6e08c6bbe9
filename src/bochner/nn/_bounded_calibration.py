"""Plans of a state of fixed size for each head of a model, of the least predicted loss for a mean number of keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from .._progress import progress
from ._bounded_attention import BoundedState
from ._bounded_module import BoundedHead, BoundedPlan
from ._coded_calibration import LayerWays, Way, check_reachable, groups, is_causal, least_error
from ._coded_module import as_bias
from ._recording import Recorded, record

SIZES = (24, 48, 80, 128, 192, 320, 512, 768, 1024, 1536, 2048)  # numbers of keys of a head that are tried
_WINDOW = 0.25
"""Part of them that is the window; the rest are kept for their weight.

On validation text of 1024 tokens the predicted loss of SmolLM2 with 128 keys is about the same with a half, and larger with
a tenth or all of them."""


def bounded_plans(
    owner: str,
    model: nn.Module,
    batches: Sequence[Any],
    wanted: Callable[[str], bool],
    *,
    state: float,
    anchors: int,
    verbose: bool,
) -> dict[str, BoundedPlan]:
    """Plans whose heads hold a mean number of keys, more of them where the model's output depends on it.

    Parameters
    ----------
    owner : str
        Who asks, for messages.
    model, batches, verbose
        As in `calibrate`.
    wanted : callable
        Whether the attention of that name is converted.
    state : float
        Mean number of keys that a head holds, with window, anchors and the current block.
    anchors : int
        First keys that are always held.
    """
    calls: dict[str, list[Recorded]] = {}
    for batch in progress(batches, label="batches", shown=verbose):
        for call in record(model, batch, owner, pulls=True):
            if wanted(call.name) and call.places is not None and is_causal(call):
                calls.setdefault(call.name, []).append(call)
    return bounded_of(calls, state, anchors, owner=owner, verbose=verbose)


def bounded_of(
    calls: Mapping[str, Sequence[Recorded]],
    state: float,
    anchors: int,
    *,
    owner: str | None = None,
    verbose: bool = False,
) -> dict[str, BoundedPlan]:
    """Plans from recorded calls of causal attention, by its name; an owner refuses a state that is too small."""
    if not calls:
        return {}
    layers = {
        name: _ways(own, state, anchors)
        for name, own in progress(calls.items(), label="layers", shown=verbose, total=len(calls))
    }
    if owner is not None:
        check_reachable(owner, "state", state, layers)
    sizes = {name: groups(own[0]) for name, own in calls.items()}
    return {
        name: BoundedPlan([way.head for way in ways for _ in range(sizes[name])], anchors=anchors, block=_block(state))
        for name, (_, ways) in least_error(layers, state).items()
    }


def _block(state: float) -> int:
    """Tokens after which keys are dropped, which are a part of the state."""
    return max(min(BoundedPlan.block, int(state) // 4), 1)


def _ways(calls: Sequence[Recorded], state: float, anchors: int) -> LayerWays:
    """The error of each head of keys with each size."""
    group, length = groups(calls[0]), max(call.k.shape[-2] for call in calls)
    ways: list[list[Way]] = [[] for _ in range(calls[0].k.shape[1] // group)]
    block, means = _block(state), BoundedPlan.means
    everything = BoundedHead(max((length - 1) // block * block - anchors, 1))  # of sequences as long as these
    most = BoundedPlan([everything], anchors, block).size
    for size in sorted({n for n in (*SIZES, int(state)) if n < most}):
        window = max(int(_WINDOW * size), 1)
        head = BoundedHead(window, max(size - window - anchors - block - means, 0))
        plan = BoundedPlan([head], anchors, block)
        errors = sum(_errors(call, plan, group) for call in calls)
        assert isinstance(errors, Tensor)
        for own, error in zip(ways, errors.tolist(), strict=True):
            own.append(Way(plan.size, error, head))
    for own in ways:
        own.append(Way(most, 0.0, everything))
    return LayerWays(len(ways), {0: ways})


def _errors(call: Recorded, plan: BoundedPlan, group: int) -> Tensor:
    """Squared change of the model's output, by head of keys."""
    assert call.v is not None
    root = torch.as_tensor(call.scale).sqrt().to(call.q)
    bias = None if call.key_mask is None else as_bias(call.key_mask[:, None], call.k).expand(*call.k.shape[:3])
    if call.bias is not None:
        bias = call.bias.to(call.k) + (0 if bias is None else bias)
        bias = bias.expand(*call.k.shape[:3])
    y, v = (call.k * root)[:, ::group], call.v[:, ::group]
    heads = replace(plan, heads=[*plan.heads] * call.q.shape[1])
    found = BoundedState().attend(call.q * root, y, v, None if bias is None else bias[:, ::group], heads)
    change = found - call.weights() @ call.v
    if call.pull is not None:
        change = (change * call.pull).sum(dim=-1, keepdim=True)
    if call.key_mask is not None:
        change = change * call.key_mask[:, None, :, None]
    return change.double().square().sum(dim=(0, 2, 3)).view(-1, group).sum(-1)
