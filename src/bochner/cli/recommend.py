"""The command ``bochner recommend``: mechanisms ranked by their predicted error of the kernel."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

from ..reporting import as_json, printable
from ..selection import DEFAULT_FEATURES, recommend
from .problem import add_arguments, read_problem


def register(commands: Any) -> None:
    """Add the command to the parser."""
    about = "recommend a mechanism and a number of features for the kernel of the data"
    parser = commands.add_parser("recommend", help=about, description=about)
    features = f"width of the features (default {DEFAULT_FEATURES}); with --tolerance, the largest number allowed"
    add_arguments(parser, features, default=None)
    parser.add_argument("--positive", action="store_true", help="only positive features, as required for attention")
    parser.add_argument("--symmetric", action="store_true", help="only features that are the same for queries and keys")
    parser.add_argument("--tolerance", type=float, help="relative error to reach, with as few features as possible")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the recommendation."""
    problem = read_problem(options)
    about = f"{problem.description}; {problem.kernel!r}"
    asked = {"n_features": options.features, "positive": options.positive, "symmetric": options.symmetric}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # printed with the recommendation
        advice = recommend(
            problem.X, problem.Y, problem.kernel, **asked, tolerance=options.tolerance, rng=options.seed, verbose=True
        )
    print(as_json({"data": about, **advice.as_dict()}) if options.json else printable(f"{about}\n\n{advice}"))
    return 0
