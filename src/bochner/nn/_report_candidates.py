"""Ways to convert a whole model at one cost: window, kept keys, codes, features; from one recorded pass per batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from .._progress import progress
from ..catalogue import mechanism
from ..projections import Orthogonal
from ._attention import linear_attention
from ._bounded_calibration import bounded_of
from ._bounded_module import BoundedHead, BoundedPlan
from ._calibration import features_of
from ._coded_calibration import choose, groups, is_causal, layer_ways
from ._coded_plan import CodedPlan
from ._conversion import built
from ._families import family_of
from ._head_spec import LayerPlan, near
from ._multihead import RandomFeatureAttention
from ._recording import Recorded

WINDOW, KEPT, CODES, FEATURES = "window", "kept keys", "codes", "features"
_NEAR = 4  # exact keys beside features are this part of the cost


@dataclass(frozen=True)
class ModelPlans:
    """One way to convert all attention of a model."""

    kind: str  # "window", "kept keys", "codes" or "features"
    cost: int  # exact keys and rows of features per query that were aimed at
    plans: dict[str, Any]  # a plan for each attention that can be converted in this way

    @property
    def measured(self) -> dict[str, Any]:
        """Plans by which whole sequences are computed as decoding computes them."""
        return {
            name: replace(plan, exact_below=0) if isinstance(plan, CodedPlan) else plan
            for name, plan in self.plans.items()
        }


def candidates(
    model: nn.Module,
    calls: Mapping[str, Sequence[Recorded]],
    costs: Sequence[int],
    anchors: int,
    generator: torch.Generator | None,
    verbose: bool,
) -> list[ModelPlans]:
    """Candidates of every kind at every cost, with constants from recorded calls."""
    own = {name: of for name, of in calls.items() if of[0].places is not None}
    known = {name: of for name, of in own.items() if family_of(model.get_submodule(name)) is not None}
    causal = {name: of for name, of in known.items() if is_causal(of[0])}
    found = [ModelPlans(WINDOW, cost, {n: _window(of[0], cost, anchors) for n, of in known.items()}) for cost in costs]
    held = {cost: bounded_of(causal, cost, anchors) for cost in costs}
    found += [ModelPlans(KEPT, cost, dict(plans)) for cost, plans in held.items()]
    spec = mechanism("dense", n_projections=max(min(costs) // 2, 8))
    ways = {
        name: layer_ways(of, max(costs), anchors, 64, Orthogonal(), spec, generator)
        for name, of in progress(known.items(), label="codes", shown=verbose, total=len(known))
    }
    found += [ModelPlans(CODES, cost, dict(choose(ways, cost, anchors, bits=64))) for cost in costs if ways]
    found += [ModelPlans(FEATURES, cost, dict(_features(calls, cost, anchors))) for cost in costs]
    return [candidate for candidate in found if candidate.plans]


def _window(call: Recorded, cost: int, anchors: int) -> BoundedPlan:
    """A window of a mean number of keys."""
    window = cost - anchors - BoundedPlan.block // 2 if is_causal(call) else (cost - anchors + 1) // 2
    return BoundedPlan([BoundedHead(max(window, 1))] * call.q.shape[1], anchors=anchors)


def _features(calls: Mapping[str, Sequence[Recorded]], cost: int, anchors: int) -> dict[str, LayerPlan]:
    """Calibrated features beside a short window."""
    found = {}
    for name, of in calls.items():
        length = min(call.k.shape[-2] for call in of)
        keys = cost // _NEAR if of[0].places is not None and cost < length else 0
        window = keys if is_causal(of[0]) else (keys + 1) // 2
        exact = (window, anchors) if window else (0, 0)
        found[name] = features_of(name, of, mechanism("dense", n_projections=cost - keys - exact[1]), *exact)
    return found


def converted(model: nn.Module, name: str, plan: Any, generator: torch.Generator | None) -> nn.Module:
    """The module that computes an attention by a plan."""
    return built(model.get_submodule(name), plan, near(plan), generator)


@torch.no_grad()
def output(computed_by: Any, call: Recorded) -> Tensor:
    """What a converted attention makes of a recorded call."""
    assert call.v is not None
    mask = call.key_mask if call.bias is None else call.bias
    if isinstance(computed_by, RandomFeatureAttention):
        there = mask if mask is None or mask.ndim == 3 else mask[:, None]
        options: dict[str, Any] = {"window": computed_by.window, "anchors": computed_by.anchors, "causal": call.causal}
        options |= {"features": computed_by.features.current, "key_mask": there, "prefix_lengths": call.prefixes}
        out: Tensor = linear_attention(call.q, call.k, call.v, scale=call.scale, **options)
        return out
    k, v = shared(call)
    found: Tensor = computed_by(
        call.q, k, v, causal=call.causal, prefixes=call.prefixes, key_mask=mask, scale=float(call.scale)
    )
    return found


def shared(call: Recorded) -> tuple[Tensor, Tensor]:
    """Keys and values of the heads of keys, of which each may serve several heads of queries."""
    assert call.v is not None
    group = groups(call)
    return call.k[:, ::group], call.v[:, ::group]


def sensitivity(computed_by: Any, calls: Iterable[Recorded]) -> float:
    """Squared change of the model's output to first order, when this attention is converted, summed over calls."""
    total = 0.0
    for call in calls:
        assert call.v is not None
        change = output(computed_by, call) - call.weights() @ call.v
        if call.pull is not None:
            change = (change * call.pull).sum(dim=-1)
        total += float(change.double().square().sum())
    return total
