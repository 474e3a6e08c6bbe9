"""No page states a measurement that nobody can check: numbers come from results, or from code.

Generated tables and printed output are held to committed results by `test_docs`.  What is left is prose, in which a ratio, a
percentage or a decimal number would be typed by hand.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GENERATED = {"docs/accuracy.md", "docs/speed.md", "docs/families.md", "docs/references.md"}
"""Pages whose every sentence is written from results, or from the bibliography."""
TABLES = {"docs/data.md", "docs/errata.md"}
"""Pages whose tables are written from facts without a marker."""
PAGES = {"README.md", "CHANGELOG.md", *(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))} - GENERATED
PAGES |= {f"docs/tutorials/{p.name}" for p in (ROOT / "docs/tutorials").glob("*.md")}
UNIT = r"x|times|fold|%|percent|per cent|ns|us|ms|s|seconds?|minutes?|hours?|[kMGT]B"
WORD = r"two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|fifty|a hundred"
SHARE = r"half|a third|two thirds|a quarter|a fifth|a tenth"
MEASURED = re.compile(
    rf"(?<![\w.,])\d[\d,]*(?:\.\d+)?[ -]?(?:{UNIT})(?!\w)"
    rf"|\b(?:{WORD})(?: |-)(?:times|fold)(?: (?:faster|slower|lower|higher|as|less|more|the))"
    rf"|\b(?:{SHARE}) of the (?:time|error|memory)\b"
    r"|\b\d+ of (?:the )?\d+ (?=tables|data sets|cases|comparisons|claims|experiments)"
    r"|(?<!Python )(?<![\w.])\d*\.\d{2,}(?!\w|\.\d)"
)
LEVELS = {"95 %", "90 %", "0.05", "0.001"}
"""Levels of intervals and tests, which are asked for."""
SETTINGS = {
    "docs/command_line.md": {"250 MB", "1 GB"},  # limits
    "docs/attention.md": {"100 times"},  # of later tokens in a test
    "docs/faq.md": {"73 %"},  # a question that users of another library asked
    "docs/frames.md": {"71 %"},  # in a message
    "docs/gaussian_process.md": {"9 %", "8 GB"},  # one over the root of the number of probes, and the size of a matrix
    "docs/installation.md": {"3.11", "3.14"},  # versions of Python
    "docs/learn.md": {"3 %", "1 %", "1.35"}  # thresholds of the search, and where a loss becomes linear
    | {"128 MB", "1.6 GB", "3 GB", "8.6 GB", "16 GB", "0.8 MB", "0.06 MB", "2.2 MB", "1.1 MB"}  # sizes of arrays
    | {"100,000 x", "half of the time"},  # the size of a case, and a threshold
    "docs/limits.md": {"250 MB", "1 GB"},  # limits
    "docs/recommend.md": {"240 times"},  # the most draws
    "docs/reproduction.md": {"half of the time"},  # two processes
    "docs/sampled_softmax.md": {"1 %"},  # a share that is a default
    "docs/statistics.md": {"5 %"},  # the level
    "docs/tutorials/five_minutes.md": {"a quarter of the error"},  # one over the root of sixteen
    "docs/tutorials/million_rows.md": {"8 TB"},  # the size of a matrix
}
"""Numbers in prose that no run measured: constants of the code, sizes of arrays, or words of others."""


def prose(page: str) -> str:
    """Text without code, generated tables and parts, links and formulas."""
    text = (ROOT / page).read_text()
    if page == "CHANGELOG.md":
        text = text.partition("\n## 0.1.0")[0]
    return without_generated(text, tables=page in TABLES)


def without_generated(text: str, tables: bool = False) -> str:
    """Text without code, links, formulas, and what is written from results: parts between markers, tables after one."""
    for pattern in (r"```.*?```", r"<!-- (?P<n>[^>]*) -->.*?<!-- end of (?P=n) -->", r"\$[^$]*\$"):
        text = re.sub(pattern, "", text, flags=re.DOTALL)
    text = re.sub(r"<!-- [^>]* -->\n+(?:\|.*\n)+", "", text)
    text = re.sub(r"^\|.*$", "", text, flags=re.MULTILINE) if tables else text
    return re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)


def claims(text: str) -> list[str]:
    """Measurements in a text."""
    return [" ".join(found[0].split()) for found in MEASURED.finditer(text)]


@pytest.mark.parametrize("page", sorted(PAGES))
def test_prose_states_no_typed_measurement(page):
    assert set(claims(prose(page))) - LEVELS == SETTINGS.get(page, set())


def test_prose_of_the_gallery_states_no_typed_measurement():
    """Scripts print what they measure."""
    found = []
    for path in sorted((ROOT / "examples").glob("*/plot_*.py")):
        text = path.read_text()
        comments = re.findall(r"^# (.*)$", text, re.MULTILINE)
        said = re.sub(r"``[^`]*``|:math:`[^`]*`", "", "\n".join([ast.get_docstring(ast.parse(text)) or "", *comments]))
        found += [(path.name, claim) for claim in claims(said) if claim not in LEVELS]
    assert found == [("plot_how_many_features.py", "four times as")]  # one over the root of the number


@pytest.mark.parametrize("page", ["docs/index.md", "CHANGELOG.md"])
def test_the_number_of_closed_forms_is_that_of_the_table(page):
    head, *rows = (ROOT / "docs/maps.md").read_text().partition("operations per row")[2].split("\n\n")[0].splitlines()
    column = [title.strip() for title in head.split("|")].index("error in closed form") - len(head.split("|"))
    found = [row.split("|")[column].strip() for row in rows[1:]]
    text = re.sub(r"of the (?=\d)", "of ", (ROOT / page).read_text())
    assert f"{found.count('yes')} of {len(found)} named mechanisms" in text


DIGITS = ["28 x", "4.2 times", "7 %", ".986", "1.44", "5.7-fold", "3.2 s", "40 ms", "12 minutes", "0.7 GB"]
WORDS = ["three times faster", "ten times as", "two thirds of the time", "half of the error", "21 of 24"]


@pytest.mark.parametrize("claim", [*DIGITS, *WORDS])
def test_a_typed_measurement_is_found(claim):
    text = f"Here a machine of ours needs {claim} tables at 2048 tokens, in 3 dimensions, on Python 3.11, with 64 rows."
    assert claims(text) == [claim]
    table = f"| case | value |\n|---|---|\n| ours | {claim} tables |\n"
    assert claims(without_generated(table)) == [claim] and claims(without_generated(f"<!-- peers -->\n\n{table}")) == []


def test_settings_are_no_measurements():
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
