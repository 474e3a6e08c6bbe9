"""Pages can be read: no paragraph is a wall."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "tutorials").glob("*.md"))
MOST_WORDS = 120


def walls(text: str) -> list[str]:
    """Paragraphs and items of lists with too many words; code, tables and the deviations of experiments are none."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    blocks = [item for paragraph in prose.split("\n\n") for item in re.split(r"\n(?=- |\d+\. )", paragraph)]
    blocks = [block for block in blocks if not block.lstrip().startswith(("|", "*Deviations.*"))]
    return [block for block in blocks if len(block.split()) > MOST_WORDS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_paragraph_is_a_wall(page):
    assert not walls(page.read_text())


def test_a_wall_is_found():
    wall = "word " * (MOST_WORDS + 1)
    assert walls(f"short\n\n{wall}\n\n| {wall} |") == [wall]
    assert not walls(f"```\n{wall}\n```\n\n*Deviations.* {wall}")
