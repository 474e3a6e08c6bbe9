"""Killing a worker in the middle of a fit loses nothing."""

from __future__ import annotations

import os
import signal
import threading
import time

import dask
import dask.array as da
import numpy as np

from bochner import distributed, learn

N_BLOCKS, ROWS = 12, 200
PATIENCE = 60.0
"""Seconds after which something is wrong."""


def rows_of(i):
    rng = np.random.default_rng(i)
    X = rng.standard_normal((ROWS, 3))
    return X, np.sin(X[:, 0])


def slow_collection(folder):
    """Blocks that take a while and leave a mark of who computed them."""

    def block(i, which, rows, folder):
        import os
        import time
        from pathlib import Path

        import numpy as np

        rng = np.random.default_rng(i)
        X = rng.standard_normal((rows, 3))
        time.sleep(0.25)
        (Path(folder) / f"{i}-{which}-{os.getpid()}-{time.time_ns()}").touch()
        return X if which == "X" else np.sin(X[:, 0])

    make = dask.delayed(block, pure=True)
    parts = [
        [da.from_delayed(make(i, which, ROWS, str(folder)), shape, dtype=float) for i in range(N_BLOCKS)]
        for which, shape in (("X", (ROWS, 3)), ("y", (ROWS,)))
    ]
    return (da.concatenate(part) for part in parts)


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def marks_of(folder, pid):
    return [name for name in os.listdir(folder) if name.split("-")[2] == str(pid)]


def test_a_worker_that_dies_in_the_middle_of_a_fit(client, tmp_path):
    victim, other = sorted(client.run(os.getpid).values())
    X, y = slow_collection(tmp_path)
    model, failure = distributed.KernelRidge(n_components=16, gamma=0.5, random_state=0), []

    def fit():
        try:
            model.fit(X, y)
        except BaseException as error:
            failure.append(error)

    fitting = threading.Thread(target=fit)
    fitting.start()
    wait_until(lambda: len(marks_of(tmp_path, victim)) >= 3)  # it holds results that the others need
    assert len(os.listdir(tmp_path)) < 2 * N_BLOCKS, "the fit was over before the worker could be killed"
    os.kill(victim, signal.SIGKILL)
    fitting.join(PATIENCE)
    assert not fitting.is_alive() and not failure

    rows, targets = (np.concatenate(parts) for parts in zip(*map(rows_of, range(N_BLOCKS)), strict=True))
    single = learn.KernelRidge(n_components=16, gamma=0.5, random_state=0).fit(rows, targets)
    np.testing.assert_allclose(model.coef_, single.coef_, rtol=1e-7)
    wait_until(lambda: len(client.scheduler_info()["workers"]) == 2)  # the nanny has started another
    pids = set(client.run(os.getpid).values())
    assert victim not in pids and other in pids
