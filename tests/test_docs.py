"""The documentation builds without a warning, and its generated parts are up to date."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import bochner

DOCS = Path(__file__).parent.parent / "docs"
GENERATED = runpy.run_path(str(DOCS / "generate.py"), run_name="docs_generate")["pages"]()
MODULES = [name for name in bochner.__all__ if hasattr(getattr(bochner, name), "__all__")]
ELSEWHERE = {("maps", "NoClosedForm")}
"""Described in `bochner.approximation`."""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The pages as HTML."""
    out = tmp_path_factory.mktemp("html")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(DOCS), str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_generated_pages_are_current(name):
    assert (DOCS / name).read_text() == GENERATED[name], "run: python docs/generate.py"


def test_documentation_builds(built):
    assert "Approximation" in (built / "maps.html").read_text()


@pytest.mark.parametrize("module", MODULES)
def test_every_class_and_function_is_on_the_page_of_the_api(built, module):
    described = set(re.findall(r'id="bochner\.([\w.]+)"', (built / "api.html").read_text()))
    package = getattr(bochner, module)
    public = {name for name in package.__all__ if callable(getattr(package, name)) and (module, name) not in ELSEWHERE}
    assert {f"{module}.{name}" for name in public} <= described


def test_every_page_is_introduced_on_the_first_page():
    first = (DOCS / "index.md").read_text()
    for page in DOCS.glob("*.md"):
        assert page.stem == "index" or re.search(rf"^- \[[^\]]+\]\({page.name}\): ", first, re.MULTILINE), page.name


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{path.name}" for path in sorted(DOCS.glob("*.md")))])
def test_links_resolve(page):
    path = DOCS.parent / page
    for link in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
        assert (path.parent / link).exists(), link
