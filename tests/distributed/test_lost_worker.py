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
HELD = 3
"""Blocks that each worker computes before one of them is killed."""
PATIENCE = 120.0
"""Seconds after which something is wrong."""


def rows_of(i):
    rng = np.random.default_rng(i)
    X = rng.standard_normal((ROWS, 3))
    return X, np.sin(X[:, 0])


def gated_collection(folder):
    """Blocks that leave a mark of who computed them; after some of them, every worker waits until one was killed."""

    def block(i, which, rows, folder, held):
        import os
        import time
        from pathlib import Path

        import numpy as np

        folder, rng = Path(folder), np.random.default_rng(i)
        X = rng.standard_normal((rows, 3))
        while len(list(folder.glob(f"*-{os.getpid()}-*"))) >= held and not (folder / "killed").exists():
            time.sleep(0.02)
        (folder / f"{i}-{which}-{os.getpid()}-{time.time_ns()}").touch()
        return X if which == "X" else np.sin(X[:, 0])

    make = dask.delayed(block, pure=True)
    parts = [
        [da.from_delayed(make(i, which, ROWS, str(folder), HELD), shape, dtype=float) for i in range(N_BLOCKS)]
        for which, shape in (("X", (ROWS, 3)), ("y", (ROWS,)))
    ]
    return (da.concatenate(part) for part in parts)


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def fit_beside_a_kill(client, folder):
    """A fit during which a worker is killed that holds results; the thread of the fit, the model, its errors, both pids."""
    folder.mkdir()
    victim, other = sorted(client.run(os.getpid).values())
    X, y = gated_collection(folder)
    model, failure = distributed.KernelRidge(n_components=16, gamma=0.5, random_state=0), []

    def fit():
        try:
            model.fit(X, y)
        except BaseException as error:
            failure.append(error)

    fitting = threading.Thread(target=fit, daemon=True)
    fitting.start()
    wait_until(lambda: len(list(folder.glob(f"*-{victim}-*"))) >= HELD)  # it holds results that the others need
    os.kill(victim, signal.SIGKILL)
    (folder / "killed").touch()
    fitting.join(PATIENCE)
    return fitting, model, failure, victim, other


def test_a_worker_that_dies_in_the_middle_of_a_fit(client, tmp_path):
    for attempt in range(2):  # the scheduler of Dask itself can wait for ever for a lost result: then once more
        fitting, model, failure, victim, other = fit_beside_a_kill(client, tmp_path / str(attempt))
        if not fitting.is_alive():
            break
        client.restart()
    assert not fitting.is_alive() and not failure

    rows, targets = (np.concatenate(parts) for parts in zip(*map(rows_of, range(N_BLOCKS)), strict=True))
    single = learn.KernelRidge(n_components=16, gamma=0.5, random_state=0).fit(rows, targets)
    np.testing.assert_allclose(model.coef_, single.coef_, rtol=1e-7)
    wait_until(lambda: len(client.scheduler_info()["workers"]) == 2)  # the nanny has started another
    pids = set(client.run(os.getpid).values())
    assert victim not in pids and other in pids
