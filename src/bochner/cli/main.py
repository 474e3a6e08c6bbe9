"""Parses the command line and runs the command; errors are reported in one sentence without a traceback."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from .. import __version__
from .._table import printable
from . import compare, info, recommend

COMMANDS = (compare, recommend, info)
_LONGEST = 2000
OVERVIEW = """bochner {version}: random features for kernels

  bochner recommend data.csv            which mechanism to use for your table, and why
  bochner compare data.csv              measure every mechanism on it, and write a report
  bochner compare data.csv --target y   what predicts the column y best, next to other methods
  bochner compare                       a report on embedded data
  bochner info                          versions, threads, every projection, and a self-test

An example that needs no file, with a data set by name:

  bochner recommend wine --features 64

In Python:

  from bochner.learn import KernelRidge
  model = KernelRidge().fit(X, y)       # chooses features, bandwidth and regularisation

`bochner COMMAND --help` lists the options of a command.
"""


class Parser(argparse.ArgumentParser):
    """A parser whose error messages are safe to print."""

    def error(self, message: str) -> NoReturn:
        """Print usage and the error message, and exit."""
        super().error(printable(" ".join(message.split())))


def parser() -> argparse.ArgumentParser:
    """The parser of ``bochner``."""
    main = Parser(prog="bochner", description="Random features for kernels.")
    main.add_argument("--version", action="version", version=f"bochner {__version__}")
    commands = main.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS:
        command.register(commands)
    return main


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 for a missed goal, 2 for an error of the user.

    Without a command, show what there is.
    """
    options = parser().parse_args(arguments)
    if options.command is None:
        print(OVERVIEW.format(version=__version__), end="")
        return 0
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
