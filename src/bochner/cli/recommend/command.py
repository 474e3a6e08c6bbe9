"""The command ``bochner recommend``."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from typing import Any

from ...selection import Recommendation, recommend
from ..problem import Problem, add_arguments, read_problem


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("recommend", help="say which mechanism, and how many features, suit the data")
    add_arguments(parser)
    parser.add_argument("--positive", action="store_true", help="positive features alone, as attention needs them")
    parser.add_argument("--symmetric", action="store_true", help="the same features for queries and keys alone")
    parser.add_argument("--tolerance", type=float, help="relative error to reach; --features is then the most allowed")
    parser.set_defaults(run=run, features=None)


def run(options: argparse.Namespace) -> int:
    """Print the recommendation."""
    try:
        limit, options.features = options.features, options.features or 1
        problem = read_problem(options)
        advice = _recommend(problem, options, limit)
    except ValueError as error:
        print(f"bochner recommend: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps({"data": problem.description, **advice.as_dict()}, indent=2))
    else:
        print(f"{problem.description}\n\n{advice}")
    return 0


def _recommend(problem: Problem, options: argparse.Namespace, limit: int | None) -> Recommendation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # printed with the recommendation
        return recommend(problem.X, problem.Y, problem.kernel, limit, options.positive, options.tolerance, options.seed,
                         symmetric=options.symmetric, verbose=True)  # fmt: skip
