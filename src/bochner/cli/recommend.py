"""The command ``bochner recommend``."""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

from .._table import as_json, printable
from ..selection import DEFAULT_FEATURES, Recommendation, recommend
from .compare import decide, decision_as_dict
from .problem import Problem, add_arguments, read_problem


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("recommend", help="recommend a mechanism and a number of features for the data")
    features = f"width of the features (default {DEFAULT_FEATURES}); with --tolerance, the largest number allowed"
    add_arguments(parser, features, default=None)
    parser.add_argument("--positive", action="store_true", help="only positive features, as required for attention")
    parser.add_argument("--symmetric", action="store_true", help="only features that are the same for queries and keys")
    parser.add_argument("--tolerance", type=float, help="relative error to reach, with as few features as possible")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the recommendation."""
    start = time.perf_counter()
    problem = read_problem(options)
    if problem.task is not None:
        if options.tolerance is not None:
            raise ValueError("--tolerance is an error of the Gram matrix; with --target, give --features instead.")
        decision = decide(problem, options, start)
        found = as_json(decision_as_dict(problem, decision)) if options.json else f"{problem.description}\n\n{decision}"
        print(printable(found))
        return 0
    advice = _recommend(problem, options)
    if options.json:
        print(as_json({"data": problem.description, **advice.as_dict()}))
    else:
        print(printable(f"{problem.description}\n\n{advice}"))
    return 0


def _recommend(problem: Problem, options: argparse.Namespace) -> Recommendation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # printed with the recommendation
        return recommend(
            problem.X,
            problem.Y,
            problem.kernel,
            options.features,
            options.positive,
            options.tolerance,
            options.seed,
            symmetric=options.symmetric,
            verbose=True,
        )
