"""All that a comparison found: what the table, the JSON and the report are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._progress import progress
from ..._table import format_table, seconds, size
from ...approximation import Approximation
from ...selection.candidates import applicable, at_width, label
from ..environment import environment
from ..problem import Problem
from .measure import Ground, Measurement, measure

_CURVES = 6
_CURVE_ROWS, _CURVE_DRAWS = 150, 6
_SHOWN_ROWS = 80
_RARE = "*"


@dataclass(frozen=True)
class Curve:
    """Errors of one mechanism against the width of its features."""

    label: str
    n_features: list[int]
    measured: list[float]
    predicted: list[float]


@dataclass(frozen=True)
class Comparison:
    """Measurements, best first; curves of the best; Gram matrices of a few rows, the exact one first."""

    problem: Problem
    n_features: int
    measurements: list[Measurement]
    curves: list[Curve]
    grams: dict[str, np.ndarray]

    def table(self, top: int | None = None) -> str:
        """The measurements as text."""
        header = [
            "mechanism",
            "features",
            "measured error",
            "predicted",
            "by",
            "time a row",
            "memory",
            "positive",
            "unbiased",
        ]
        shown = self.measurements[:top]
        note = f"\n{_RARE} rare draws carry the error: theory counts them, a few draws do not meet them"
        return format_table(header, [_row(m) for m in shown]) + (note if any(m.rare for m in shown) else "")

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "environment": environment(),
            "data": self.problem.description,
            "kernel": repr(self.problem.kernel),
            "n_features": self.n_features,
            "measurements": [m.as_dict() for m in self.measurements],
            "curves": [vars(curve) for curve in self.curves],
        }


def compare(problem: Problem, n_features: int, rows: int, n_draws: int, seed: int, *, shown: bool = True) -> Comparison:
    """Measure every applicable mechanism at the same width."""
    ground, few = (Ground(problem.X, problem.Y, problem.kernel, most, seed) for most in (rows, _CURVE_ROWS))
    specs = list(applicable(problem.kernel, problem.X.shape[1], n_features, ground.X))
    if not specs:
        raise ValueError(f"--features {n_features} is too few for any mechanism of {problem.kernel!r}.")
    bar = progress(specs, label="compare", shown=shown, delay=0.0)
    found = {label(spec): measure(spec, ground, n_draws) for spec in bar}
    order = sorted(specs, key=lambda spec: found[label(spec)].measured)
    chosen = _chosen(order)
    curves = [_curve(s, few, n_features) for s in progress(chosen, label="curves", shown=shown, delay=0.0)]
    return Comparison(
        problem, n_features, [found[label(spec)] for spec in order], curves, _grams(chosen, problem, seed)
    )


def _chosen(order: list[Approximation]) -> list[Approximation]:
    """The best few, of different maps first so that the curves tell something, and the plainest as their measure."""
    plain = next((spec for spec in order if label(spec).endswith("IID()")), order[-1])
    best_of_maps = list({label(spec.map): spec for spec in reversed(order)}.values())[::-1]
    chosen = order[: _CURVES // 2] + [spec for spec in best_of_maps if spec not in order[: _CURVES // 2]]
    return [*chosen[: _CURVES - 1], *([plain] if plain not in chosen[: _CURVES - 1] else [])]


def _curve(spec: Approximation, ground: Ground, n_features: int) -> Curve:
    sized = [at_width(spec, ground.X.shape[1], max(n_features * 2**k // 8, 4), ground.X) for k in range(6)]
    kept = list(dict.fromkeys(s for s in sized if s is not None))
    widths = [s.fit(ground.X, ground.Y, rng=ground.seed).n_features_out for s in kept]
    measured = [float(np.sqrt((ground.errors(s, _CURVE_DRAWS) ** 2).mean())) for s in kept]
    return Curve(label(spec), widths, measured, [ground.predictor(s).error for s in kept])


def _grams(chosen: list[Approximation], problem: Problem, seed: int) -> dict[str, np.ndarray]:
    """Gram matrices of some rows, along their first principal direction so that the picture has a shape."""
    rows = problem.X if len(problem.X) <= _SHOWN_ROWS else problem.X[:: len(problem.X) // _SHOWN_ROWS][:_SHOWN_ROWS]
    centred = (rows - rows.mean(axis=0)).astype(np.float64)
    rows = rows[np.argsort(centred @ np.linalg.svd(centred, full_matrices=False)[2][0])]
    grams = {"exact": np.asarray(problem.kernel(rows))}
    for spec in [chosen[0], *chosen[-2:]]:
        grams.setdefault(label(spec), spec.fit(rows, rng=seed).gram(rows))
    return grams


def _row(m: Measurement) -> list[str]:
    flags = ["yes" if m.positive else "no", "yes" if m.unbiased else "approx."]
    measured = f"{m.measured:.4f} +- {m.standard_error:.4f}" if m.measured < 100 else f"{m.measured:.3g}"
    predicted = f"{m.predicted:.4f}" if m.predicted < 100 else f"{m.predicted:.3g}"
    return [
        m.label,
        str(m.n_features),
        measured,
        predicted,
        m.source,
        seconds(m.seconds_per_row),
        size(m.nbytes),
        *flags,
    ]
