"""What each window and number of rows would give in each layer, and the cheapest choice within a tolerance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ._layer_plan import LayerPlan
from ._model_change import ModelChange

_MARGIN = 0.7
"""Share of the tolerance that the sum of the changes of single layers may reach, since layers add up only roughly."""
_STANDARD_ERRORS = 2.0
"""Standard errors above the mean of draws at which the recommendation still keeps the tolerance."""


@dataclass(frozen=True)
class Option:
    """One way to convert a layer, and what it does to the model.

    Attributes
    ----------
    plan : LayerPlan
        Window, anchors and rows.
    change, error : float
        Relative change of the loss when only this layer is converted: mean over draws, and its standard error.
    """

    plan: LayerPlan
    change: float
    error: float

    @property
    def cost(self) -> int:
        """Numbers per query and coordinate of a head: rows of W and exact keys."""
        return self.plan.n_projections + self.plan.window + self.plan.anchors

    @property
    def expected(self) -> float:
        """The change, with its uncertainty."""
        return max(self.change, 0.0) + self.error


@dataclass(frozen=True)
class LayerRow:
    """One attention: the options that were measured, and the number of keys that exact attention would meet."""

    layer: str
    n_keys: int
    options: tuple[Option, ...]

    def at(self, window: int, n_projections: int) -> Option | None:
        """The option with that window and so many rows."""
        wanted = window, n_projections
        return next((o for o in self.options if (o.plan.window, o.plan.n_projections) == wanted), None)


def measured(
    change: ModelChange, layer: str, plan: LayerPlan, n_draws: int, generator: torch.Generator | None
) -> Option:
    """The change of the loss when one layer is converted."""
    changes = np.array([change.of({layer: plan}, generator) for _ in range(n_draws)])
    return Option(plan, float(changes.mean()), _standard_error(changes))


def with_rows(plan: LayerPlan, n_projections: int) -> LayerPlan:
    """Return the plan with another number of rows."""
    return LayerPlan((replace(head, n_projections=n_projections) for head in plan), plan.window, plan.anchors)


@dataclass(frozen=True)
class Choice:
    """What to convert, and by how much the loss of the model then changes on data that was held out."""

    plans: dict[str, LayerPlan]
    change: float


def cheapest(
    rows: Sequence[LayerRow], change: ModelChange, tolerance: float, n_draws: int, generator: torch.Generator | None
) -> Choice:
    """The cheapest choice whose change of the loss, measured for all layers together, is within the tolerance."""
    for chosen in _choices(rows, _MARGIN * tolerance):
        plans = {row.layer: option.plan for row, option in zip(rows, chosen, strict=True) if option is not None}
        if not plans:
            break
        changes = np.array([change.of(plans, generator) for _ in range(n_draws)])
        if changes.mean() + _STANDARD_ERRORS * _standard_error(changes) <= tolerance:
            return Choice(plans, float(changes.mean()))
    return Choice({}, 0.0)


def _choices(rows: Sequence[LayerRow], most: float) -> Iterator[list[Option | None]]:
    """Choices of an option or exact attention (None) for each layer, from cheap to accurate."""
    tried: list[Any] = []
    for price in np.geomspace(1.0, 1e9, 91):  # of a change of one, in units of the cost
        chosen = [_best(row, float(price)) for row in rows]
        if sum(option.expected for option in chosen if option is not None) <= most and chosen not in tried:
            tried.append(chosen)
            yield chosen


def _best(row: LayerRow, price: float) -> Option | None:
    def total(option: Option | None) -> float:
        return float(row.n_keys) if option is None else option.cost + price * option.expected

    return min((None, *row.options), key=total)


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0


def layer_table(rows: Sequence[LayerRow], plans: Mapping[str, LayerPlan]) -> tuple[list[str], list[list[str]]]:
    """Header and cells: changes of the loss by window and rows, and what is recommended."""
    widths = sorted({option.plan.n_projections for row in rows for option in row.options})
    windows = sorted({option.plan.window for row in rows for option in row.options})
    cells = []
    for row in rows:
        plan = plans.get(row.layer)
        words = "exact" if plan is None else f"window {plan.window}, {plan.n_projections} rows"
        for window in windows:
            found = [row.at(window, width) for width in widths]
            if any(found):
                changes = ["-" if option is None else f"{100 * option.change:+.2g} %" for option in found]
                cells.append([row.layer, str(window), *changes, words])
                words = ""
    return ["layer", "window", *(f"{width} rows" for width in widths), "recommended"], cells
