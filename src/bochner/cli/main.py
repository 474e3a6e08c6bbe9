"""Parses the command line and runs the command; errors are reported in one sentence without a traceback."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from .. import __version__
from .._table import printable
from . import bench, compare, info, recommend, reproduce

COMMANDS = (compare, recommend, reproduce, bench, info)
_LONGEST = 2000


class Parser(argparse.ArgumentParser):
    """A parser whose error messages are safe to print."""

    def error(self, message: str) -> NoReturn:
        """Print usage and the error message, and exit."""
        super().error(printable(" ".join(message.split())))


def parser() -> argparse.ArgumentParser:
    """The parser of ``bochner``."""
    main = Parser(prog="bochner", description="Random features for kernels.")
    main.add_argument("--version", action="version", version=f"bochner {__version__}")
    commands = main.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.register(commands)
    return main


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 for a missed goal, 2 for an error of the user."""
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except BrokenPipeError:  # the output was closed, as with `bochner info | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _complain(options.command, "interrupted.", 130)
    except MemoryError:
        return _complain(options.command, "there is not enough memory; ask for fewer rows, columns or features.")
    except (ValueError, OSError) as error:
        return _complain(options.command, str(error))


def _complain(command: str, message: str, code: int = 2) -> int:
    shown = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."
    print(f"bochner {command}: {printable(shown)}", file=sys.stderr)
    return code
