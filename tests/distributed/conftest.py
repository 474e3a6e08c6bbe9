"""A cluster of two worker processes on this machine, shared by all tests."""

from __future__ import annotations

import dask
import pytest

from distributed import Client, LocalCluster

PATIENCE = "300s"
"""After which a process that does not answer is lost, however slow the machine."""


@pytest.fixture(scope="package")
def cluster():
    # any free port: a taken one is a warning, and test processes run beside each other
    options = {"dashboard_address": ":0", "memory_limit": 0}
    with (
        dask.config.set({"distributed.comm.timeouts.connect": PATIENCE}),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options) as started,
    ):
        yield started


@pytest.fixture
def client(cluster):
    with Client(cluster, timeout=PATIENCE) as connected:
        yield connected
