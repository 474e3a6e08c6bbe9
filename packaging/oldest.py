"""Prints the lowest version of each dependency that pyproject.toml admits, as constraints for pip."""

from __future__ import annotations

import tomllib
from pathlib import Path

if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    print("\n".join(dependency.replace(">=", "==") for dependency in project["dependencies"]))
