"""Workers outside of this thread: processes and a Dask client give the bits of a serial run."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from bochner.optimize import EvaluationWarning, minimize, smoothed_gradient

OPTIONS = dict(sigma=0.3, n_directions=30, rng=0)
THETA = np.linspace(-1, 0.3, 12)


def test_processes():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = smoothed_gradient(np.linalg.norm, THETA, map=pool.map, **OPTIONS)
    assert (found.gradient == smoothed_gradient(np.linalg.norm, THETA, **OPTIONS).gradient).all()


def test_dask_client():
    distributed = pytest.importorskip("distributed")

    def bumpy(x):
        if x[0] > -0.4:
            raise ArithmeticError("off the map")
        return float(np.cos(3 * x).sum() + x @ x)

    def run(**options):
        with pytest.warns(EvaluationWarning, match="ArithmeticError: off the map"):
            return minimize(bumpy, THETA, max_iterations=2, **OPTIONS | options)

    with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
        found = run(map=client)
    serial = run()
    assert found.n_failed == serial.n_failed > 0
    assert (found.center == serial.center).all() and found.fun == serial.fun
