r"""Plans of coded attention for each head of a model, of the least predicted loss for a given cost.

Every head of every layer is tried with several numbers of kept keys, beside several windows, on some queries of recorded
batches; the change :math:`\delta` of its output is weighed by the gradient g of the model's output, which makes
:math:`(g\cdot\delta)^2` of different heads and layers comparable.  One price per key then decides all heads at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from .._progress import progress
from ..approximation import Approximation
from ..catalogue import mechanism
from ..maps import Frame
from ..projections import Orthogonal, Projection
from ._calibration_moments import HeadMoments
from ._coded_attention import used_keys
from ._coded_layout import KeySelection
from ._coded_plan import CodedHead, CodedPlan
from ._coded_remainder import attend_with_draws, log_kernel, phases_at
from ._drawn import DrawnFeatures
from ._key_codes import KeyCodes
from ._model_change import Loss, ModelChange
from ._recording import Recorded, record
from ._score_rule import softmax

WINDOWS = (4, 8, 16, 32, 64)  # Windows that are tried: powers of two, at most .8 of the cost
KEPT = (0, 4, 8, 16, 32, 64, 128, 256)  # numbers of kept keys that are tried
SAMPLED = (16, 32, 64, 128)  # numbers of draws that are tried
COSTS = (24, 32, 48, 64, 96, 128, 192, 256, 384, 512)  # costs among which a tolerance chooses
_WITH_FEATURES = (0, 16, 64)
"""Numbers of kept keys with which features of the remainder are tried, beside the window in the middle."""
_QUERIES = 64  # queries of a sequence on which a head is tried, equally spaced
_CANDIDATES = 3  # candidates per kept key
_COHERENT = {False: 2.0, True: 64.0}
"""How much more errors that all queries share count than those of draws, in causal and in two-sided attention.

Errors of draws have mean zero, other ones in each query; those of keys left out, and of features, point the same way in many
queries, heads and layers, and add up.  Errors of heads are measured one by one, which does not show this.  On MiniLM (eight
validation passages, one draw) 1 - cos to the exact embedding, in units of 1e-4:

    factor         1         2         4         16        64
    cost 64     42 +- 2   31 +- 3   34 +- 3   39 +- 7   39 +- 7
    cost 192   7.7 +- 2  2.4 +- .3 1.8 +- .1 1.8 +- .1

so that anything from 2 at the small cost, and from 4 at the large one, is as good.  The causal factor is from one trial:
SmolLM2 loses 2.7 % with 64 kept keys, 2.3 or 3.9 % where some of them are draws."""
_WORTH = 0.9  # features of the remainder must bring the error of a head below this part of that without them


def coded_plans(
    owner: str,
    model: nn.Module,
    batches: Sequence[Any],
    wanted: Callable[[str], bool],
    *,
    cost: float | None,
    tolerance: float | None,
    anchors: int,
    bits: int,
    rows: int,
    loss: Loss | None,
    generator: torch.Generator | None,
    verbose: bool,
) -> dict[str, CodedPlan]:
    """Plans of a mean cost, or of the least cost whose change of the loss is within a tolerance.

    Parameters
    ----------
    owner : str
        Who asks, for messages.
    model, batches, loss, generator, verbose
        As in `calibrate`.
    wanted : callable
        Whether the attention of that name is converted.
    cost : float or None
        Mean number of exact keys and rows of features per query and head.
    tolerance : float or None
        Relative change of the loss, if there is no cost.
    anchors, bits : int
        As in `CodedPlan`.
    rows : int
        Rows of the features of the remainder that are tried; 0 for none.
    """
    calls: dict[str, list[Recorded]] = {}
    for batch in progress(batches, label="batches", shown=verbose):
        for call in record(model, batch, owner, pulls=True):
            if wanted(call.name) and call.places is not None:
                calls.setdefault(call.name, []).append(call)
    if not calls:
        return {}
    length = max(call.k.shape[-2] for own in calls.values() for call in own)
    spec = mechanism("dense", n_projections=rows) if rows else None
    layers = {}
    for name in progress(list(calls), label="layers", shown=verbose):
        layers[name] = layer_ways(calls.pop(name), cost or length, anchors, bits, Orthogonal(), spec, generator)
    if cost is not None:
        check_reachable(owner, "cost", cost, layers)
        return choose(layers, cost, anchors, bits=bits)
    assert tolerance is not None
    change = ModelChange(owner, model, batches, loss)
    low, high = 0, len(COSTS)
    best: dict[str, CodedPlan] = {}
    while low < high:  # the least cost of the ladder that keeps to the tolerance
        middle = (low + high) // 2
        plans = choose(layers, COSTS[middle], anchors, bits=bits)
        measured = {name: replace(plan, exact_below=0) for name, plan in plans.items()}
        if COSTS[middle] < length and change.of(measured, generator) > tolerance:
            low = middle + 1
        else:
            best, high = plans, middle
    if not best:
        raise ValueError(
            f"{owner}: no cost up to {COSTS[-1]} keeps the loss within tolerance={tolerance:g} on these batches; pass a "
            f"larger tolerance, a cost, or in keep= the layers that attention_report names."
        )
    return best


class Way(NamedTuple):
    """One way to compute a head, and the error that it makes."""

    cost: float  # exact keys and rows of features per query
    error: float  # sum of squared changes of the model's output on the queries that were tried
    head: Any


class LayerWays(NamedTuple):
    """The ways of all heads of a layer, by window: a list for each head."""

    heads: int
    by_window: dict[int, list[list[Way]]]


def layer_ways(
    calls: Sequence[Recorded],
    cost: float,
    anchors: int,
    bits: int,
    projection: Projection,
    features: Approximation | None,
    generator: torch.Generator | None,
) -> LayerWays:
    """Try the heads of one layer.

    Parameters
    ----------
    calls : sequence of Recorded
        Its calls on all batches, with values and gradients.
    cost : float
        Exact keys and rows per query that are aimed at; ways far above it are not tried.
    anchors, bits, projection
        As in `CodedPlan`.
    features : Approximation or None
        Unplanned specification of the features of the remainder; None where they are not tried.
    generator : torch.Generator or None
        Source of the draws.
    """
    sided = calls[0].places is not None and not is_causal(calls[0])
    length = max(call.k.shape[-2] for call in calls)
    fits = [w for w in WINDOWS if (2 * w - 1 if sided else w) + anchors <= 0.8 * cost and w < length] or [WINDOWS[0]]
    moments = [HeadMoments.of(call, fits[len(fits) // 2], anchors) for call in calls]
    frames = _frames(sum(moments[1:], start=moments[0]), groups(calls[0]))
    codes = KeyCodes(frames, bits, projection, dtype=torch.float32, generator=generator).to(calls[0].q.device)
    trials = [_Trial.of(call, codes) for call in calls]
    found: dict[int, list[list[Way]]] = {}
    for window in fits:
        base = (2 * window - 1 if sided else window) + anchors
        ways: list[list[Way]] = [[] for _ in frames]
        for kept in [n for n in KEPT if n <= max(3 * (cost - base), KEPT[1]) and base + n <= length] or [0]:
            splits = [trial.split(window, anchors, kept) for trial in trials]
            errors = sum(trial.error(outs) for trial, (outs, _) in zip(trials, splits, strict=True))
            assert isinstance(errors, Tensor)
            for h, frame in enumerate(frames):
                head = CodedHead(frame, kept, _CANDIDATES * kept)
                ways[h].append(Way(base + kept, _COHERENT[sided] * float(errors[h]), head))
            plain = [own[-1] for own in ways]
            for count in [n for n in SAMPLED if kept + n <= max(3 * (cost - base), SAMPLED[0])]:
                drawn = sum(
                    trial.error(trial.drawn(used, count)) for trial, (_, used) in zip(trials, splits, strict=True)
                )
                assert isinstance(drawn, Tensor)
                for h, way in enumerate(plain):
                    head = replace(way.head, sampled=count)
                    ways[h].append(Way(way.cost + count, float(drawn[h]), head))
            if features is not None and kept in _WITH_FEATURES and window == fits[len(fits) // 2]:
                _try_features(ways, plain, trials, splits, features, _COHERENT[sided], generator)
        found[window] = ways
    return LayerWays(len(frames), found)


def choose(layers: Mapping[str, LayerWays], cost: float, anchors: int, **plan: Any) -> dict[str, CodedPlan]:
    """The plans of least total error whose mean cost over all heads is at most ``cost``."""
    return {
        name: CodedPlan([way.head for way in ways], window=window, anchors=anchors, **plan)
        for name, (window, ways) in least_error(layers, cost).items()
    }


_Chosen = dict[str, tuple[int, list[Way]]]


def least_error(layers: Mapping[str, LayerWays], cost: float) -> _Chosen:
    """The window and the ways of all heads of each layer with the least total error, of at most this mean cost."""
    for name, layer in layers.items():
        if not all(math.isfinite(way.error) for way in _all_ways({name: layer})):
            raise ValueError(
                f"calibrate: {name or 'the model'} has no finite attention weights on these batches; check that queries "
                f"and keys are finite."
            )
    low, high = 0.0, max((way.error for way in _all_ways(layers)), default=1.0) + 1.0
    best = _at_price(layers, high)
    for _ in range(60):  # the price of a key, by bisection: its range spans many powers of ten
        price = (low * high) ** 0.5 if low else high / 1e4
        tried = _at_price(layers, price)
        if _mean_cost(tried) <= cost:
            best, high = tried, price
        else:
            low = price
        if low and high / low < 1.001:
            break
        if not low and price < 1e-30:
            break
    return best if _mean_cost(best) <= cost else _at_price(layers, 1e9 * high)


def check_reachable(owner: str, name: str, asked: float, layers: Mapping[str, LayerWays]) -> None:
    """Refuse a mean cost below that of the cheapest ways."""
    least = [
        min(sum(min(way.cost for way in ways) for ways in heads) for heads in layer.by_window.values())
        for layer in layers.values()
    ]
    mean = sum(least) / sum(layer.heads for layer in layers.values())
    if asked < mean:
        raise ValueError(
            f"{owner}: {name} must be at least {mean:g}, the keys of the shortest window and its anchors, got {asked:g}."
        )


def _at_price(layers: Mapping[str, LayerWays], price: float) -> _Chosen:
    """For each layer the window and the ways of its heads whose error plus price of keys is least."""
    best: _Chosen = {}
    for name, layer in layers.items():
        found = {
            window: [min(ways, key=lambda way: way.error + price * way.cost) for ways in heads]
            for window, heads in layer.by_window.items()
        }
        window = min(found, key=lambda w: sum(way.error + price * way.cost for way in found[w]))
        best[name] = window, found[window]
    return best


def _mean_cost(chosen: _Chosen) -> float:
    costs = [way.cost for _, ways in chosen.values() for way in ways]
    return sum(costs) / len(costs)


def _all_ways(layers: Mapping[str, LayerWays]) -> Iterable[Way]:
    return (way for layer in layers.values() for heads in layer.by_window.values() for ways in heads for way in ways)


def is_causal(call: Recorded) -> bool:
    """Whether queries see earlier keys only."""
    return call.causal or call.prefixes is not None


def groups(call: Recorded) -> int:
    """Neighbouring heads of queries that share a head of keys: those whose keys are equal."""
    k, heads = call.k[:1, :, :64], call.k.shape[1]
    same = [torch.equal(k[:, h], k[:, h - 1]) for h in range(1, heads)]
    size = next((h + 1 for h, equal in enumerate(same) if not equal), heads)
    return size if heads % size == 0 and same == [bool((h + 1) % size) for h in range(heads - 1)] else 1


def _frames(moments: HeadMoments, group: int) -> list[Frame]:
    """The frame of each head; heads that share keys share it, so that they share codes in a cache as well."""
    summed = HeadMoments(*(part.unflatten(0, (-1, group)).sum(1) for part in moments))
    found = []
    for h, parts in enumerate(summed.heads()):
        usable = float(summed.weight[h]) > 0 and all(np.isfinite(part).all() for part in parts)
        d = len(parts[0])
        frame = Frame.of_moments(*parts) if usable else Frame(np.zeros(d), np.zeros(d), np.eye(d))
        found += [frame] * group
    return found


class _Trial(NamedTuple):
    """Some queries of one call, with all keys: exact scores, and those that codes estimate."""

    call: Recorded
    some: Tensor
    x: Tensor
    y: Tensor
    v: Tensor
    exact: Tensor
    coded: Tensor
    phases: Tensor
    out: Tensor

    @classmethod
    def of(cls, call: Recorded, codes: KeyCodes) -> _Trial:
        n = call.q.shape[-2]
        some = torch.linspace(0, n - 1, min(n, _QUERIES), device=call.q.device).round().long()
        seen = call.visible()
        exact = call.logits(some).float()
        if seen is not None:
            seen = seen if seen.shape[-2] == 1 else seen[..., some, :]
            exact = exact.masked_fill(~seen, -torch.inf)
        root = torch.as_tensor(call.scale).sqrt().to(call.q)
        x, y = call.q[..., some, :] * root, call.k * root
        coded = codes.scores(codes.queries(x.float()), codes.keys(y.float()))
        assert call.v is not None
        phases = phases_at(codes.phases, some[None])
        return cls(call, some, x, y, call.v, exact, coded, phases, softmax(exact) @ call.v)

    def split(self, window: int, anchors: int, kept: int) -> tuple[Tensor, Tensor]:
        """Output of the keys with exact weights, and which keys these are."""
        near = self.call.near(window, anchors)
        seen = self.exact > -torch.inf
        used = torch.zeros_like(seen)
        if near is not None:
            near = near if near.shape[-2] == 1 else near[..., self.some, :]
            used = near.expand_as(seen) & seen
        used = used_keys(self.exact, self.coded, used, KeySelection(window, anchors, (_CANDIDATES * kept,), (kept,)))
        return softmax(self.exact.masked_fill(~used, -torch.inf)) @ self.v, used

    def drawn(self, used: Tensor, count: int) -> Tensor:
        """Output with as many draws from the keys that are not used."""
        counts = (count,) * self.phases.shape[1]
        return attend_with_draws(self.exact, used, self.coded, counts, self.phases, softmax) @ self.v

    def weighed(self, change: Tensor) -> Tensor:
        """Changes of outputs (batch, heads, n, e) as changes of the model's output: (batch, heads, n, 1 or e)."""
        if self.call.pull is None:
            return change
        return (change * self.call.pull[..., self.some, :]).sum(dim=-1, keepdim=True)

    def error(self, outs: Tensor) -> Tensor:
        """Squared change of the model's output, by head."""
        return self.weighed(outs - self.out).double().square().sum(dim=(0, 2, 3))


def _try_features(
    ways: list[list[Way]],
    plain: Sequence[Way],
    trials: Sequence[_Trial],
    splits: Sequence[tuple[Tensor, Tensor]],
    spec: Approximation,
    coherent: float,
    generator: torch.Generator | None,
) -> None:
    """Add the ways that estimate the remainder as well, in heads where that lowers the error."""
    rests = [(trial.exact > -torch.inf) & ~used for trial, (_, used) in zip(trials, splits, strict=True)]
    moments = [_remainder_moments(trial, left) for trial, left in zip(trials, rests, strict=True)]
    total = sum(moments[1:], start=moments[0])
    usable = [h for h in range(len(ways)) if float(total.weight[h]) > 0 and plain[h].error > 0]
    parts = total.heads()
    usable = [h for h in usable if all(np.isfinite(part).all() for part in parts[h])]
    if not usable:
        return
    plans = [replace(spec, map=spec.map.plan_moments(*parts[h])) for h in usable]  # type: ignore[attr-defined]
    d = trials[0].x.shape[-1]
    drawn = DrawnFeatures(tuple(plans), d, len(usable), True, generator=generator).to(trials[0].x.device).current
    above, below, rest = (torch.zeros(len(usable), dtype=torch.float64) for _ in range(3))
    for trial, (outs, _), left in zip(trials, splits, rests, strict=True):
        x, y = (part[:, usable].float() for part in (trial.x, trial.y))
        estimate = log_kernel(drawn.log(x, key=False).log, drawn.log(y, key=True).log)
        scores = torch.where(left[:, usable], estimate, trial.exact[:, usable])
        change = _part(trial, usable, softmax(scores) @ trial.v[:, usable] - outs[:, usable])
        wanted = _part(trial, usable, trial.out[:, usable] - outs[:, usable])
        above += (change * wanted).sum(dim=(0, 2, 3)).cpu()
        below += change.square().sum(dim=(0, 2, 3)).cpu()
        rest += wanted.square().sum(dim=(0, 2, 3)).cpu()
    gates = (above / below.clamp(min=1e-300)).clamp(0.0, 1.0)
    errors = coherent * (rest - 2 * gates * above + gates.square() * below)
    for h, plan, gate, error in zip(usable, plans, gates.tolist(), errors.tolist(), strict=True):
        if gate > 0 and error < _WORTH * plain[h].error:
            head = replace(plain[h].head, features=plan, gate=gate)
            ways[h].append(Way(plain[h].cost + plan.n_projections, error, head))


def _part(trial: _Trial, heads: list[int], change: Tensor) -> Tensor:
    """`_Trial.weighed` for changes of some heads."""
    pull = trial.call.pull
    if pull is None:
        return change.double()
    return (change * pull[:, heads][..., trial.some, :]).sum(dim=-1, keepdim=True).double()


def _remainder_moments(trial: _Trial, left: Tensor) -> HeadMoments:
    """HeadMoments of the pairs that are left out, weighted by exact attention."""
    weights = softmax(trial.exact).masked_fill(~left, 0.0).double()
    return HeadMoments.weighted(weights, trial.x.double(), trial.y.double())
