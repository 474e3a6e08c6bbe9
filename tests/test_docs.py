"""The documentation builds without a warning, its generated parts are up to date, and its pages need no network."""

from __future__ import annotations

import base64
import re
import runpy
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from selenium.webdriver.support.ui import WebDriverWait

import bochner
from support.browser import chrome, resize
from support.checks import THOROUGH

DOCS = Path(__file__).parent.parent / "docs"
MODULES = [name for name in bochner.__all__ if hasattr(getattr(bochner, name), "__all__")]
ELSEWHERE = {("maps", "NoClosedForm")}
"""Described in `bochner.approximation`."""
LISTS = ("search.html", "genindex.html", "py-modindex.html")
"""Pages that Sphinx writes by itself."""
PATIENCE = 300
"""Seconds after which a page will never show what it should."""
EMPTY = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=")
"""A picture of one point, in the format PNG."""
PAGES = sorted(
    str(path.relative_to(DOCS))
    for path in DOCS.rglob("*.md")
    if not {"_build", "gallery", "generated"} & set(path.parts)
)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The pages as HTML; contents of a page without classes and functions, which take a quarter of the time.

    They are built from a copy, since several processes may do so at a time and the gallery is written beside its sources.
    Its scripts are run by `test_gallery`, so that their pictures are missing here.  Tests of the laboratory draw a figure of
    every experiment; here they are empty, unless everything is asked for.
    """
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs", ignore=shutil.ignore_patterns("_build", "gallery", "generated"))
    for name in ("lab", "examples"):
        (folder / name).symlink_to(DOCS.parent / name)
    (figures := folder / "docs" / "figures").mkdir(exist_ok=True)
    for result in (folder / "lab" / "results").glob("*/full/result.json"):
        if not THOROUGH:
            (figures / f"{result.parents[1].name}.png").write_bytes(EMPTY)
    options = ["-W", "-q", "-b", "html", "-D", "toc_object_entries=0", "-D", "plot_gallery=0"]
    options += ["-D", "suppress_warnings=ref.python,image.not_readable"]
    command = [sys.executable, "-m", "sphinx", *options, str(folder / "docs"), str(folder / "html")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "html"


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


@pytest.fixture(scope="module")
def pages(built) -> dict[Path, Page]:
    """Every page, read once."""
    return {path: Page(path) for path in sorted(built.rglob("*.html"))}


def test_generated_pages_are_current():
    generated = runpy.run_path(str(DOCS / "generate.py"), run_name="docs_generate")["pages"]()
    assert len(generated) > 30
    assert [name for name in generated if (DOCS / name).read_text() != generated[name]] == [], "python docs/generate.py"


PRINTED = runpy.run_path(str(DOCS / "printed_outputs.py"))


@pytest.mark.parametrize("page", [p for p in PRINTED["printed_pages"]() if p.name not in PRINTED["TIMED"]], ids=str)
def test_printed_output_is_what_the_code_prints(page):
    assert PRINTED["stale"](page) == [], f"python docs/generate.py --printed {page.stem}"


def test_printed_output_that_is_stale_is_found(tmp_path):
    page = tmp_path / "page.md"
    shown = "```python\n>>> print('error  0.5 in 3 s')  # doctest: +SKIP\n\n```\n\n```text\n{}\n```\n"
    for text, current in (("error  0.5 in 70 ms", True), ("error  0.4 in 3 s", False), ("loss  0.5 in 3 s", False)):
        page.write_text(shown.format(text))
        assert (PRINTED["stale"](page) == []) is current


def test_tables_of_timed_pages_have_the_columns_of_today():
    from bochner.comparison._comparison import _HEADER

    titles = [title.format(measure="error rate", score="accuracy") for title in _HEADER]
    assert re.search(r" +".join(titles), (DOCS / "recommend.md").read_text())


def test_documentation_builds(built):
    assert "Approximation" in (built / "maps.html").read_text()


@pytest.mark.parametrize("module", MODULES)
def test_every_class_and_function_has_a_page(built, module):
    package = getattr(bochner, module)
    listed = (built / "reference" / f"{module}.html").read_text()
    pages = set(re.findall(r'href="generated/bochner\.([\w.]+)\.html#', listed))
    public = {name for name in package.__all__ if callable(getattr(package, name)) and (module, name) not in ELSEWHERE}
    if module == "extending":  # names that another module has too are described there
        public = {
            name
            for name in public
            if not any(name in getattr(bochner, other).__all__ for other in MODULES[:] if other != module)
        }
    assert {f"{module}.{name}" for name in public} <= pages
    assert all((built / "reference" / "generated" / f"bochner.{page}.html").exists() for page in pages)


def test_fitted_attributes_keep_their_underscore(built):
    page = (built / "reference" / "generated" / "bochner.learn.GaussianProcess.html").read_text()
    assert "<strong>n_features_in_</strong>" in page and "<strong>n_features_in</strong>" not in page


def test_estimators_come_by_importance_with_the_examples_that_use_them(built):
    page = (built / "reference" / "learn.html").read_text()
    assert page.index("bochner.learn.KernelRidge.html") < page.index("bochner.learn.AngularHash.html")
    assert "plot_intervals" in (built / "reference" / "generated" / "bochner.learn.KernelRidge.html").read_text()


def test_every_page_is_introduced_on_the_first_page_of_its_folder():
    for page in PAGES:
        path = DOCS / page
        first = DOCS / "index.md" if path.parent.name in ("docs", "tutorials") else path.parent / "index.md"
        place = path.relative_to(first.parent) if path.name != "index.md" else Path("index.md")
        assert path == first or re.search(rf"^- \[[^\]]+\]\({place}\): ", first.read_text(), re.MULTILINE), page


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *(f"docs/{page}" for page in PAGES)])
def test_links_resolve(page):
    path = DOCS.parent / page
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text()):
        made = {"figures", "gallery"} & set(Path(link).parts)  # by the build, whose links another test follows
        assert made or (path.parent / link).exists(), link


def test_links_and_anchors_of_the_built_pages_resolve(built, pages):
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.scheme or path.name in LISTS:
                continue
            if not target.exists() or (
                parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors
            ):
                broken.append(f"{path.relative_to(built)}: {link}")
    assert not broken, broken[:20]


def test_pages_load_nothing_from_the_network(built, pages):
    for path, page in pages.items():
        assert [source for source in page.loaded if urlsplit(source).netloc] == [], path
    for style in built.rglob("*.css"):
        assert not re.search(r"(url\(|@import )['\"]?(https?:)?//", style.read_text()), style


def test_images_have_a_text(pages):
    for path, page in pages.items():
        thumbnails = "gallery" in path.parts or "generated" in path.parts  # beside their titles: an empty text is right
        assert all("alt" in image and (image["alt"] or thumbnails) for image in page.images), path


def test_formulas_are_markup(built):
    page = (built / "frames.html").read_text()
    assert "<math" in page and "\\(" not in page and "mathjax.js" not in page.lower()
    cut = re.compile(r"<(p|td|li|dd)[^>]*>[^<]*\$\\")  # TeX that a bar in a table cut off
    assert not [path for path in built.rglob("*.html") if cut.search(path.read_text())]
    assert (built / "_static" / "STIXTwoMath-Regular.ttf").exists()


def test_pages_in_a_browser_without_a_network(built, pages, tmp_path):
    tables = "[...document.querySelectorAll('.table-wrapper')]"
    words = "!table.querySelector('math')"  # formulas do not break: their tables scroll in a box of their own
    wide = f"return {tables}.filter(table => {words} && table.scrollWidth > table.clientWidth + 1).length"
    tabled = [
        path for path in pages if path.parent == built and "<table" in path.read_text() and path.name not in LISTS
    ]
    narrow = [built / name for name in ("index.html", "accuracy.html", "distributed.html", "gallery/index.html")]
    with chrome(tmp_path) as browser:
        for width, shown in ((1300, tabled), (400, narrow)):
            resize(browser, width)
            for path in shown:
                browser.get(path.as_uri())
                assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), path
                assert width < 1000 or browser.execute_script(wide) == 0, f"{path}: a table is wider than the page"
        severe = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
        assert [message for message in severe if "/gallery/" not in message] == []  # whose scripts are not run here
        browser.get((built / "frames.html").as_uri())
        font = """return document.fonts.check('16px "STIX Two Math Site"')"""
        WebDriverWait(browser, PATIENCE).until(lambda page: page.execute_script(font))
        assert browser.execute_script("return document.querySelector('math').getBoundingClientRect().height") > 5
        browser.get(f"{(built / 'search.html').as_uri()}?q=orthoplex")
        found = "return document.querySelectorAll('#search-results li').length"
        WebDriverWait(browser, PATIENCE).until(lambda page: page.execute_script(found) > 3)
