"""The generated parts of the documentation are up to date."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
GENERATED = runpy.run_path(str(DOCS / "generate.py"), run_name="docs_generate")["pages"]()


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_generated_pages_are_current(name):
    assert (DOCS / name).read_text() == GENERATED[name], "run: python docs/generate.py"
