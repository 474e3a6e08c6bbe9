"""What keeps tests free of luck and of the clock: seeds, one thread, and no limits on the time of examples.

One seed by default; more with BOCHNER_SEEDS (a number, or a range such as 0-99).

Test processes run side by side on all cores.  BLAS and torch with a thread for each core in each of them would mostly wait
for each other (a small training of 0.8 s then takes 17 s), so they have one.  Tests of threads ask for theirs.
"""

from __future__ import annotations

import itertools
import os
import sys
import zlib

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by libraries when they are first imported

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

collect_ignore = ["support/guide_variants.py"]
"""Registers wrong variants when it is imported, for another process; doctests would import it into this one."""

settings.register_profile(
    "any machine", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


def _seeds() -> list[int]:
    first, _, last = os.environ.get("BOCHNER_SEEDS", "0").partition("-")
    return list(range(int(first), int(last or first) + 1))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take a part of the cases of tests that are marked as swept, unless all are asked for, or some by name."""
    named = config.option.keyword or any("::" in argument for argument in config.args)
    if "BOCHNER_THOROUGH" in os.environ or named:
        return
    part = int(os.environ.get("BOCHNER_PART", "0"))

    def taken(item: pytest.Item) -> bool:
        mark = item.get_closest_marker("swept")
        return mark is None or (zlib.crc32(item.name.encode()) - part) % mark.args[0] == 0

    left_out = [item for item in items if not taken(item)]
    items[:] = [item for item in items if taken(item)]
    config.hook.pytest_deselected(items=left_out)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", _seeds(), ids=lambda s: f"seed{s}")


@pytest.fixture(autouse=True)
def no_entropy(monkeypatch):
    """Generators that nobody seeded are the same ones in each run of a test, whatever ran before it."""
    seeds, seeded = itertools.count(), np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda seed=None: seeded(next(seeds) if seed is None else seed))
    np.random.seed(0)  # noqa: NPY002 -- scikit-learn's default `random_state`
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture
def two_threads_of_blas():
    """What a user has: without a limit, products would be split among threads, and have other bits."""
    with threadpool_limits(2, "blas"):
        yield
