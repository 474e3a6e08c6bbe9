"""The command ``bochner compare``: measures every applicable mechanism on the user's data."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._environment import environment
from .._progress import progress
from .._table import as_json, format_table, printable, seconds, size
from ..approximation import Approximation
from ..selection._applicable import label_of, planned, rows_within
from .measurement import Ground, Measurement, measure
from .problem import Problem, add_arguments, check_range, read_problem, writable

_TOP = 20
_CURVES, _CURVE_ROWS, _CURVE_DRAWS = 6, 150, 6
_PICTURE_ROWS = 80
_RARE = "*"


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("compare", help="measure every applicable mechanism on the data, and write a report")
    add_arguments(parser, "width of the features (default 256)", default=256)
    parser.add_argument(
        "--rows",
        type=int,
        default=400,
        help="largest number of rows on which errors are predicted and measured (default 400)",
    )
    parser.add_argument(
        "--draws", type=int, default=6, help="number of independent draws of each mechanism (default 6)"
    )
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report (default report/)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare, print the table, and write the report."""
    check_range(options, "rows", 10, 10_000)
    check_range(options, "draws", 2, 10_000)
    problem = read_problem(options)
    writable("--out", options.out)
    if not options.json:
        print(f"{printable(problem.description)}\n", flush=True)
    found = compare(problem, options.features, options.rows, options.draws, options.seed)
    print(as_json(found.as_dict()) if options.json else _summary(found))
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("the report needs matplotlib; pip install 'bochner[plot]'.")
    from .compare_report import write_report

    page = write_report(found, options.out)
    print(f"Report: {page}" if options.json else f"\nReport: {page}", file=sys.stderr if options.json else sys.stdout)
    return 0


@dataclass(frozen=True)
class Curve:
    """Errors of one mechanism against the width of its features."""

    label: str
    n_features: list[int]
    measured: list[float]
    predicted: list[float]


@dataclass(frozen=True)
class Picture:
    """A Gram matrix of a few rows, from a typical draw, with the mechanism's measured error; zero for the exact one."""

    label: str
    error: float
    gram: np.ndarray


@dataclass(frozen=True)
class Comparison:
    """All that a comparison found: measurements, best first; curves of the best; pictures, the exact matrix first."""

    problem: Problem
    n_features: int
    measurements: list[Measurement]
    curves: list[Curve]
    pictures: list[Picture]

    def table(self, top: int | None = None) -> str:
        """The measurements as text."""
        header = ["mechanism", "features", "measured error", "predicted", "by", "time per row", "memory", "positive"]
        shown = self.measurements[:top]
        note = f"\n{_RARE} rare draws dominate the error: theory includes them, a few draws usually miss them"
        table = format_table([*header, "unbiased"], [_row(m) for m in shown])
        return table + (note if any(m.rare for m in shown) else "")

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
    ground = Ground(problem.X, problem.Y, problem.kernel, rows, seed)
    few = Ground(ground.X, None if problem.Y is None else ground.Y, problem.kernel, _CURVE_ROWS, seed)
    plans = dict(planned(problem.kernel, ground.X, ground.Y, n_features, seed, ground.others))
    if not plans:
        raise ValueError(f"--features {n_features} is too few for any mechanism of {problem.kernel!r}.")
    specs = sorted(plans, key=lambda spec: (repr(spec.projection), spec.n_projections))  # the same rows are drawn once
    bar = progress(specs, label="compare", shown=shown, delay=0.0)
    found = {spec: measure(spec, plans[spec], ground, n_draws) for spec in bar}
    order = sorted(specs, key=lambda spec: found[spec].measured)
    chosen = _chosen(order)
    curves = [_curve(s, plans[s], few, n_features) for s in progress(chosen, label="curves", shown=shown, delay=0.0)]
    pictures = _pictures(chosen, found, plans, ground)
    return Comparison(problem, n_features, [found[spec] for spec in order], curves, pictures)


def _chosen(order: list[Approximation]) -> list[Approximation]:
    """The best few, of different maps first so that the curves tell something, and the plainest as their measure."""
    plain = next((spec for spec in order if spec.map.uses_rows and spec.projection.coupling == "iid"), order[-1])
    best_of_maps = list({spec.map: spec for spec in reversed(order)}.values())[::-1]
    chosen = order[: _CURVES // 2] + [spec for spec in best_of_maps if spec not in order[: _CURVES // 2]]
    return [*chosen[: _CURVES - 1], *([plain] if plain not in chosen[: _CURVES - 1] else [])]


def _curve(spec: Approximation, plan: Approximation, ground: Ground, n_features: int) -> Curve:
    rows = {rows_within(plan, max(n_features * 2**k // 8, 4), ground.X.shape[1]) for k in range(6)}
    sized = [replace(plan, n_projections=m) for m in sorted(rows) if m]
    measured = [float(np.sqrt((ground.draws(s, _CURVE_DRAWS)[0] ** 2).mean())) for s in sized]
    predicted = [ground.predictor(s).error for s in sized]
    return Curve(label_of(spec), [s.n_features_out for s in sized], measured, predicted)


def _pictures(
    chosen: list[Approximation],
    found: dict[Approximation, Measurement],
    plans: dict[Approximation, Approximation],
    ground: Ground,
) -> list[Picture]:
    """Gram matrices of some rows, along their first principal direction so that the picture has a shape."""
    step = max(len(ground.X) // _PICTURE_ROWS, 1)
    rows = ground.X[::step][:_PICTURE_ROWS]
    centred = (rows - rows.mean(axis=0)).astype(np.float64)
    rows = rows[np.argsort(centred @ np.linalg.svd(centred, full_matrices=False)[2][0])]
    exact = np.asarray(ground.kernel(rows))
    shown = list(dict.fromkeys([chosen[0], *chosen[-2:]]))
    grams = [_typical_gram(plans[spec], rows, exact, ground.seed) for spec in shown]
    drawn = [Picture(label_of(s), found[s].measured, gram) for s, gram in zip(shown, grams, strict=True)]
    return [Picture("exact", 0.0, exact), *drawn]


def _typical_gram(plan: Approximation, rows: np.ndarray, exact: np.ndarray, seed: int) -> np.ndarray:
    """Of a few draws, the one whose error is nearest to their root mean square: one draw alone can be luck."""
    rng = np.random.default_rng(seed)
    grams = [plan.draw(rows.shape[1], rng).gram(rows) for _ in range(_CURVE_DRAWS)]
    squares = np.array([np.linalg.norm(gram - exact) ** 2 for gram in grams])
    return np.asarray(grams[int(np.abs(squares - squares.mean()).argmin())])


def _summary(found: Comparison) -> str:
    hidden = len(found.measurements) - _TOP
    more = f"\n... and {hidden} more in the report" if hidden > 0 else ""
    return f"{found.table(_TOP)}{more}"


def _row(m: Measurement) -> list[str]:
    flags = ["yes" if m.positive else "no", "yes" if m.unbiased else "approx."]
    measured = f"{m.measured:.4f} +- {m.standard_error:.4f}" if m.measured < 100 else f"{m.measured:.3g}"
    predicted = (_RARE if m.rare else "") + (f"{m.predicted:.4f}" if m.predicted < 100 else f"{m.predicted:.3g}")
    cells = [m.label, str(m.n_features), measured, predicted, m.source, seconds(m.seconds_per_row), size(m.nbytes)]
    return [*cells, *flags]
