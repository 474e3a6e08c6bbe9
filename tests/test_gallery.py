"""Every script of the gallery draws its figure, and the site shows it with the numbers of its last full run."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(path.stem for path in (ROOT / "examples" / "gallery").glob("*.py"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_draws_its_figure(name, tmp_path):
    figure, caption = runpy.run_path(str(ROOT / "examples" / "gallery" / f"{name}.py"))["draw"](smoke=True)
    figure.savefig(tmp_path / "figure.png", dpi=40)
    assert len(figure.axes) > 0 and caption.endswith(".") and "nan" not in caption


def test_every_script_is_on_the_site():
    groups = runpy.run_path(str(ROOT / "docs" / "gallery_pages.py"))["GROUPS"]
    assert sorted(name for group in groups.values() for name in group) == SCRIPTS
    assert sorted(json.loads((ROOT / "docs" / "gallery" / "captions.json").read_text())) == SCRIPTS
    assert sorted(path.stem for path in (ROOT / "docs" / "gallery").glob("*.png")) == SCRIPTS
