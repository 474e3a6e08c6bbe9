"""The command ``bochner compare``: measures every applicable mechanism on the user's data."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._environment import environment
from .._progress import progress
from .._table import as_json, format_table, printable, seconds, size
from ..approximation import Approximation
from ..selection import DEFAULT_FEATURES, Decision
from ..selection._applicable import label_of, plainness, planned, rows_within
from ..selection._cross_validation import critical
from ..selection._judge import judge
from ..selection._task import MOST_ROWS
from .measurement import Ground, Measurement, measure, measured_again
from .problem import Problem, add_arguments, check_range, read_problem, writable

_TOP = 20
_CURVES, _CURVE_ROWS, _CURVE_DRAWS = 6, 150, 6
_PICTURE_ROWS = 80
_ROWS = 400
_RARE = "*"
_AGAIN = (4, 16)
"""Mechanisms that may be equal to the best are drawn this many times as often, in rounds."""
_FAST = 2.0
"""Among equal mechanisms, those that take at most this many times the time of the fastest are considered as fast."""


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "compare", help="compare all mechanisms on the data, by predictions of a target or by Gram matrices"
    )
    add_arguments(parser, f"width of the features (default {DEFAULT_FEATURES})", default=DEFAULT_FEATURES)
    rows = f"largest number of rows that are used (default {_ROWS}, and {MOST_ROWS} with --target)"
    parser.add_argument("--rows", type=int, help=rows)
    draws = "number of independent draws of each mechanism without --target (default 6), more where it is close"
    parser.add_argument("--draws", type=int, default=6, help=draws)
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report (default report/)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare, print the table, and write the report."""
    if options.rows is not None:
        check_range(options, "rows", 10, 10_000)
    check_range(options, "draws", 2, 10_000)
    start = time.perf_counter()
    problem = read_problem(options)
    writable("--out", options.out)
    if not options.json:
        print(f"{printable(problem.description)}\n", flush=True)
    if problem.task is not None:
        from .decision_report import write_report as write_decision

        decision = decide(problem, options, start)
        print(as_json(decision_as_dict(problem, decision)) if options.json else printable(str(decision)))
        page = write_decision(problem, decision, options.out)
    else:
        from .compare_report import write_report

        found = compare(problem, options.features, options.rows or _ROWS, options.draws, options.seed)
        print(as_json(found.as_dict()) if options.json else _summary(found))
        page = write_report(found, options.out)
    print(f"Report: {page}" if options.json else f"\nReport: {page}", file=sys.stderr if options.json else sys.stdout)
    return 0


def decide(problem: Problem, options: argparse.Namespace, start: float) -> Decision:
    """Cross-validate every mechanism and its rivals on the target of a problem; the budget counts from ``start`` on."""
    from .automatic import AutomaticMachine  # loads the estimators, which other commands do not need

    assert problem.task is not None
    width = options.features or DEFAULT_FEATURES
    automatic = [AutomaticMachine(problem.task, problem.searched, width)] if problem.searched else []
    return judge(
        problem.task,
        problem.kernel,
        width,
        options.seed,
        searched=bool(problem.searched),
        positive=getattr(options, "positive", False),
        budget=options.budget,
        spent=time.perf_counter() - start,
        shown=True,
        source=problem.source,
        others=automatic,
        owner=f"--target {options.target}",
    )


def decision_as_dict(problem: Problem, decision: Decision) -> dict[str, Any]:
    """For ``--json``."""
    return {"environment": environment(), "data": problem.description, **decision.as_dict()}


@dataclass(frozen=True)
class Curve:
    """Errors of one mechanism against the width of its features."""

    label: str
    n_features: list[int]
    measured: list[float]
    predicted: list[float]


@dataclass(frozen=True)
class Picture:
    """A Gram matrix of a few rows, from the draw with the median error, and that error; zero for the exact one."""

    label: str
    error: float
    gram: np.ndarray


@dataclass(frozen=True)
class Comparison:
    """All that a comparison found.

    Attributes
    ----------
    problem : Problem
    n_features : int
        Width of the features.
    measurements : list of Measurement
        Lowest error first.
    equal : list of Measurement
        Those that are equal to the first, within the standard errors of both.
    best : Measurement
        The recommended mechanism: of the equal ones, a plain one among the fast.
    curves : list of Curve
        Of a few mechanisms, the recommended first.
    pictures : list of Picture
        The exact matrix first, then the recommended mechanism and at most two that it is better than.
    """

    problem: Problem
    n_features: int
    measurements: list[Measurement]
    equal: list[Measurement]
    best: Measurement
    curves: list[Curve]
    pictures: list[Picture]

    def table(self, top: int | None = None) -> str:
        """The measurements as text."""
        header = ["mechanism", "features", "measured error", "predicted", "by", "time per row", "memory", "positive"]
        shown = self.measurements[:top]
        note = f"\n{_RARE} rare draws dominate the error: theory includes them, a few draws usually miss them"
        table = format_table([*header, "unbiased"], [_row(m) for m in shown])
        return table + (note if any(m.rare for m in shown) else "")

    @property
    def sentences(self) -> list[str]:
        """The result in words."""
        best, n = self.best, len(self.equal)
        if n == 1:
            return [f"{best.label} has the lowest error, beyond what luck explains."]
        equal = "; ".join(m.label for m in self.equal)
        return [
            f"These {n} are equal, within what luck explains: {equal}.",
            f"Recommended: {best.label}, a plain and fast one of them.",
        ]

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "environment": environment(),
            "data": self.problem.description,
            "kernel": repr(self.problem.kernel),
            "n_features": self.n_features,
            "best": self.best.spec,
            "equal": [m.label for m in self.equal],
            "measurements": [m.as_dict() for m in self.measurements],
            "curves": [vars(curve) for curve in self.curves],
        }


def compare(problem: Problem, n_features: int, rows: int, n_draws: int, seed: int, *, shown: bool = True) -> Comparison:
    """Measure every applicable mechanism at the same width, and those that are close to the best more often."""
    ground = Ground(problem.X, problem.Y, problem.kernel, rows, seed)
    few = Ground(ground.X, None if problem.Y is None else ground.Y, problem.kernel, _CURVE_ROWS, seed)
    plans = dict(planned(problem.kernel, ground.X, ground.Y, n_features, seed, ground.others))
    if not plans:
        raise ValueError(f"--features {n_features} is too few for any mechanism of {problem.kernel!r}.")
    specs = sorted(plans, key=lambda spec: (repr(spec.projection), spec.n_projections))  # the same rows are drawn once
    bar = progress(specs, label="compare", shown=shown, delay=0.0)
    found = {spec: measure(spec, plans[spec], ground, n_draws) for spec in bar}
    for factor in _AGAIN:
        # again until none is left: with more draws of the lowest, one that was behind it may be close
        while more := [s for s in _close(found) if found[s].n_draws < factor * n_draws]:
            for spec in progress(more, label="close ones", shown=shown, delay=0.0):
                found[spec] = measured_again(found[spec], plans[spec], ground, factor * n_draws)
    order = sorted(specs, key=lambda spec: found[spec].ranked)
    equal = _equal(found)
    best = _plain_and_fast(equal, found)
    chosen = _chosen([best, *(spec for spec in order if spec != best)])
    curves = [_curve(s, plans[s], few, n_features) for s in progress(chosen, label="curves", shown=shown, delay=0.0)]
    pictures = _pictures(chosen, equal, found, plans, ground)
    measured = [found[spec] for spec in order]
    return Comparison(problem, n_features, measured, [found[s] for s in equal], found[best], curves, pictures)


def _equal(found: dict[Approximation, Measurement]) -> list[Approximation]:
    """Mechanisms whose errors differ from the lowest by no more than luck explains, lowest first."""
    order = sorted(found, key=lambda spec: found[spec].ranked)
    best, width = found[order[0]], critical(max(len(order) - 1, 1))
    spreads = [float(np.hypot(found[spec].standard_error, best.standard_error)) for spec in order]
    within = [found[spec].ranked - best.ranked <= width * spread for spec, spread in zip(order, spreads, strict=True)]
    return [spec for spec, one in zip(order, within, strict=True) if one or spec is order[0]]


def _close(found: dict[Approximation, Measurement]) -> list[Approximation]:
    """Equal mechanisms, if there are several."""
    equal = _equal(found)
    return equal if len(equal) > 1 else []


def _plain_and_fast(equal: list[Approximation], found: dict[Approximation, Measurement]) -> Approximation:
    """Of equal mechanisms, the plainest that is not slow: which of them has the lowest error is luck."""
    fastest = min(found[spec].seconds_per_row for spec in equal)
    fast = [spec for spec in equal if found[spec].seconds_per_row <= _FAST * fastest]
    return min(fast, key=plainness)


def _chosen(order: list[Approximation]) -> list[Approximation]:
    """The best few, of different maps first so that the curves tell something, and the plainest as their measure."""
    plain = next((spec for spec in order if spec.map.uses_rows and spec.projection.coupling == "iid"), order[-1])
    best_of_maps = list({spec.map: spec for spec in reversed(order)}.values())[::-1]
    chosen = order[: _CURVES // 2] + [spec for spec in best_of_maps if spec not in order[: _CURVES // 2]]
    return [*chosen[: _CURVES - 1], *([plain] if plain not in chosen[: _CURVES - 1] else [])]


def _curve(spec: Approximation, plan: Approximation, ground: Ground, n_features: int) -> Curve:
    rows = {rows_within(plan, max(n_features * 2**k // 8, 4), ground.X.shape[1]) for k in range(6)}
    sized = [replace(plan, n_projections=m) for m in sorted(rows) if m]
    measured = [float(np.sqrt((ground.errors(s, _CURVE_DRAWS) ** 2).mean())) for s in sized]
    predicted = [ground.predictor(s).error for s in sized]
    return Curve(label_of(spec), [s.n_features_out for s in sized], measured, predicted)


def _pictures(
    chosen: list[Approximation],
    equal: list[Approximation],
    found: dict[Approximation, Measurement],
    plans: dict[Approximation, Approximation],
    ground: Ground,
) -> list[Picture]:
    """Gram matrices of some rows, along their first principal direction so that the picture has a shape.

    Beside the recommended mechanism there are two that it is better than.  Each is of the draw with the median error over
    those measured, whose error on all rows the table has too.
    """
    step = max(len(ground.X) // _PICTURE_ROWS, 1)
    rows = ground.X[::step][:_PICTURE_ROWS]
    centred = (rows - rows.mean(axis=0)).astype(np.float64)
    rows = rows[np.argsort(centred @ np.linalg.svd(centred, full_matrices=False)[2][0])]
    pictures = [Picture("exact", 0.0, np.asarray(ground.kernel(rows)))]
    others = [s for s in chosen if s not in equal and found[s].typical > found[chosen[0]].typical]
    for spec in [chosen[0], *others[-2:]]:
        drawn = ground.draw(plans[spec], ground.median_draw(plans[spec], found[spec].n_draws))
        pictures.append(Picture(label_of(spec), found[spec].typical, np.asarray(drawn.gram(rows))))
    return pictures


def _summary(found: Comparison) -> str:
    hidden = len(found.measurements) - _TOP
    more = f"\n... and {hidden} more in the report" if hidden > 0 else ""
    words = "\n".join(found.sentences)
    return f"{found.table(_TOP)}{more}\n\n{words}"


def _row(m: Measurement) -> list[str]:
    flags = ["yes" if m.positive else "no", "yes" if m.unbiased else "approx."]
    measured = f"{m.measured:.4f} +- {m.standard_error:.4f}" if m.measured < 100 else f"{m.measured:.3g}"
    predicted = (_RARE if m.rare else "") + (f"{m.predicted:.4f}" if m.predicted < 100 else f"{m.predicted:.3g}")
    cells = [m.label, str(m.n_features), measured, predicted, m.source, seconds(m.seconds_per_row), size(m.nbytes)]
    return [*cells, *flags]
