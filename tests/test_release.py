"""What a release needs: one version everywhere, one list of dependencies, and the files that users look for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import bochner

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_versions_agree():
    released = bochner.__version__.partition(".dev")[0]
    assert f"version: {released}\n" in (ROOT / "CITATION.cff").read_text()
    assert f'set version = "{released}"' in (ROOT / "packaging" / "conda" / "meta.yaml").read_text()


def test_conda_recipe_has_the_dependencies_of_the_package():
    recipe = (ROOT / "packaging" / "conda" / "meta.yaml").read_text()
    needed = re.findall(
        r"^    - ([\w-]+) (>=[\w.]+)$", recipe.partition("  run:")[2].partition("\ntest:")[0], re.MULTILINE
    )
    assert sorted(f"{name}{bound}" for name, bound in needed) == sorted(
        [*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"]
    )


@pytest.mark.parametrize("name", ["LICENSE", "CITATION.cff", "SECURITY.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md"])
def test_files_that_users_look_for(name):
    assert (ROOT / name).stat().st_size > 0
    assert (Path(bochner.__file__).parent / "py.typed").exists()
