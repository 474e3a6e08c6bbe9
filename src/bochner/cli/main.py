"""Reads the command line and calls the command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .. import __version__
from .bench import command as bench
from .compare import command as compare
from .info import command as info
from .recommend import command as recommend

COMMANDS = (compare, recommend, bench, info)


def parser() -> argparse.ArgumentParser:
    """The parser of ``bochner``."""
    main = argparse.ArgumentParser(prog="bochner", description="Random features for kernels.")
    main.add_argument("--version", action="version", version=f"bochner {__version__}")
    commands = main.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.register(commands)
    return main


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    options = parser().parse_args(arguments)
    return int(options.run(options))
