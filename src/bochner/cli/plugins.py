"""Modules of users that register kernels, maps, projections and other variants, for every command."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

GROUP = "bochner.plugins"
"""Entry points of this group, in installed packages, are loaded by every command."""


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
