"""Every script of the gallery answers its question with a figure, copied out and with public names only."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*/plot_*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings(
    "ignore:FigureCanvasAgg is non-interactive", "ignore:attention. the predicted relative error"
)
@pytest.mark.swept(8)
def test_script_draws_a_figure(script, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    copy = tmp_path / script.name
    copy.write_text(script.read_text())
    monkeypatch.chdir(tmp_path)
    try:
        runpy.run_path(str(copy))
        assert pyplot.get_fignums() and all(pyplot.figure(n).axes for n in pyplot.get_fignums())
    finally:
        pyplot.close("all")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_asks_a_question(script):
    text = ast.get_docstring(ast.parse(script.read_text())) or ""
    title, line, _, *rest = text.splitlines()
    assert re.fullmatch(r"[A-Z].*\?", title) and line == "=" * len(title) and rest
    assert max(map(len, script.read_text().splitlines())) <= 125


def test_every_folder_of_the_gallery_has_a_header():
    assert len(SCRIPTS) >= 30
    assert all((script.parent / "GALLERY_HEADER.rst").exists() for script in SCRIPTS)
