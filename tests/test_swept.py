"""Parts of swept tests: every case is in exactly one of them, and none is left out where all are asked for."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

CONFTEST = runpy.run_path(str(Path(__file__).parent / "conftest.py"), run_name="tests_conftest")
NAMES = [f"test_law[{number}]" for number in range(300)]


def taken(monkeypatch, share, part=None, thorough=False, arguments=("tests",), keyword=""):
    """Names that are left of as many cases of one test."""
    monkeypatch.delenv("BOCHNER_THOROUGH", raising=False)
    monkeypatch.setenv("BOCHNER_PART", str(part or 0))
    if thorough:
        monkeypatch.setenv("BOCHNER_THOROUGH", "1")
    mark = SimpleNamespace(args=(share,)) if share else None
    items = [SimpleNamespace(name=name, get_closest_marker=lambda _: mark) for name in NAMES]
    hook = SimpleNamespace(pytest_deselected=lambda items: None)
    config = SimpleNamespace(option=SimpleNamespace(keyword=keyword), args=list(arguments), hook=hook)
    CONFTEST["pytest_collection_modifyitems"](config, items)
    return [item.name for item in items]


@pytest.mark.parametrize("share", (2, 3, 4))
def test_parts_are_disjoint_and_make_the_whole(share, monkeypatch):
    parts = [taken(monkeypatch, share, part) for part in range(share)]
    assert sorted(name for part in parts for name in part) == sorted(NAMES)
    assert all(0.7 < len(part) * share / len(NAMES) < 1.3 for part in parts)
    assert taken(monkeypatch, share, share + 1) == parts[1]


def test_nothing_is_left_out_where_all_or_some_are_asked_for(monkeypatch):
    assert taken(monkeypatch, None) == taken(monkeypatch, 3, thorough=True) == NAMES
    assert (
        taken(monkeypatch, 3, arguments=["tests/test_law.py::test_law"])
        == taken(monkeypatch, 3, keyword="law")
        == NAMES
    )
