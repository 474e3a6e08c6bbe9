"""The command ``bochner info``."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import Any

from ..._table import format_table, seconds, size
from ..environment import environment
from .survey import survey


def register(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser("info", help="show the installation, and draw every projection once")
    parser.add_argument("--dimension", type=int, default=512, help="d (default 512)")
    parser.add_argument("--rows", type=int, default=1024, help="m (default 1024)")
    parser.add_argument("--picture", type=Path, help="write a picture of the couplings to this file")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the survey; draw the picture if asked."""
    if options.dimension < 2 or options.rows < 1:
        print("bochner info: --dimension must be at least 2 and --rows at least 1.", file=sys.stderr)
        return 2
    for name, value in environment().items():
        print(f"{name:14}{value}")
    print(
        f"\nEvery projection, drawn with d = {options.dimension}, m = {options.rows}, applied to 1000 float32 rows:\n"
    )
    header = ["projection", "unbiased", "W", "memory", "draw", "apply", "cosines between rows"]
    rows = []
    for s in survey(options.dimension, options.rows):
        cosines = f"{s.cosine_mean:+.4f} +- {s.cosine_spread:.0e}"
        shape = f"{s.shape[0]} x {s.shape[1]}"
        rows.append(
            [
                s.name,
                "yes" if s.unbiased else "approx.",
                shape,
                size(s.nbytes),
                seconds(s.draw),
                seconds(s.apply),
                cosines,
            ]
        )
    print(format_table(header, rows))
    print("\nOrthogonal rows have cosine 0, a simplex -1/(d-1); the spread is the standard deviation over pairs.")
    if options.picture:
        if importlib.util.find_spec("matplotlib") is None:
            print("bochner info: a picture needs matplotlib; pip install 'bochner[plot]'.", file=sys.stderr)
            return 2
        from .picture import draw_couplings

        options.picture.parent.mkdir(parents=True, exist_ok=True)
        draw_couplings(options.picture)
        print(f"\nPicture of the couplings: {options.picture}")
    return 0
