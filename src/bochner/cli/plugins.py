"""Modules of users that register kernels, maps, projections and other variants, for every command."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path

GROUP = "bochner.plugins"
"""Entry points of this group, in installed packages, are loaded by every command."""


class PluginError(ValueError):
    """A plugin that cannot be imported."""


def load_plugins(names: Iterable[str]) -> None:
    """Import the modules of installed plugins, then those that are named: modules, or paths of Python files."""
    for point in entry_points(group=GROUP):
        _imported(f"{point.name} (entry point {point.value})", point.load)
    for name in names:
        if name.endswith(".py"):
            _imported(name, lambda name=name: _from_file(Path(name)))
        else:
            _imported(name, lambda name=name: _from_name(name))


def _from_name(name: str) -> None:
    """Import a module; those in the working folder are found too, as with ``python -m``."""
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)
    importlib.import_module(name)


def _from_file(path: Path) -> None:
    if path.stem in sys.modules:
        return
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


def _imported(name: str, load: object) -> None:
    try:
        load()  # type: ignore[operator]
    except Exception as error:  # whatever the module raises is its author's to mend, and is said in one sentence
        raise PluginError(f"{name} cannot be imported ({type(error).__name__}: {error}).") from error
