"""Where numbers were measured: versions, processor and threads."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import bochner
from bochner.linalg.engine import available_threads


def environment() -> dict[str, str]:
    """Versions, processor and threads of this machine, by name."""
    facts = {"bochner": bochner.__version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "numba", "scikit-learn", "torch"):
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    return facts | {"processor": _processor(), "threads": str(available_threads())}


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
