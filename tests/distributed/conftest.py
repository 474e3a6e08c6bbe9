"""A cluster of two worker processes on this machine, shared by the tests of this folder."""

from __future__ import annotations

import contextlib

import dask
import pytest

from distributed import Client, LocalCluster

PATIENCE = "300s"
"""After which a process that does not answer is lost, however slow the machine."""
OPTIONS = {
    "distributed.comm.timeouts.connect": PATIENCE,
    "distributed.worker.profile.enabled": False,  # a hundred samples a second, which nobody reads here
}
_running = contextlib.ExitStack()
_clusters: list[LocalCluster] = []


@pytest.fixture
def cluster() -> LocalCluster:
    """The cluster, which is started by the first test that asks for it."""
    if not _clusters:
        _running.enter_context(dask.config.set(OPTIONS))
        # any free port: a taken one is a warning, and test processes run beside each other
        options = {"dashboard_address": ":0", "memory_limit": 0}
        made = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options)
        _clusters.append(_running.enter_context(made))
    return _clusters[0]


@pytest.fixture
def client(cluster):
    with Client(cluster, timeout=PATIENCE) as connected:
        yield connected


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """Stop the cluster behind the last test of this folder: idle, it took a minute of the whole run."""
    try:
        return (yield)
    finally:
        if nextitem is None or nextitem.path.parent != item.path.parent:
            _running.close()
            _clusters.clear()
