"""Ridge classification on given features: `FeatureRidgeClassifier` against scikit-learn's ``RidgeClassifierCV``.

Each fit runs in a process of its own, with the same rows.  The largest problem is ours alone: scikit-learn would convert its
rows to float64 and decompose them.  Ratios are of CPU times, which other work on the machine changes little.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bochner.learn import FeatureRidgeClassifier
from bochner.reporting import seconds

from ._bench import Result, at_least, at_most, in_process, measured, peak_memory, resident_memory

SIZES = ((3000, 3000), (20_000, 2000))
"""Rows and features on which both run."""
LARGEST = (100_000, 10_000)
CLASSES, FACTORS, TESTED = 8, 32, 2000
_PART = 100
"""Rows that are made at a time: what they take besides must not hide what a fit takes."""
ALPHAS = np.logspace(-1, 5, 13)
"""Half decades around the best one, for scikit-learn: ours finds its own."""
FASTER, MEMORY, WORSE = 5.0, 1.0, 0.005
"""Goals: times faster, GB beyond the rows, and how much lower the accuracy may be."""


def run() -> Iterator[Result]:
    """Times, memory and accuracy."""
    for n, width in SIZES:
        found, other = (in_process(__name__, who, n, width) for who in ("ours", "theirs"))
        shape, times = f"{n} x {width} float32", f"{seconds(found['cpu'])} of CPU; scikit-learn {seconds(other['cpu'])}"
        ratio = other["cpu"] / found["cpu"]
        yield at_least(f"RidgeClassifierCV / FeatureRidgeClassifier, {shape}", ratio, FASTER, "x", times)
        said = "; scikit-learn ".join(f"{one['accuracy']:.4f}, alpha {one['alpha']:.3g}" for one in (found, other))
        lower = other["accuracy"] - found["accuracy"]
        yield at_most(f"lower accuracy on {TESTED} new rows, {shape}", lower, WORSE, "", said)
        beyond = f"scikit-learn {other['memory'] / 1e9:.2f} GB"
        yield at_most(f"memory beyond the rows, {shape}", found["memory"] / 1e9, MEMORY, "GB", beyond)
    alone = in_process(__name__, "ours", *LARGEST)
    shape = f"{LARGEST[0]} x {LARGEST[1]} float32"
    yield measured(
        f"FeatureRidgeClassifier, {shape}",
        alone["time"],
        "s",
        f"{seconds(alone['cpu'])} of CPU; accuracy {alone['accuracy']:.4f}",
    )
    yield at_most(
        f"memory beyond the rows, {shape}", alone["memory"] / 1e9, MEMORY, "GB", f"alpha {alone['alpha']:.3g}"
    )


def data(n: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Features of a network, as it were: saturated sums of classes, common factors and noise, with their labels."""
    rng = np.random.default_rng(0)
    centres = 0.06 * rng.standard_normal((CLASSES, width), dtype=np.float32)
    factors = rng.standard_normal((FACTORS, width), dtype=np.float32) / 6
    X, y = np.empty((n, width), np.float32), rng.integers(0, CLASSES, n)
    for i in range(0, n, _PART):
        label = y[i : i + _PART]
        noise = rng.standard_normal((len(label), width), dtype=np.float32)
        X[i : i + _PART] = np.tanh(
            centres[label] + rng.standard_normal((len(label), FACTORS), dtype=np.float32) @ factors + noise
        )
    return X, y


def ours(n: float, width: float) -> dict[str, float]:
    """Seconds, memory beyond the rows, accuracy and alpha."""
    return _measured(FeatureRidgeClassifier(), int(n), int(width))


def theirs(n: float, width: float) -> dict[str, float]:
    """Seconds, memory beyond the rows, accuracy and alpha of scikit-learn."""
    from sklearn.linear_model import RidgeClassifierCV

    return _measured(RidgeClassifierCV(ALPHAS), int(n), int(width))


def _measured(model: Any, n: int, width: int) -> dict[str, float]:
    X, y = data(n + TESTED, width)
    model.fit(X[:300, :50], y[:300])  # imports, and is not counted
    before, start, cpu = resident_memory(), time.perf_counter(), time.process_time()
    model.fit(X[:n], y[:n])
    spent, used, memory = time.perf_counter() - start, time.process_time() - cpu, peak_memory() - before
    accuracy = float(model.score(X[n:], y[n:]))
    return {"time": spent, "cpu": used, "memory": memory, "accuracy": accuracy, "alpha": float(model.alpha_)}


if __name__ == "__main__":
    import json

    tasks: dict[str, Callable[..., Any]] = {task.__name__: task for task in (ours, theirs)}
    print(json.dumps(tasks[sys.argv[1]](*map(float, sys.argv[2:]))))
