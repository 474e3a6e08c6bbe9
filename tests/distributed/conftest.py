"""A cluster of two worker processes on this machine, shared by all tests."""

from __future__ import annotations

import pytest

from distributed import Client, LocalCluster


@pytest.fixture(scope="package")
def cluster():
    # any free port: a taken one is a warning, and test processes run beside each other
    options = {"dashboard_address": ":0", "memory_limit": 0}
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options) as started:
        yield started


@pytest.fixture
def client(cluster):
    with Client(cluster, timeout="30s") as connected:
        yield connected
