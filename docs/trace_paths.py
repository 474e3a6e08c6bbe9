"""Writes into architecture.md which files a call really enters: all of them, from a trace, none chosen by hand.

Run `python docs/trace_paths.py` after a change; tests/test_architecture.py compares the page with the traces.
"""

from __future__ import annotations

import re
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import bochner

PAGE = Path(__file__).parent / "architecture.md"
PACKAGE = Path(bochner.__file__).parent
X = np.random.default_rng(0).standard_normal((60, 3))
Call = Callable[[], Any]


def transform(folder: Path) -> Call:
    """Features of rows."""
    phi = bochner.Approximation(bochner.kernels.Gaussian(), n_projections=8).draw(3, rng=0)
    return lambda: phi.queries(X)


def ridge(folder: Path) -> Call:
    """A fit that chooses everything."""
    from bochner.learn import KernelRidge

    return lambda: KernelRidge(n_components=8, random_state=0).fit(X, X[:, 0])


def attention(folder: Path) -> Call:
    """Causal attention with a window, long enough for the fused operator."""
    import torch

    from bochner.nn import linear_attention

    q, k, v = torch.zeros(3, 1, 1, 1024, 4)
    phi = bochner.mechanism("favor+", n_projections=256).draw(4, rng=0)

    def call() -> Any:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # a profile does not see the threads of torch
        try:
            return linear_attention(q, k, v, features=phi, causal=True, window=2)
        finally:
            torch.set_num_threads(threads)

    return call


def compare(folder: Path) -> Call:
    """The command on a small table."""
    from bochner.cli import main

    np.savetxt(folder / "rows.csv", X, delimiter=",")
    options = ["--kernel", "laplacian", "--features", "8", "--draws", "2", "--rows", "20"]
    return lambda: main(["compare", str(folder / "rows.csv"), *options, "--out", str(folder / "report")])


def recommend(folder: Path) -> Call:
    """A ranking of mechanisms."""
    return lambda: bochner.recommend(X[:20], kernel=bochner.kernels.Laplacian(10.0), n_features=8, rng=0)


def compare_for_a_target(folder: Path) -> Call:
    """A comparison of estimators, with all the time that it wants."""
    return lambda: bochner.compare(X[:30], np.sin(X[:30, 0]), budget=1e6, n_folds=3)


def dask(folder: Path) -> Call:
    """A fit on Dask arrays, in this process."""
    import dask as library
    import dask.array as array

    from bochner.distributed import KernelRidge

    rows = array.from_array(X, chunks=(20, 3))

    def fit() -> Any:
        with library.config.set(scheduler="synchronous"):
            return KernelRidge(n_components=8, random_state=0).fit(rows, rows[:, 0])

    return fit


PATHS: dict[str, Callable[[Path], Call]] = {
    "Transform": transform,
    "Ridge fit": ridge,
    "Attention": attention,
    "Compare": compare,
    "Recommend": recommend,
    "Compare for a target": compare_for_a_target,
    "Dask fit": dask,
}


def files_entered(prepare: Callable[[Path], Call]) -> list[str]:
    """Files of the package in which a function is called, in the order of their first call.

    The first call imports, compiles and fills caches; the second one is traced.
    """
    found: dict[str, None] = {}

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            found[str(Path(frame.f_code.co_filename).relative_to(PACKAGE))] = None

    before = sys.getprofile()
    with tempfile.TemporaryDirectory() as folder:
        call = prepare(Path(folder))
        call()
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            call()
        finally:
            sys.setprofile(before)
            threading.setprofile(None)
    return list(found)


def listed(files: list[str]) -> str:
    """One line per package, in the order in which a call enters them."""
    groups: dict[str, list[str]] = {}
    for name in files:
        folder, _, file = name.rpartition("/")
        groups.setdefault(folder or "bochner", []).append(f"`{file}`")
    lines = [f"- `{folder}`: {', '.join(names)}" for folder, names in groups.items()]
    return "\n".join((f"All {len(files)} files that the call enters:", "", *lines))


def block(title: str) -> re.Pattern[str]:
    """The generated part of the section of that title."""
    return re.compile(rf"(<!-- files: {title} -->\n).*?(\n<!-- end -->)", re.DOTALL)


def files_listed(page: str, title: str) -> list[str]:
    """The files that the page lists for a path."""
    part = block(title).search(page)
    assert part is not None, f"the page has no files of {title}"
    lines = re.findall(r"^- `([\w/]+)`: (.*)$", part.group(0), flags=re.MULTILINE)
    return [
        file if folder == "bochner" else f"{folder}/{file}"
        for folder, files in lines
        for file in re.findall(r"`(.*?)`", files)
    ]


def main() -> None:
    """Trace all paths and write the page."""
    page = PAGE.read_text(encoding="utf-8")
    for title, prepare in PATHS.items():
        text = listed(files_entered(prepare))
        page = block(title).sub(lambda part, text=text: part.group(1) + text + part.group(2), page)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
