"""No page states a measurement that nobody can check: numbers come from results, or from code.

Generated tables and printed output are held to committed results by `test_docs`.  What is left is prose, in which a ratio, a
percentage or a decimal number would be typed by hand.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GENERATED = {"docs/accuracy.md", "docs/speed.md", "docs/families.md"}
"""Pages whose every sentence is written from results."""
PAGES = {"README.md", *(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))} - GENERATED
PAGES |= {f"docs/tutorials/{p.name}" for p in (ROOT / "docs/tutorials").glob("*.md")}
MEASURED = re.compile(
    r"(?<![\w.,])\d+(?:\.\d+)? ?(?:x|times|%|percent|per cent|ms|us|seconds)(?!\w)|(?<![\w.])0?\.\d{2,}(?!\w|\.\d)"
)
LEVELS = {"95 %", "90 %", "0.05", "0.001"}
"""Levels of intervals and tests, which are asked for."""
SETTINGS = {
    "docs/attention.md": {"100 times"},  # of later tokens in a test
    "docs/faq.md": {"73 %"},  # a question that users of another library asked
    "docs/frames.md": {"71 %"},  # in a message
    "docs/gaussian_process.md": {"9 %"},  # one over the root of the number of probes
    "docs/learn.md": {"3 %", "1 %", "0.06"},  # thresholds of the search, and the size of an array
    "docs/recommend.md": {"240 times"},  # the most draws
    "docs/sampled_softmax.md": {"1 %"},  # a share that is a default
    "docs/statistics.md": {"5 %"},  # the level
}
"""Numbers in prose that no run measured: constants of the code, or words of others."""


def prose(page: str) -> str:
    """Text without code, tables, generated parts, links and formulas."""
    text = (ROOT / page).read_text()
    for pattern in (r"```.*?```", r"<!-- (?P<n>[^>]*) -->.*?<!-- end of (?P=n) -->", r"\$[^$]*\$"):
        text = re.sub(pattern, "", text, flags=re.DOTALL)
    text = re.sub(r"^\|.*$", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)


def claims(text: str) -> list[str]:
    """Measurements in a text."""
    return [found[0] for found in MEASURED.finditer(text)]


@pytest.mark.parametrize("page", sorted(PAGES))
def test_prose_states_no_typed_measurement(page):
    assert set(claims(prose(page))) - LEVELS == SETTINGS.get(page, set())


@pytest.mark.parametrize("page", ["docs/index.md", "CHANGELOG.md"])
def test_the_number_of_closed_forms_is_that_of_the_table(page):
    head, *rows = (ROOT / "docs/maps.md").read_text().partition("operations per row")[2].split("\n\n")[0].splitlines()
    column = [title.strip() for title in head.split("|")].index("error in closed form") - len(head.split("|"))
    found = [row.split("|")[column].strip() for row in rows[1:]]
    text = re.sub(r"of the (?=\d)", "of ", (ROOT / page).read_text())
    assert f"{found.count('yes')} of {len(found)} named mechanisms" in text


def test_a_typed_measurement_is_found():
    assert claims("It is 28 x faster, 4.2 times at best, has 7 % less error and a cosine of .986.") == [
        "28 x", "4.2 times", "7 %", ".986"
    ]  # fmt: skip
    assert claims("From 2048 tokens on, in 3 dimensions, Python 3.11, with 64 rows") == []


def test_300_classes_of_attention_convert_agree_come_back_and_write_the_same():
    rows = json.loads((ROOT / "docs/families.json").read_text())["rows"]
    whole = [
        row for row in rows if row["converts"] and row["agrees"] and row["saves"] and row["generates"] is not False
    ]
    assert len(whole) >= 300


@pytest.mark.parametrize("page", ["docs/attention.md", "docs/wrong_tool.md"])
def test_prose_on_trained_models_types_no_perplexity(page):
    assert re.findall(r"perplexity of [\d.]+", prose(page)) == []
