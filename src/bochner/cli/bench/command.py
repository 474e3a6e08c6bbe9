"""The command ``bochner bench``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..._table import format_table
from ..environment import environment
from . import attention, learn, projections
from .measure import Result

SUITES: dict[str, Callable[[], Iterator[Result]]] = {
    "attention": attention.run,
    "learn": learn.run,
    "projections": projections.run,
}


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("bench", help="measure speed against named peers, and print the ratios")
    parser.add_argument("suite", nargs="?", choices=sorted(SUITES), help="one suite only")
    parser.add_argument("--json", action="store_true", help="print JSON in place of a table")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Measure and print; the exit code tells whether every goal was met."""
    results: list[Result] = []
    for name in [options.suite] if options.suite else SUITES:
        for result in SUITES[name]():
            results.append(result)
            if not options.json:
                print(
                    f"{'ok  ' if result.met else 'MISS'} {result.case}: {result.value:.3g} {result.unit}",
                    file=sys.stderr,
                )
    if options.json:
        print(json.dumps({"environment": environment(), "results": [r.as_dict() for r in results]}, indent=2))
    else:
        print(_table(results))
    return 0 if all(result.met for result in results) else 1


def _table(results: list[Result]) -> str:
    rows = [[r.case, f"{r.value:.3g} {r.unit}", r.goal, "yes" if r.met else "NO", r.details] for r in results]
    facts = ", ".join(f"{name} {value}" for name, value in environment().items())
    return f"{facts}\n{format_table(['case', 'measured', 'goal', 'met', 'times'], rows)}"
