"""Half a million rows of float32 on one machine: a landmark process as it comes, and a wide ridge.

Each fit runs in a process of its own, with its progress bar, so that its memory is not that of others.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bochner.learn import GaussianProcess, KernelRidge

from ._bench import peak_memory, resident_memory

ROWS, NEW_ROWS, COLUMNS, WIDTH = 500_000, 20_000, 20, 4096
NOISE, ALPHA = 0.1, 0.1
_PART = 50_000


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Twenty columns, of which three matter in a product and one in a line, and noise; targets have unit variance."""
    rng, X = np.random.default_rng(0), np.empty((n, COLUMNS), np.float32)
    y = np.empty(n, np.float32)
    for i in range(0, n, _PART):
        Z = X[i : i + _PART] = rng.standard_normal((min(_PART, n - i), COLUMNS), dtype=np.float32)
        y[i : i + _PART] = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] + Z[:, 3] / 2 + NOISE * rng.standard_normal(len(Z))
    return X, (y - y.mean()) / y.std()


def process() -> dict[str, Any]:
    """A Gaussian process with everything left open."""
    return _measured(GaussianProcess(random_state=0, verbose=1))


def ridge() -> dict[str, Any]:
    """Random features of a given width and regularisation, with lengthscales by the columns that matter."""
    from bochner.kernels import Gaussian

    scales = np.full(COLUMNS, 100.0)
    scales[:4] = 2.0
    kernel = Gaussian(tuple(scales.tolist()))
    model = KernelRidge(
        kernel, gamma=None, map=None, n_components=WIDTH, alpha=ALPHA, metric=None, random_state=0, verbose=1
    )
    return _measured(model)


def _measured(model: Any) -> dict[str, Any]:
    """Seconds, memory beyond the rows, error and coverage of new rows, and which bars were shown."""
    X, y = data(ROWS + NEW_ROWS)
    model.fit(X[:500], y[:500])  # compiles, and is not counted
    before, begun, cpu, said = resident_memory(), time.perf_counter(), time.process_time(), io.StringIO()
    with contextlib.redirect_stderr(said):
        model.fit(X[:ROWS], y[:ROWS])
    found = {
        "rows": ROWS,
        "columns": COLUMNS,
        "seconds": time.perf_counter() - begun,
        "cpu_seconds": time.process_time() - cpu,
        "memory": peak_memory() - before,
        "width": int(model.features_.n_features_out),
        "bars": sorted(set(re.findall(r"([a-z][a-z ]+): +\d+%", said.getvalue()))),
    }
    T, z = X[ROWS:], y[ROWS:]
    if isinstance(model, GaussianProcess):
        mean, deviation = model.predict(T, return_std=True, include_noise=True)
        found["coverage"] = float(np.mean(np.abs(z - mean) <= 1.96 * deviation))
    else:
        mean = model.predict(T)
    return found | {"error": float(np.sqrt(np.mean((z - mean) ** 2))), "type": str(mean.dtype)}


if __name__ == "__main__":
    tasks: dict[str, Callable[[], dict[str, Any]]] = {task.__name__: task for task in (process, ridge)}
    print(json.dumps(tasks[sys.argv[1]]()))
