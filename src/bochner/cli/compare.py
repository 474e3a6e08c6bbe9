"""The command ``bochner compare``: what predicts a target best, and which mechanism estimates the kernel best."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from ..reporting import as_json, environment, printable, shortened
from ..selection import DEFAULT_FEATURES
from .mechanisms import MeasuredMechanisms, measure
from .problem import Problem, add_arguments, check_range, read_problem, writable
from .report import Report, script, write_report

DEMO, DEMO_TARGET = "even-digits", "y"
BUDGET = 60.0  # seconds, as in `bochner.compare`
_FOR_MECHANISMS = 0.25  # share of the budget, if there is a target
_ROWS, _TOP = 400, 15  # rows on which mechanisms are measured, within seconds; and lines of the table


def register(commands: Any) -> None:
    """Add the command to the parser."""
    about = "compare estimators by how well they predict a target, and mechanisms by the error of the kernel"
    parser = commands.add_parser(
        "compare", help=about, description=f"{about}; without DATA, on a table of scikit-learn"
    )
    add_arguments(parser, f"width of the features of mechanisms (default {DEFAULT_FEATURES})", default=DEFAULT_FEATURES)
    target = "column to predict, by name or by position counted from 1"
    parser.add_argument("--target", metavar="COLUMN", help=target)
    task = "by default, text and at most 20 different whole numbers are classes"
    parser.add_argument("--task", choices=("regression", "classification"), help=task)
    budget = f"seconds for the whole comparison, with fewer rows if need be (default {BUDGET:g})"
    parser.add_argument("--budget", type=float, default=BUDGET, metavar="SECONDS", help=budget)
    parser.add_argument(
        "--rows", type=int, default=_ROWS, help=f"rows on which mechanisms are measured (default {_ROWS})"
    )
    draws = "draws of each mechanism (default 4), more where it is close"
    parser.add_argument("--draws", type=int, default=4, help=draws)
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report (default report/)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare, print the result, and write the report."""
    start = time.perf_counter()
    check_range(options, "rows", 10, 10_000)
    check_range(options, "draws", 2, 10_000)
    if not 0 < options.budget < float("inf"):
        raise ValueError(f"--budget must be a positive number of seconds, got {options.budget:g}.")
    target = options.target if options.data else options.target or DEMO_TARGET
    if options.task is not None and target is None:
        raise ValueError(f"--task {options.task} needs the column to predict; give --target COLUMN.")
    problem = read_problem(options, DEMO, target)
    writable("--out", options.out)
    if not options.json:
        print(f"{printable(problem.description)}\n", flush=True)
    comparison = None
    if problem.table.y is not None:
        comparison = _compare(problem, options)
        if not options.json:
            print(printable(_summary(comparison, problem.table.code)), flush=True)
    mechanisms = _mechanisms(problem, options, start)
    report = Report(problem, comparison, mechanisms, environment())
    page = write_report(report, options.out)
    if options.json:
        print(as_json(report.as_dict()))
    else:
        print(printable(_of_mechanisms(mechanisms, whole=comparison is None)))
    print(f"Report: {page}" if options.json else f"\nReport: {page}", file=sys.stderr if options.json else sys.stdout)
    return 0


def _compare(problem: Problem, options: argparse.Namespace) -> Any:
    from ..comparison import compare  # loads scikit-learn, which other commands do not need

    table, share = problem.table, (1 - _FOR_MECHANISMS) * options.budget
    asked: dict[str, Any] = {"task": options.task, "budget": share}
    return compare(table.X, table.y, rng=options.seed, verbose=not options.json, **asked)


def _mechanisms(problem: Problem, options: argparse.Namespace, start: float) -> MeasuredMechanisms:
    """Measure mechanisms in the time that is left; at widths far below the number of rows, where features save work."""
    width = min(options.features, max(len(problem.X) // 4, 8))
    left = max(options.budget - (time.perf_counter() - start), 1.0)
    sizes = {"rows": options.rows, "n_draws": options.draws, "seed": options.seed}
    return measure(problem.X, problem.Y, problem.kernel, width, limit=left, shown=not options.json, **sizes)


def _summary(comparison: Any, code: str) -> str:
    return str(comparison).replace(comparison.code, script(code, comparison.code))


def _of_mechanisms(mechanisms: MeasuredMechanisms, whole: bool) -> str:
    """The table, or only what it says: beside a target it is not the answer, and stands in the report."""
    if not whole:
        kernel = shortened(repr(mechanisms.kernel))
        return f"\nRandom features of {kernel} on these columns (table in the report):\n" + "\n".join(
            mechanisms.sentences
        )
    hidden = len(mechanisms.found) - _TOP
    more = f"\n... and {hidden} more in the report" if hidden > 0 else ""
    words = "\n".join(mechanisms.sentences)
    title = f"Mechanisms for {shortened(repr(mechanisms.kernel))}, measured on {mechanisms.n_rows} rows:"
    return f"\n{title}\n\n{mechanisms.table(_TOP)}{more}\n\n{words}"
