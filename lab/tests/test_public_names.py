"""The laboratory and the examples use public names of the library only: no module and no name with an underscore."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "lab" / "src").rglob("*.py"), *(ROOT / "examples").rglob("*.py")])
ALLOWED = {"__version__"}


def private_uses(text: str) -> list[str]:
    """Private modules and names of bochner that a file imports, or reaches as attributes of what it imported."""
    found, modules = [], set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "bochner":
            path = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            found += [f"{node.module}: {part}" for part in path if part.startswith("_") and part not in ALLOWED]
            modules |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "bochner":
                    found += [alias.name for part in alias.name.split(".") if part.startswith("_")]
                    modules.add(alias.asname or "bochner")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and node.attr not in ALLOWED:
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in modules:
                found.append(f"{root.id} ... {node.attr}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_public_names_are_used(path):
    assert private_uses(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "from bochner._random import streams",
        "from bochner.learn import _automatic",
        "from bochner.nn._report import attention_report",
        "import bochner.nn._report",
        "from bochner import nn\nnn._report.x",
        "import bochner\nbochner.linalg._waves.f()",
    ],
)
def test_private_names_are_found(text):
    assert private_uses(text)


def imported_names() -> list[tuple[str, str]]:
    """Pairs of a module of the library and a name that the laboratory or an example imports from it."""
    found = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "bochner":
                found |= {(str(node.module), alias.name) for alias in node.names}
    return sorted(found)


def test_imported_names_are_declared_public():
    """What a module lists in ``__all__`` is its interface; submodules of a package count too."""
    undeclared = []
    for module, name in imported_names():
        home = importlib.import_module(module)
        listed = getattr(home, "__all__", None)
        if (
            listed is not None
            and name not in listed
            and not (ROOT / "src" / module.replace(".", "/") / f"{name}.py").exists()
        ):
            undeclared.append(f"{module}.{name}")
    assert undeclared == []
