"""The documentation builds without a warning, its generated parts are up to date, and its pages need no network."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import bochner

DOCS = Path(__file__).parent.parent / "docs"
GENERATED = runpy.run_path(str(DOCS / "generate.py"), run_name="docs_generate")["pages"]()
MODULES = [name for name in bochner.__all__ if hasattr(getattr(bochner, name), "__all__")]
ELSEWHERE = {("maps", "NoClosedForm")}
"""Described in `bochner.approximation`."""
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if "_build" not in path.parts)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The pages as HTML."""
    out = tmp_path_factory.mktemp("html")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(DOCS), str(out)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


class Page(HTMLParser):
    """What a page refers to, and what can be referred to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := found.get(key))}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"] or "")
        if tag == "img":
            self.images.append(found)
        if tag in ("script", "img", "link", "iframe") and (source := found.get("src") or found.get("href")):
            self.loaded.append(source)


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_generated_pages_are_current(name):
    assert (DOCS / name).read_text() == GENERATED[name], "run: python docs/generate.py"


def test_documentation_builds(built):
    assert "Approximation" in (built / "maps.html").read_text()


@pytest.mark.parametrize("module", MODULES)
def test_every_class_and_function_is_on_the_page_of_its_module(built, module):
    described = set(re.findall(r'id="bochner\.([\w.]+)"', (built / "reference" / f"{module}.html").read_text()))
    package = getattr(bochner, module)
    public = {name for name in package.__all__ if callable(getattr(package, name)) and (module, name) not in ELSEWHERE}
    assert {f"{module}.{name}" for name in public} <= described


def test_every_page_is_introduced_on_the_first_page_of_its_folder():
    for page in PAGES:
        path = DOCS / page
        first = DOCS / "index.md" if path.parent.name in ("docs", "tutorials") else path.parent / "index.md"
        place = path.relative_to(first.parent) if path.name != "index.md" else Path("index.md")
        said = (
            rf"^- \[[^\]]+\]\({place}\): " if path.parent.name != "gallery" else rf"^:link: {path.stem}$"
        )  # cards show a title and a figure
        assert path == first or re.search(said, first.read_text(), re.MULTILINE), page


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *(f"docs/{page}" for page in PAGES)])
def test_links_resolve(page):
    path = DOCS.parent / page
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
        assert (path.parent / link).exists(), link


def test_links_and_anchors_of_the_built_pages_resolve(built):
    page = cache(Page)
    broken = []
    for path in built.rglob("*.html"):
        for link in page(path).links:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.scheme or path.name in ("search.html", "genindex.html", "py-modindex.html"):
                continue
            if not target.exists() or (
                parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in page(target).anchors
            ):
                broken.append(f"{path.relative_to(built)}: {link}")
    assert not broken, broken[:20]


def test_pages_load_nothing_from_the_network(built):
    for path in built.rglob("*.html"):
        assert [source for source in Page(path).loaded if urlsplit(source).netloc] == [], path
    for style in built.rglob("*.css"):
        assert not re.search(r"(url\(|@import )['\"]?(https?:)?//", style.read_text()), style


def test_images_have_a_text(built):
    for path in built.rglob("*.html"):
        assert all(image.get("alt") for image in Page(path).images), path


def test_formulas_are_markup(built):
    page = (built / "frames.html").read_text()
    assert "<math" in page and "\\(" not in page and "mathjax.js" not in page.lower()
    assert (built / "_static" / "STIXTwoMath-Regular.ttf").exists()
