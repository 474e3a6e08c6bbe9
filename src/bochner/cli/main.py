"""Parses the command line, imports the user's modules and runs the command; errors are one sentence without a traceback."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from .. import __version__
from ..reporting import printable
from . import compare, info, recommend

GROUP = "bochner.plugins"  # entry points of this group, in installed packages, are loaded by every command


class PluginError(ValueError):
    """A plugin that cannot be imported."""


def load_plugins(names: Iterable[str]) -> list[ModuleType]:
    """Import the modules of installed plugins, then those that are named (modules, or paths of Python files); return all."""
    found = [
        _imported(f"{point.name} (entry point {point.value})", partial(importlib.import_module, point.module))
        for point in entry_points(group=GROUP)
    ]
    for name in names:
        load = partial(_from_file, Path(name)) if name.endswith(".py") else partial(_from_name, name)
        found.append(_imported(name, load))
    return found


def _from_name(name: str) -> ModuleType:
    """Import a module; those in the working folder are found too, as with ``python -m``."""
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)
    return importlib.import_module(name)


def _from_file(path: Path) -> ModuleType:
    if path.stem in sys.modules:
        return sys.modules[path.stem]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.exists() or spec is None or spec.loader is None:
        raise ImportError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module


def _imported(name: str, load: Callable[[], ModuleType]) -> ModuleType:
    try:
        return load()
    except Exception as error:  # whatever the module raises is its author's to mend, and is said in one sentence
        raise PluginError(f"{name} cannot be imported ({type(error).__name__}: {error}).") from error


COMMANDS = (compare, recommend, info)
_LONGEST = 2000  # characters of a message: a screenful, whatever a file holds
OVERVIEW = """bochner {version}: random features for kernels

  bochner compare                       a comparison on a table of scikit-learn, with a report
  bochner compare data.csv --target y   what predicts the column y best, next to other methods
  bochner recommend data.csv            which mechanism estimates a kernel of your rows best, and why
  bochner info                          versions, threads, every projection, and a self-test

Variants of your own are loaded by `--plugin my_module`, or by an entry point.

In Python:

  from bochner.learn import KernelRidge
  model = KernelRidge().fit(X, y)       # chooses features, bandwidth and regularisation
  bochner.compare(X, y)                 # judges it against other methods on the same folds

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
    about = "import a module with variants of your own first, a name or a file; may be repeated"
    main.add_argument("--plugin", action="append", default=[], metavar="MODULE", help=about)
    commands = main.add_subparsers(dest="command", metavar="COMMAND")
    for command in COMMANDS:
        command.register(commands)
    for subparser in commands.choices.values():
        subparser.add_argument("--plugin", action="append", default=[], metavar="MODULE", help=about)
    return main


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 for a missed goal, 2 for an error of the user.

    Without a command, show what there is.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        load_plugins(_plugins_of(given))
    except PluginError as error:
        return _complain("--plugin", str(error))
    options = parser().parse_args(given)
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
        return _complain(options.command, str(error).removeprefix(f"{options.command}: "))


def _plugins_of(arguments: Sequence[str]) -> list[str]:
    """Plugins that are named anywhere; they must be loaded before the options, whose choices they add to, are known."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    early.add_argument("--plugin", action="append", default=[])
    try:
        return list(early.parse_known_args(arguments)[0].plugin)
    except argparse.ArgumentError:
        return []  # without a name; the parser of the command says so


def _complain(command: str, message: str, code: int = 2) -> int:
    shown = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."
    print(f"bochner {command}: {printable(shown)}", file=sys.stderr)
    return code
