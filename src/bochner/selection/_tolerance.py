"""How many features reach a tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ._applicable import rows_within
from ._prediction import Predictor
from ._recommendation import Candidate

_CLOSE = 1.5
"""Estimated widths up to this factor above the least are looked at exactly."""
_LOOKED_AT = 8
"""Mechanisms that are."""
_NEAR = 0.9
_STEPS = {"theory": 12, "simulation": 4}


def at_tolerance(
    found: Sequence[Candidate], tolerance: float, most: int, predictor: Predictor
) -> tuple[list[Candidate], bool]:
    """Candidates at the width they need, fewest features first; and whether any reaches the tolerance.

    Widths are first estimated by the law of independent rows, error ~ 1/sqrt(m); those near the least are then found by
    predicting at other widths.  Where no mechanism can, all are shown at the most features that are allowed.
    """
    rough = [_sized(c, _scaled(c, tolerance), predictor) for c in found]
    reaching = [c for c in rough if c.n_features <= most]
    if not reaching:
        d = predictor.sample.X.shape[1]
        widest = [_sized(c, max(1, rows_within(c.plan, most, d)), predictor) for c in found]
        exact = [c.predicted(predictor(c.plan)) for c in sorted(widest, key=lambda c: c.error)[:_LOOKED_AT]]
        exact.sort(key=lambda c: c.error)
        reaching = [c for c in exact if c.bound <= tolerance]
        return (reaching or exact), bool(reaching)
    least = min(c.n_features for c in reaching)
    reaching.sort(key=lambda c: c.n_features)
    near = [_found(c, tolerance, predictor) if c.n_features <= _CLOSE * least else c for c in reaching[:_LOOKED_AT]]
    near += reaching[_LOOKED_AT:]
    near = [c for c in near if c.n_features <= most and c.bound <= 1.02 * tolerance]
    return sorted(near, key=lambda c: (c.n_features, c.bound)), bool(near)


def _scaled(c: Candidate, tolerance: float) -> int:
    return max(1, math.ceil(min(c.spec.n_projections * (c.bound / tolerance) ** 2, 1e12)))


def _sized(c: Candidate, m: int, predictor: Predictor) -> Candidate:
    """With m rows (whole rules of a quadrature), errors scaled as for independent ones."""
    rule = c.plan.projection.rows_per_rule(predictor.sample.X.shape[1])
    m = math.ceil(m / rule) * rule if m > rule else m
    factor = math.sqrt(c.spec.n_projections / m)
    return replace(
        c,
        spec=replace(c.spec, n_projections=m),
        plan=replace(c.plan, n_projections=m),
        error=c.error * factor,
        worst=c.worst * factor,
        standard_error=c.standard_error * factor,
        seconds_per_row=c.seconds_per_row / factor**2,
    )


def _found(c: Candidate, tolerance: float, predictor: Predictor) -> Candidate:
    """The least number of rows at which the prediction itself meets the tolerance, by secant steps of that law."""
    exact = c.predicted(predictor.precisely(c.plan))
    best = exact if exact.bound <= tolerance else None
    for _ in range(_STEPS[c.source]):
        m = _scaled(exact, tolerance)
        if best is not None and c.source == "simulation" and best.bound > _NEAR * tolerance:
            break  # nearer than the simulation can tell
        if m == exact.spec.n_projections or (best is not None and m >= best.spec.n_projections):
            break
        exact = _sized(exact, m, predictor)
        exact = exact.predicted(predictor.precisely(exact.plan))
        if exact.bound <= tolerance:
            best = exact
    return best or exact
