"""The report of ``bochner compare``: complete, self-contained, written at once or not at all, and fit for any screen."""

from __future__ import annotations

import json
import os
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from bochner.cli import main, report
from bochner.comparison import _run
from bochner.comparison._candidates import standard_candidates
from support.browser import chrome, resize


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("report")
    X = np.random.default_rng(0).standard_normal((80, 3))
    rows = [",".join(map(str, [*row, row[0] * row[1]])) for row in X]
    (out / "<b>data.csv").write_text("\n".join(["a,b,<script>,y", *rows]))
    quick = ("constant", "linear model", "KernelRidge()")
    chosen = lambda *args, **options: [c for c in standard_candidates(*args, **options) if c.name in quick]  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_run, "standard_candidates", chosen)
        options = ["--target", "y", "--rows", "40", "--draws", "2", "--budget", "1e6", "--out", str(out / "page")]
        assert main(["compare", str(out / "<b>data.csv"), *options]) == 0
    return out / "page" / "index.html"


class Outline(HTMLParser):
    """Tags that are open at the end, headings, and the number of rows of each table."""

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.sources = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.sources += [value for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "link"):
            self.open.append(tag)
        if tag == "table":
            self.rows.append(0)
        if tag == "tr" and "tbody" in self.open:
            self.rows[-1] += 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_complete_and_has_nothing_from_elsewhere(page):
    text = page.read_text()
    outline = Outline(text)
    assert outline.open == [] and outline.rows[:2] == [3, 20] and len(outline.rows) == 3
    assert outline.sources == ["data:,"] and "http" not in text and "<script>" not in text and "<b>data" not in text


def test_the_answer_comes_first(page):
    text = page.read_text()
    answer, table = text.index("Use KernelRidge()"), text.index("<table>")
    assert answer < text.index("from bochner.learn import KernelRidge") < table < text.index("Mechanisms with")
    assert text.count('class="chosen') == 2
    numbers = json.loads((page.parent / "comparison.json").read_text())
    assert numbers["estimators"]["headline"].startswith("Use KernelRidge()")


def test_an_interrupted_report_leaves_the_old_one(tmp_path, monkeypatch):
    old = report._write(tmp_path / "index.html", "old")

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        report._write(tmp_path / "index.html", "new")
    assert old.read_text() == "old" and os.listdir(tmp_path) == ["index.html"]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
def test_reports_have_the_mode_of_other_files(tmp_path):
    (tmp_path / "other").write_text("")
    modes = [path.stat().st_mode for path in (tmp_path / "other", report._write(tmp_path / "page", ""))]
    assert modes[0] == modes[1]


def test_imports_come_first_in_the_code():
    code = report.script("import pandas as pd\n\nX = 1", "from a import b\n\nmodel = b()\nmodel.fit(X, y)")
    assert code == "import pandas as pd\nfrom a import b\n\nX = 1\nmodel = b()\nmodel.fit(X, y)"


def test_in_a_browser_nothing_is_wider_than_the_screen(page, tmp_path):
    with chrome(tmp_path) as browser:
        for width in (400, 800, 1300, 1900):
            resize(browser, width)
            browser.get(page.as_uri())
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
            bars = browser.execute_script("return [...document.querySelectorAll('.bar')].map(b => b.offsetWidth)")
            assert len(bars) > 20 and max(bars[:3]) == bars[2] > 20
        assert not [entry for entry in browser.get_log("browser") if not re.search("favicon", entry["message"])]
