"""The layer: what it imports, what it names, and how much its files hold."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from bochner import theory

FILES = sorted(Path(theory.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_formulas_see_neither_maps_nor_projections(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module.startswith("bochner"):
            assert node.module in ("bochner._validation", "bochner.kernels")
        if isinstance(node, ast.Import):
            assert not any(name.name.startswith("bochner") for name in node.names)


def test_import_loads_no_scipy():
    script = "import sys, bochner.theory; print('scipy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_public_name_is_there_and_documented():
    assert sorted(theory.__all__) == sorted(set(theory.__all__))
    for name in theory.__all__:
        assert getattr(theory, name).__doc__


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_files_stay_small(file):
    assert len(file.read_text().splitlines()) <= 200
