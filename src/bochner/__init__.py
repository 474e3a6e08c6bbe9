"""Random features for kernels: kernel machines, attention, graphs and tests in linear time, with known errors.

``import bochner`` is fast: submodules are imported when they are first used.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

__version__ = "0.2.0"

_MODULES = (
    "adapters",
    "approximation",
    "catalogue",
    "comparison",
    "distributed",
    "extending",
    "geometries",
    "graphs",
    "kernels",
    "learn",
    "linalg",
    "maps",
    "monte_carlo",
    "nn",
    "optimize",
    "projections",
    "radii",
    "rotations",
    "selection",
    "statistics",
    "theory",
)
_NAMES = {
    "Approximation": "approximation",
    "FeatureMap": "approximation",
    "NoClosedForm": "approximation",
    "citation": "_citation",
    "compare": "comparison",
    "expectation": "monte_carlo",
    "load": "approximation",
    "mechanism": "catalogue",
    "recommend": "selection",
    "threads": "linalg",
}

_NEEDS = {"adapters": "torch", "distributed": "dask", "nn": "torch"}
"""Modules that raise an error with a command for pip where another package is missing."""


def _installed(module: str) -> bool:
    return module not in _NEEDS or importlib.util.find_spec(_NEEDS[module]) is not None


__all__ = ["__version__", *filter(_installed, _MODULES), *_NAMES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _NAMES:
        return getattr(importlib.import_module(f".{_NAMES[name]}", __name__), name)
    raise AttributeError(f"module 'bochner' has no attribute {name!r}; it has {', '.join(sorted(__all__))}.")


def __dir__() -> list[str]:
    return sorted(__all__)
