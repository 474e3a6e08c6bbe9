"""docs/architecture.md says what the code is: its layers are those enforced, its files exist and are passed by the data."""

from __future__ import annotations

import re
import runpy
import sys
import threading
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import bochner

DOCS = Path(__file__).parent.parent / "docs"
PACKAGE = Path(bochner.__file__).parent
PAGE = (DOCS / "architecture.md").read_text()
PICTURE = runpy.run_path(str(DOCS / "draw_layers.py"), run_name="draw_layers")
X = np.random.default_rng(0).standard_normal((60, 3))


def section(title: str) -> str:
    return PAGE.split(f"### {title}")[1].partition("\n### ")[0]


def files_of(text: str) -> list[str]:
    """Files in the first column of a table."""
    return re.findall(r"^\| `([\w/]+\.py)` \|", text, flags=re.MULTILINE)


def test_every_file_exists():
    named = re.findall(r"`([\w/]+\.py)`", PAGE)
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


def test_picture_is_current():
    drawn = PICTURE["draw"]()
    ET.fromstring(drawn)
    assert (DOCS / "layers.svg").read_text() == drawn, "run: python docs/draw_layers.py"


def transform(tmp_path):
    return bochner.Approximation(bochner.kernels.Gaussian(), n_projections=8).draw(3, rng=0).queries(X)


def ridge(tmp_path):
    from bochner.learn import KernelRidge

    return KernelRidge(n_components=8, random_state=0).fit(X, X[:, 0])


def attention(tmp_path):
    torch = pytest.importorskip("torch")
    from bochner.nn import linear_attention

    q, k, v = torch.zeros(3, 1, 1, 1024, 4)  # long enough for the fused operator
    phi = bochner.mechanism("favor+", n_projections=256).draw(4, rng=0)
    return linear_attention(q, k, v, features=phi, causal=True, window=2)


def compare(tmp_path):
    from bochner.cli import main

    np.savetxt(tmp_path / "rows.csv", X, delimiter=",")
    options = ["--kernel", "laplacian", "--features", "8", "--draws", "2", "--rows", "20"]
    return main(["compare", str(tmp_path / "rows.csv"), *options, "--out", str(tmp_path / "report")])


def recommend(tmp_path):
    return bochner.recommend(X[:20], kernel=bochner.kernels.Laplacian(10.0), n_features=8, rng=0)


def compare_for_a_target(tmp_path):
    return bochner.compare(X, np.sin(X[:, 0]), budget=1e6)


def dask(tmp_path):
    array, config = pytest.importorskip("dask.array"), pytest.importorskip("dask").config
    from bochner.distributed import KernelRidge

    rows = array.from_array(X, chunks=(20, 3))
    with config.set(scheduler="synchronous"):
        return KernelRidge(n_components=8, random_state=0).fit(rows, rows[:, 0])


PATHS = {
    "Transform": transform,
    "Ridge fit": ridge,
    "Attention": attention,
    "Compare": compare,
    "Recommend": recommend,
    "Compare for a target": compare_for_a_target,
    "Dask fit": dask,
}


def files_entered(work, tmp_path) -> set[str]:
    """Files of the package in which a function is called."""
    found = set()

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            found.add(str(Path(frame.f_code.co_filename).relative_to(PACKAGE)))

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work(tmp_path)
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return found


@pytest.mark.parametrize("title", PATHS)
def test_data_passes_the_files_of_a_path(title, tmp_path):
    files = files_of(section(title))
    assert 5 <= len(files) <= 7
    entered = files_entered(PATHS[title], tmp_path)
    if (
        not set(files) <= entered
    ):  # what is imported or compiled on the way can end the profile; the second time nothing is
        entered |= files_entered(PATHS[title], tmp_path)
    assert set(files) <= entered


def test_every_path_is_followed():
    assert re.findall(r"^### ([\w ]+):", PAGE, flags=re.MULTILINE) == list(PATHS)
