"""No page that a newcomer reads first states a measurement that nobody can check: numbers come from results, or from code.

Generated tables and printed output are held to committed results by `test_docs`.  What is left is prose, in which a ratio, a
percentage or a decimal number would be typed by hand.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FIRST = [
    "README.md",
    "docs/index.md",
    "docs/choose.md",
    *(f"docs/tutorials/{p.name}" for p in (ROOT / "docs/tutorials").glob("*.md")),
]
MEASURED = re.compile(r"(?<![\w.])\d+(?:\.\d+)? ?(?:x|times|%|percent|per cent)(?!\w)|(?<![\w.])0?\.\d{2,}(?!\w)")


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


@pytest.mark.parametrize("page", sorted(FIRST))
def test_prose_of_first_pages_states_no_typed_measurement(page):
    assert claims(prose(page)) == []


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
