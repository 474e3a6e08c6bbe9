"""How many examples: BOCHNER_FUZZ in all (`make fuzz` asks for 10,000), shared out among the callables."""

from __future__ import annotations

import os

import pytest

from fuzz import exploring


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    targets = [
        item
        for item in items
        if item.nodeid.startswith("tests/fuzz/") and "target" in getattr(item, "fixturenames", ())
    ]
    exploring.examples = max(2, int(os.environ.get("BOCHNER_FUZZ", "2500")) // max(len(targets), 1))
