"""docs/architecture.md says what the code is: its layers are those enforced, its files exist and are passed by the data."""

from __future__ import annotations

import re
import runpy
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import bochner

DOCS = Path(__file__).parent.parent / "docs"
PACKAGE = Path(bochner.__file__).parent
PAGE = (DOCS / "architecture.md").read_text()
PICTURE = runpy.run_path(str(DOCS / "draw_layers.py"), run_name="draw_layers")
TRACES = runpy.run_path(str(DOCS / "trace_paths.py"), run_name="trace_paths")


def section(title: str) -> str:
    return PAGE.split(f"### {title}")[1].partition("\n### ")[0]


def files_of(text: str) -> list[str]:
    """Files in the first column of a table."""
    return re.findall(r"^\| `([\w/]+\.py)` \|", text, flags=re.MULTILINE)


def test_every_file_exists():
    by_hand = re.sub(r"<!-- files: .*?<!-- end -->", "", PAGE, flags=re.DOTALL)
    named = re.findall(r"`([\w/]+\.py)`", by_hand)
    assert len(named) > 30
    for name in named:
        assert (PACKAGE / name).exists() or (DOCS.parent / name).exists(), name


def test_layers_are_those_of_import_linter():
    table = PAGE.partition("## Layers")[2].partition("\n## ")[0]
    written = [re.findall(r"`(\w+)`", row) for row in table.splitlines() if row.startswith("| ") and "`" in row]
    assert written == PICTURE["layers"]()


def test_every_package_is_in_a_layer():
    there = {path.stem for path in PACKAGE.glob("*") if path.is_dir() or path.suffix == ".py"}
    layered = {package for layer in PICTURE["layers"]() for package in layer}
    assert there - layered - {"__init__", "__main__", "__pycache__", "_citation", "references", "py"} == set()


SHARED = {
    "the same estimators on Dask collections": [
        "GaussianProcess",
        "KernelClassifier",
        "KernelRidge",
        "RandomProjection",
    ],
    "one transformer, for scikit-learn, for Dask and as a layer of torch": ["RandomFeatures"],
    "a projection is the preset of its geometry": ["Orthogonal", "Simplex", "SimplexPlus"],
}
"""Names that several classes have, by the reason."""


def test_no_two_classes_share_a_name():
    names = [
        name for path in PACKAGE.rglob("*.py") for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE)
    ]
    assert len(names) > 300
    assert {name for name in names if names.count(name) > 1} == {name for listed in SHARED.values() for name in listed}


def test_picture_is_current():
    drawn = PICTURE["draw"]()
    ET.fromstring(drawn)
    assert (DOCS / "layers.svg").read_text() == drawn, "run: python docs/draw_layers.py"


@pytest.mark.parametrize("title", TRACES["PATHS"])
def test_the_page_lists_the_files_that_a_call_enters(title):
    """All of them, and no other; those of the table are among them."""
    entered = TRACES["files_entered"](TRACES["PATHS"][title])
    assert sorted(TRACES["files_listed"](PAGE, title)) == sorted(entered), "run: python docs/trace_paths.py"
    assert set(files_of(section(title))) <= set(entered)


def test_every_path_is_followed():
    assert re.findall(r"^### ([\w ]+):", PAGE, flags=re.MULTILINE) == list(TRACES["PATHS"])
