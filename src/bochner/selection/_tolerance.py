"""The number of features that reaches a tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ._applicable import rows_within
from ._prediction import Predictor
from ._recommendation import Candidate

_LOOKED_AT = 12  # largest number of mechanisms whose width is determined exactly
_NEAR = 0.9  # share of the tolerance from which a simulated width is near enough
_STEPS = {"theory": 12, "simulation": 4}


def at_tolerance(
    found: Sequence[Candidate], tolerance: float, most: int, predictor: Predictor
) -> tuple[list[Candidate], bool]:
    """Return the candidates at the width they need, fewest features first, and whether any reaches the tolerance.

    Widths are first estimated by the law of independent rows, error ~ 1/sqrt(m); those that may be the smallest are
    then determined by predictions at other widths.  If no mechanism reaches the tolerance, all are returned at the
    largest number of features allowed.
    """
    rough = [_sized(c, _scaled(c, tolerance), predictor) for c in found]
    exact, rough = _looked_at([c for c in rough if c.n_features <= most], tolerance, most, predictor)
    least = min((c.n_features for c in exact), default=0)
    ranked = [*exact, *(c for c in rough if c.n_features >= least)]
    if ranked:
        return sorted(ranked, key=lambda c: (c.n_features, c.bound)), True
    return _at_most(found, tolerance, most, predictor)


def _at_most(
    found: Sequence[Candidate], tolerance: float, most: int, predictor: Predictor
) -> tuple[list[Candidate], bool]:
    """Rank candidates with as many features as allowed, lowest error first, and say whether any reaches the tolerance."""
    d = predictor.sample.X.shape[1]
    widest = [_sized(c, max(1, rows_within(c.plan, most, d)), predictor) for c in found]
    exact = [c.predicted(predictor(c.plan)) for c in sorted(widest, key=lambda c: c.error)[:_LOOKED_AT]]
    exact.sort(key=lambda c: c.error)
    reaching = [c for c in exact if c.bound <= tolerance]
    return (reaching or exact), bool(reaching)


def _looked_at(
    rough: list[Candidate], tolerance: float, most: int, predictor: Predictor
) -> tuple[list[Candidate], list[Candidate]]:
    """Find exact widths of the candidates that may need the fewest features, until no estimate is below; and the others."""
    exact: list[Candidate] = []
    rough = sorted(rough, key=lambda c: c.n_features)
    while rough and len(exact) < _LOOKED_AT:
        if any(c.n_features <= rough[0].n_features for c in exact if _reaches(c, tolerance, most)):
            break
        exact.append(_found(rough.pop(0), tolerance, predictor))
    return [c for c in exact if _reaches(c, tolerance, most)], [c for c in rough if _reaches(c, tolerance, most)]


def _reaches(c: Candidate, tolerance: float, most: int) -> bool:
    return c.n_features <= most and c.bound <= 1.02 * tolerance


def _scaled(c: Candidate, tolerance: float) -> int:
    return max(1, math.ceil(min(c.spec.n_projections * min(c.bound / tolerance, 1e6) ** 2, 1e9)))


def _sized(c: Candidate, m: int, predictor: Predictor) -> Candidate:
    """Candidate with m rows (whole rules of a quadrature), with errors scaled as for independent rows."""
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
