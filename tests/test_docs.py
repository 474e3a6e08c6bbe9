"""The documentation builds without a warning, and its generated parts are up to date."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
GENERATED = runpy.run_path(str(DOCS / "generate.py"), run_name="docs_generate")["pages"]()


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_generated_pages_are_current(name):
    assert (DOCS / name).read_text() == GENERATED[name], "run: python docs/generate.py"


def test_documentation_builds(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Approximation" in (tmp_path / "maps.html").read_text()


def test_links_of_the_readme_resolve():
    readme = DOCS.parent / "README.md"
    links = re.findall(r"\]\(([^)#:]+)\)", readme.read_text())
    assert len(links) >= 5
    for link in links:
        assert (readme.parent / link).exists(), link
