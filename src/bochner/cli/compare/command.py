"""The command ``bochner compare``, the main job: every mechanism measured on the user's data."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from ..problem import add_arguments, read_problem
from .comparison import Comparison, compare

_TOP = 20


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("compare", help="measure every applicable mechanism on the data, and write a report")
    add_arguments(parser)
    parser.add_argument(
        "--rows", type=int, default=400, help="most rows on which errors are predicted and measured (default 400)"
    )
    parser.add_argument("--draws", type=int, default=6, help="independent draws of each mechanism (default 6)")
    parser.add_argument("--out", type=Path, default=Path("report"), help="folder of the report (default report/)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare, print the table, and write the report."""
    try:
        _check(options)
        problem = read_problem(options)
        if not options.json:
            print(f"{problem.description}\n", flush=True)
        found = compare(problem, options.features, options.rows, options.draws, options.seed)
    except ValueError as error:
        print(f"bochner compare: {error}", file=sys.stderr)
        return 2
    print(json.dumps(found.as_dict(), indent=2) if options.json else _summary(found))
    return _report(found, options.out, quiet=options.json)


def _check(options: argparse.Namespace) -> None:
    for option, least in (("rows", 10), ("draws", 2)):
        if getattr(options, option) < least:
            raise ValueError(f"--{option} must be at least {least}, got {getattr(options, option)}.")
    if options.out.exists() and not options.out.is_dir():
        raise ValueError(f"--out {options.out} is a file; give a folder.")


def _summary(found: Comparison) -> str:
    hidden = len(found.measurements) - _TOP
    more = f"\n... and {hidden} more in the report" if hidden > 0 else ""
    return f"{found.table(_TOP)}{more}"


def _report(found: Comparison, out: Path, *, quiet: bool) -> int:
    if importlib.util.find_spec("matplotlib") is None:
        print("bochner compare: the report needs matplotlib; pip install 'bochner[plot]'.", file=sys.stderr)
        return 2
    from .report import write_report

    page = write_report(found, out)
    print(f"Report: {page}" if quiet else f"\nReport: {page}", file=sys.stderr if quiet else sys.stdout)
    return 0
