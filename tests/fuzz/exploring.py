"""Runs a target on many hostile arguments, the same ones each time."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

CALLABLES = 300
"""About how many callables are explored."""

examples = max(2, int(os.environ.get("BOCHNER_FUZZ", "1200")) // CALLABLES)
"""Examples of each callable: BOCHNER_FUZZ in all, of which `make fuzz` asks for 10,000."""


def explore(name: str, strategy: st.SearchStrategy[Any], check: Callable[[Any], None], share: int = 1) -> None:
    """Check many values of the strategy, as many as ``share`` callables get; a failure is reduced to the simplest."""

    @seed(zlib.crc32(name.encode()))
    @settings(
        max_examples=share * examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def run(value: Any) -> None:
        check(value)

    run()
