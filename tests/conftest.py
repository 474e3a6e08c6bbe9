"""Seeds: one by default, more with BOCHNER_SEEDS (a number, or a range such as 0-99)."""

from __future__ import annotations

import os

import pytest


def _seeds() -> list[int]:
    first, _, last = os.environ.get("BOCHNER_SEEDS", "0").partition("-")
    return list(range(int(first), int(last or first) + 1))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", _seeds(), ids=lambda s: f"seed{s}")
